// What `journal recover` prints where secrets go to standard output: one document in a format that is one, each secret in it
// once, the entries in `data` as ever.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Account } from "../support/account.ts";
import { Home } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";

let service: Service;
let account: Account;
let home: Home;

beforeAll(async () => {
  service = await startService();
  account = new Account(service);
});
beforeEach(async () => {
  await account.clear();
  home = new Home(service.env);
});
afterEach(() => home.remove());
afterAll(() => service.stop());

/** Creations whose answers were lost, each with its own scope, so that they are different requests. */
async function lose(...scopes: string[]): Promise<void> {
  for (const scope of scopes) {
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    const words = `oauth-clients create --service-account ${service.us.service_account_id} --scope ${scope} --retry-for 0`;
    expect((await home.integ(words.split(" "))).code).toBe(7);
  }
}

interface Printed {
  readonly object: string;
  readonly receipts?: readonly { readonly client_id: string; readonly client_secret: string }[];
  readonly data: readonly { readonly object: string; readonly state: string }[];
  readonly has_more: boolean;
}

async function expectWhole({ object, receipts = [], data, has_more }: Printed): Promise<void> {
  expect([object, has_more, receipts.length]).toEqual(["list", false, 2]);
  for (const { client_id, client_secret } of receipts) expect(await account.opens(client_id, client_secret)).toBe(true);
  const told = data.map((entry) => `${entry.object} ${entry.state}`).toSorted((a, b) => a.localeCompare(b));
  const [done, replaced] = ["journal_entry done", "journal_entry replaced"];
  expect(told).toEqual([done, done, replaced, replaced]);
}

const recover = ["journal", "recover", "--replace-lost-secret"];

describe("journal recover, secrets on standard output", () => {
  it("is one JSON document", async () => {
    await lose("entity:read", "organization:read");
    const { code, stdout } = await home.integ([...recover, "--json"]);
    expect(code).toBe(0);
    await expectWhole(JSON.parse(stdout));
  });

  it("is one YAML document", async () => {
    await lose("entity:read", "organization:read");
    const { code, stdout } = await home.integ([...recover, "-o", "yaml"]);
    expect(code).toBe(0);
    await expectWhole(parse(stdout));
  });

  it("is one object a line as NDJSON", async () => {
    await lose("entity:read");
    const { code, stdout } = await home.integ([...recover, "--ndjson"]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).object)).toEqual(["oauth_client", "journal_entry", "journal_entry"]);
  });

  it("keeps the secret in it whatever --fields leaves out", async () => {
    await lose("entity:read");
    const { stdout } = await home.integ([...recover, "--json", "--fields", "id"]);
    const { receipts, data } = JSON.parse(stdout);
    expect(Object.keys(receipts[0])).toEqual(["id", "client_secret"]);
    expect(data.map((entry: object) => Object.keys(entry))).toEqual([["id"], ["id"]]);
  });

  it("is the plain envelope where no secret goes there", async () => {
    await lose("entity:read");
    const { stdout } = await home.integ([...recover, "--json", "--secret-file", "s"]);
    expect(Object.keys(JSON.parse(stdout))).toEqual(["object", "data", "next_page_token", "has_more"]);
  });
});
