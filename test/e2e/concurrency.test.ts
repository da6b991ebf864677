import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Account, type ReceivedRequest } from "../support/account.ts";
import { readJournal, type ReadEntry } from "../support/journal-file.ts";
import { ended, type Ended, Home, isOtherBinary, until } from "../support/program.ts";
import { homeOfTest, serviceOfFile } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const isTraced = !isMissing("strace");

const service = await serviceOfFile();
const account = new Account(service);
afterEach(() => account.clear());

function home(): Home {
  return homeOfTest(service.env);
}

function words(scope: string, file: string, ...more: string[]): string[] {
  const target = service.us.service_account_id;
  return ["oauth-clients", "create", "--service-account", target, "--scope", scope, "--secret-file", file, ...more];
}

function journalOf(at: Home): ReadEntry[] {
  return readJournal(at.path("state", "journal.ndjson"));
}

function countsByKey(requests: readonly ReceivedRequest[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { idempotency_key: key } of requests) if (key !== null) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Entries with more requests at the service than attempts in the journal: two processes worked on each of them. */
async function entriesOfTwoProcesses(at: Home): Promise<string[]> {
  const sent = countsByKey(await account.creations());
  return journalOf(at).flatMap(({ id, idempotency_key: key, attempts }) =>
    key !== null && (sent.get(key) ?? 0) > attempts ? [`${id}: ${sent.get(key)} requests, ${attempts} attempts`] : [],
  );
}

async function expectOneClientPerFile(at: Home, files: readonly string[]): Promise<void> {
  const live = await account.live();
  const opened = new Set<string>();
  for (const file of files) {
    const secret = readFileSync(at.path(file), "utf8").trimEnd();
    for (const { id, client_id } of live)
      if (client_id !== null && (await account.opens(client_id, secret))) opened.add(id);
  }
  expect(opened.size).toBe(files.length);
  expect(live).toHaveLength(files.length);
}

describe("concurrent creations", () => {
  // After the secret is written and before its file has its name, the disk looks as after a crash.
  it.runIf(isTraced)("a command leaves alone a creation that another process is delivering", async () => {
    const at = home();
    const slow = at.path("slow");
    const delivery = ended(
      at.start(words("entity:read", slow), {
        under: ["strace", "-f", "-q", "-o", at.path("trace"), "-P", slow, "-e", "inject=link,linkat:delay_enter=6s"],
      }),
    );
    const isWritten = (): boolean =>
      readdirSync(at.folder).some(
        (name) => name.startsWith(".slow.") && /\S/.test(readFileSync(at.path(name), "utf8")),
      );
    await until("the secret is written and has no name", isWritten);
    // The second command names an existing file, which it may overwrite only for an entry that it continues.
    const refused = await at.integ(words("entity:read", at.path("trace")));
    const other = await at.integ(words("entity:read", "other"));
    expect([refused.code, other.code], refused.stderr + other.stderr).toEqual([2, 0]);
    expect(existsSync(slow), "the first delivery still runs").toBe(false);
    const first = await delivery;
    expect(first.code, first.stderr).toBe(0);
    await expectOneClientPerFile(at, ["slow", "other"]);
    expect(await entriesOfTwoProcesses(at)).toEqual([]);
  });

  it("sixteen creations, same and different, one paused, one killed: no entry is lost or has two holders", async () => {
    const at = home();
    // The slow responses leave time to interrupt two of the processes.
    await service.fault("POST /v1/oauth_clients latency=5s");
    const files = Array.from({ length: 16 }, (_, index) => `secret-${index}`);
    const scopes = ["entity:read", "organization:read"];
    // The killed process creates with its own scopes. Otherwise another process would resume its entry.
    const children = files.map((file, index) =>
      at.start(words(scopes[index % 2]!, file, ...(index === 8 ? ["--scope", scopes[1]!] : []))),
    );
    const ends = children.map((child) => ended(child));
    const [stopped, killed] = [children[3]!, children[8]!];
    // Both processes get their signals while their requests are at the service. A process that is paused while it holds a
    // lock would block all others.
    const isSent = async (file: string): Promise<boolean> => {
      const entry = journalOf(at).find(({ destination }) => destination?.path === at.path(file));
      return entry !== undefined && countsByKey(await account.creations()).has(entry.idempotency_key!);
    };
    await Promise.all([
      until("secret-3 is requested", () => isSent("secret-3")).then(() => stopped.kill("SIGSTOP")),
      until("secret-8 is requested", () => isSent("secret-8")).then(() => killed.kill("SIGKILL")),
    ]);
    const others = await Promise.all(ends.filter((_, index) => index !== 3 && index !== 8));
    expect(others.map(({ code, stderr }) => (code === 0 ? 0 : stderr))).toEqual(others.map(() => 0));
    expect(journalOf(at)).toHaveLength(16);

    // The recovery continues the killed process's entry, and leaves the paused process's entry to that process.
    const before = (await account.creations()).length;
    const recoveries = await Promise.all([1, 2].map(() => at.integ(["journal", "recover", "--replace-lost-secret"])));
    const stoppedNow = journalOf(at).filter(({ state }) => state === "open");
    expect(stoppedNow.length).toBeLessThanOrEqual(1);
    if (stoppedNow.length === 1)
      for (const { stderr } of recoveries) expect(stderr).toContain(`process ${stopped.pid}`);
    expect((await account.creations()).length - before).toBeLessThanOrEqual(2);

    stopped.kill("SIGCONT");
    expect(await ends[3]).toMatchObject({ code: 0 });
    expect((await ends[8])?.signal).toBe("SIGKILL");
    const entries = journalOf(at);
    const lost = entries.filter(({ state }) => state !== "done" && state !== "replaced");
    const doubles = await entriesOfTwoProcesses(at);
    expect(doubles).toEqual([]);
    expect(lost).toEqual([]);
    await expectOneClientPerFile(at, files);
  }, 180_000);
});

describe("concurrent recoveries", () => {
  it("eight recoveries finish six unknown creations, each entry with one holder", async () => {
    const at = home();
    const files = Array.from({ length: 6 }, (_, index) => `secret-${index}`);
    await service.fault("POST /v1/oauth_clients drop=before");
    for (const file of files)
      expect(await at.integ(words("entity:read", file, "--retry-for", "0", "--new"))).toMatchObject({ code: 7 });
    await service.calm();
    const before = new Map(journalOf(at).map(({ id, attempts }) => [id, attempts]));
    await service.fault("POST /v1/oauth_clients latency=100ms");
    const ends: Ended[] = await Promise.all(Array.from({ length: 8 }, () => at.integ(["journal", "recover"])));
    expect(ends.map(({ code, stderr }) => (code === 0 ? 0 : stderr))).toEqual(ends.map(() => 0));
    const entries = journalOf(at);
    expect(entries.map(({ state }) => state)).toEqual(files.map(() => "done"));
    const sent = countsByKey(await account.creations());
    for (const { id, idempotency_key: key, attempts } of entries) {
      expect(attempts - before.get(id)!, id).toBe(1);
      expect(sent.get(key!), id).toBe(1);
    }
    await expectOneClientPerFile(at, files);
  }, 120_000);

  it("the same command creates another client while the first is running, and resumes its entry after it was killed", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients latency=12s times=1");
    const first = at.start(words("entity:read", "a"));
    const firstEnd = ended(first);
    await until("the first attempt is recorded", () => journalOf(at)[0]?.attempts === 1);
    // The journal shows an attempt before it is sent. This wait lets the first request get the slow response.
    await new Promise((done) => setTimeout(done, 1_000));
    expect(await at.integ(words("entity:read", "b"))).toMatchObject({ code: 0 });
    first.kill("SIGKILL");
    await firstEnd;
    const again = await at.integ(words("entity:read", "c", "--replace-lost-secret"));
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).toContain("--new");
    expect(journalOf(at).filter(({ replaces }) => replaces === null)).toHaveLength(2);
    await expectOneClientPerFile(at, ["b", "c"]);
  }, 120_000);
});

const isSkipped = isOtherBinary("locks on the bytes of the journal's file");

describe.skipIf(isMissing("the right to mount") || isSkipped)(
  "a journal file mounted into a container without its folder",
  () => {
    it("is refused there, because its locks are in another folder", async () => {
      const at = home();
      expect(await at.integ(words("entity:read", "first"))).toMatchObject({ code: 0 });
      mkdirSync(at.path("container"));
      const INTEG_JOURNAL = at.path("container", "journal.ndjson");
      writeFileSync(INTEG_JOURNAL, "");
      const mount = `mount --bind '${at.path("state", "journal.ndjson")}' '${INTEG_JOURNAL}'`;
      const inside = { under: ["unshare", "-m", "sh", "-c", `${mount} && exec "$@"`, "sh"], env: { INTEG_JOURNAL } };
      const before = (await account.creations()).length;
      expect(await at.integ(words("entity:read", "beside"), inside)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("has a second name (a hard link, or a mount of the single file)"),
      });
      expect((await account.creations()).length).toBe(before);
      expect(await at.integ(words("entity:read", "outside"))).toMatchObject({ code: 0 });
    }, 60_000);
  },
);
