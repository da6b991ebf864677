// A long journal answers the same, and the same is found in it, whether its pieces are summarized or read one by one.
import { beforeAll, expect, test } from "vitest";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import { summarize } from "../../../../src/journal/file/summaries.ts";
import type { Journal } from "../../../../src/journal/journal.ts";
import { headerLine, seal } from "../../../../src/journal/record.ts";
import { idAt, longJournal, writeJournal } from "../../../support/long-journal.ts";
import { isFull } from "../../../support/sample.ts";
import { ada, intent, journalPath } from "../intent.ts";

const entries = 7400;
const middle = 10_000;
let lines: string[] = [];

beforeAll(() => {
  lines = longJournal(entries);
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

function put(place: number, ...others: readonly string[]): string[] {
  return lines.toSpliced(place, 1, ...others);
}

/** The first record, from there on, that fits. */
function placeOf(pattern: RegExp, from = middle): number {
  return lines.findIndex((line, place) => place >= from && pattern.test(line));
}

const cases: readonly (readonly [string, () => readonly string[]])[] = [
  ["a sound one", () => lines],
  ["a byte flipped", () => put(middle, lines[middle]!.replace('"now"', '"n0w"'))],
  ["a record removed", () => put(middle)],
  ["an entry's first record removed", () => put(placeOf(/"n":1,/))],
  ["an entry's newest record removed", () => put(placeOf(/"n":3,/))],
  ["a whole entry removed", () => lines.filter((line) => !line.includes(idAt(4321)))],
  ["two records in another order", () => lines.toSpliced(middle, 2, lines[middle + 1]!, lines[middle]!)],
  ["a record repeated at once", () => put(middle, lines[middle]!, lines[middle]!)],
  ["a first record repeated far behind", () => put(middle, lines[middle]!, lines[100]!)],
  ["all repeated", () => [...lines, ...lines]],
  [
    "a record edited",
    () =>
      put(
        middle,
        edited(lines[middle]!, (text) => text.replace('"ada"', '"eve"')),
      ),
  ],
  [
    "an intent edited",
    () =>
      put(
        middle,
        edited(lines[middle]!, (text) => text.replace(/"profile":"p\d"/, '"profile":"p9"')),
      ),
  ],
  [
    "two entries with one key",
    () =>
      lines.map((line) =>
        line.includes(`"id":"${idAt(5000)}"`) ? edited(line, (text) => text.replace("key-5000", "key-77")) : line,
      ),
  ],
  [
    "an entry that is none",
    () =>
      put(
        middle,
        edited(lines[middle]!, (text) => text.replace('"attempts":', '"attempt":')),
      ),
  ],
  [
    "an id of another kind",
    () =>
      put(
        middle,
        edited(lines[middle]!, (text) => text.replace(/"id":"\w+"/, '"id":"UPPER"')),
      ),
  ],
  [
    "a record of a newer version",
    () =>
      put(
        middle,
        edited(lines[middle]!, (text) => text.replace('"v":2', '"v":9')),
      ),
  ],
  ["a header in the middle", () => put(middle, lines[middle]!, headerLine({ file: "x", createdAt: "2026-01-01" }))],
  [
    "empty lines, and a name beyond ASCII",
    () =>
      put(
        middle,
        "\n\n",
        edited(lines[middle]!, (t) => t.replace('"ada"', '"Ådå"')),
      ),
  ],
  [
    "a record longer than a piece",
    () =>
      put(
        middle,
        edited(lines[middle]!, (text) => text.replace('"detail":{', `"detail":{"differs":"${"x".repeat(3e6)}",`)),
      ),
  ],
  ["an end that is torn", () => [...lines, lines[middle]!.slice(0, 100)]],
];

async function answers(journal: Journal): Promise<unknown> {
  const each = async (filter: Parameters<Journal["select"]>[0]): Promise<string[]> =>
    (await journal.select(filter)).map(({ id, state, updated_at }) => `${id} ${state} ${updated_at}`);
  return {
    findings: await journal.verify(),
    all: await each({ all: true }),
    unsettled: await each({}),
    count: await journal.count(),
    histories: await Promise.all([0, 4010, 5000, entries - 1].map((number) => journal.history(idAt(number)))),
    resource: await each({ all: true, resource: "oac_5003" }),
    parent: await each({ all: true, parent: idAt(5001) }),
  };
}

const sample = ["a first record repeated far behind", "two entries with one key", "a record longer than a piece"];

test.each(cases.filter(([what]) => isFull || sample.includes(what)))("%s", async (_, made) => {
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
    writeJournal(path, put(middle, lines[middle]!.replace('"now"', '"n0w"')));
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
