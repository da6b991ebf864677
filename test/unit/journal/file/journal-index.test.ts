// A journal answers the same with its index, without it, and with one that is damaged, old, another's or in the way.
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import type { Journal } from "../../../../src/journal/journal.ts";
import { idAt, longJournal, writeJournal } from "../../../support/long-journal.ts";
import { sampled } from "../../../support/sample.ts";
import { intent, journalAt as at, journalPath } from "../intent.ts";

const entries = 400;
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
    histories: await Promise.all([0, 10, 57, 399].map((number) => journal.history(idAt(number)))),
    found: await Promise.all([0, 199, 398].map((number) => found(idAt(number)))),
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
    ids: await each({ all: true, ids: [idAt(5), idAt(300), "0000000000"] }),
    actor: (await each({ all: true, actor: "ada" })).length,
  };
}

const known = new Map<string, unknown>();

/** What the file itself says, read by a program that knows of no index. */
async function withoutIndex(): Promise<unknown> {
  const text = readFileSync(path, "utf8");
  if (!known.has(text)) {
    const copy = journalPath();
    writeJournal(copy, [text]);
    known.set(text, await answers(at(copy)));
  }
  return known.get(text);
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

test("a short journal has no index, a long one has it with its next change", async () => {
  writeJournal(path, lines.slice(0, 300));
  await change(at(path), "first");
  expect(beside()).toEqual([]);
  rmSync(path);
  await indexed();
  for (const name of beside()) expect(statSync(fileOf(name)).mode & 0o777).toBe(0o600);
  const read = at(path);
  expect(await answers(read)).toEqual(await withoutIndex());
  expect(await read.verify()).toEqual([]);
});

test("what comes behind the index is read besides, and taken into it in the end", async () => {
  await indexed();
  const [before] = [beside()];
  const lease = await at(path).lease(idAt(57));
  await lease.record({ state: "done", resource_id: "oac_late" });
  await lease.release();
  expect(beside()).toEqual(before);
  expect(await answers(at(path))).toEqual(await withoutIndex());
  expect((await at(path).select({ all: true, resource: "oac_late" })).map(({ id }) => id)).toEqual([idAt(57)]);
  const journal = at(path);
  const detail = { differs: "x".repeat(60_000) };
  for (let times = 0; times < 12; times += 1) {
    const { lease: more } = await journal.admit(intent({ fingerprint: `more ${times}` }));
    await more.record({ state: "done", detail });
    await more.release();
  }
  expect(beside()).not.toEqual(before);
  expect(beside().length).toBeLessThan(5);
  expect(await answers(at(path))).toEqual(await withoutIndex());
  expect(await answers(journal)).toEqual(await withoutIndex());
  expect(await at(path).verify()).toEqual([]);
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

test.each(["list", "segment"].flatMap((which) => harm.map(([what, break_]) => [which, what, break_] as const)))(
  "the answers are the same if the %s %s, and the next change is safe",
  async (which, _, break_) => {
    await indexed();
    break_(fileOf(beside()[which === "list" ? 0 : 1]!));
    expect(await answers(at(path))).toEqual(await withoutIndex());
    const id = await change(at(path), "next");
    expect(await at(path).find(id)).toMatchObject({ state: "done" });
    expect(await answers(at(path))).toEqual(await withoutIndex());
    expect(await at(path).verify()).toEqual([]);
  },
);

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
      expect(await answers(at(path)), `${name}, byte ${place}`).toEqual(truth);
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
  expect(await answers(at(path))).toEqual(truth);
});

test("the index of a journal that was replaced is not used", async () => {
  await indexed();
  const backup = readFileSync(path);
  // Restored, then grown otherwise: the same beginning, other records where the index ends.
  writeFileSync(path, lines.slice(0, 700).join(""));
  await change(at(path), "another life");
  expect(await answers(at(path))).toEqual(await withoutIndex());
  // Another journal altogether, as long as the one before.
  const other = longJournal(entries).map((line) => line.replaceAll("oac_", "oca_"));
  writeFileSync(path, other.join(""));
  expect(await answers(at(path))).toEqual(await withoutIndex());
  // The later index beside the earlier journal, and the earlier index beside the later journal.
  writeFileSync(path, backup);
  expect(await answers(at(path))).toEqual(await withoutIndex());
  writeFileSync(path, lines.slice(0, -1).join(""));
  expect(await answers(at(path))).toEqual(await withoutIndex());
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
  expect(await answers(at(path))).toEqual(await withoutIndex());
});

test("a record that is damaged under the index is told, and costs no more than without one", async () => {
  await indexed();
  const bytes = readFileSync(path);
  const place = bytes.indexOf('"oac_33"');
  bytes[place + 2]! ^= 1;
  writeFileSync(path, bytes);
  expect(await at(path).find(idAt(33))).toMatchObject({ state: "unknown" });
  expect(await answers(at(path))).toEqual(await withoutIndex());
  expect((await at(path).verify()).map(({ severity }) => severity)).toContain("problem");
});

test("prune takes the index away with what it forgets", async () => {
  await indexed();
  const { removed } = await at(path).prune(0, { includeLive: true });
  expect(removed).toBeGreaterThan(300);
  expect(beside()).toEqual([]);
  expect(await answers(at(path))).toEqual(await withoutIndex());
  expect(await at(path).verify()).toEqual([]);
});
