import { beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Account } from "../support/account.ts";
import { Home } from "../support/program.ts";
import { homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;

beforeEach(async () => {
  await account.clear();
  home = homeOfTest(service.env);
});

/** Loses the response of a creation for each scope. Different scopes make different requests. */
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

async function expectComplete({ object, receipts = [], data, has_more }: Printed): Promise<void> {
  expect([object, has_more, receipts.length]).toEqual(["list", false, 2]);
  for (const { client_id, client_secret } of receipts) expect(await account.opens(client_id, client_secret)).toBe(true);
  const printed = data.map((entry) => `${entry.object} ${entry.state}`).toSorted((a, b) => a.localeCompare(b));
  const [done, replaced] = ["journal_entry done", "journal_entry replaced"];
  expect(printed).toEqual([done, done, replaced, replaced]);
}

const recover = ["journal", "recover", "--replace-lost-secret"];

describe("journal recover with secrets on standard output", () => {
  it("prints one JSON document", async () => {
    await lose("entity:read", "organization:read");
    const { code, stdout } = await home.integ([...recover, "--json"]);
    expect(code).toBe(0);
    await expectComplete(JSON.parse(stdout));
  });

  it("prints one YAML document", async () => {
    await lose("entity:read", "organization:read");
    const { code, stdout } = await home.integ([...recover, "-o", "yaml"]);
    expect(code).toBe(0);
    await expectComplete(parse(stdout));
  });

  it("prints one NDJSON object per line", async () => {
    await lose("entity:read");
    const { code, stdout } = await home.integ([...recover, "--ndjson"]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).object)).toEqual(["oauth_client", "journal_entry", "journal_entry"]);
  });

  it("keeps the secret even if --fields omits it", async () => {
    await lose("entity:read");
    const { stdout } = await home.integ([...recover, "--json", "--fields", "id"]);
    const { receipts, data } = JSON.parse(stdout);
    expect(Object.keys(receipts[0])).toEqual(["id", "client_secret"]);
    expect(data.map((entry: object) => Object.keys(entry))).toEqual([["id"], ["id"]]);
  });

  it("prints the plain envelope if the secrets go elsewhere", async () => {
    await lose("entity:read");
    const { stdout } = await home.integ([...recover, "--json", "--secret-file", "s"]);
    expect(Object.keys(JSON.parse(stdout))).toEqual(["object", "data", "next_page_token", "has_more"]);
  });
});
