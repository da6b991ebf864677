// Creations whose response lacks only its last byte: the one-time secret is readable.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { readJournal, type ReadEntry } from "../support/journal-file.ts";
import { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { startScriptedPeer } from "../support/scripted-peer.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;
let responseBytes = 0;

beforeAll(async () => {
  responseBytes = Buffer.byteLength(JSON.stringify(await account.make(["entity:read"])));
  expect(responseBytes).toBeGreaterThan(200);
});
beforeEach(async () => {
  await account.clear();
  home = homeOfTest(service.env);
});

async function create(...more: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  await service.fault(`POST /v1/oauth_clients cut=${responseBytes - 1} times=1`);
  return home.integ(creationWords(service, "--json", ...more));
}

function entryOf(operation = "oauth_client.create"): ReadEntry {
  return readJournal(home.path("state", "journal.ndjson")).find((entry) => entry.operation === operation)!;
}

function kept(): string[] {
  return existsSync(home.path("state", "undelivered")) ? readdirSync(home.path("state", "undelivered")) : [];
}

async function expectOwned(secret: string): Promise<void> {
  const live = await account.live();
  expect(live).toHaveLength(1);
  expect(entryOf()).toMatchObject({ state: "done", resource_id: live[0]!.id });
  expect(await account.opens(live[0]!.client_id!, secret)).toBe(true);
  expect(kept()).toEqual([]);
  expect((await integHere(home, ["journal", "list", "--json"])).stdout).toContain('"data":[]');
}

describe("a secret in a truncated response", () => {
  it("is kept, and the same run identifies its client", async () => {
    const { code, stdout, stderr } = await create("--secret-file", "s");
    expect([code, stdout]).toEqual([12, ""]);
    expect(stderr).toContain(`integ journal claim ${entryOf().id}`);
    expect(existsSync(home.path("s"))).toBe(false);
    const [live] = await account.live();
    expect(entryOf()).toMatchObject({ state: "undelivered", resource_id: live!.id });
    const claimed = await integHere(home, ["journal", "claim", entryOf().id, "--json"]);
    expect(claimed.code).toBe(0);
    const receipt = JSON.parse(claimed.stdout);
    expect(receipt).toMatchObject({ id: live!.id, client_id: live!.client_id });
    await expectOwned(receipt.client_secret);
    const keys = new Set((await account.creations()).map(({ idempotency_key }) => idempotency_key));
    expect(keys.size).toBe(1);
  });

  it.each(["--json", "--output=table", "--output=csv"])(
    "can be claimed before its client is known; recovery then names the client (%s)",
    async (format) => {
      expect((await create("--secret-file", "s", "--retry-for", "0")).code).toBe(12);
      const { id, resource_id } = entryOf();
      expect(resource_id).toBe(null);
      const claimed = await integHere(home, ["journal", "claim", id, "--secret-file", "c", format]);
      expect([claimed.code, kept()]).toEqual([0, []]);
      expect(claimed.stderr).toContain(`integ journal recover ${id}`);
      const secret = readFileSync(home.path("c"), "utf8").trimEnd();
      expect(claimed.stdout).not.toContain(secret);
      expect(entryOf().state).toBe("unknown");
      expect((await integHere(home, ["journal", "recover", id])).code).toBe(0);
      await expectOwned(secret);
    },
  );

  it("is not stored in a profile while its client id is unknown", async () => {
    const text = '{"object":"oauth_client","client_secret":"cs_whole","client_id":"ci';
    const head = `HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: ${text.length + 9}\r\n\r\n`;
    const peer = await startScriptedPeer(() => Buffer.from(head + text));
    const at = homeOfTest({ INTEG_REGION: "us", INTEG_BASE_URL: peer.origin, INTEG_API_KEY: "k" });
    try {
      const create = "oauth-clients create --service-account sa_1 --scope entity:read --retry-for 0";
      expect((await at.integ(create.split(" "))).code).toBe(12);
      const [entry] = readJournal(at.path("state", "journal.ndjson"));
      const profile = ["--base-url", peer.origin, "--client-id", "old", "--token-endpoint", `${peer.origin}/token`];
      const add = ["profiles", "add", "p", "--region", "us", ...profile, "--client-secret-stdin"];
      expect((await at.integ(add, { input: "old" })).code).toBe(0);
      const refused = await integHere(at, ["journal", "claim", entry!.id, "--secret-profile", "p"]);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain("its client id is not known yet");
      expect(refused.stderr).toContain(`integ journal recover ${entry!.id}`);
      const claimed = await integHere(at, ["journal", "claim", entry!.id, "--json"]);
      expect(JSON.parse(claimed.stdout)).toEqual({ id: null, client_id: null, client_secret: "cs_whole" });
    } finally {
      await peer.close();
    }
  });
});
