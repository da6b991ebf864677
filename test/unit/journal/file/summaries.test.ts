// A long journal answers the same, and the same is found in it, whether its pieces are summarized or read one by one.
import { beforeAll, expect, test } from "vitest";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import { summarize } from "../../../../src/journal/file/summaries.ts";
import type { Journal, Pause } from "../../../../src/journal/journal.ts";
import { headerLine, seal } from "../../../../src/journal/record.ts";
import { idAt, longJournal, writeJournal } from "../../../support/long-journal.ts";
import { isFull } from "../../../support/sample.ts";
import { ada, intent, journalPath } from "../intent.ts";

const entries = 2600;
let lines: string[] = [];
/** The last record of an entry. */
let middle = 0;

beforeAll(() => {
  lines = longJournal(entries, { padding: "x".repeat(4700) });
  middle = lines.findIndex((line) => line.includes('"key-1181"') && line.includes('"n":3,'));
  expect(lines.join("").length).toBeGreaterThan(17 * 1024 * 1024);
});

const at = (path: string, parts = {}): Journal => new FileJournal(path, { now: Date.now, actor: ada, ...parts });

/** The line with something else in it, and a checksum that fits. */
function edited(line: string, change: (content: string) => string): string {
  const after = /,"after":"([0-9a-f]{16})"\}$/.exec(line.trimEnd())?.[1];
  const content = line
    .trimEnd()
    .slice(line.indexOf('"v":'))
    .replace(/(,"after":"[0-9a-f]{16}")?\}$/, "");
  return seal(change(content), after);
}

/** What is done to a journal at a place in it: the last record of an entry. */
type Defect = (all: readonly string[], place: number) => readonly string[];

const editing =
  (change: (content: string) => string): Defect =>
  (all, place) =>
    all.with(place, edited(all[place]!, change));

/** The first record, from there on, that fits. */
function placeOf(all: readonly string[], pattern: RegExp, from: number): number {
  return all.findIndex((line, place) => place >= from && pattern.test(line));
}

function keyOf(line: string): string {
  return /"idempotency_key":"([^"]+)"/.exec(line)![1]!;
}

/** One after the other in one journal. */
const defects: readonly (readonly [string, Defect])[] = [
  ["a byte flipped", (all, place) => all.with(place, all[place]!.replace('"now"', '"n0w"'))],
  ["a record removed", (all, place) => all.toSpliced(place, 1)],
  ["an entry's first record removed", (all, place) => all.toSpliced(placeOf(all, /"n":1,/, place), 1)],
  ["an entry's newest record removed", (all, place) => all.toSpliced(placeOf(all, /"n":3,/, place), 1)],
  ["a whole entry removed", (all, place) => all.filter((line) => !line.includes(`"${keyOf(all[place]!)}"`))],
  ["two records in another order", (all, place) => all.toSpliced(place, 2, all[place + 1]!, all[place]!)],
  ["a record repeated at once", (all, place) => all.toSpliced(place, 0, all[place]!)],
  ["a first record repeated far behind", (all, place) => all.with(place, lines[100]!)],
  ["a record edited", editing((text) => text.replace('"ada"', '"eve"'))],
  ["an intent edited", editing((text) => text.replace(/"profile":"p\d"/, '"profile":"p9"'))],
  [
    "two entries with one key",
    (all, place) => {
      const key = keyOf(all[place]!);
      return all.map((line) =>
        line.includes(`"${key}"`) ? edited(line, (text) => text.replace(key, "key-77")) : line,
      );
    },
  ],
  ["an entry that is none", editing((text) => text.replace('"attempts":', '"attempt":'))],
  ["an id of another kind", editing((text) => text.replace(/"id":"\w+"/, '"id":"UPPER"'))],
  ["a record of a newer version", editing((text) => text.replace('"v":2', '"v":9'))],
  [
    "a header in the middle",
    (all, place) => all.toSpliced(place, 0, headerLine({ file: "x", createdAt: "2026-01-01" })),
  ],
  [
    "empty lines, and a name beyond ASCII",
    (all, place) =>
      all.toSpliced(
        place,
        1,
        "\n\n",
        edited(all[place]!, (text) => text.replace('"ada"', '"Ådå"')),
      ),
  ],
  [
    "a record longer than a piece",
    editing((text) => text.replace('"detail":{', `"detail":{"differs":"${"x".repeat(3e6)}",`)),
  ],
  ["an end that is torn", (all, place) => [...all, all[place]!.slice(0, 100)]],
];

/** Those that no damage hides, for a run that does not read a long journal for each. */
const sample = [
  "an intent edited",
  "two entries with one key",
  "a first record repeated far behind",
  "a record longer than a piece",
];

/** One journal with some of them, in pieces apart from each other. */
function several(): readonly string[] {
  return sample.reduce<readonly string[]>((all, name, index) => {
    const place = placeOf(all, new RegExp(`"key-${801 + 400 * index}".*"n":3,`), 0);
    return new Map(defects).get(name)!(all, place);
  }, lines);
}

const cases: readonly (readonly [string, () => readonly string[]])[] = isFull
  ? [
      ["a sound one", () => lines],
      ["all repeated", () => [...lines, ...lines]],
      ...defects.map(([what, defect]) => [what, () => defect(lines, middle)] as const),
      ["several defects", several],
    ]
  : [["several defects", several]];

async function answers(journal: Journal): Promise<unknown> {
  const each = async (filter: Parameters<Journal["select"]>[0]): Promise<string[]> =>
    (await journal.select(filter)).map(({ id, state, updated_at }) => `${id} ${state} ${updated_at}`);
  return {
    findings: await journal.verify(),
    all: await each({ all: true }),
    unsettled: await each({}),
    count: await journal.count(),
    histories: await Promise.all([0, 1010, 1000, entries - 1].map((number) => journal.history(idAt(number)))),
    resource: await each({ all: true, resource: "oac_1003" }),
    parent: await each({ all: true, parent: idAt(1001) }),
  };
}

test.each(cases)("%s", async (_, made) => {
  const [one, other] = [journalPath(), journalPath()];
  for (const path of [one, other]) writeJournal(path, made());
  const named = (answer: unknown, path: string): unknown =>
    JSON.parse(JSON.stringify(answer).replaceAll(path, "journal"));
  const [summarized, read] = [await answers(at(one, { summarize })), await answers(at(other))];
  expect(named(summarized, one)).toEqual(named(read, other));
});

test.each(["a record of what was kept edited", ...(isFull ? ["a sound one"] : [])])(
  "written again by prune: %s",
  async (what) => {
    const path = journalPath();
    writeJournal(path, defects[0]![1](lines, middle));
    await at(path).prune(1e15);
    for (let more = 0; more < 2; more += 1) {
      const { lease } = await at(path, { summarize }).admit(intent({ fingerprint: `new ${more}` }));
      await lease.release();
    }
    const findings = async (parts = {}): Promise<unknown> =>
      (await at(path, parts).verify()).filter(({ severity }) => severity === "problem");
    expect(await findings()).toEqual([]);
    if (what !== "a sound one") {
      const { readFileSync, writeFileSync } = await import("node:fs");
      const kept = readFileSync(path, "utf8").split("\n");
      kept[middle] = edited(kept[middle]!, (text) => text.replace('"ada"', '"eve"')).trimEnd();
      writeFileSync(path, kept.join("\n"));
      expect(await findings()).not.toEqual([]);
    }
    expect(await findings({ summarize })).toEqual(await findings());
  },
);

test("a pause that is refused ends the reading, and others can have the journal", async () => {
  const path = journalPath();
  writeJournal(path, lines);
  const shares: number[] = [];
  const refused = new Error("interrupted");
  const pause = (share: number): Promise<void> => Promise.reject(shares.push(share) && refused);
  await expect(at(path, { summarize }).verify(pause)).rejects.toBe(refused);
  expect(shares).toEqual([expect.closeTo(0.9, 1)]);
  expect(await at(path, { summarize }).verify((share) => void shares.push(share))).toEqual([]);
  expect(shares).toHaveLength(2);
});

test("a first read that takes long can be refused, and is done once for all that want it", async () => {
  const path = journalPath();
  writeJournal(path, lines);
  const refused = new Error("interrupted");
  const refusing = { summarize, slowly: (work: Slow) => work(() => Promise.reject(refused)) };
  await expect(at(path, refusing).admit(intent())).rejects.toBe(refused);
  const shares: number[] = [];
  const journal = at(path, { summarize, slowly: (work: Slow) => work(async (share) => void shares.push(share)) });
  expect(await Promise.all([journal.count(), journal.count()])).toEqual([entries, entries]);
  await journal.find(idAt(0));
  expect(shares).toEqual([expect.closeTo(0.9, 1)]);
});

type Slow = (pause: Pause) => Promise<unknown>;
