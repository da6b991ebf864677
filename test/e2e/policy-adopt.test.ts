// A policy adopts existing credentials, with `adopt --all` after `policy init` or in a job with `apply --adopt`.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { type Ended, Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile, tokenEnv } from "../support/service.ts";

interface Row {
  readonly name: string;
  readonly action: string;
  readonly result: string;
  readonly resource_id: string | null;
  readonly choices: readonly string[];
}
interface Key {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

const service = await serviceOfFile();
const account = new Account(service);
let home: Home;

afterAll(() => home?.remove());
beforeEach(async () => {
  home?.remove();
  await account.clear();
  for (const { id } of await otherKeys()) await service.control("POST", `/access_keys/${id}`, { status: "revoked" });
  await service.control("POST", `/access_keys/${service.us.access_key_id}`, { createdAt: Date.now() });
  home = homeOfTest(tokenEnv(service));
});

const integ = (...words: string[]): Promise<Ended> => home.integ(words);
const rowsOf = ({ stdout }: Ended): Row[] => (JSON.parse(stdout) as { data: Row[] }).data;
const actionsOf = async (): Promise<string[]> => rowsOf(await integ("plan", "--json")).map(({ action }) => action);
const resultsOf = (ended: Ended): [string, string, string | null][] =>
  rowsOf(ended).map(({ name, result, resource_id }) => [name, result, resource_id]);
const otherKeys = async (): Promise<Key[]> =>
  ((await service.control("GET", "/access_keys")) as Key[]).filter(
    ({ id, status }) => status === "active" && id !== service.us.access_key_id,
  );
const write = (text: string): void => writeFileSync(home.path("integ.yaml"), text);
const keyItem = (name: string): string =>
  `  ${name}:\n    type: service_account\n    scopes: ["push-ingest:*"]\n    rotate: { every: 60d }\n    secret: { file: ${name}.secret }\n`;
const policy = (...items: string[]): string =>
  `version: 1\nid: pol_of_this_test\nunmanaged: ignore\naccess_keys:\n${items.join("")}`;

/** Creates the key in another home, so that this home's journal does not know it. */
async function makeKey(name: string): Promise<string> {
  const more = "--type service_account --scope push-ingest:* --new --no-marker".split(" ");
  const words = ["keys", "create", "--name", name, ...more];
  const other = homeOfTest(home.env);
  const created = await other.integ([...words, "--secret-file", "made.secret", "--json"]);
  expect(created.code, created.stderr).toBe(0);
  return (JSON.parse(created.stdout) as { id: string }).id;
}

describe("integ adopt --all", () => {
  it("adopts the credentials that policy init wrote; then there is nothing to do", async () => {
    for (const name of ["deploy", "nightly"]) await makeKey(name);
    expect((await integ(...creationWords(service, "--secret-file", "made.secret"))).code).toBe(0);
    const secret = readFileSync(home.path("made.secret"), "utf8");
    expect((await integ("policy", "init")).code).toBe(0);
    const planned = await integ("plan");
    expect(planned.stderr).toContain("Next: integ adopt --all");
    expect(await actionsOf()).toEqual(Array(4).fill("adopt"));
    await service.calm();

    const trial = await integ("adopt", "--all", "--dry-run", "--json");
    expect([trial.code, trial.stdout.match(/record in the journal that/g)?.length]).toEqual([0, 4]);
    const withoutYes = await integ("adopt", "--all");
    expect([withoutYes.code, withoutYes.stdout, withoutYes.stderr]).toEqual([
      2,
      "",
      expect.stringContaining("adopt 4 existing credentials as items of integ.yaml?"),
    ]);
    expect(await actionsOf()).toEqual(Array(4).fill("adopt"));

    const adopted = await integ("adopt", "--all", "--yes", "--json");
    expect(adopted.code, adopted.stderr).toBe(0);
    expect(rowsOf(adopted).map(({ action, result }) => [action, result])).toEqual(
      Array.from({ length: 4 }, () => ["adopt", "done"]),
    );
    const after = await integ("plan", "--json");
    expect([after.code, rowsOf(after).map(({ action }) => action)]).toEqual([0, Array(4).fill("none")]);
    expect(await integ("adopt", "--all", "--yes")).toMatchObject({ code: 0 });
    expect((await account.requests()).filter(({ method }) => method !== "GET")).toEqual([]);
    expect(readFileSync(home.path("made.secret"), "utf8")).toBe(secret);
  });

  it("after policy init, adopts keys of the same name too, if the journal knows their destinations", async () => {
    for (const name of ["etl", "etl", "nightly"]) await makeKey(name);
    const { stderr } = await integ("policy", "init");
    expect(stderr.match(/integ adopt.*/g)).toEqual(["integ adopt --all"]);
    expect((await integ("adopt", "--all", "--yes")).code).toBe(0);
    expect(await actionsOf()).toEqual(Array(4).fill("none"));
  });

  it("says that a key adopted as an item that the file lacks is in no item until the item is added", async () => {
    const id = await makeKey("later");
    write(`${policy(keyItem("other"))}unmanaged: report\n`.replace("unmanaged: ignore\n", ""));
    const adopt = ["adopt", "access-key", id, "--name", "later"];
    const missing = "The policy file has no item later: until you add it, the key is in no item.";
    expect((await integ(...adopt)).stderr).toContain(missing);
    const plan = await integ("plan");
    expect([plan.stdout, plan.stderr]).toEqual([
      expect.stringContaining(`${id} (later`),
      expect.stringContaining("add an item to integ.yaml and adopt the credential, or revoke it"),
    ]);
    write(policy(keyItem("other"), keyItem("later")));
    expect((await integ(...adopt)).stderr).not.toContain(missing);
    expect(await actionsOf()).toEqual(["create", "none"]);
  });

  it("lists each ambiguous case with its command and adopts the rest: exit 10", async () => {
    const [first, second, other] = [await makeKey("twice"), await makeKey("twice"), await makeKey("once")];
    write(policy(keyItem("twice"), keyItem("once"), keyItem("new")));
    const adopted = await integ("adopt", "--all", "--yes", "--json");
    expect([adopted.code, resultsOf(adopted)]).toEqual([
      10,
      [
        ["twice", "left", null],
        ["once", "done", other],
      ],
    ]);
    const choices = [first, second].map((id) => `integ adopt access-key ${id} --name twice`);
    expect(rowsOf(adopted)[0]?.choices.toSorted()).toEqual(choices.toSorted());
    for (const command of choices) expect(adopted.stderr.split("\nApplied: ")[0]).toContain(command);
    expect((await integ(...choices[0]!.split(" ").slice(1), "--yes")).code).toBe(0);
    expect(await actionsOf()).toEqual(["none", "none", "create"]);
  });

  it("leaves a key that belongs to another item, and names that item", async () => {
    const to = "secret: { file: shared.secret }";
    write(policy(keyItem("theirs").replace(/secret: .*/, to)));
    expect((await integ("apply", "--yes")).code).toBe(0);
    write(policy(keyItem("mine").replace(/secret: .*/, to)));
    const adopted = await integ("adopt", "--all", "--yes", "--json");
    expect([adopted.code, resultsOf(adopted)[0]?.[1]]).toEqual([10, "left"]);
    expect(adopted.stdout).toContain("item theirs");
    expect(await actionsOf()).toEqual(["adopt"]);
  });
});

describe("integ adopt", () => {
  it("refuses a client that an unfinished rotation replaces, and names the rotation", async () => {
    const created = await integ(...creationWords(service, "--secret-file", "made.secret", "--json"));
    const { id } = JSON.parse(created.stdout) as { id: string };
    const rotate = ["oauth-clients", "rotate", id, "--overlap", "24h", "--secret-file", "next.secret", "--yes"];
    expect((await integ(...rotate)).code).toBe(0);
    write(policy(keyItem("other")));
    const refused = await integ("adopt", "oauth-client", id, "--name", "mine", "--yes");
    expect([refused.code, refused.stderr]).toEqual([
      5,
      expect.stringMatching(/rotation (\S+) is unfinished[^]*recover \1/),
    ]);
  });
});

describe("integ apply --adopt", () => {
  it("adopts existing credentials before it creates missing ones, so that no second key is created", async () => {
    const existing = await makeKey("deploy");
    write(policy(keyItem("deploy"), keyItem("new")));
    const trial = await integ("apply", "--adopt", "--dry-run", "--json");
    expect(trial.stdout).toContain(`deploy: record in the journal that the key ${existing} is the item deploy`);
    const applied = await integ("apply", "--adopt", "--yes", "--json");
    expect(applied.code, applied.stderr).toBe(0);
    expect(rowsOf(applied)).toMatchObject([
      { name: "deploy", action: "adopt", result: "done", resource_id: existing },
      { name: "new", action: "create", result: "done" },
    ]);
    expect((await otherKeys()).length).toBe(2);
    expect((await integ("plan")).code).toBe(0);
  });

  it("is refused for a plan that was saved without it", async () => {
    await makeKey("deploy");
    write(policy(keyItem("deploy")));
    expect((await integ("plan", "--exit-code", "--out", "plan.json")).code).toBe(0);
    const applied = await integ("apply", "plan.json", "--adopt", "--yes");
    expect([applied.code, applied.stderr]).toEqual([2, expect.stringContaining("a saved plan adopts nothing")]);
    expect(await actionsOf()).toEqual(["adopt"]);
  });
});
