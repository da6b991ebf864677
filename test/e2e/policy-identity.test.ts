import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;

beforeEach(async () => {
  await account.clear();
  home = homeOfTest(tokenEnv(service));
  for (const folder of ["one", "two"]) mkdirSync(home.path(folder));
});

interface ItemSettings {
  readonly id?: string;
  readonly scopes?: string;
  readonly every?: string;
  readonly to?: string;
}

const secretFile = "nightly.json";
function write(
  folder: string,
  { id = "pol_of_one", scopes = "entity:read", every = "60d", to = secretFile }: ItemSettings,
): void {
  const item = `service_account: ${service.us.service_account_id}, scopes: [${scopes}], rotate: { every: ${every}, overlap: 0s }`;
  writeFileSync(
    home.path(`${folder}/integ.yaml`),
    `version: 1\nid: ${id}\nunmanaged: ignore\noauth_clients:\n  nightly: { ${item}, secret: { file: ${to}, format: json } }\n`,
  );
}

const integ = (...words: string[]): Promise<Ended> => integHere(home, words);
const apply = (folder: string): Promise<Ended> => integ("apply", "--yes", "--json", "-q", "-f", `${folder}/integ.yaml`);
const rowOf = ({ stdout }: Ended) =>
  (JSON.parse(stdout) as { data: { action: string; result: string; message: string }[] }).data[0]!;
const content = (folder: string): string => readFileSync(home.path(`${folder}/${secretFile}`), "utf8");

async function opens(folder: string): Promise<boolean> {
  const credential = JSON.parse(content(folder)) as Record<"client_id" | "client_secret", string>;
  return account.opens(credential.client_id, credential.client_secret);
}

describe("an item of the same name in another policy", () => {
  const others: Readonly<Record<string, ItemSettings>> = {
    "with the same settings": {},
    "with other scopes": { scopes: "organization:read" },
    "that is always due": { every: "1ms" },
  };

  it.each(Object.entries(others))("%s has its own client in every run", async (_what, says) => {
    write("one", {});
    write("two", { ...says, id: "pol_of_two" });
    for (const folder of ["one", "two", "one", "two", "one"]) {
      const ended = await apply(folder);
      expect([folder, ended.code, ended.stderr]).toEqual([folder, 0, ""]);
    }
    expect([await opens("one"), await opens("two"), (await account.live()).length]).toEqual([true, true, 2]);
  });

  it("has its own secret and adopts no client of the other policy", async () => {
    write("one", {});
    expect((await apply("one")).code).toBe(0);
    write("two", { id: "pol_of_two", to: `../one/${secretFile}` });
    const before = content("one");
    const ended = await apply("two");
    expect([ended.code, rowOf(ended)]).toEqual([10, expect.objectContaining({ action: "create", result: "left" })]);
    expect(rowOf(ended).message).toContain("of item nightly of policy pol_of_one is at its destination");
    const [{ id } = { id: "" }] = await account.live();
    const adopted = await integ("adopt", "oauth-client", id, "--name", "nightly", "-f", "two/integ.yaml", "--yes");
    expect([adopted.code, adopted.stderr]).toEqual([5, expect.stringContaining("another policy, pol_of_one")]);
    expect([content("one"), await opens("one"), (await account.live()).length]).toEqual([before, true, 1]);
  });

  it("makes the item's name ambiguous for a command: exit 2, and nothing is rotated", async () => {
    write("one", {});
    write("two", { id: "pol_of_two" });
    for (const folder of ["one", "two"]) expect((await apply(folder)).code).toBe(0);
    const ended = await integ("oauth-clients", "rotate", "--name", "nightly", "--secret-file", "x", "--yes");
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("2 policies have a client of an item")]);
    expect((await account.live()).length).toBe(2);
  });
});

describe("a policy without an id", () => {
  it("is refused by each command, which prints the line to add", async () => {
    write("one", {});
    const path = home.path("one/integ.yaml");
    writeFileSync(path, readFileSync(path, "utf8").replace(/^id: .*\n/m, ""));
    for (const words of [
      ["plan"],
      ["apply", "--yes"],
      ["status"],
      ["policy", "check", "--offline"],
      ["adopt", "--all"],
    ]) {
      const ended = await integ(...words, "-f", "one/integ.yaml");
      expect([words[0], ended.code, ended.stderr]).toEqual([
        words[0],
        2,
        expect.stringContaining("a line such as id: pol_"),
      ]);
    }
    expect(await account.creations()).toEqual([]);
  });
});
