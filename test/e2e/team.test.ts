// Several administrators share a journal in PostgreSQL. Each has a home, and a profile with its own id.
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Account } from "../support/account.ts";
import { Team } from "../support/administrators.ts";
import { PostgresServer, role } from "../support/postgres.ts";
import { ended, Home } from "../support/program.ts";
import { creationWords, homeOfTest, type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let service: Service;

interface Row {
  readonly id: string;
  readonly state: string;
  readonly profile: string;
  readonly resource_id: string | null;
  readonly idempotency_key: string;
  readonly holder?: { readonly user: string; readonly host: string; readonly pid: number; readonly until: string };
}

const create = (...more: string[]): string[] => creationWords(service, "--secret-file", "s", ...more);

async function rows(home: Home, ...words: string[]): Promise<Row[]> {
  const { stdout, stderr, code } = await home.integ(["journal", "list", "--all", "--json", ...words]);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { data: Row[] }).data;
}

/** Counts requests, because a request that another test's fault delays creates its client later. */
const creations = async (): Promise<number> => (await new Account(service).creations()).length;
const clientCount = async (): Promise<number> => (await new Account(service).clients()).length;

describe.skipIf(isMissing("PostgreSQL"))("a team's journal", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
  });
  afterAll(async () => {
    await service.stop();
    await server.remove();
  });
  beforeEach(() => new Account(service).clear());

  it("is created once by repeated and simultaneous requests; its address is shown without a password", async () => {
    const home = homeOfTest({ INTEG_JOURNAL: server.address("made").replace("@", `:${role.password}@`) });
    const all = await Promise.all(Array.from({ length: 4 }, () => home.spawned(["journal", "init", "--json"])));
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(all.filter(({ stdout }) => (JSON.parse(stdout) as { created: boolean }).created)).toHaveLength(1);
    const path = await home.integ(["journal", "path"]);
    expect(path.stdout).toBe(`${server.address("made")}\n`);
    expect(JSON.stringify([...all, path])).not.toContain(role.password);
  });

  it.each([
    ["synchronous_commit = off", "warning", "synchronous_commit is off for this role"],
    ["default_transaction_read_only = on", "problem", "the server is read-only"],
  ])("doctor reports a server with %s as a %s", async (setting, status, words) => {
    const ada = await (await Team.of(server, service)).administrator();
    const journalIn = async () => {
      const { stdout } = await ada.integ(["doctor", "--json"]);
      const { data } = JSON.parse(stdout) as { data: { check: string; status: string; message: string }[] };
      return data.filter(({ check }) => check === "journal");
    };
    expect(await journalIn()).toMatchObject([{ status: "ok" }]);
    await server.sql(`ALTER ROLE ${role.name} SET ${setting}`);
    try {
      const [found, ...more] = await journalIn();
      expect({ found, more }).toMatchObject({ found: { status }, more: [] });
      expect(found?.message).toContain(words);
      expect((await ada.integ(["journal", "verify"])).code).toBe(status === "problem" ? 10 : 0);
    } finally {
      await server.sql(`ALTER ROLE ${role.name} RESET ALL`);
    }
  });

  it("another administrator finishes the first one's work, under a profile with another name and id", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    const eve = await team.administrator({ name: "work", key: service.us.second_api_key });
    const before = await clientCount();
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    const lost = await ada.integ(create("--retry-for", "0"));
    expect(lost.code, lost.stderr).toBe(7);
    const [seen] = await rows(eve);
    expect(seen).toMatchObject({ state: "unknown", profile: "prod" });
    const words = ["--replace-lost-secret", "--secret-file", "t", "--yes"];
    const recovered = await eve.integ(["journal", "recover", seen!.id, ...words]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect((await rows(ada)).map(({ state }) => state)).toEqual(["done", "replaced"]);
    expect(await clientCount()).toBe(before + 2);
    expect((await ada.integ(["journal", "verify"])).code).toBe(0);
  });

  it("names the holder of an entry, waits for the holder, and takes the entry over on request", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    const eve = await team.administrator();
    await service.fault("POST /v1/oauth_clients latency=25s times=1");
    const child = ada.start(create());
    onTestFinished(() => void child.kill("SIGKILL"));
    let inUse: Row | undefined;
    for (let round = 0; inUse?.holder === undefined && round < 100; round += 1) {
      await sleep(100);
      [inUse] = await rows(eve);
    }
    expect(inUse?.holder).toMatchObject({ pid: child.pid, host: expect.any(String), user: expect.any(String) });
    const { id = "" } = inUse ?? {};
    const busy = await eve.integ(["journal", "recover", id]);
    expect([busy.code, busy.stderr]).toEqual([7, expect.stringContaining(`in use by process ${child.pid}`)]);
    expect(busy.stderr).toContain("its lease ends at");
    const other = await eve.integ(create());
    expect([other.code, other.stderr]).toEqual([
      0,
      expect.stringContaining(`(process ${child.pid}) has been creating the same one since`),
    ]);
    expect(other.stderr).not.toContain("attention");
    expect((await eve.integ(["journal", "release", id])).code).toBe(2);
    expect((await eve.integ(["journal", "release", id, "--yes"])).code).toBe(0);
    expect((await rows(eve)).find((row) => row.id === id)?.holder).toBeUndefined();
    child.kill("SIGKILL");
  });

  it("a process that was paused reports that another one replaced its client, and fails", async () => {
    const team = await Team.of(server, service);
    const [ada, eve] = [await team.administrator(), await team.administrator()];
    const [sent, made] = [await creations(), await clientCount()];
    await service.fault("POST /v1/oauth_clients latency=2s times=1");
    const child = ada.start(create().slice(0, -2));
    onTestFinished(() => void child.kill("SIGKILL"));
    const end = ended(child);
    while ((await creations()) === sent) await sleep(50);
    child.kill("SIGSTOP");
    while ((await clientCount()) === made) await sleep(100);
    const { id = "" } = (await rows(eve))[0] ?? {};
    await eve.integ(["journal", "release", id, "--yes"]);
    const words = ["journal", "recover", id, "--replace-lost-secret", "--secret-file", "t", "--yes"];
    expect((await eve.integ(words)).code).toBe(0);
    child.kill("SIGCONT");
    const { code, stderr } = await end;
    expect([code, stderr]).toEqual([12, expect.stringContaining(`took over ${id}, which is replaced now`)]);
  });

  it.each([
    [{}, 45],
    [{ INTEG_LEASE: "40s" }, 40],
    [{ INTEG_LEASE: "1s" }, 31],
    [{ INTEG_LEASE: "2h" }, 45],
    [{ INTEG_TIMEOUT: "5s" }, 20],
  ])("a lease with %j lasts %d s", async (env, seconds) => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    await service.fault("POST /v1/oauth_clients latency=5s times=1");
    const child = ada.start(create(), { env });
    onTestFinished(() => void child.kill("SIGKILL"));
    const text = `SELECT extract(epoch FROM lease_until - held_since)::float8 AS lasts FROM ${team.schema}.integ_entries`;
    let lasts: unknown;
    for (let round = 0; lasts === undefined && round < 200; round += 1) {
      await sleep(50);
      lasts = (await server.sql(text, role.name))[0]?.lasts;
    }
    child.kill("SIGKILL");
    await service.calm();
    // A lease ends slightly later if integ extended it before the request.
    expect(Math.floor(Number(lasts) + 0.1)).toBeGreaterThanOrEqual(seconds);
    expect(Number(lasts)).toBeLessThan(seconds + 5);
  });

  it("adds a marker to key names, except on request or if the name is too long", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator({ key: service.us.access_key_secret });
    const name = async (...words: string[]): Promise<string> => {
      const { stdout, stderr, code } = await ada.integ(["keys", "create", "--expires-in", "1d", "--json", ...words]);
      expect(code, stderr).toBe(0);
      return (JSON.parse(stdout) as { name: string }).name;
    };
    expect(await name("--name", "a")).toMatch(/^a-[0-9a-f]{12}$/);
    expect(await name("--name", "b", "--no-marker")).toBe("b");
    expect(await name("--name", "c".repeat(250))).toBe("c".repeat(250));
  });

  it("sends no request about a key's lost creation before its holder's lease ends", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator({ key: service.us.access_key_secret });
    const eve = await team.administrator({ key: service.us.access_key_secret });
    await service.fault("POST /api/v1/access-keys latency=20s times=1");
    const child = ada.start(["keys", "create", "--name", "k", "--secret-file", "s"], {
      env: { INTEG_TIMEOUT: "6s", INTEG_LEASE: "7s" },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let seen: Row | undefined;
    for (
      let round = 0;
      round < 100 && (seen?.holder === undefined || !JSON.stringify(seen).includes('"attempts":1'));
      round += 1
    ) {
      await sleep(50);
      [seen] = await rows(eve);
    }
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("close", resolve));
    const requests = async (): Promise<number> => (await new Account(service).requests()).length;
    const before = await requests();
    const early = await eve.integ(["journal", "recover", "--secret-file", "t"]);
    expect([early.code, early.stderr]).toEqual([7, expect.stringContaining("may still be sending the request")]);
    expect(await requests()).toBe(before);
  });

  it("an encrypted secret can be claimed anywhere, only with an identity", async () => {
    const team = await Team.of(server, service);
    const identity = await generateIdentity();
    const recipient = await identityToRecipient(identity);
    const runner = await team.administrator();
    const eve = await team.administrator();
    await runner.integ(["profiles", "edit", "prod", "--escrow", recipient]);
    const failed = await runner.integ([...create().slice(0, -2), "--secret-command", "exit 1"]);
    expect(failed.code, failed.stderr).toBe(12);
    runner.remove();
    const id = (await rows(eve))[0]?.id ?? "";
    const escrowed = async (): Promise<string> =>
      JSON.stringify(await server.sql(`SELECT entry, ciphertext FROM ${team.schema}.integ_escrow`, role.name));
    expect(await escrowed()).toContain("BEGIN AGE ENCRYPTED FILE");
    const locked = await eve.integ(["journal", "claim", id]);
    expect([locked.code, locked.stderr]).toEqual([12, expect.stringContaining("no identity is set here")]);
    const file = eve.path("identity");
    writeFileSync(file, `# of a test\n${await generateIdentity()}\n`, { mode: 0o600 });
    const env = { INTEG_ESCROW_IDENTITY: file };
    const other = await eve.integ(["journal", "claim", id], { env });
    expect([other.code, other.stderr]).toEqual([12, expect.stringContaining("does not open it")]);
    writeFileSync(file, `# of a test\n${identity}\n`);
    const claimed = await eve.integ(["journal", "claim", id, "--json"], { env });
    expect(claimed.code, claimed.stderr).toBe(0);
    const { client_secret: secret } = JSON.parse(claimed.stdout) as { client_secret: string };
    expect(secret.length).toBeGreaterThan(10);
    expect(await rows(eve)).toMatchObject([{ state: "done" }]);
    expect(await escrowed()).toBe("[]");
    const all = JSON.stringify(await server.sql(`SELECT * FROM ${team.schema}.integ_records`, role.name));
    expect(all).not.toContain(secret);
  });

  it("a delivered secret is not kept, and an unrecoverable one is reported before anything is sent", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    const recipient = await identityToRecipient(await generateIdentity());
    const created = await ada.integ(create("--escrow", recipient));
    expect(created.code, created.stderr).toBe(0);
    expect(await server.sql(`SELECT entry FROM ${team.schema}.integ_escrow`, role.name)).toEqual([]);
    const before = await creations();
    const inCi = await ada.integ([...create().slice(0, -1), "t"], { env: { CI: "true" } });
    expect(inCi.stderr).toContain("INTEG_ESCROW=");
    for (const bad of ["age1nonsense", (await generateIdentity()).toLowerCase(), "me@example.com"]) {
      const refused = await ada.integ([...create().slice(0, -1), "u"], { env: { INTEG_ESCROW: bad } });
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--escrow")]);
    }
    const file = { INTEG_JOURNAL: ada.path("journal.ndjson"), INTEG_ESCROW: recipient };
    const alone = await ada.integ([...create().slice(0, -1), "u"], { env: file });
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("need a team's journal")]);
    expect(await creations()).toBe(before + 1);
  });

  it("without the team's key nothing changes and entries are untrusted; a command of the profile may print the key", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    expect((await ada.integ(create())).code).toBe(0);
    const { INTEG_JOURNAL_KEY: key = "" } = ada.env;
    delete ada.env.INTEG_JOURNAL_KEY;
    const before = await creations();
    const [{ id } = { id: "" }] = await rows(ada, "--all");
    expect((await ada.integ(["journal", "export", "--out", "journal.ndjson"])).code).toBe(0);
    for (const words of [create("--new"), ["journal", "trust", id, "--yes"], ["journal", "import", "journal.ndjson"]]) {
      const refused = await ada.integ(words);
      expect([refused.code, refused.stderr], words.join(" ")).toEqual([
        2,
        expect.stringContaining("INTEG_JOURNAL_KEY"),
      ]);
    }
    expect(await creations()).toBe(before);
    const listed = await ada.integ(["journal", "list", "--all"]);
    expect([listed.code, listed.stderr]).toEqual([0, expect.stringContaining(`The entry ${id} is untrusted`)]);
    expect((await ada.integ(["journal", "verify"])).stdout).toContain("untrusted");

    const edit = (command: string) => ada.integ(["profiles", "edit", "prod", "--journal-key-command", command]);
    await edit("echo short");
    const invalid = await ada.integ(create("--new"));
    expect([invalid.code, invalid.stderr]).toEqual([2, expect.stringContaining("is not a list of journal keys")]);
    await edit(`echo ${key}`);
    const trusted = await ada.integ(["journal", "list", "--all"]);
    expect([trusted.code, trusted.stderr]).toEqual([0, expect.not.stringContaining("untrusted")]);
    expect((await ada.integ([...create().slice(0, -1), "t"])).code).toBe(0);
    const listedWith = (keys: string) =>
      ada.integ(["journal", "list", "--all"], { env: { INTEG_JOURNAL_KEY: keys } }).then(({ stderr }) => stderr);
    expect(await listedWith("other".repeat(8))).toContain("are untrusted");
    expect(await listedWith(`${"other".repeat(8)}, ${key}`)).not.toContain("untrusted");
    expect(await listedWith(`${key},${"x".repeat(31)}`)).toContain("INTEG_JOURNAL_KEY is not a list of journal keys");
  });

  it("recognizes its earlier deliveries after the move of this machine's journal", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    const { INTEG_JOURNAL: address = "", INTEG_JOURNAL_KEY: key = "" } = ada.env;
    delete ada.env.INTEG_JOURNAL;
    delete ada.env.INTEG_JOURNAL_KEY;
    expect((await ada.integ(create())).code).toBe(0);
    const [{ resource_id: id } = { resource_id: null }] = await rows(ada);
    ada.env.INTEG_JOURNAL_KEY = key;
    const moved = await ada.integ(["journal", "move", "--to", address]);
    expect(moved.code, moved.stderr).toBe(0);
    ada.env.INTEG_JOURNAL = address;
    const to = ["--secret-file", "s", "--accept-unproven"];
    const rotated = await ada.integ(["oauth-clients", "rotate", id ?? "", ...to]);
    expect(rotated.code, rotated.stderr).toBe(0);
  });

  it("a profile names its journal, without a password", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    const { INTEG_JOURNAL: address = "", ...env } = ada.env;
    delete ada.env.INTEG_JOURNAL;
    expect(env.PGPASSWORD).toBe(role.password);
    const refused = await ada.integ(["profiles", "edit", "prod", "--journal", address.replace("@", ":canary@")]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("the address contains a password")]);
    const mistyped = await ada.integ(["profiles", "edit", "prod", "--journal", "postgres//x"]);
    expect(mistyped.code).toBe(2);
    expect((await ada.integ(["profiles", "edit", "prod", "--journal", address])).code).toBe(0);
    expect((await ada.integ(["journal", "path"])).stdout).toBe(`${address}\n`);
    expect((await ada.integ(create())).code).toBe(0);
    expect(await server.sql(`SELECT is_settled FROM ${team.schema}.integ_entries`, role.name)).toEqual([
      { is_settled: true },
    ]);
    const elsewhere = await ada.integ(["journal", "path"], { env: { INTEG_JOURNAL: ada.path("j") } });
    expect(elsewhere.stdout).toBe(`${ada.path("j")}\n`);
    expect((await ada.integ(["profiles", "edit", "prod", "--journal", ""])).code).toBe(0);
    expect((await ada.integ(["journal", "path"])).stdout).toBe(`${ada.path("state", "journal.ndjson")}\n`);
  });

  it("a profile that gets a team's journal reports the entries that stay in this machine's; a later move imports them", async () => {
    const team = await Team.of(server, service);
    const address = server.address(team.schema);
    const ada = await team.administrator();
    delete ada.env.INTEG_JOURNAL;
    const own = ada.path("state", "journal.ndjson");
    expect((await ada.integ(create())).code).toBe(0);
    expect((await ada.integ([...create().slice(0, -2), "--new", "--secret-command", "exit 1"])).code).toBe(12);
    const edited = await ada.integ(["profiles", "edit", "prod", "--journal", address]);
    const step = `integ journal move --to ${address.replace("?", "\\?")}`;
    expect([edited.code, edited.stderr.replaceAll("'", "")]).toEqual([
      0,
      expect.stringMatching(`2 entries \\(1 unfinished\\) in ${own} are not shown: .*${step}`),
    ]);
    expect(await rows(ada)).toEqual([]);
    const doctor = await ada.integ(["doctor", "--json"]);
    expect(doctor.stdout).toContain("2 entries (1 unfinished) in ~/state/journal.ndjson are not shown");
    const moved = await ada.integ(["journal", "move", "--to", address, "--json"]);
    expect([moved.code, JSON.parse(moved.stdout || "{}")]).toEqual([
      0,
      { object: "journal_move", from: own, to: address, added: 2, extended: 0, unchanged: 0 },
    ]);
    expect((await rows(ada)).map(({ state }) => state)).toEqual(["undelivered", "done"]);
    const again = await ada.integ(["journal", "move", "--to", address]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("The journal is already there.")]);
    const back = await ada.integ(["profiles", "edit", "prod", "--journal", ""]);
    expect([back.code, back.stderr]).toEqual([0, expect.stringContaining(`The entries in ${address} stay there.`)]);
    for (const words of [
      ["edit", "sandbox", "--journal", address],
      ["remove", "sandbox"],
      ["use", "env"],
    ])
      expect((await ada.integ(["profiles", ...words])).stderr).toMatch(/is built in/);
  });

  it("moves from a file and back, and refuses changes through the old one", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    const address = server.address(team.schema);
    const old = { INTEG_JOURNAL: ada.path("old.ndjson") };
    expect((await ada.integ([...create().slice(0, -1), "s1"], { env: old })).code).toBe(0);
    const kept = await ada.integ([...create().slice(0, -2), "--secret-command", "exit 1"], { env: old });
    expect(kept.code, kept.stderr).toBe(12);
    const history = async (env: Record<string, string>): Promise<string> => {
      const { stdout } = await ada.integ(["journal", "list", "--all", "--json"], { env });
      const ids = (JSON.parse(stdout) as { data: Row[] }).data.map(({ id }) => id);
      const shown = await Promise.all(ids.map((id) => ada.integ(["journal", "show", id, "--json"], { env })));
      return shown.map((one) => one.stdout).join("");
    };
    const before = await history(old);
    const withPassword = address.replace("@", ":canary@");
    const refused = await ada.integ(["journal", "move", "--to", withPassword], { env: old });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("the address contains a password")]);
    const moved = await ada.integ(["journal", "move", "--to", address, "--json"], { env: old });
    expect(moved.code, moved.stderr).toBe(0);
    expect(JSON.parse(moved.stdout)).toMatchObject({ added: 2, to: address });
    expect(await history({})).toBe(before);
    expect((await ada.integ(["journal", "verify"])).code).toBe(0);
    const again = await ada.integ(["journal", "move", "--to", address, "--json"], { env: old });
    expect(JSON.parse(again.stdout)).toMatchObject({ added: 0, unchanged: 2 });
    const count = await clientCount();
    const late = await ada.integ([...create().slice(0, -1), "s3"], { env: old });
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining(address)]);
    expect((await ada.integ(["journal", "prune", "--older-than", "0"], { env: old })).code).toBe(2);
    expect(await clientCount()).toBe(count);
    expect(await history(old)).toBe(before);
    const imported = await ada.integ(["journal", "import", "-"], {
      env: old,
      input: (await ada.integ(["journal", "export"], { env: old })).stdout,
    });
    expect([imported.code, imported.stderr]).toEqual([2, expect.stringContaining("were moved to")]);
    const stale = await ada.integ(["journal", "list", "--all"], { env: old });
    expect([stale.code, stale.stderr]).toEqual([0, expect.stringContaining(`were moved to ${address}.`)]);
    for (const words of [["status"], ["oauth-clients", "list"], ["doctor"]]) {
      const { stdout, stderr } = await ada.integ(words, { env: old });
      expect(stdout + stderr).toContain(`The entries of this journal were moved to ${address}.`);
    }
    expect((await ada.integ([...create("--new").slice(0, -2), "s4", "--new"])).code).toBe(0);
    // The move can be repeated, although the new journal has more entries by now.
    const [{ id }] = (await rows(ada, "--state", "undelivered")) as [Row];
    expect((await ada.integ(["journal", "claim", id, "--secret-file", "claimed"])).code).toBe(0);
    const repeated = await ada.integ(["journal", "move", "--to", address, "--json"], { env: old });
    expect([repeated.code, repeated.stdout]).toEqual([0, expect.stringContaining('"unchanged":2')]);
    // Only a journal with all entries of a moved journal can be moved into it: otherwise two journals would be in use.
    const other = { INTEG_JOURNAL: server.address((await Team.of(server, service)).schema) };
    const into = await ada.integ(["journal", "move", "--to", old.INTEG_JOURNAL], { env: other });
    expect([into.code, into.stderr]).toEqual([2, expect.stringContaining("does not have them all")]);
    expect((await ada.integ(create("--new"), { env: old })).code).toBe(2);
    // This address differs in spelling from the address in the old journal's mark.
    const renamed = { INTEG_JOURNAL: `${address}&application_name=integ` };
    const back = await ada.integ(["journal", "move", "--to", old.INTEG_JOURNAL], { env: renamed });
    expect(back.code, back.stderr).toBe(0);
    const late2 = await ada.integ([...create().slice(0, -1), "s5"]);
    expect([late2.code, late2.stderr]).toEqual([2, expect.stringContaining("old.ndjson")]);
    expect((await ada.integ([...create().slice(0, -1), "s6"], { env: old })).code).toBe(0);
    expect((await ada.integ(["journal", "verify"], { env: old })).code).toBe(0);
  });

  it("a move keeps encrypted secrets; it is refused to a file, which cannot hold them", async () => {
    const [one, other] = [await Team.of(server, service), await Team.of(server, service)];
    const ada = await one.administrator();
    const identity = await generateIdentity();
    const escrow = { INTEG_ESCROW: await identityToRecipient(identity) };
    const created = await ada.integ([...create().slice(0, -2), "--secret-command", "exit 1"], { env: escrow });
    expect(created.code, created.stderr).toBe(12);
    const [{ id }] = (await rows(ada)) as [Row];
    const exported = await ada.integ(["journal", "export", "--out", ada.path("e")]);
    expect([exported.code, exported.stderr]).toEqual([0, expect.stringContaining(id)]);
    const toFile = await ada.integ(["journal", "move", "--to", ada.path("j.ndjson")]);
    expect([toFile.code, toFile.stderr]).toEqual([2, expect.stringContaining("a file cannot hold them")]);
    expect((await ada.integ(["journal", "verify"])).code).toBe(0);
    const moved = await ada.integ(["journal", "move", "--to", server.address(other.schema)]);
    expect(moved.code, moved.stderr).toBe(0);
    expect(await server.sql(`SELECT entry FROM ${one.schema}.integ_escrow`, role.name)).toEqual([]);
    const eve = await other.administrator({ name: "eve" });
    writeFileSync(eve.path("identity"), identity, { mode: 0o600 });
    const opened = { env: { INTEG_ESCROW_IDENTITY: eve.path("identity") } };
    const claimed = await eve.integ(["journal", "claim", id, "--secret-file", "s"], opened);
    expect(claimed.code, claimed.stderr).toBe(0);
    expect(await server.sql(`SELECT entry FROM ${other.schema}.integ_escrow`, role.name)).toEqual([]);
  });
});
