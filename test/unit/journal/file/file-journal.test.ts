import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { recordContent, recordLine as lineOf } from "../../../../src/journal/record.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { keyRing } from "../../../../src/journal/keys.ts";
import type { Finding } from "../../../../src/journal/journal.ts";
import { fileJournal } from "../../../support/file-journal.ts";
import { ada, clock, folder, intent, journalAt as at, journalPath } from "../intent.ts";

async function admitted(path: string, count = 1): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const { lease } = await at(path).admit(intent(), { fresh: true });
    await lease.release();
    ids.push(lease.entry.id);
  }
  return ids;
}

/** A line that a test appends without the journal's locks. */
function recordLine(entry: Entry): string {
  return lineOf({ content: recordContent(entry, { by: ada }), mac: "" });
}

async function thrown(work: () => Promise<unknown>): Promise<Failure> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

async function problems(path: string): Promise<Finding[]> {
  return (await at(path).verify()).filter((finding) => finding.severity === "problem");
}

async function refusal(path: string): Promise<Failure> {
  const error: unknown = await at(path)
    .admit(intent())
    .catch((failed: unknown) => failed);
  if (!(error instanceof Failure)) throw new Error(`no Failure: ${String(error)}`);
  expect(error.details.meaning ?? "Nothing was sent and nothing changed").toMatch(/nothing|as it is|shows/i);
  return error;
}

test("opening, reading and verifying a missing journal creates nothing", async () => {
  const home = folder();
  const open = at(join(home, "state", "journal.ndjson"));
  expect(await open.entries()).toEqual([]);
  expect(await open.verify()).toEqual([]);
  expect(await open.prune(0)).toMatchObject({ removed: 0 });
  expect(await thrown(() => open.find("1rs"))).toMatchObject({ kind: "not_found" });
  expect(readdirSync(home)).toEqual([]);
});

test("the file has mode 0600 in a folder with 0700 under any umask, and no other file stays", async () => {
  const path = journalPath();
  const before = process.umask(0);
  try {
    await admitted(path);
  } finally {
    process.umask(before);
  }
  expect(statSync(path).mode & 0o7777).toBe(0o600);
  expect(statSync(dirname(path)).mode & 0o7777).toBe(0o700);
  expect(readdirSync(dirname(path))).toEqual(["journal.ndjson"]);
});

test("a file that others can read is made private; one that others can write is refused with the fix", async () => {
  const path = journalPath();
  await admitted(path);
  chmodSync(path, 0o644);
  await admitted(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  chmodSync(path, 0o620);
  expect(await refusal(path)).toMatchObject({
    kind: "usage",
    exitCode: 2,
    details: { nextCommand: `chmod 600 ${path}` },
  });
  expect(await thrown(() => at(path).entries())).toMatchObject({ kind: "usage" });
});

test("a folder in which anyone can rename files is refused, a sticky one is not", async () => {
  const open = join(folder(), "open");
  mkdirSync(open);
  chmodSync(open, 0o777);
  expect(await refusal(join(open, "journal.ndjson"))).toMatchObject({ kind: "usage" });
  chmodSync(open, 0o1777);
  await admitted(join(open, "journal.ndjson"));
  expect(await at(join(open, "journal.ndjson")).entries()).toHaveLength(1);
});

test.each([
  ["a dangling link", (path: string) => symlinkSync(join(dirname(path), "elsewhere"), path), ""],
  ["a link to a journal", (path: string) => (writeFileSync(`${path}.real`, ""), symlinkSync(`${path}.real`, path)), ""],
  ["a folder", (path: string) => mkdirSync(path), ""],
  ["a pipe", (path: string) => execFileSync("mkfifo", [path]), ""],
  ["a path below a file", (path: string) => writeFileSync(path, "x"), "/journal.ndjson"],
  ["an unrelated file", (path: string) => writeFileSync(path, "my notes\n", { mode: 0o600 }), ""],
])("%s is not a journal: nothing is sent or changed", async (_, make, below) => {
  const path = join(folder(), "journal.ndjson");
  make(path);
  const before = existsSync(path) && statSync(path).isFile() ? readFileSync(path, "utf8") : "";
  expect(await refusal(`${path}${below}`)).toMatchObject({ kind: "usage", exitCode: 2 });
  if (before !== "") expect(readFileSync(path, "utf8")).toBe(before);
});

test("a truncated append is copied aside, and the next record has its own line", async () => {
  const path = journalPath();
  const [kept] = await admitted(path, 2);
  const whole = readFileSync(path);
  truncateSync(path, whole.length - 10);
  const torn = at(path);
  expect((await torn.entries()).map((entry) => entry.id)).toEqual([kept]);
  expect(await torn.verify()).toMatchObject([
    { severity: "warning", message: expect.stringContaining("incomplete append") },
  ]);
  const [next] = await admitted(path);
  expect((await at(path).entries()).map((entry) => entry.id)).toEqual([next, kept]);
  const aside = readdirSync(dirname(path)).filter((name) => name.startsWith("journal.ndjson.torn-"));
  expect(aside).toHaveLength(1);
  const second = whole.subarray(whole.lastIndexOf("\n", whole.length - 2) + 1, whole.length - 10);
  expect(readFileSync(join(dirname(path), aside[0] ?? ""))).toEqual(second);
  expect(statSync(join(dirname(path), aside[0] ?? "")).mode & 0o777).toBe(0o600);
  expect(await problems(path)).toEqual([]);
});

test("a record that lacks only its newline is complete, and stays separate from the next", async () => {
  const path = journalPath();
  const ids = await admitted(path);
  truncateSync(path, statSync(path).size - 1);
  ids.push(...(await admitted(path)));
  expect((await at(path).entries()).map((entry) => entry.id)).toEqual(ids.toReversed());
  expect(await at(path).verify()).toEqual([]);
});

test("zeros, left by a power cut during the first append, are set aside", async () => {
  const path = journalPath();
  mkdirSync(dirname(path), { mode: 0o700 });
  writeFileSync(path, Buffer.alloc(700), { mode: 0o600 });
  expect(await at(path).entries()).toEqual([]);
  await admitted(path);
  expect(await at(path).entries()).toHaveLength(1);
  expect(await at(path).verify()).toMatchObject([
    { severity: "warning", message: expect.stringContaining("set aside") },
  ]);
});

test("damage in the middle is reported with its place, copied aside once, and repaired by prune", async () => {
  const path = journalPath();
  const ids = await admitted(path, 3);
  const bytes = readFileSync(path);
  const offset = bytes.indexOf(ids[1] ?? "");
  bytes.writeUInt8(bytes.readUInt8(offset + 200) ^ 4, offset + 200);
  writeFileSync(path, bytes);
  const lineStart = bytes.lastIndexOf("\n", offset) + 1;
  const lineEnd = bytes.indexOf("\n", offset);

  expect((await at(path).entries()).map((entry) => entry.id)).toEqual([ids[2], ids[0]]);
  const [problem] = await at(path).verify();
  expect(problem).toMatchObject({
    severity: "problem",
    where: `${path}: line 3, offset ${lineStart}, ${lineEnd - lineStart} bytes`,
  });
  await admitted(path);
  await at(path).verify();
  const aside = readdirSync(dirname(path)).filter((name) => name.startsWith("journal.ndjson.damaged-"));
  expect(aside).toHaveLength(1);
  expect(readFileSync(join(dirname(path), aside[0] ?? ""))).toEqual(bytes.subarray(lineStart, lineEnd));

  expect(await at(path).prune(1e12)).toMatchObject({ removed: 0 });
  expect(await at(path).entries()).toHaveLength(3);
  expect(await problems(path)).toEqual([]);
  expect(readdirSync(dirname(path))).toContain(aside[0]);
});

test("two records whose newline was lost are both found", async () => {
  const path = journalPath();
  const ids = await admitted(path, 3);
  const bytes = readFileSync(path);
  const newline = bytes.lastIndexOf("\n", bytes.length - 2);
  bytes.writeUInt8(11, newline);
  writeFileSync(path, bytes);
  expect((await at(path).entries()).map((entry) => entry.id)).toEqual(ids.toReversed());
  expect(await problems(path)).toMatchObject([{ where: expect.stringContaining(`offset ${newline}, 1 b`) }]);
});

test("a record with a replaced body is reported and does not count", async () => {
  const path = journalPath();
  const { lease } = await at(path).admit(intent());
  await lease.release();
  appendFileSync(path, recordLine({ ...lease.entry, request_text: '{"scopes":["everything"]}', state: "done" }));
  expect(await at(path).find(lease.entry.id)).toEqual(lease.entry);
  expect(await problems(path)).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining("repeated or moved") }),
  );
});

test.each([
  [99, "was written by a newer integ (format 99).", "Upgrade integ"],
  [2, "was written by another integ (format 2).", "Move the file away"],
])("a journal of format %i is neither read nor changed", async (format, words, hint) => {
  const path = journalPath();
  const [id = ""] = await admitted(path);
  const foreign = (record: object): string => {
    const body = JSON.stringify(record).slice(1);
    return `{"sum":"${createHash("sha256").update(body).digest("hex").slice(0, 16)}",${body}\n`;
  };
  const before = readFileSync(path);
  for (const bytes of [
    Buffer.concat([Buffer.from(foreign({ v: format, journal: "integ" })), before]),
    Buffer.concat([before, Buffer.from(foreign({ v: format, intent: {}, now: {} }))]),
  ]) {
    writeFileSync(path, bytes);
    const works = [() => at(path).entries(), () => at(path).tryLease(id), () => at(path).admit(intent())];
    for (const work of [...works, () => at(path).prune(0), () => at(path).verify()])
      expect(await thrown(work)).toMatchObject({
        kind: "usage",
        message: `The journal ${path} ${words}`,
        details: { hint: expect.stringContaining(hint) },
      });
    expect(readFileSync(path)).toEqual(bytes);
  }
  writeFileSync(path, before);
  const archive = path.replace("journal.ndjson", "archive.ndjson");
  writeFileSync(archive, foreign({ v: format, journal: "integ" }));
  for (const work of [() => at(path).count(), () => at(path).prune(0), () => at(path).verify()])
    expect(await thrown(work)).toMatchObject({ kind: "usage", message: `The journal ${archive} ${words}` });
});

test("prune removes old finished entries, those of one change together, and an open journal notices", async () => {
  const path = journalPath();
  const open = fileJournal(path, { now: clock(), actor: ada });
  const settle = async (changes: Parameters<typeof intent>[0], state: "refused" | "done" | "open"): Promise<string> => {
    const { lease } = await open.admit(intent(changes), { fresh: true });
    if (state !== "open") await lease.record({ state });
    await lease.release();
    return lease.entry.id;
  };
  const gone = await settle({}, "refused");
  const lost = await settle({}, "refused");
  const replacement = await settle({ replaces: lost }, "open");
  const rotation = await settle({ operation: "oauth_client.rotate", detail: { old_client: "oc_1" } }, "done");
  const child = await settle({ parent: rotation }, "refused");
  const leased = await open.admit(intent(), { fresh: true });
  await leased.lease.record({ state: "done" });
  const other = fileJournal(path, { now: () => Date.UTC(2027, 0, 1), actor: ada });
  expect(await other.prune(400 * 86_400_000)).toMatchObject({ removed: 0 });
  expect(await other.prune(86_400_000)).toMatchObject({ removed: 3 });
  const left = [leased.lease.entry.id, replacement, lost];
  expect((await open.entries()).map((entry) => entry.id)).toEqual(left);
  expect([gone, rotation, child].every((id) => !left.includes(id))).toBe(true);
  await leased.lease.record({ state: "done", attempts: 2 });
  await leased.lease.release();
  expect(await other.find(leased.lease.entry.id)).toMatchObject({ attempts: 2 });
  expect(await open.verify()).toEqual([]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(dirname(path))).toEqual(["journal.ndjson"]);
});

test("an open journal sees records that others appended, truncated and rewrote", async () => {
  const path = journalPath();
  const open = at(path);
  const first = await admitted(path, 2);
  expect(await open.entries()).toHaveLength(2);
  const size = statSync(path).size;
  await admitted(path);
  expect(await open.entries()).toHaveLength(3);
  truncateSync(path, size);
  const again = await admitted(path, 2);
  expect((await open.entries()).map((entry) => entry.id)).toEqual([...again.toReversed(), ...first.toReversed()]);
});

test("a machine with a damaged earlier key changes nothing, because a delivery would fail after its request", async () => {
  const path = journalPath();
  const readEarlier = (): never => {
    throw new Failure("usage", "damaged");
  };
  const keys = keyRing({ read: () => ["a-key-of-a-machine-in-the-tests-0123456789"], readEarlier });
  const { message } = await thrown(() => fileJournal(path, { now: Date.now, actor: ada, keys }).admit(intent()));
  expect([message, existsSync(path)]).toEqual(["damaged", false]);
});

describe("duplicate records, or records out of order", () => {
  async function done(): Promise<{ path: string; id: string; lines: string[] }> {
    const path = journalPath();
    const { lease } = await at(path).admit(intent());
    await lease.record({ state: "unknown", attempts: 1 });
    await lease.record({ state: "done" });
    await lease.release();
    return { path, id: lease.entry.id, lines: readFileSync(path, "utf8").trim().split("\n") };
  }

  test.each<[string, (lines: string[]) => string[], string]>([
    ["an old record appended again", (lines) => [...lines, lines[2]!], "done"],
    ["the first one appended again", (lines) => [...lines, lines[1]!], "done"],
    ["the whole journal twice", (lines) => [...lines, ...lines], "done"],
    ["two records swapped", ([head, a, b, c]) => [head!, a!, c!, b!], "done"],
    ["its first record after another", ([head, ...rest]) => [...rest, head!], "done"],
  ])("%s: reported by verify, and the entry is unchanged", async (_what, change, state) => {
    const { path, id, lines } = await done();
    expect(await problems(path)).toEqual([]);
    const open = at(path);
    await open.entries();
    writeFileSync(path, `${change(lines).join("\n")}\n`);
    expect((await problems(path)).length).toBeGreaterThan(0);
    expect(await at(path).find(id)).toMatchObject({ state });
    expect(await open.find(id)).toMatchObject({ state });
    await at(path).prune(1e12);
    expect(await problems(path)).toEqual([]);
  });

  test("a sequence number is not reused after a record that could not be written", async () => {
    const path = journalPath();
    const { lease } = await at(path).admit(intent());
    chmodSync(path, 0o622);
    await expect(lease.record({ attempts: 1 })).rejects.toMatchObject({ kind: "usage" });
    chmodSync(path, 0o600);
    expect(await lease.record({ attempts: 2 })).toMatchObject({ sequence: 3 });
    expect(await at(path).find(lease.entry.id)).toMatchObject({ attempts: 2 });
    await lease.release();
  });
});
