// What 0.1.0 wrote (test/fixtures/0.1.0) is read, changed and recovered by this version; what this version writes is of a format
// that 0.1.0 shows and does not change.
import { chmodSync, cpSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Home, root } from "../support/program.ts";

const fixtures = join(root, "test", "fixtures", "0.1.0");
const oldJournal = readFileSync(join(fixtures, "state", "journal.ndjson"), "utf8");
/** The highest format of a record that 0.1.0 changes. */
const formatOf010 = 1;

let at: Home;
afterEach(() => at.remove());

/** A clone has the files with the rights that git gives; the program had them for its user alone. */
function closeToOthers(path: string): void {
  const isFolder = statSync(path).isDirectory();
  chmodSync(path, isFolder ? 0o700 : 0o600);
  if (isFolder) for (const name of readdirSync(path)) closeToOthers(join(path, name));
}

function upgraded(): Home {
  at = new Home({ INTEG_NO_INPUT: "1" });
  for (const name of ["config", "state"]) {
    cpSync(join(fixtures, name), at.path(name), { recursive: true });
    closeToOthers(at.path(name));
  }
  return at;
}

interface ShownEntry {
  readonly id: string;
  readonly operation: string;
  readonly state: string;
  readonly resource_id: string | null;
}

async function printed<T>(words: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await at.integ([...words, "--json"]);
  expect(code, `${words.join(" ")}: ${stderr}`).toBe(0);
  return JSON.parse(stdout) as T;
}

const all = async (): Promise<ShownEntry[]> =>
  (await printed<{ data: ShownEntry[] }>(["journal", "list", "--all"])).data;
const stateOf = async (id: string): Promise<string> => (await printed<ShownEntry>(["journal", "show", id])).state;
const journal = (): string => readFileSync(at.path("state", "journal.ndjson"), "utf8");

/** The formats of the records that stand behind those of 0.1.0, which all stay as they were. */
function addedFormats(): number[] {
  expect(journal().startsWith(oldJournal)).toBe(true);
  const lines = journal().slice(oldJournal.length).split("\n").filter(Boolean);
  return lines.map((line) => Number(/^\{"sum":"[0-9a-f]{16}","v":(\d+),/.exec(line)?.[1]));
}

describe("the journal of 0.1.0", () => {
  it("is of the format that 0.1.0 changes", () => {
    upgraded();
    const formats = oldJournal.trim().split("\n");
    expect(formats.filter((line) => !line.includes(`","v":${formatOf010},`))).toEqual([]);
  });

  it("is sound, and lists every operation and state with what is to be done", async () => {
    upgraded();
    await printed(["journal", "verify"]);
    const count = new Map<string, number>();
    for (const { operation, state } of await all())
      count.set(`${operation} ${state}`, (count.get(`${operation} ${state}`) ?? 0) + 1);
    expect(Object.fromEntries(count)).toEqual({
      "oauth_client.create done": 8,
      "oauth_client.create unknown": 3,
      "oauth_client.create refused": 2,
      "oauth_client.create secret_lost": 1,
      "oauth_client.create replaced": 1,
      "oauth_client.create pending": 1,
      "oauth_client.create undelivered": 1,
      "oauth_client.create abandoned": 1,
      "oauth_client.rotate done": 1,
      "oauth_client.rotate pending": 1,
      "oauth_client.rotate unknown": 1,
      "oauth_client.revoke done": 1,
      "oauth_client.revoke unknown": 1,
      "access_key.create done": 7,
      "access_key.create unknown": 4,
      "access_key.create refused": 1,
      "access_key.create undelivered": 1,
      "access_key.rotate pending": 1,
      "access_key.rotate unknown": 2,
      "access_key.revoke done": 1,
      "access_key.revoke unknown": 1,
    });
    expect(journal()).toBe(oldJournal);
  });

  it("shows each entry with its history", async () => {
    upgraded();
    for (const { id, operation, state } of await all()) {
      const shown = await printed<ShownEntry & { history: unknown[] }>(["journal", "show", id]);
      expect(shown).toMatchObject({ id, operation, state });
      expect(shown.history.length).toBeGreaterThan(0);
    }
    expect(journal()).toBe(oldJournal);
  });
});

/** An unfinished entry: what it is, exit and state of its recovery, and those with --replace-lost-secret where a secret is lost. */
const unfinished: readonly [id: string, what: string, exit: number, state: string, replaced?: string][] = [
  ["1rwk41w5qx", "a client's rotation whose creation was cut", 9, "secret_lost", "done"],
  ["1rwk42zjah", "a client's revocation whose answer was cut", 0, "done"],
  ["1rwk42zk9j", "a client's creation whose answer was cut", 9, "secret_lost", "replaced"],
  ["1rwk42zm97", "a client's creation that did not arrive", 0, "done"],
  ["1rwk43a0jv", "a client whose secret was withheld", 9, "secret_lost", "replaced"],
  ["1rwk45es64", "a client that is pending", 8, "pending"],
  ["1rwk46dsm9", "a key's creation whose answer was cut", 9, "secret_lost", "replaced"],
  ["1rwk46dsnb", "one with a mark in its name", 9, "secret_lost", "replaced"],
  ["1rwk47dtz8", "a key's rotation by replacement whose creation was cut", 9, "secret_lost", "done"],
  ["1rwk48fqkc", "a key's rotation in place whose answer was cut", 7, "unknown", "done"],
  ["1rwk48yz3p", "a key's revocation whose answer was cut", 0, "done"],
];

describe("recovery of what 0.1.0 left", () => {
  it.each(unfinished)("%s, %s", async (id, _, exit, state, replaced) => {
    upgraded();
    const words = ["journal", "recover", id, "--wait", "0s", "--retry-for", "0"];
    expect((await at.integ(words)).code).toBe(exit);
    expect(await stateOf(id)).toBe(state);
    if (replaced !== undefined) {
      const { code, stdout } = await at.integ([...words, "--replace-lost-secret", "--yes"]);
      expect([code, stdout]).toEqual([0, expect.stringMatching(/sbx_us_(?:cs|aks)_/)]);
      expect(await stateOf(id)).toBe(replaced);
    }
    const formats = addedFormats();
    expect(formats.length).toBeGreaterThan(0);
    expect(formats.filter((format) => format <= formatOf010)).toEqual([]);
    await printed(["journal", "verify"]);
  });

  it.each([
    ["1rwk41w4x9", "oauth-clients", "oac_us_466cadc0e378995db715419ffa6cd930"],
    ["1rwk474a10", "keys", "ak_us_2ca525a95e914459730cb5d4473aa2db"],
  ])("%s, an overlap: ended, the old one of the %s is revoked", async (id, noun, old) => {
    upgraded();
    expect((await at.integ(["journal", "recover", id, "--now"])).code).toBe(0);
    expect(await stateOf(id)).toBe("done");
    const status =
      noun === "keys"
        ? (await printed<{ data: { id: string; status: string }[] }>(["keys", "list", "-p", "sandbox"])).data.find(
            (key) => key.id === old,
          )?.status
        : (await printed<{ status: string }>([noun, "get", old, "-p", "sandbox"])).status;
    expect(status ?? "revoked").toBe("revoked");
    expect(addedFormats().filter((format) => format <= formatOf010)).toEqual([]);
  });

  it.each([
    ["1rwk45rwar", /^sbx_us_cs_[0-9a-f]+$/],
    ["1rwk46v5vt", /^sbx_us_aks_[0-9a-f]+$/],
  ])("%s, a kept secret: claimed into a file, and gone from the state folder", async (id, secret) => {
    upgraded();
    const kept = JSON.parse(readFileSync(at.path("state", "undelivered", id), "utf8")) as { secret: string };
    expect((await at.integ(["journal", "claim", id, "--secret-file", "taken"])).code).toBe(0);
    expect(readFileSync(at.path("taken"), "utf8")).toBe(kept.secret);
    expect(kept.secret).toMatch(secret);
    expect(await stateOf(id)).toBe("done");
    expect(readdirSync(at.path("state", "undelivered"))).not.toContain(id);
  });
});

describe("prune", () => {
  it("removes finished entries of 0.1.0, keeps what is unfinished or may be active", async () => {
    upgraded();
    const before = await all();
    await printed(["journal", "prune", "--older-than", "0s", "--yes"]);
    const left = await all();
    const isOpen = ({ state }: ShownEntry): boolean => !/^(?:done|refused|replaced|abandoned)$/.test(state);
    expect(left.filter(isOpen)).toEqual(before.filter(isOpen));
    expect(left.length).toBeLessThan(before.length);
    expect(left.filter(({ state }) => state === "refused")).toEqual([]);
    await printed(["journal", "verify"]);
    await printed(["journal", "prune", "--older-than", "0s", "--include-live", "--yes"]);
    expect((await all()).filter((entry) => !isOpen(entry)).length).toBeLessThan(
      left.filter((one) => !isOpen(one)).length,
    );
  });
});

describe("the profiles of 0.1.0", () => {
  const names = ["stored", "swapped", "exchanged", "bearer", "command", "client", "client-command"];

  it("are listed and shown, each without its secret", async () => {
    upgraded();
    const { data } = await printed<{ data: { name: string; default: boolean }[] }>(["profiles", "list"]);
    expect(data.map(({ name }) => name)).toEqual([...names, "sandbox", "sandbox-eu"]);
    expect(data.filter((one) => one.default).map(({ name }) => name)).toEqual(["stored"]);
    for (const name of names) {
      const { code, stdout } = await at.integ(["profiles", "show", name, "--json"]);
      expect([code, JSON.parse(stdout).name]).toEqual([0, name]);
      expect(stdout).not.toContain("made-up secret");
      expect(stdout).not.toMatch(/made-up (?:\w+ )?key/);
    }
  });

  it.each(names)("%s: used, changed, and what was not named stays", async (name) => {
    upgraded();
    const stored = (): Record<string, unknown> =>
      JSON.parse(readFileSync(at.path("config", "profiles.json"), "utf8")).profiles.find(
        (one: { name: string }) => one.name === name,
      );
    const { credential, legacy } = stored();
    expect((await at.integ(["profiles", "use", name])).code).toBe(0);
    const organization = "5eed0000-0000-4000-8000-0000000000e5";
    const { code, stderr } = await at.integ(["profiles", "edit", name, "--organization-id", organization]);
    expect(code, stderr).toBe(0);
    expect(stored()).toMatchObject({ organization_id: organization, credential });
    expect(stored().legacy).toEqual(legacy);
    expect(await printed(["profiles", "show", name])).toMatchObject({ name, default: true });
  });

  it.each([
    ["stored", "made-up key"],
    ["swapped", "made-up second key"],
    ["command", "made-up"],
  ])("%s: its credential is sent as 0.1.0 stored it", async (name, secret) => {
    upgraded();
    const sent: string[] = [];
    const server = createServer(({ headers }, answer) => {
      sent.push(Buffer.from(headers.authorization?.replace("Basic ", "") ?? "", "base64").toString());
      answer.writeHead(401).end();
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    const { port } = server.address() as AddressInfo;
    // The address of the fixtures has no server: this one takes its place in each file.
    const files = readdirSync(at.path("config", "credentials")).map((file) => join("credentials", file));
    for (const file of [...files, "profiles.json"]) {
      const path = at.path("config", file);
      const text = readFileSync(path, "utf8").replaceAll("https://api.us.example.com", `http://127.0.0.1:${port}`);
      writeFileSync(path, text);
    }
    const { code } = await at.integ(["entities", "list", "-p", name]);
    server.close();
    expect(code).toBe(3);
    expect(sent.map((text) => text.split(":").includes(secret))).toEqual([true]);
  });
});

describe("the sandbox's state of 0.1.0", () => {
  const format = (): string => readFileSync(at.path("state", "sandbox.json"), "latin1").slice(0, 12);

  it("is read as it is, and written in the new format with the first change", async () => {
    upgraded();
    const { us } = await printed<{ us: { api_key: string } }>(["sandbox", "status"]);
    expect(readFileSync(join(fixtures, "state", "sandbox.json"), "utf8")).toContain(us.api_key);
    expect(format()).toBe('{"format":1,');
    const { data } = await printed<{ data: { name: string }[] }>(["keys", "list", "-p", "sandbox"]);
    expect(data.map(({ name }) => name)).toEqual(expect.arrayContaining(["upgrade-done", "upgrade-kept"]));
    const made = await printed<{ id: string }>(
      "oauth-clients create -p sandbox --new --service-account sa_us_automation --scope entity:read".split(" "),
    );
    expect(format()).toBe('{"format":2,');
    expect(await printed(["oauth-clients", "get", made.id, "-p", "sandbox"])).toMatchObject({ status: "active" });
    const old = "oac_us_466cadc0e378995db715419ffa6cd930";
    expect(await printed(["oauth-clients", "get", old, "-p", "sandbox"])).toMatchObject({ status: "active" });
    expect(addedFormats().filter((one) => one <= formatOf010)).toEqual([]);
  });
});
