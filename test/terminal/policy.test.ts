import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { homeWith, many } from "../crash/policy-scenes.ts";
import { Account } from "../support/account.ts";
import { type Home, root } from "../support/program.ts";
import { serviceOfFile } from "../support/service.ts";
import { Session } from "./session.ts";

const service = await serviceOfFile();
const account = new Account(service);
const names = many(3);

beforeEach(() => account.clear());

function homeOf(given: readonly string[]): Home {
  const home = homeWith(service, { names: given });
  onTestFinished(() => home.remove());
  return home;
}

describe("integ apply at a terminal", () => {
  it("asks once, and sends nothing if the person declines", async () => {
    const dialog = new Session(["apply"], { home: homeOf(names) });
    await dialog.answer(/apply 3 changes of integ\.yaml\?/, "n");
    expect(await dialog.ended).toBe(2);
    expect(dialog.written).toMatch(/item-2 +create a client of .*[^]*Plan: 3 to create/);
    expect(dialog.written).not.toContain("Note: item-2");
    expect(await account.creations()).toEqual([]);
  });

  it.each([80, 40])("shows every item's progress, %i columns wide", async (columns) => {
    const home = homeOf(names);
    await service.fault("* /* latency=300ms");
    const dialog = new Session(["apply"], { home, columns });
    await dialog.answer(/changes of[\s│]+integ\.yaml\?/, columns < 50 ? "y\r" : "y");
    for (const name of names) await dialog.seen(new RegExp(`${name}[^\\n]*create`));
    expect(await dialog.ended).toBe(0);
    await service.calm();
    expect((await account.live()).length).toBe(names.length);
    const again = new Session(["apply"], { home, columns });
    expect(await again.ended).toBe(0);
    expect(again.written).not.toContain("changes of");
    expect(again.shown).toContain("No changes. 3 items are as");
    writeFileSync(
      home.path("integ.yaml"),
      readFileSync(home.path("integ.yaml"), "utf8").replaceAll("item-2", "item-3"),
    );
    const one = new Session(["apply", "--yes"], { home, columns });
    expect(await one.ended).toBe(0);
    expect(one.shown).toMatch(/item-3/);
    expect(one.shown).not.toMatch(/item-[01]/);
  });

  it("asks for each client without an item with --revoke-unmanaged", async () => {
    const home = homeOf(names.slice(0, 1));
    const create = ["oauth-clients", "create", "--service-account", service.us.service_account_id, "--new", "--json"];
    const created: string[] = [];
    for (const file of ["first.secret", "second.secret"]) {
      const { stdout } = await home.integ([...create, "--scope", "entity:read", "--secret-file", file]);
      created.push((JSON.parse(stdout) as { id: string }).id);
    }
    const policy = readFileSync(home.path("integ.yaml"), "utf8");
    writeFileSync(home.path("integ.yaml"), policy.replace("unmanaged: ignore", "unmanaged: report"));
    const [first, second] = created;
    const dialog = new Session(["apply", "--revoke-unmanaged"], { home });
    await dialog.answer(/apply 1 change of integ\.yaml\?/, "y");
    const answers = new Map([
      [first, "y"],
      [second, "n"],
    ]);
    await dialog.seen(new RegExp(`revoke the client (?:${first}|${second})`));
    const isFirst = dialog.shown.includes(`revoke the client ${first}`);
    const order = isFirst ? [first, second] : [second, first];
    for (const id of order) await dialog.answer(new RegExp(`revoke the client ${id}`), answers.get(id)!);
    expect(await dialog.ended).toBe(0);
    const live = (await account.live()).map(({ id }) => id);
    expect([live.includes(first!), live.includes(second!)]).toEqual([false, true]);
  });
});

it("integ status at a terminal never says that nothing needs a person if it could not read the policy or the keys", async () => {
  const home = homeOf([]);
  writeFileSync(home.path("integ.yaml"), "version: [1");
  await service.fault("GET /api/v1/access-keys status=500 times=1");
  const status = new Session(["status", "--retry-for", "0"], {
    home,
    env: { INTEG_ACCESS_TOKEN: service.us.access_token },
  });
  expect(await status.ended).toBe(0);
  for (const words of [/policy: integ\.yaml:1:\d+/, /access keys: could not be read/])
    expect(status.shown).toMatch(words);
  await service.calm();
  rmSync(home.path("integ.yaml"));
  const without = new Session(["status"], { home });
  expect(await without.ended).toBe(0);
  expect(without.shown).toMatch(
    /No change needs you. The service was not asked for access keys: .* no legacy bearer token/,
  );
  expect(without.shown.match(/no legacy bearer token/g)).toHaveLength(1);
});

it("integ status at a terminal names the credential of an item that needs a person", async () => {
  const home = homeOf(names.slice(0, 1));
  expect((await home.integ(["apply", "--yes"])).code).toBe(0);
  const file = home.path("integ.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("every: 60d", "every: 1s"));
  await new Promise((done) => setTimeout(done, 2100));
  const status = new Session(["status"], { home });
  expect(await status.ended).toBe(0);
  const [client] = await account.live();
  expect(status.shown).toMatch(new RegExp(`! item-0 \\(${client!.id}\\)`));
});

describe("integ adopt --all at a terminal", () => {
  it("lists the questions, and skips a client that became another item's before the answer", async () => {
    const home = homeOf(names.slice(0, 2));
    const { service_account_id, caller_service_account_id } = service.us;
    const ids: string[] = [];
    for (const [name, owner] of [
      ["item-0", service_account_id],
      ["item-1", caller_service_account_id],
    ]) {
      const create = ["oauth-clients", "create", "--service-account", owner!, "--scope", "entity:read", "--json"];
      const { stdout } = await home.integ([...create, "--secret-file", `${name}.json`, "--secret-format", "json"]);
      ids.push((JSON.parse(stdout) as { id: string }).id);
    }
    const dialog = new Session(["adopt", "--all"], { home });
    await dialog.seen(/adopt 2 existing credentials as items of integ\.yaml\?/);
    for (const id of ids) expect(dialog.shown).toMatch(new RegExp(`\\? item-\\d +exists as ${id}, not adopted`));
    expect(dialog.written).not.toContain("Note: item-");
    expect((await home.integ(["adopt", "oauth-client", ids[0]!, "--name", "other"])).code).toBe(0);
    dialog.type("y");
    expect(await dialog.ended).toBe(0);
    expect(dialog.written).toContain("item-0: another process works on it, or has just done it.");
    const planned = await home.integ(["plan", "--json"]);
    const rows = (JSON.parse(planned.stdout) as { data: { action: string; reason: string }[] }).data;
    expect(rows.map(({ action }) => action)).toEqual(["adopt", "none"]);
    expect(rows[0]?.reason).toContain("(item other)");
  });
});

it("no command documented as never asking has a question", () => {
  const folder = join(root, "src", "commands");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const texts = files.map((name) => [name, readFileSync(join(folder, name), "utf8")] as const);
  const silent = texts.filter(([, text]) => text.includes("neverAsks: true"));
  expect(silent.length).toBeGreaterThan(3);
  const asking = silent.filter(([, text]) => /\.(?:confirm|ask|pick|pickSome)\(/.test(text)).map(([name]) => name);
  expect(asking).toEqual([]);
});

describe("integ adopt at a terminal", () => {
  const id = "pol_of_another_test";
  it.each([
    ["by another policy", `version: 1\nid: ${id}\nunmanaged: ignore\n`, "theirs", "of another policy"],
    ["as another item", undefined, "other", "changed the items during the question"],
  ])("does not adopt a client that was adopted %s during the question", async (_how, text, name, words) => {
    const home = homeOf(names.slice(0, 1));
    expect((await home.integ(["apply", "--yes"])).code).toBe(0);
    const create = ["oauth-clients", "create", "--service-account", service.us.service_account_id, "--new", "--json"];
    const made = await home.integ([...create, "--scope", "entity:read", "--secret-file", "made.secret"]);
    const adopt = ["adopt", "oauth-client", (JSON.parse(made.stdout) as { id: string }).id, "--name"];
    const dialog = new Session([...adopt, "item-0"], { home });
    await dialog.seen(/take[\s│]+its[\s│]+place\?/);
    writeFileSync(home.path("other.yaml"), text ?? readFileSync(home.path("integ.yaml"), "utf8"));
    const other = await home.integ([...adopt, name, "-f", "other.yaml", "--yes"]);
    expect(other.code, other.stderr).toBe(0);
    dialog.type("y\r");
    expect(await dialog.ended).toBe(5);
    expect(dialog.written.replaceAll(/\s+/g, " ")).toContain(words);
  });
});
