// Recovery in another place: whatever the environment, the flags and the profiles say by then, an entry is finished as it
// was begun, or the command refuses and says why.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";

let service: Service;
const homes: Home[] = [];

beforeAll(async () => {
  service = await startService();
});
afterEach(async () => {
  await service.calm();
  for (const { id, status } of await clients())
    if (status !== "revoked")
      await service.control("POST", `/oauth_clients/${id}`, { status: "revoked", cleanup: "confirmed" });
  for (const home of homes.splice(0)) home.remove();
});
afterAll(() => service.stop());

interface Client {
  readonly id: string;
  readonly status: string;
}

async function clients(): Promise<Client[]> {
  return (await service.control("GET", "/oauth_clients")) as Client[];
}

async function live(): Promise<string[]> {
  return (await clients()).filter(({ status }) => status === "active").map(({ id }) => id);
}

/** A home whose profile `p` knows its token endpoint. */
async function withProfile(): Promise<Home> {
  const at = new Home();
  homes.push(at);
  await at.integ([...added("p", service.us.base_url), "--token-endpoint", service.us.token_endpoint], {
    input: service.us.api_key,
  });
  return at;
}

function added(name: string, baseUrl: string): string[] {
  const where = ["--region", "us", "--base-url", baseUrl, "--organization-id", service.us.organization_id];
  return ["profiles", "add", name, ...where, "--api-key-stdin"];
}

function made(): string[] {
  return ["oauth-clients", "create", "--service-account", service.us.service_account_id, "--scope", "entity:read"];
}

/** What stands unfinished, and how many clients work once it is finished. */
const operations: Record<string, { leave: (at: Home) => Promise<void>; live: number }> = {
  "a creation": {
    live: 1,
    async leave(at) {
      await service.fault("POST /v1/oauth_clients drop=before times=1");
      const { code } = await at.integ([...made(), "--secret-file", "s", "--retry-for", "0"]);
      expect(code).toBe(7);
    },
  },
  "a rotation": {
    live: 1,
    async leave(at) {
      const { id } = JSON.parse((await at.integ([...made(), "--secret-file", "old", "--json"])).stdout) as Client;
      await service.fault("POST /v1/oauth_clients drop=before times=1");
      const words = ["oauth-clients", "rotate", id, "--secret-file", "s", "--retry-for", "0"];
      expect((await at.integ(words)).code).toBe(7);
    },
  },
  "a revocation": {
    live: 0,
    async leave(at) {
      const { id } = JSON.parse((await at.integ([...made(), "--secret-file", "old", "--json"])).stdout) as Client;
      await service.fault("DELETE /v1/oauth_clients/* drop=before times=1");
      expect((await at.integ(["oauth-clients", "revoke", id, "--yes", "--retry-for", "0"])).code).toBe(7);
    },
  },
};

interface Dimension {
  readonly words?: readonly string[];
  readonly env?: () => Readonly<Record<string, string>>;
  readonly before?: (at: Home) => Promise<unknown>;
}

const dimensions: Record<string, Dimension> = {
  INTEG_SERVICE_VERSION: { env: () => ({ INTEG_SERVICE_VERSION: "2020-01-01" }) },
  "--service-version": { words: ["--service-version", "2020-01-01"] },
  "an edited version": { before: (at) => at.integ(["profiles", "edit", "p", "--service-version", "2020-01-01"]) },
  "another default profile": {
    before: (at) => at.integ([...added("q", "http://127.0.0.1:9"), "--use"], { input: service.us.api_key }),
  },
  "an environment of another address": {
    env: () => ({ INTEG_BASE_URL: "http://127.0.0.1:9", INTEG_REGION: "us", INTEG_API_KEY: service.us.api_key }),
  },
  "another organization in the environment": {
    env: () => ({ INTEG_ORGANIZATION_ID: "00000000-0000-4000-8000-000000000000" }),
  },
  "the organization in capitals": {
    env: () => ({ INTEG_ORGANIZATION_ID: service.us.organization_id.toUpperCase() }),
  },
};

describe.each(Object.entries(operations))("%s, recovered", (operation, { leave, live: working }) => {
  // Of each operation but the first a sample: the rest is the same in test/unit/changes.
  const isWhole = process.env.INTEG_TEST_FULL === "1" || operation === "a creation";
  const tried = Object.entries(dimensions).filter((_dimension, index) => isWhole || index % 3 === 0);
  it.each(tried)("under %s", async (_name, { words = [], env, before }) => {
    const at = await withProfile();
    await leave(at);
    await before?.(at);
    const { code, stderr } = await at.integ(["journal", "recover", "--json", ...words], { env: env?.() });
    expect(stderr).not.toContain("error");
    expect(code).toBe(0);
    expect(await live()).toHaveLength(working);
  });
});
