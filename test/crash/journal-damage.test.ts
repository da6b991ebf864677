import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { Entry, EntryProgress } from "../../src/journal/entry.ts";
import { Contents, JournalView } from "../../src/journal/file/contents.ts";
import { type Damage, type FoundRecord, scanBytes } from "../../src/journal/file/scan.ts";
import { recordContent } from "../../src/journal/record.ts";
import type { Intent, Journal } from "../../src/journal/journal.ts";
import { fileJournal } from "../support/file-journal.ts";
import { ada, clock, intent } from "../unit/journal/intent.ts";
import { temporaryFolder as folder } from "../support/bundle-driver.ts";
import { isFull } from "../support/sample.ts";
import { recordFigure } from "../support/figures.mjs";

let path = "";
let whole: Buffer = Buffer.alloc(0);
/** The content of each entry after each of its records, oldest first. */
let history = new Map<string, Entry[]>();

function open(at = path): Journal {
  return fileJournal(at, { now: clock(Date.UTC(2026, 10, 22)), actor: ada });
}

/** The first and the last entry have a single record each; others have steps, links or hostile strings. */
beforeEach(async () => {
  path = join(folder(), "journal.ndjson");
  history = new Map();
  const journal = fileJournal(path, { now: clock(), actor: ada });
  const work = async (changes: Partial<Intent>, steps: Partial<EntryProgress>[]): Promise<string> => {
    const { lease } = await journal.admit(intent(changes), { fresh: true });
    const shown = [lease.entry];
    for (const step of steps) shown.push(await lease.record(step));
    await lease.release();
    history.set(lease.entry.id, shown);
    return lease.entry.id;
  };
  await work({ fingerprint: "first" }, []);
  const lost = await work({ fingerprint: '{"sum":"' }, [
    { state: "unknown", attempts: 1, last_error: { kind: "timeout", message: 'no\n"answer"\u0000\u202e' } },
    { state: "secret_lost", resource_id: "oc_1" },
  ]);
  const detail = { client_id: "cid", '{"sum":"': '},"now":{"state":"' };
  await work({ replaces: lost }, [{ state: "done", attempts: 1, detail }]);
  await work({ operation: "access_key.create", idempotent: false, request_text: '{"name":"äöü😀"}' }, []);
  whole = readFileSync(path);
});

interface Survey {
  readonly entries: readonly Entry[];
  readonly damages: number;
}

/** Reads the journal in memory, because reading thousands of files would be slow. */
function survey(bytes: Buffer): Survey {
  const scan = { found: [] as FoundRecord[], damage: [] as Damage[], torn: undefined as Damage | undefined };
  scanBytes(bytes, { offset: 0, line: 1 }, scan);
  const contents = new Contents((offset, length) => bytes.subarray(offset, offset + length));
  for (const one of scan.found) contents.add(one, []);
  const entries = [...new JournalView(contents).candidates({ all: true })];
  return { entries, damages: scan.damage.length + (scan.torn ? 1 : 0) };
}

/** Entries that equal none of their own records, such as an entry with another entry's key, body or state. */
function inventedEntries(entries: readonly Entry[]): Entry[] {
  return entries.filter((entry) => !(history.get(entry.id) ?? []).some((shown) => textOf(shown) === textOf(entry)));
}

function textOf(entry: Entry): string {
  return recordContent(entry, { by: ada });
}

function normal(entries: readonly Entry[]): string[] {
  return entries.map(textOf).sort();
}

/** The records of each entry that remain if the bytes from `from` to `to` are lost, oldest first. */
function recordsWithout(from: number, to: number): Map<string, Entry[]> {
  const left = new Map<string, Entry[]>();
  let offset = 0;
  const seen = new Map<string, number>();
  for (const line of whole.toString("utf8").split("\n").slice(0, -1)) {
    const end = offset + Buffer.byteLength(line);
    const id = /^\{"sum":"[0-9a-f]{16}","v":3,"after":"[0-9a-f]*","mac":"[^"]*","id":"([0-9a-z]+)"/.exec(line)?.[1];
    if (id !== undefined) {
      const number = seen.get(id) ?? 0;
      seen.set(id, number + 1);
      const shown = history.get(id)?.[number];
      const isHit = offset < to && from < end;
      if (shown && !isHit) left.set(id, [...(left.get(id) ?? []), shown]);
    }
    offset = end + 1;
  }
  return left;
}

function lastOf(left: Map<string, Entry[]>): Entry[] {
  return [...left.values()].flatMap((shown) => shown.slice(-1));
}

test("the undamaged journal is read completely", async () => {
  expect(normal(survey(whole).entries)).toEqual(normal([...history.values()].flatMap((shown) => shown.slice(-1))));
  expect(normal(await open().entries())).toEqual(normal(survey(whole).entries));
  expect(survey(whole).damages).toBe(0);
});

test("every truncation loses only the truncated record", () => {
  let states = 0;
  let bad = 0;
  for (let length = 0; length <= whole.length; length += 1, states += 1) {
    const { entries, damages } = survey(whole.subarray(0, length));
    bad += inventedEntries(entries).length;
    expect(normal(entries), `cut at ${length}`).toEqual(normal(lastOf(recordsWithout(length, whole.length))));
    const atEnd = length === 0 || whole[length - 1] === 10 || whole[length] === 10;
    expect(damages, `damages if cut at ${length}`).toBe(atEnd ? 0 : 1);
  }
  recordFigure("journal damage", { states, violations: bad }, "truncations");
  expect(bad).toBe(0);
});

test("every flipped bit loses one record at most, and is reported", () => {
  const step = isFull ? 1 : 29;
  let states = 0;
  let bad = 0;
  for (let bit = 0; bit < whole.length * 8; bit += step, states += 1) {
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    const { entries, damages } = survey(flipped);
    bad += inventedEntries(entries).length;
    const at = bit >> 3;
    expect(normal(entries), `bit ${bit}`).toEqual(normal(lastOf(recordsWithout(at, at + 1))));
    expect(damages, `damages of bit ${bit}`).toBeGreaterThan(0);
  }
  recordFigure("journal damage", { states, violations: bad }, "flipped bits");
  expect(bad).toBe(0);
});

/** Counts lines of the damaged journal that are neither in the journal nor in a copy beside it, whole or split once. */
function countLostLines(damaged: Buffer, at: string): number {
  const files = readdirSync(dirname(at)).map((name) => readFileSync(join(dirname(at), name)));
  const isKept = (bytes: Buffer): boolean => files.some((file) => file.includes(bytes));
  const lines = damaged
    .toString("latin1")
    .split("\n")
    .map((line) => Buffer.from(line, "latin1"));
  const isCut = (line: Buffer): boolean => {
    const last = line.lastIndexOf("}") + 1; // A record that lost its newline: the byte after it is copied aside.
    return isKept(line.subarray(0, last)) && files.some((file) => file.equals(line.subarray(last)));
  };
  return lines.filter((line) => !isKept(line) && !isCut(line)).length;
}

test("a damaged journal accepts the next record safely, and loses no line", async () => {
  const cuts = Array.from({ length: whole.length }, (_, length) => whole.subarray(0, length));
  const flips = Array.from({ length: whole.length }, (_, at) => {
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (at % 8)), at);
    return flipped;
  });
  const step = isFull ? 1 : 97;
  let states = 0;
  for (const damaged of [...cuts, ...flips].filter((_, number) => number % step === 0)) {
    const home = folder();
    const at = join(home, "journal.ndjson");
    writeFileSync(at, damaged, { mode: 0o600 });
    const before = await open(at).entries();
    expect(inventedEntries(before)).toEqual([]);
    const { lease } = await open(at).admit(intent({ fingerprint: "after" }));
    await lease.record({ state: "done" });
    await lease.release();
    const after = await open(at).entries();
    expect(normal(after.filter((entry) => entry.id !== lease.entry.id))).toEqual(normal(before));
    expect(normal(after)).toContain(textOf(lease.entry));
    expect(countLostLines(damaged, at)).toBe(0);
    states += 1;
  }
  recordFigure("journal damage", { states, violations: 0 }, "continued after damage");
});

test("a key stays with its request after any damage that left a record of it", async () => {
  const known = [...history.values()].flatMap((shown) => shown.slice(-1)).filter((entry) => entry.replaces !== null);
  const [entry] = known;
  if (!entry?.idempotency_key) throw new Error("no entry with a key");
  const step = isFull ? 1 : 97;
  let conflicts = 0;
  for (let at = 0; at < whole.length; at += step) {
    const file = join(folder(), "journal.ndjson");
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(at) ^ 1, at);
    writeFileSync(file, flipped, { mode: 0o600 });
    const other = intent({ fingerprint: "another request" });
    await expect(open(file).admit(other, { key: entry.idempotency_key })).rejects.toMatchObject({ kind: "conflict" });
    conflicts += 1;
  }
  expect(conflicts).toBe(Math.ceil(whole.length / step));
});
