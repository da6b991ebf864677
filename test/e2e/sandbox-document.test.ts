// Every example of a fault in docs/sandbox.md has the effect that its row describes, and the curl commands run unchanged.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { SandboxDescription } from "../../src/sandbox/description.ts";
import { faultKeys } from "../../src/sandbox/fault.ts";
import { root } from "../support/program.ts";
import { startService } from "../support/service.ts";
import { aSandbox, send, basic, type RawResponse, control, create, list, setTime } from "../unit/sandbox/a-sandbox.ts";

type RegionDescription = SandboxDescription["us"];

const document = readFileSync(join(root, "docs/sandbox.md"), "utf8");

const examples = new Map(
  [...document.matchAll(/^\| `([a-z-]+)=.*` \| .* \| `([^`]+)` \|$/gm)].map(([, key, example]) => [key!, example!]),
);

interface Scene {
  readonly us: RegionDescription;
  readonly wait: (seconds: number) => void;
}

const statuses = async (count: number, send: () => Promise<RawResponse>): Promise<(number | "lost")[]> => {
  const all: (number | "lost")[] = [];
  for (let n = 0; n < count; n++)
    all.push(
      await send().then(
        ({ status }) => status,
        () => "lost" as const,
      ),
    );
  return all;
};

async function created(
  us: RegionDescription,
  key: string,
): Promise<{ id: string; status: string; client_secret: string | null }> {
  return JSON.parse((await create(us, key)).text);
}

function client(us: RegionDescription, id: string, method = "GET"): Promise<RawResponse> {
  return send(`${us.base_url}/v1/oauth_clients/${id}`, { method, headers: basic(us.api_key) });
}

function createKey(us: RegionDescription): Promise<RawResponse> {
  const headers = {
    authorization: `Bearer ${us.access_token}`,
    "x-organization-id": us.organization_id,
    "content-type": "application/json",
  };
  return send(`${us.base_url}/api/v1/access-keys`, { method: "POST", headers, body: '{"name":"k"}' });
}

async function slots(us: RegionDescription): Promise<number> {
  const accounts = (await control(us, "/service_accounts")) as { id: string; slots: number }[];
  return accounts.find(({ id }) => id === us.service_account_id)!.slots;
}

const effects: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  times: async ({ us }) => expect(await statuses(4, () => create(us, "k"))).toEqual([503, 503, 201, 201]),
  after: async ({ us }) => expect(await statuses(5, () => list(us))).toEqual([200, 200, 200, "lost", 200]),
  probability: async ({ us }) => {
    const all = await statuses(300, () => list(us));
    expect(new Set(all)).toEqual(new Set([200, 429]));
    expect(all.filter((status) => status === 429).length).toBeLessThan(100);
  },
  status: async ({ us }) => expect(JSON.parse((await list(us)).text)).toMatchObject({ status: 500, retryable: true }),
  "retry-after": async ({ us }) => {
    const wanted = new Date(startMs + 3000).toUTCString();
    expect(await list(us)).toMatchObject({ status: 429, headers: { "retry-after": wanted } });
    expect((await list(us)).status).toBe(200);
  },
  latency: async ({ us }) => {
    const began = performance.now();
    expect((await list(us)).status).toBe(200);
    expect(performance.now() - began).toBeGreaterThan(290);
  },
  drop: async ({ us }) => {
    expect(await statuses(1, () => create(us, "k"))).toEqual(["lost"]);
    expect(await created(us, "k")).toMatchObject({ status: "active", client_secret: null });
  },
  cut: async ({ us }) => {
    const response = await list(us);
    expect([response.whole, response.text.length]).toEqual([false, 100]);
    expect((await list(us)).whole).toBe(true);
  },
  slow: async ({ us }) => {
    const began = performance.now();
    const response = await list(us, "?limit=5");
    expect([response.status, response.whole]).toEqual([200, true]);
    // The service sends a part of the response every 100 ms, and the first part immediately.
    expect(performance.now() - began).toBeGreaterThan((response.text.length / 2000) * 1000 - 250);
  },
  body: async ({ us }) => {
    expect((await createKey(us)).text).toMatch(/^<!DOCTYPE html>/);
    expect(JSON.parse((await createKey(us)).text)).toMatchObject({ name: "k" });
    const keys = (await control(us, "/access_keys")) as { name: string }[];
    expect(keys.filter(({ name }) => name === "k")).toHaveLength(2);
  },
  redirect: async ({ us }) =>
    expect(await list(us)).toMatchObject({
      status: 307,
      headers: { location: "https://elsewhere.example/v1/entities" },
    }),
  envelope: async ({ us }) => {
    expect(JSON.parse((await list(us)).text)).toMatchObject({ has_more: true, next_page_token: expect.any(String) });
    expect(JSON.parse((await list(us)).text)).toMatchObject({ has_more: true, next_page_token: null });
  },
  token: async ({ us }) => {
    const tokens: string[] = [];
    for (const _ of [1, 2, 3, 4]) {
      const query = tokens.length === 0 ? "" : `&page_token=${tokens.at(-1)}`;
      tokens.push(JSON.parse((await list(us, `?limit=5${query}`)).text).next_page_token);
    }
    expect(new Set(tokens.slice(0, 2)).size).toBe(2);
    expect([tokens[2], tokens[3]]).toEqual([tokens[1], tokens[1]]);
  },
  rows: async ({ us }) => {
    const first = JSON.parse((await list(us, "?limit=5")).text);
    const second = JSON.parse((await list(us, `?limit=5&page_token=${first.next_page_token}`)).text);
    expect(second.data).toHaveLength(5);
    expect(second.data[0]).toEqual(first.data[4]);
  },
  document: async ({ us }) => {
    const { paths } = JSON.parse((await send(`${us.base_url}/v1-reference/openapi-v1.json`)).text);
    expect(Object.keys(paths)).not.toContain("/v1/oauth_clients/{id}");
    expect((await client(us, "oac_none")).status).toBe(404);
  },
  retryable: async ({ us }) =>
    expect(JSON.parse((await list(us)).text)).toMatchObject({ status: 500, retryable: false }),
  lifetime: async ({ us, wait }) => {
    const { client_id, client_secret } = JSON.parse((await create(us, "k")).text);
    const response = await send(us.token_endpoint!, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: String(new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret })),
    });
    const { access_token, expires_in } = JSON.parse(response.text);
    expect(expires_in).toBe(5);
    const withToken = (): Promise<RawResponse> =>
      send(`${us.base_url}/v1/entities`, { headers: { authorization: `Bearer ${access_token}` } });
    expect((await withToken()).status).toBe(200);
    wait(6);
    expect((await withToken()).status).toBe(401);
  },
  "client-id": async ({ us }) => {
    const body = JSON.parse((await create(us, "k")).text);
    expect(body).toMatchObject({
      status: "pending",
      client_id: expect.stringMatching(/^cid_us_/),
      client_secret: null,
    });
    await client(us, body.id);
    expect(JSON.parse((await client(us, body.id)).text)).toMatchObject({ status: "active", client_id: body.client_id });
  },
  text: async ({ us }) => expect(JSON.parse((await list(us)).text).data[0].display_name).toContain("\u001b"),
  rate: async ({ us, wait }) => {
    expect(await statuses(6, () => list(us))).toEqual([200, 200, 200, 200, 200, 429]);
    expect((await list(us)).headers["retry-after"]).toBe("1");
    wait(1);
    expect((await list(us)).status).toBe(200);
  },
  pending: async ({ us }) => {
    const { id, status } = await created(us, "k");
    const looks = [status];
    for (const _ of [1, 2, 3]) looks.push(JSON.parse((await client(us, id)).text).status);
    expect(looks).toEqual(["pending", "pending", "pending", "active"]);
    expect(await created(us, "other")).toMatchObject({ status: "active" });
  },
  secret: async ({ us }) => {
    const { id, status } = await created(us, "k");
    expect(status).toBe("pending");
    for (const _ of [1, 2, 3]) expect(JSON.parse((await client(us, id)).text).status).toBe("pending");
    expect(await created(us, "k")).toMatchObject({ id, status: "active", client_secret: expect.any(String) });
    expect(await created(us, "k")).toMatchObject({ id, status: "active", client_secret: null });
  },
  effect: async ({ us }) => {
    expect((await create(us, "k")).status).toBe(500);
    expect(await control(us, "/oauth_clients")).toMatchObject([{ status: "active", idempotency_key: "k" }]);
  },
  cleanup: async ({ us }) => {
    const { id } = await created(us, "k");
    expect((await client(us, id, "DELETE")).status).toBe(200);
    expect(await slots(us)).toBe(1);
    await control(us, `/oauth_clients/${id}`, { cleanup: "confirmed" });
    expect(await slots(us)).toBe(0);
  },
};

const startMs = Date.UTC(2026, 10, 21);

describe("the examples of faults", () => {
  it("cover each fault, and each has its test", () => {
    expect([...examples.keys()].toSorted()).toEqual(Object.keys(faultKeys).toSorted());
    expect(Object.keys(effects).toSorted()).toEqual(Object.keys(faultKeys).toSorted());
  });

  it.each([...examples])("%s: %s", async (key, example) => {
    setTime(startMs);
    const { us } = await aSandbox({ faults: [example] });
    const wait = (seconds: number) => setTime(Date.now() + seconds * 1000);
    await effects[key]!({ us, wait });
  });

  it("are accepted by sandbox start with one --fault each; each host counts for itself", async () => {
    const words = ["times", "redirect"].flatMap((key) => ["--fault", examples.get(key)!]);
    const { us, eu, stop } = await startService(words);
    onTestFinished(async () => void (await stop()));
    expect(await statuses(3, () => create(us, "k"))).toEqual([503, 503, 201]);
    expect((await create(eu, "k")).status).toBe(503);
    expect((await list(us)).status).toBe(307);
  });
});

describe("the shell commands", () => {
  const blocks = [...document.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1]!);
  const curls = blocks.filter((block) => block.startsWith("curl"));

  it("are two blocks of curl", () => expect([blocks.length, curls.length]).toEqual([3, 2]));

  it("have the described effect", async () => {
    const { us, stop } = await startService();
    onTestFinished(async () => void (await stop()));
    const { client_id, client_secret } = JSON.parse((await create(us, "k")).text) as Record<string, string>;
    const env = {
      PATH: process.env.PATH,
      API_KEY: us.api_key,
      BASE_URL: us.base_url,
      ACCESS_TOKEN: us.access_token,
      ORGANIZATION_ID: us.organization_id,
      CLIENT_ID: client_id,
      CLIENT_SECRET: client_secret,
      TOKEN_ENDPOINT: us.token_endpoint,
      CONTROL_URL: us.control_url,
    };
    const outputs = curls
      .flatMap((block) => block.trim().split("\n"))
      .map((line) => {
        const run = spawnSync("bash", ["-euo", "pipefail", "-c", line.replace("curl ", "curl -sS ")], { env });
        expect(run.status, `${line}: ${run.stderr.toString()}`).toBe(0);
        return JSON.parse(run.stdout.toString()) as unknown;
      });
    expect(outputs).toMatchObject([
      { object: "list", data: [{ object: "entity" }, { object: "entity" }] },
      { data: expect.any(Array) },
      { token_type: "Bearer", expires_in: 900 },
      { openapi: "3.1.0" },
      expect.anything(),
      1,
    ]);
  });
});
