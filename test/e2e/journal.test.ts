import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { Account } from "../support/account.ts";
import { Home, type Ended } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { homeWithProfile } from "../crash/policy-scenes.ts";
import { forged } from "../support/journal-file.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const canTrace = !isMissing("strace");
const service = await serviceOfFile();
const account = new Account(service);
afterEach(() => account.clear());

function home(env: Readonly<Record<string, string>> = {}): Home {
  return homeOfTest({ ...service.env, ...env });
}

function create(at: Home, ...more: string[]): Promise<Ended> {
  return at.integ(creationWords(service, ...more));
}

async function entries(
  at: Home,
): Promise<{ id: string; state: string; next_step: string | null; idempotency_key: string; request_ids: string[] }[]> {
  return JSON.parse((await integHere(at, ["journal", "list", "--all", "--json"])).stdout).data;
}

const clientCount = async (): Promise<number> => (await account.clients()).length;

function journalText(at: Home): string {
  return readFileSync(at.path("state", "journal.ndjson"), "utf8");
}

describe("the actor and time of a change", () => {
  const github = {
    GITHUB_SERVER_URL: "https://github.com",
    GITHUB_REPOSITORY: "o/r",
    GITHUB_RUN_ID: "7",
  };
  const run = "https://github.com/o/r/actions/runs/7";

  it("are shown of one entry, as a table and as JSON with the fields of the list", async () => {
    const at = home();
    const created = await integHere(at, creationWords(service, "--secret-file", "s"), { env: github });
    expect(created.code).toBe(0);
    const list = await integHere(at, ["journal", "list", "--all", "--json"]);
    const row = JSON.parse(list.stdout).data[0];
    const shown = await integHere(at, ["journal", "show", row.id, "--json"]);
    const { history, destinations, ...rest } = JSON.parse(shown.stdout);
    expect(rest).toEqual(row);
    expect(destinations).toEqual([
      { address: at.path("s"), state: "delivered", proof: "written and synced", at: row.updated_at },
    ]);
    expect(history.map(({ state }: { state: string }) => state)).toEqual(["open", "open", "open", "done"]);
    expect(history[0]).toEqual({
      at: row.created_at,
      state: "open",
      actor: { user: userInfo().username, host: hostname(), run },
    });
    expect(history.at(-1).at).toBe(row.updated_at);
    const table = (await integHere(at, ["journal", "show", row.id, "-o", "table"])).stdout;
    expect(table).toMatch(/\n\nAT +STATE +USER +HOST +RUN\n/);
    expect(table.split(run)).toHaveLength(5);
    expect(table).not.toContain('"actor"');
  });

  it("filter the list", async () => {
    const at = home();
    await integHere(at, creationWords(service, "--secret-file", "s"), { env: github });
    const ids = async (...words: string[]): Promise<number> =>
      JSON.parse((await integHere(at, ["journal", "list", ...words, "--json"])).stdout).data.length;
    expect(await ids()).toBe(0);
    expect(await ids("--all")).toBe(1);
    expect(await ids("--state", "done")).toBe(1);
    expect(await ids("--state", "open", "unknown")).toBe(0);
    expect(await ids("--all", "--actor", run)).toBe(1);
    expect(await ids("--all", "--actor", "nobody")).toBe(0);
    expect(await ids("--all", "--operation", "access_key.create")).toBe(0);
    expect(await ids("--all", "--since", "1h")).toBe(1);
    expect([await ids("--all", "-p", "env"), await ids("--all", "-p", "sandbox")]).toEqual([1, 0]);
    expect(await ids("--all", "--since", "2999-01-01T00:00:00Z")).toBe(0);
    const none = await integHere(at, ["journal", "list", "--actor", "ada"]);
    expect(none.stdout + none.stderr).toContain("No such changes are unfinished. --all shows the finished ones.");
  });

  it.each([
    [["--since", "yesterday"], "--since"],
    [["--since", "7"], "no unit"],
    [["--since", "2026-11-01"], "not a time with a zone"],
    [["--state", "finished"], 'Invalid state "finished"'],
    [["--operation", "create"], 'Invalid operation "create"'],
  ])("are refused as invalid filters: %j", async (words, message) => {
    const refused = await integHere(home(), ["journal", "list", ...words]);
    expect(refused.code).toBe(2);
    expect(refused.stderr.toLowerCase()).toContain(message.toLowerCase());
  });
});

describe("a secret that could not be delivered", () => {
  it("is kept (exit 12); a claim delivers it once and destroys it", async () => {
    const at = home();
    const broken = await create(at, "--secret-command", "cat >/dev/null; exit 3");
    expect(broken.code).toBe(12);
    const [entry] = await entries(at);
    expect(entry).toMatchObject({ state: "undelivered", next_step: `integ journal claim ${entry!.id}` });
    expect(broken.stderr).toContain(entry!.next_step);
    expect((await at.integ(["journal", "recover"])).code).toBe(12);
    writeFileSync(at.path("taken"), "mine");
    const refused = await at.integ(["journal", "claim", entry!.id, "--secret-file", "taken"]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("The secret is still kept.")]);
    const claimed = await at.integ(["journal", "claim", entry!.id, "--secret-file", "claimed.secret"]);
    expect(claimed.code).toBe(0);
    const secret = readFileSync(at.path("claimed.secret"), "utf8").trim();
    expect(secret).toMatch(/^sbx_/);
    expect(`${claimed.stdout}${claimed.stderr}${broken.stderr}`).not.toContain(secret);
    expect(journalText(at)).not.toContain(secret);
    expect((await at.integ(["journal", "claim", entry!.id])).code).toBe(4);
    expect(await entries(at)).toMatchObject([{ state: "done" }]);
    expect(readdirSync(at.path("state", "undelivered"))).toEqual([]);
  });

  it("goes to stdout with the full receipt if claim names no destination", async () => {
    const at = home();
    await create(at, "--secret-command", "false");
    const [entry] = await entries(at);
    const { stdout, code } = await at.integ(["journal", "claim", entry!.id, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ object: "oauth_client", client_secret: expect.stringMatching(/^sbx_/) });
  });
});

describe("a state folder and a secret file restored from a backup", () => {
  it.runIf(canTrace)("are recognized by the file's content, and the entry is finished", async () => {
    const at = home();
    const killed = "inject=fsync:signal=KILL:when=2";
    mkdirSync(at.path("out"));
    const under = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", at.path("out"), "-e", "trace=fsync", "-e", killed];
    await at.integ(creationWords(service, "--secret-file", "out/s"), { under });
    const secret = readFileSync(at.path("out", "s"), "utf8");
    expect(await entries(at)).toMatchObject([{ state: "open" }]);
    cpSync(at.path("state"), at.path("copy"), { recursive: true });
    rmSync(at.path("out", "s"));
    writeFileSync(at.path("out", "s"), secret, { mode: 0o600 });
    const env = { INTEG_STATE_DIR: at.path("copy") };
    const recovered = await at.integ(["journal", "recover", "--json"], { env });
    expect([recovered.code, JSON.parse(recovered.stdout).data]).toMatchObject([0, [{ state: "done" }]]);
    expect(readFileSync(at.path("out", "s"), "utf8")).toBe(secret);
    expect(readFileSync(at.path("copy", "journal.ndjson"), "utf8")).not.toContain(secret.trim());
    expect(readdirSync(at.path("copy", "undelivered"))).toEqual([]);
  });
});

describe("forget and prune", () => {
  it("forget asks, names what it may leave behind, and ends an entry", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    await create(at, "--retry-for", "0");
    const [entry] = await entries(at);
    expect((await at.integ(["journal", "forget", entry!.id])).code).toBe(2);
    const forgotten = await at.integ(["journal", "forget", entry!.id, "--yes"]);
    expect(forgotten.code).toBe(0);
    expect(forgotten.stderr).toContain(entry!.idempotency_key);
    expect(await entries(at)).toMatchObject([{ state: "abandoned" }]);
    expect((await at.integ(["journal", "recover"])).code).toBe(0);
  });

  it.each([
    ["undelivered", (text: string) => text],
    // After a crash, a secret can be kept without a record that names it.
    ["open", (text: string) => `${text.split("\n").slice(0, 3).join("\n")}\n`],
  ])("forget destroys the kept secret of an entry that is %s, and reports it", async (state, cut) => {
    const at = home();
    expect((await create(at, "--secret-command", "exit 3")).code).toBe(12);
    writeFileSync(at.path("state", "journal.ndjson"), cut(journalText(at)));
    const [entry] = await entries(at);
    expect(entry!.state).toBe(state);
    const kept = at.path("state", "undelivered", entry!.id);
    const withoutYes = await at.integ(["journal", "forget", entry!.id]);
    expect([withoutYes.code, existsSync(kept)]).toEqual([2, true]);
    expect(withoutYes.stderr).toContain("will be destroyed");
    expect((await at.integ(["journal", "forget", entry!.id, "--yes"])).code).toBe(0);
    expect(readdirSync(at.path("state", "undelivered"))).toEqual([]);
  });

  it("forget of an overlap says that the secret was delivered and both clients may work", async () => {
    const at = home();
    await create(at, "--secret-file", "a");
    const [{ id }] = JSON.parse((await at.integ(["oauth-clients", "list", "--offline", "--json"])).stdout).data;
    const rotate = ["oauth-clients", "rotate", id, "--overlap", "36h", "--secret-file", "b"];
    expect((await at.integ([...rotate, "--yes", "--accept-unproven"])).code).toBe(0);
    const waiting = (await entries(at)).find(({ state }) => state === "waiting");
    const { stderr } = await at.integ(["journal", "forget", waiting!.id]);
    expect(stderr).toContain(`its secret was delivered, and the old one (${id}) is not revoked: both may work.`);
    expect(stderr).not.toContain("nobody");
  });

  it("forget of a rotation also gives up its unfinished step and its kept secret", async () => {
    const at = home();
    await create(at, "--secret-file", "a");
    const [{ id }] = JSON.parse((await at.integ(["oauth-clients", "list", "--offline", "--json"])).stdout).data;
    await at.integ(["oauth-clients", "rotate", id, "--yes", "--secret-command", "exit 3"]);
    const unfinishedEntries = async (): Promise<{ id: string; operation: string }[]> =>
      JSON.parse((await at.integ(["journal", "list", "--json"])).stdout).data;
    const rotation = (await unfinishedEntries()).find(({ operation }) => operation === "oauth_client.rotate");
    expect((await at.integ(["journal", "forget", rotation!.id, "--yes"])).code).toBe(0);
    expect(await unfinishedEntries()).toEqual([]);
    expect(readdirSync(at.path("state", "undelivered"))).toEqual([]);
  });

  it("prune removes only finished entries, and none whose client may be active", async () => {
    const at = home();
    const pruned = async (...more: string[]): Promise<Ended> =>
      at.integ(["journal", "prune", "--older-than", "0s", "--json", ...more]);
    await create(at, "--secret-file", "a");
    await service.fault("POST /v1/oauth_clients drop=before times=1");
    await create(at, "--new", "--retry-for", "0", "--secret-file", "b");
    const kept = await pruned();
    expect(JSON.parse(kept.stdout)).toMatchObject({ removed: 0, kept_live: 1, live: [] });
    expect(kept.stderr).toContain("--include-live");
    const [{ id }] = JSON.parse((await at.integ(["oauth-clients", "list", "--offline", "--json"])).stdout).data;
    const forgotten = await pruned("--include-live");
    expect(JSON.parse(forgotten.stdout)).toMatchObject({ removed: 1, live: [{ resource_id: id }] });
    expect(forgotten.stderr).toContain(id);
    expect(await entries(at)).toMatchObject([{ state: "unknown" }]);
    expect((await at.integ(["journal", "prune", "--older-than", "never"])).code).toBe(2);
  });
});

describe("a state folder that is deleted during a delivery", () => {
  it.each([
    ["create", ["--secret-command"]],
    ["claim", ["--secret-command"]],
  ])("%s succeeds, and does not say that the journal still has the entry", async (verb, [flag = ""]) => {
    const at = home();
    const command = `cat > '${at.path("got")}'; rm -rf '${at.path("state")}'`;
    const kept = verb === "claim" && (await create(at, flag, "exit 3"));
    const words = kept
      ? ["journal", "claim", (await entries(at))[0]!.id, flag, command]
      : creationWords(service, flag, command);
    const { code, stderr } = await at.integ(words);
    expect(readFileSync(at.path("got"), "utf8")).toMatch(/^sbx_/);
    expect(stderr).not.toContain("It still has");
    expect([code, stderr]).toEqual([0, expect.stringContaining("journal")]);
  });
});

describe("a defective journal: nothing is sent or overwritten", () => {
  it("a damaged key of this machine is one error with its way out, in every command", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    await create(at, "--secret-file", "s", "--retry-for", "0");
    const before = await clientCount();
    writeFileSync(at.path("state", "journal.key"), "damaged");
    const again = creationWords(service, "--secret-file", "s", "--new", "--force");
    for (const [words, exit] of [
      [["journal", "list"], 2],
      [["journal", "recover"], 7],
      [again, 2],
    ] as const) {
      const { code, stderr } = await at.integ([...words]);
      expect([code, stderr], words.join(" ")).toEqual([
        exit,
        expect.stringMatching(
          /Error: The key of this machine's journal, \S+journal\.key, is damaged\.\n.*\n {2}Fix: Restore/,
        ),
      ]);
    }
    expect(await clientCount()).toBe(before);
  });

  it("a missing state folder that cannot be created is an error before a file with --force is read", async () => {
    const at = home({ INTEG_STATE_DIR: "/proc/nope/state" });
    writeFileSync(at.path("s"), "before", { mode: 0o600 });
    const { code, stderr } = await create(at, "--secret-file", "s", "--force");
    expect([code, stderr]).toEqual([2, expect.stringContaining("Cannot write /proc/nope/state/journal.key: ")]);
  });

  it.runIf(canTrace)("an exhausted disk quota or lock table is a plain error, and nothing is sent", async () => {
    const before = await clientCount();
    for (const [call, errno, words] of [
      ["write,pwrite64", "EDQUOT", "quota"],
      ["fsync", "EDQUOT", "quota"],
      ["fsync", "ESTALE", "file server"],
      ["openat", "ENOLCK", "locks"],
    ] as const) {
      const at = home();
      const inject = `inject=${call}:error=${errno}`;
      const folder = at.path("state");
      mkdirSync(folder, { mode: 0o700 });
      const under = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", at.path("state", "journal.ndjson"), "-e", inject];
      const { code, stderr } = await at.integ(creationWords(service, "--secret-file", "s"), { under });
      expect([code === 1 || code === 2, stderr], `${call} ${errno}`).toEqual([true, expect.stringContaining(words)]);
      expect(stderr, `${call} ${errno}`).not.toMatch(/unknown error|Unknown system error|\n\s+at /i);
    }
    expect(await clientCount()).toBe(before);
  });

  it("entries of another machine are untrusted until a person trusts them, during the import or later", async () => {
    const [one, other, third] = [home(), home(), home()];
    expect((await create(one, "--secret-file", one.path("s"))).code).toBe(0);
    const path = one.path("export.ndjson");
    expect((await one.integ(["journal", "export", "--out", path])).code).toBe(0);
    // The importing machine has signed no record, and has no key.
    expect((await other.integ(["journal", "import", path])).code).toBe(0);
    const [{ id } = { id: "" }] = await entries(one);
    const untrusted = `The entry ${id} is untrusted`;
    const warnings = async (at: Home) => (await at.integ(["journal", "list", "--all"])).stderr;
    expect(await warnings(one)).not.toContain("untrusted");
    expect(await warnings(other)).toContain(untrusted);
    expect((await other.integ(["journal", "show", id])).stderr).toContain(untrusted);
    const verified = await other.integ(["journal", "verify"]);
    expect([verified.code, verified.stdout]).toEqual([
      0,
      expect.stringContaining(
        `untrusted: its record 1 is signed with no key of this machine; integ journal trust ${id}`,
      ),
    ]);
    const refused = await other.integ(["journal", "trust", id, "--no-input"]);
    expect(refused.code, refused.stderr).toBe(2);
    expect(await warnings(other)).toContain(untrusted);
    const trusted = await other.integ(["journal", "trust", id, "--yes"]);
    expect([trusted.code, trusted.stderr]).toEqual([0, expect.stringContaining(`its secret goes to`)]);
    expect(trusted.stderr).toContain(`requests go to ${service.us.base_url}`);
    expect(trusted.stderr).toContain(one.path("s"));
    expect(await warnings(other)).not.toContain("untrusted");
    expect((await create(third, "--secret-file", "s", "--new")).code).toBe(0);
    const before = journalText(third);
    const unasked = await third.integ(["journal", "import", path, "--trust", "--no-input"]);
    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining(`Trust ${id}?`)]);
    expect(unasked.stderr).toMatch(new RegExp(`requests go to ${service.us.base_url}.*secret goes to .*/s`, "s"));
    expect(journalText(third)).toBe(before);
    expect((await third.integ(["journal", "import", path, "--trust", "--yes"])).code).toBe(0);
    expect(await warnings(third)).not.toContain("untrusted");
    expect((await third.integ(["journal", "verify"])).stdout).not.toContain("untrusted");
    expect((await third.integ(["journal", "export", "--out", "own.ndjson"])).code).toBe(0);
    const own = await third.integ(["journal", "import", "own.ndjson", "--trust", "--no-input"]);
    expect([own.code, own.stderr]).toEqual([0, expect.not.stringContaining("goes to")]);
    const again = await third.integ(["journal", "import", path, "--trust", "--no-input"]);
    expect([again.code, again.stderr]).toEqual([0, expect.not.stringContaining("goes to")]);
  });

  it("a move asks about untrusted entries, and about no others", async () => {
    const [one, other] = [home(), home()];
    expect((await create(one, "--secret-file", one.path("s"))).code).toBe(0);
    const [{ id } = { id: "" }] = await entries(one);
    const path = one.path("export.ndjson");
    expect((await one.integ(["journal", "export", "--out", path])).code).toBe(0);
    expect((await create(other, "--secret-file", "s", "--new")).code).toBe(0);
    expect((await other.integ(["journal", "import", path])).code).toBe(0);
    const before = journalText(other);
    const unasked = await other.integ(["journal", "move", "--to", "there.ndjson", "--no-input"]);
    expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining(`Trust ${id}?`)]);
    expect(unasked.stderr).toContain(`its secret goes to ${one.path("s")}`);
    expect([journalText(other), existsSync(other.path("there.ndjson"))]).toEqual([before, false]);
    expect((await other.integ(["journal", "move", "--to", "there.ndjson", "--yes"])).code).toBe(0);
    // The machine's key signed these entries; the team's key, which is set now, signs them in the target.
    const team = { env: { INTEG_JOURNAL_KEY: "k".repeat(43), INTEG_JOURNAL: other.path("there.ndjson") } };
    const quiet = await other.integ(["journal", "move", "--to", "team.ndjson", "--no-input"], team);
    expect([quiet.code, quiet.stderr]).toEqual([0, expect.not.stringContaining("goes to")]);
    const moved = { env: { ...team.env, INTEG_JOURNAL: other.path("team.ndjson"), INTEG_STATE_DIR: one.path("none") } };
    expect((await other.integ(["journal", "list", "--all"], moved)).stderr).not.toContain("untrusted");
  });

  it("an empty file, which a crash before the first record leaves, is started again and reported", async () => {
    const at = home();
    mkdirSync(at.path("state"), { mode: 0o700 });
    writeFileSync(at.path("state", "journal.ndjson"), "", { mode: 0o600 });
    const verified = await at.integ(["journal", "verify"]);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("is empty")]);
    for (const words of [
      ["journal", "list"],
      ["journal", "recover"],
    ])
      expect((await at.integ(words)).stderr).toContain("is empty");
    const created = await create(at, "--secret-file", "s");
    expect(created.code).toBe(0);
    expect(created.stderr).toContain("restore a copy");
    expect(await entries(at)).toHaveLength(1);
    expect((await at.integ(["journal", "list"])).stderr).not.toContain("is empty");
  });

  it("damage in the middle is reported by the next command, and the printed repair works unchanged", async () => {
    const at = home();
    await create(at, "--secret-file", "a");
    await create(at, "--new", "--secret-file", "b");
    const text = journalText(at);
    const middle = text.indexOf('"now"', text.length / 2);
    writeFileSync(at.path("state", "journal.ndjson"), `${text.slice(0, middle)}"nov"${text.slice(middle + 5)}`);
    for (const words of [
      ["journal", "list"],
      ["journal", "recover"],
    ])
      expect((await at.integ(words)).stderr).toContain("Warning: The journal is damaged in 1 place");
    const third = await create(at, "--new", "--secret-file", "c");
    expect([third.code, third.stderr.includes("integ journal verify")]).toEqual([0, true]);
    const verified = await at.integ(["journal", "verify"]);
    expect(verified.code).toBe(10);
    const repairCommand = /`integ (journal prune [^`]+)`/.exec(verified.stdout)?.[1] ?? "";
    expect((await at.integ(repairCommand.split(" "))).code).toBe(0);
    expect((await at.integ(["journal", "verify"])).code).toBe(0);
    expect((await at.integ(["journal", "list"])).stderr).not.toContain("damaged");
    expect(await entries(at)).toHaveLength(3);
  });

  it("a finished entry lists the request id of every response, as a table and as JSON", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients status=500 times=1");
    expect((await create(at, "--secret-file", "s")).code).toBe(0);
    const [entry] = await entries(at);
    expect(entry).toMatchObject({ state: "done", attempts: 2 });
    expect(new Set(entry!.request_ids).size).toBe(2);
    const { stdout } = await at.integ(["journal", "show", entry!.id]);
    for (const id of entry!.request_ids) expect(stdout).toContain(id);
  });

  it("INTEG_JOURNAL sets another path, whose folder is created", async () => {
    const at = home();
    const path = at.path("elsewhere", "deep", "journal.ndjson");
    const env = { INTEG_JOURNAL: path };
    expect((await at.integ(["journal", "path"], { env })).stdout.trim()).toBe(path);
    expect((await at.integ(creationWords(service, "--secret-file", "a"), { env })).code).toBe(0);
    expect(existsSync(path)).toBe(true);
    expect(existsSync(at.path("state", "journal.ndjson"))).toBe(false);
  });
});

describe("an imported entry without a valid HMAC", () => {
  async function homesWithKeys(): Promise<[Home, Home]> {
    const homes = [
      await homeWithProfile(service, { names: [] }),
      await homeWithProfile(service, { names: [] }),
    ] as const;
    onTestFinished(() => homes.forEach((one) => one.remove()));
    return [...homes];
  }

  async function importForged(from: Home, to: Home, changes: readonly (readonly [string, string])[]): Promise<void> {
    const { stdout } = await integHere(from, ["journal", "export"]);
    writeFileSync(to.path("forged"), forged(stdout, [...changes, ['"machine":', '"mach1ne":']]));
    const imported = await integHere(to, ["journal", "import", "forged"]);
    expect(imported.code, imported.stderr).toBe(0);
  }

  async function makeKey(at: Home, name: string): Promise<string> {
    const words = [
      "keys",
      "create",
      "--name",
      name,
      "--type",
      "service_account",
      "--expires-in",
      "200d",
      "--no-marker",
    ];
    const { stdout } = await integHere(at, [...words, "--scope", "push-ingest:*", "--secret-file", name, "--json"]);
    return (JSON.parse(stdout) as { id: string }).id;
  }

  async function isActive(key: string): Promise<boolean> {
    const keys = (await service.control("GET", "/access_keys")) as { id: string; status: string }[];
    return keys.some(({ id, status }) => id === key && status === "active");
  }

  const age = (id: string): Promise<unknown> =>
    service.control("POST", `/access_keys/${id}`, { createdAt: Date.now() - 400 * 86_400_000, lastUsedAt: Date.now() });

  it("gives no destination to audit --fix, and neither does a refused rotation", async () => {
    const [at, other] = await homesWithKeys();
    const mine = await makeKey(at, "mine");
    const before = readFileSync(at.path("mine"), "utf8");
    await service.fault("POST /api/v1/access-keys/*/rotate status=403 times=1");
    expect((await integHere(at, ["keys", "rotate", mine, "--secret-file", "refused", "--yes"])).code).toBe(3);
    await importForged(other, at, [[await makeKey(other, "evil"), mine]]);
    rmSync(other.path("evil"));
    await age(mine);
    expect((await integHere(at, ["keys", "audit", "--fix", "--yes"])).code).toBe(10);
    expect([existsSync(other.path("evil")), existsSync(at.path("refused"))]).toEqual([false, false]);
    expect(readFileSync(at.path("mine"), "utf8")).not.toBe(before);
  });

  it("leads a rotation to no other key, by an id or by an item's name", async () => {
    const [at, other] = await homesWithKeys();
    const [mine, victim] = [await makeKey(at, "mine"), await makeKey(at, "victim")];
    const old = await makeKey(other, "x");
    const rotate = ["keys", "rotate", "--by-replacement", "--yes", "--secret-file"];
    const { stdout } = await integHere(other, [...rotate, "x", old, "--json"]);
    await importForged(other, at, [
      [old, mine],
      [(JSON.parse(stdout) as { id: string }).id, victim],
    ]);
    expect((await integHere(at, [...rotate, "new", mine])).code).toBe(5);
    expect(await isActive(victim)).toBe(true);
    const [third, fourth] = await homesWithKeys();
    const item = "  deploy: { type: service_account, scopes: ['push-ingest:*'], secret: { file: d } }";
    for (const one of [third, fourth])
      writeFileSync(one.path("integ.yaml"), `version: 1\nid: pol_of_this_test\naccess_keys:\n${item}\n`);
    expect((await integHere(third, ["apply", "--yes"])).code).toBe(0);
    expect((await integHere(fourth, ["adopt", "access-key", victim, "--name", "deploy", "--yes"])).code).toBe(0);
    await importForged(fourth, third, []);
    const named = await integHere(third, [...rotate, "new", "--name", "deploy"]);
    expect([named.code, named.stderr]).toEqual([3, expect.stringContaining("is untrusted")]);
    expect(await isActive(victim)).toBe(true);
  });

  it("adds no client to revoke --service-account --all", async () => {
    const { service_account_id: own, poor_service_account_id: poor } = service.us;
    const [at, other] = [home(), home()];
    expect((await create(at, "--secret-file", "s")).code).toBe(0);
    const words = creationWords(service, "--secret-file", "s", "--json").map((word) => (word === own ? poor : word));
    const { id } = JSON.parse((await integHere(other, words)).stdout) as { id: string };
    await importForged(other, at, [[poor, own]]);
    const revoked = await integHere(at, ["oauth-clients", "revoke", "--service-account", own, "--all", "--yes"]);
    expect([revoked.code, revoked.stderr]).toEqual([
      0,
      expect.stringContaining(`${id} stays: only an untrusted entry`),
    ]);
    expect((await account.live()).map((client) => client.id)).toEqual([id]);
  });

  it("does not decide which client a typed client_id means", async () => {
    const [at, other] = [home(), home()];
    const { stdout } = await integHere(other, creationWords(service, "--secret-file", "s", "--json"));
    const victim = JSON.parse(stdout) as { id: string; client_id: string };
    await importForged(other, at, [[victim.client_id, "cid_mine"]]);
    for (const verb of ["revoke", "rotate"])
      expect((await integHere(at, ["oauth-clients", verb, "cid_mine", "--yes"])).code, verb).toBe(4);
    expect((await account.live()).map(({ id }) => id)).toEqual([victim.id]);
  });

  it("is forgotten, with its kept secret, only by its own id", async () => {
    const at = home();
    for (const command of ["exit 1", "exit 2"]) await create(at, "--secret-command", command, "--new");
    const [kept, typed] = (await entries(at)).map(({ id }) => id) as [string, string];
    const lines = journalText(at).split("\n");
    const edited = lines.map((line) =>
      line.includes(kept) ? line.replace(/"parent":null/, `"parent":"${typed}"`) : line,
    );
    writeFileSync(at.path("state", "journal.ndjson"), forged(edited.join("\n"), []));
    expect((await integHere(at, ["journal", "forget", typed, "--yes"])).code).toBe(0);
    expect(readdirSync(at.path("state", "undelivered"))).toEqual([kept]);
  });
});
