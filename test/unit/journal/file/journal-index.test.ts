// A journal answers the same with its index, without it, and with one that is damaged, old, another's or in the way.
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { hash, randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { NearReader, readBytes } from "../../../../src/journal/file/scan.ts";
import type { Journal } from "../../../../src/journal/journal.ts";
import { idAt, longJournal, writeJournal } from "../../../support/long-journal.ts";
import { isFull, sampled } from "../../../support/sample.ts";
import { newEntry } from "../../../../src/journal/admission.ts";
import { recordContent, seal, sumIn } from "../../../../src/journal/record.ts";
import { loadKernelLock } from "../../../../src/disk/kernel-lock.ts";
import { identify } from "../../../../src/disk/lock-owner.ts";
import { tryLock } from "../../../../src/disk/process-lock.ts";
import { ada, intent, journalAt as at, journalPath } from "../intent.ts";

const entries = 300;
let lines: string[] = [];
let path = "";

beforeAll(() => {
  lines = longJournal(entries);
});

beforeEach(() => {
  path = journalPath();
});

function beside(): string[] {
  const name = `${basename(path)}.index`;
  return readdirSync(dirname(path))
    .filter((one) => one.startsWith(name))
    .sort();
}

const fileOf = (name: string): string => join(dirname(path), name);

async function change(journal: Journal, fingerprint: string): Promise<string> {
  const { lease } = await journal.admit(intent({ fingerprint }));
  await lease.record({ state: "done", resource_id: `oac_${fingerprint}` });
  await lease.release();
  return lease.entry.id;
}

/** Everything that a journal is asked. */
async function answers(journal: Journal): Promise<unknown> {
  const all = await journal.entries();
  const ids = all.map(({ id }) => id);
  const each = async (filter: Parameters<Journal["select"]>[0]): Promise<string[]> =>
    (await journal.select(filter)).map(({ id }) => id);
  const found = (id: string): Promise<unknown> =>
    journal.find(id).then(
      (entry) => [entry.id, entry.state],
      (error: Error) => error.message,
    );
  return {
    all,
    count: await journal.count(),
    unsettled: await journal.unsettled(),
    histories: await Promise.all([0, 10, 57, 299].map((number) => journal.history(idAt(number)))),
    found: await Promise.all([0, 199, 298].map((number) => found(idAt(number)))),
    prefix: await found(ids[0]!.slice(0, 9)),
    several: await found(ids[0]!.slice(0, 2)),
    none: await found("zzz"),
    parent: await each({ all: true, parent: idAt(21) }),
    replaces: await each({ all: true, replaces: idAt(21) }),
    resource: await each({ all: true, resource: "oac_33" }),
    client: await each({ resource: "cid_58" }),
    since: await each({ all: true, since: all.at(20)?.updated_at ?? "" }),
    states: await each({ states: ["secret_lost"], profile: "p1" }),
    limited: await each({ all: true, limit: 3 }),
    ids: await each({ all: true, ids: [idAt(5), idAt(250), "0000000000"] }),
    actor: (await each({ all: true, actor: "ada" })).length,
  };
}

/** As `expect(…).toEqual` says it, at a twentieth of its cost where nothing differs. */
async function expectSame(journal: Journal, truth: unknown, where?: string): Promise<void> {
  const said = await answers(journal);
  if (JSON.stringify(said) !== JSON.stringify(truth)) expect(said, where).toEqual(truth);
}

/** Of the journal that most tests begin with: it is read without its index once. */
let first: { readonly text: string; readonly said: unknown } | undefined;

/** What the file itself says, read by a program that knows of no index. */
async function withoutIndex(): Promise<unknown> {
  const text = readFileSync(path, "utf8");
  if (text === first?.text) return first.said;
  const copy = journalPath();
  writeJournal(copy, [text]);
  const said = await answers(at(copy));
  first ??= { text, said };
  return said;
}

let made: readonly (readonly [string, Buffer])[] | undefined;

/** A long journal with its index: the first change that finds it long makes one. */
async function indexed(): Promise<void> {
  if (made !== undefined) {
    mkdirSync(dirname(path), { mode: 0o700 });
    for (const [name, bytes] of made) writeFileSync(fileOf(name), bytes, { mode: 0o600 });
    return;
  }
  writeJournal(path, lines);
  await change(at(path), "first");
  expect(beside()).toHaveLength(2);
  made = [basename(path), ...beside()].map((name) => [name, readFileSync(fileOf(name))] as const);
}

/** By so much that the index takes it in, together with what it has of before. */
async function grow(journal: Journal): Promise<void> {
  const detail = { differs: "x".repeat(60_000) };
  for (let times = 0; times < 12; times += 1) {
    const { lease } = await journal.admit(intent({ fingerprint: `more ${times}` }));
    await lease.record({ state: "done", detail });
    await lease.release();
  }
}

/** Changes what the list says, and makes its checksum right. */
function rewriteList(file: string, from: RegExp, to: string): void {
  const text = readFileSync(file, "utf8");
  const list = text.slice(text.indexOf("\n") + 1);
  const changed = list.replace(from, to);
  expect(changed).not.toBe(list);
  writeFileSync(file, `${hash("sha256", changed, "hex")}\n${changed}`);
}

test("a short journal has no index, a long one has it with its next change", async () => {
  writeJournal(path, lines.slice(0, 60));
  await change(at(path), "first");
  expect(beside()).toEqual([]);
  rmSync(path);
  await indexed();
  for (const name of beside()) expect(statSync(fileOf(name)).mode & 0o777).toBe(0o600);
  const read = at(path);
  await expectSame(read, await withoutIndex());
  expect(await read.verify()).toEqual([]);
});

test("what comes behind the index is read besides, and taken into it in the end", async () => {
  await indexed();
  const [before] = [beside()];
  const lease = await at(path).lease(idAt(57));
  await lease.record({ state: "done", resource_id: "oac_late" });
  await lease.release();
  expect(beside()).toEqual(before);
  await expectSame(at(path), await withoutIndex());
  expect((await at(path).select({ all: true, resource: "oac_late" })).map(({ id }) => id)).toEqual([idAt(57)]);
  const journal = at(path);
  await grow(journal);
  expect(beside()).not.toEqual(before);
  expect(beside().length).toBeLessThan(5);
  await expectSame(at(path), await withoutIndex());
  await expectSame(journal, await withoutIndex());
  expect(await at(path).verify()).toEqual([]);
});

test("who only reads a very long journal leaves an index too, unless someone changes it at the moment", async () => {
  const long = [...lines];
  for (let number = 0; number < 280; number += 1) {
    const made = { id: idAt(1000 + number), key: `key-${1000 + number}`, at: "2026-07-01T00:00:00.000Z" };
    const entry = {
      ...newEntry(intent({ fingerprint: `long ${number}` }), made),
      detail: { differs: "x".repeat(65_000) },
    };
    long.push(seal(recordContent(entry, { by: ada }), sumIn(long.at(-1)!)));
  }
  writeJournal(path, long);
  const asked = async (journal: Journal): Promise<unknown> => [
    await journal.find(idAt(1200)),
    await journal.unsettled(),
  ];
  const truth = await asked(at(path));
  const reader = at(path);
  expect(await reader.count()).toBe(entries + 280);
  expect(beside()).toEqual([]);
  const { lease } = await at(path).admit(intent({ fingerprint: "long 7" }));
  await lease.release();
  for (const name of beside()) rmSync(fileOf(name));
  const lock = tryLock(`${path}.lock`, { self: identify(process.pid), kernel: loadKernelLock() }).held;
  reader.close();
  expect(beside()).toEqual([]);
  lock?.release();
  reader.close();
  expect(beside()).toHaveLength(2);
  expect(await asked(at(path))).toEqual(truth);
  // A page that is wrong is found out by the first reader alone.
  const segment = fileOf(beside()[1]!);
  const bytes = readFileSync(segment);
  writeFileSync(segment, bytes.fill(7, 4096 * 2));
  const second = at(path);
  expect(await asked(second)).toEqual(truth);
  second.close();
  expect(readFileSync(fileOf(beside()[1]!)).includes(Buffer.alloc(4096, 7))).toBe(false);
  expect(await asked(at(path))).toEqual(truth);
});

test("a key that only the index knows has its entry, and a resumed request its key", async () => {
  await indexed();
  const same = intent({ fingerprint: "request 33", profile: "p0" });
  expect(await at(path).admit(same, { key: "key-33" })).toMatchObject({ kind: "same_key" });
  await expect(at(path).admit(intent(), { key: "key-34" })).rejects.toMatchObject({ kind: "conflict" });
  const again = await at(path).admit(intent({ fingerprint: "request 57", profile: "p0" }));
  expect([again.kind, again.lease.entry.id]).toEqual(["resumed", idAt(57)]);
  await again.lease.release();
});

const harm: readonly (readonly [string, (file: string) => void])[] = [
  ["is gone", (file) => rmSync(file)],
  ["is empty", (file) => truncateSync(file)],
  ["is cut in the middle", (file) => truncateSync(file, Math.floor(statSync(file).size / 2))],
  ["lacks its last byte", (file) => truncateSync(file, statSync(file).size - 1)],
  ["has a byte more", (file) => appendFileSync(file, "\n")],
  ["is zeros", (file) => writeFileSync(file, Buffer.alloc(statSync(file).size))],
  ["can be written by others", (file) => chmodSync(file, 0o666)],
  ["is a folder", (file) => (rmSync(file), mkdirSync(file))],
  [
    "is a link",
    (file) => {
      copyFileSync(file, `${dirname(file)}-elsewhere`);
      rmSync(file);
      symlinkSync(`${dirname(file)}-elsewhere`, file);
    },
  ],
];

const harmOfList: typeof harm = [
  ["is of a later version", (file) => rewriteList(file, /"v":\d+/, '"v":99')],
  [
    "is of another journal",
    (file) => rewriteList(file, /"head":\{"length":(\d+),"digest":"../, '"head":{"length":$1,"digest":"zz'),
  ],
  ["ends at another record", (file) => rewriteList(file, /"anchor":\{"offset":/, '"anchor":{"offset":1')],
  ["names a segment that is not there", (file) => rewriteList(file, /"tag":"../, '"tag":"zz')],
  ["says that its segment is longer", (file) => rewriteList(file, /"records":/, '"records":9')],
];

/** Pages at the beginning and at the end of each table are wrong ones. */
const harmOfPages: typeof harm = [0, 0.4, 0.6, 1].map((part) => [
  `has a wrong page at ${100 * part} %`,
  (file) => {
    const bytes = readFileSync(file);
    const page = Math.min(Math.floor((part * bytes.length) / 4096), bytes.length / 4096 - 1);
    bytes[page * 4096 + 9]! ^= 1;
    writeFileSync(file, bytes);
  },
]);

const harmed = [
  ...[...harm, ...harmOfList].map(([what, break_]) => ["list", what, break_] as const),
  ...[...harm, ...harmOfPages].map(([what, break_]) => ["segment", what, break_] as const),
];

/** So many that segments are merged. */
let more: readonly string[] | undefined;

test.each(isFull ? harmed : harmed.filter((_, place) => place % 9 === 1))(
  "an index whose %s %s is whole again after the changes that extend it, by one process and by several",
  async (which, _, break_) => {
    await indexed();
    const fixed = readFileSync(path);
    more ??= longJournal(2 * entries).slice(lines.length);
    for (const readsFirst of isFull ? [false, true] : [false]) {
      writeFileSync(path, fixed);
      for (const name of beside()) rmSync(fileOf(name), { recursive: true });
      await change(at(path), "again");
      break_(fileOf(beside()[which === "list" ? 0 : 1]!));
      const journal = at(path);
      if (readsFirst) await expectSame(journal, await withoutIndex());
      appendFileSync(path, more.join(""));
      await change(journal, "much later");
      await expectSame(journal, await withoutIndex());
      await expectSame(at(path), await withoutIndex());
      await change(at(path), "the last");
      await expectSame(at(path), await withoutIndex());
    }
  },
);

test.each(harmed)("the answers are the same if the %s %s, and the next change is safe", async (which, _, break_) => {
  await indexed();
  break_(fileOf(beside()[which === "list" ? 0 : 1]!));
  await expectSame(at(path), await withoutIndex());
  const id = await change(at(path), "next");
  expect(await at(path).find(id)).toMatchObject({ state: "done" });
  await expectSame(at(path), await withoutIndex());
  expect(await at(path).verify()).toEqual([]);
});

test("the answers are the same with any bit of the index flipped", async () => {
  await indexed();
  const truth = await withoutIndex();
  for (const name of beside()) {
    const file = fileOf(name);
    const whole = readFileSync(file);
    const step = Math.ceil(whole.length / sampled(48));
    for (let place = 3; place < whole.length; place += step) {
      const bytes = Buffer.from(whole);
      bytes[place]! ^= 1 << (place % 8);
      writeFileSync(file, bytes);
      await expectSame(at(path), truth, `${name}, byte ${place}`);
    }
    writeFileSync(file, whole);
  }
});

test("pages of another segment, or of another place, are not taken", async () => {
  await indexed();
  const truth = await withoutIndex();
  const file = fileOf(beside()[1]!);
  const whole = readFileSync(file);
  const page = (number: number): Buffer => whole.subarray(number * 4096, (number + 1) * 4096);
  writeFileSync(file, Buffer.concat([page(1), page(0), whole.subarray(2 * 4096)]));
  await expectSame(at(path), truth);
});

test("the index of a journal that was replaced is not used", async () => {
  await indexed();
  const backup = readFileSync(path);
  // Restored, then grown otherwise: the same beginning, other records where the index ends.
  writeFileSync(path, lines.slice(0, 600).join(""));
  await change(at(path), "another life");
  await expectSame(at(path), await withoutIndex());
  // Another journal altogether, as long as the one before.
  const other = longJournal(entries).map((line) => line.replaceAll("oac_", "oca_"));
  writeFileSync(path, other.join(""));
  await expectSame(at(path), await withoutIndex());
  // The later index beside the earlier journal, and the earlier index beside the later journal.
  writeFileSync(path, backup);
  await expectSame(at(path), await withoutIndex());
  writeFileSync(path, lines.slice(0, -1).join(""));
  await expectSame(at(path), await withoutIndex());
});

test("what an earlier program appends and writes anew without the index is seen", async () => {
  await indexed();
  const index = beside().map((name) => [name, readFileSync(fileOf(name))] as const);
  const [, segment] = beside();
  for (const name of beside()) rmSync(fileOf(name));
  await change(at(path), "without it");
  await at(path).prune(0, { includeLive: true });
  for (const [name, bytes] of index) writeFileSync(fileOf(name), bytes, { mode: 0o600 });
  expect(beside()).toContain(segment);
  await expectSame(at(path), await withoutIndex());
});

test("a record that is damaged under the index is told, and costs no more than without one", async () => {
  await indexed();
  const bytes = readFileSync(path);
  const place = bytes.indexOf('"oac_33"');
  bytes[place + 2]! ^= 1;
  writeFileSync(path, bytes);
  expect(await at(path).find(idAt(33))).toMatchObject({ state: "unknown" });
  await expectSame(at(path), await withoutIndex());
  expect((await at(path).verify()).map(({ severity }) => severity)).toContain("problem");
});

test("what is read near the last place is what stands there, also while the file grows", () => {
  const file = `${path}.bytes`;
  mkdirSync(dirname(path), { recursive: true });
  const step = fc.record({
    offset: fc.nat({ max: 400_000 }),
    by: fc.integer({ min: -9000, max: 9000 }),
    length: fc.nat({ max: 70_000 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      writeFileSync(file, randomBytes(250_000));
      const reader = new NearReader();
      const fd = openSync(file, "r");
      try {
        for (const { offset, by, length } of steps)
          for (const at of [offset, Math.max(0, offset + by), Math.max(0, offset + 2 * by)]) {
            expect(reader.read(fd, at, length).equals(readBytes(fd, at, length))).toBe(true);
            appendFileSync(file, randomBytes(3000));
          }
      } finally {
        closeSync(fd);
      }
    }),
    { numRuns: sampled(200) },
  );
});

test("prune takes the index away with what it forgets", async () => {
  await indexed();
  const { removed } = await at(path).prune(0, { includeLive: true });
  expect(removed).toBeGreaterThan(250);
  expect(beside()).toEqual([]);
  await expectSame(at(path), await withoutIndex());
  expect(await at(path).verify()).toEqual([]);
});
