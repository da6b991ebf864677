import { describe, expect, it } from "vitest";
import { isShortOverlap, overlapDifferences, assertSameOptions } from "../../../src/operations/rotation.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { type Entry, type EntryProgress, overlapEnd } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { DestinationRecord } from "../../../src/secrets/destination.ts";
import { AWorld } from "./a-world.ts";
import { intent } from "../journal/intent.ts";

const minutes = 60_000;

async function rotation(bench: Workbench, changes: Partial<Entry> = {}): Promise<EntryLease> {
  const admit = async (intended: object): Promise<EntryLease> =>
    (await bench.journal.admit(intent({ ...intended }), { fresh: true })).lease;
  const lease = await admit({ operation: "oauth_client.rotate", detail: { overlap_ms: 0, keep_old: false } });
  const child = await admit({ operation: "oauth_client.create", parent: lease.entry.id });
  await child.record({ state: "done", resource_id: "new", destination: file("/secret"), ...changes });
  return lease;
}

const file = (path: string): DestinationRecord => ({ kind: "file", path, as: "raw" });

it.each([
  [0, true],
  [15 * minutes - 1, true],
  [15 * minutes, true],
  [15 * minutes + 1, false],
])("an overlap of %i ms is waited for: %s", (ms, is) => expect(isShortOverlap(ms)).toBe(is));

it.each<[string, string | null | undefined, number]>([
  ["an hour ago", "2026-11-27T11:00:00Z", 23],
  ["25 hours ago", "2026-11-26T11:00:00.000Z", -1],
  ["before the overlap", "2026-10-01T00:00:00Z", -24],
  ["never", null, -24],
  ["in the future", "2026-11-29T12:00:00+00:00", 72],
  ["further in the future than the limit", "2027-11-29T12:00:00Z", 12 * 24],
  ["not shown", undefined, 12 * 24],
  ["at no time", "12 days ago", 12 * 24],
  ["at a time without a zone", "2026-11-26T11:00:00", 12 * 24],
])("an overlap by use, the old key last used %s", (_when, lastUsedAt, hoursLeft) => {
  const started = { overlap_ms: 14 * 24 * 60 * minutes, overlap_until: "2026-12-09T12:00:00.000Z" };
  const left = (detail: object, used = lastUsedAt) =>
    (overlapEnd(detail, used) - Date.parse("2026-11-27T12:00:00Z")) / (60 * minutes);
  expect(left({ ...started, overlap_unused_ms: 24 * 60 * minutes })).toBe(hoursLeft);
  expect(left(started)).toBe(12 * 24);
});

describe("a rotation typed with other options", () => {
  const entry = (detail: EntryProgress["detail"]): Entry => ({ detail }) as Entry;
  it.each<[EntryProgress["detail"], Parameters<typeof overlapDifferences>[1], string]>([
    [{}, { overlapMs: 0 }, "0s 0s none none none none"],
    [{ overlap_ms: 5000 }, { overlapMs: 60_000, keepOld: true }, "5s 60s none none none given"],
    [{ keep_old: true, overlap_unused_ms: 9000 }, { overlapMs: 1 }, "0s 0.001s 9s none given none"],
  ])("%j as %j", (detail, typed, words) => {
    const found = overlapDifferences(entry(detail), typed);
    expect(found.map(({ flag }) => flag)).toEqual(["--overlap", "--overlap-unused", "--keep-old"]);
    const values = found.flatMap(({ recorded, typed }) => [recorded, typed]);
    expect(values.join(" ").replaceAll("not given", "none")).toBe(words);
  });

  it.each<
    [string, Partial<Entry>, DestinationRecord | undefined, readonly (readonly [string, string])[], string | undefined]
  >([
    ["nothing", {}, file("/secret"), [["a", "a"]], undefined],
    ["one flag", {}, file("/secret"), [["a", "b"]], "--f was a, and is b now"],
    [
      "two flags",
      {},
      undefined,
      [
        ["a", "b"],
        ["c", "c"],
        ["d", "e"],
      ],
      "--f was a, and is b now; --f was d, and is e now",
    ],
    ["the destination", {}, file("/other"), [], "the destination of the secret was /secret, and is /other now"],
    ["the default destination", {}, { kind: "stdout" }, [], undefined],
    ["the destination of an unfinished creation", { state: "unknown" }, file("/other"), [], undefined],
    ["a destination that the creation did not have", { destination: null }, file("/other"), [], undefined],
    ["no destination", {}, undefined, [], undefined],
  ])("%s", async (_what, child, place, pairs, words) => {
    const world = new AWorld();
    const { kind, failure } = await world.run(async (bench) => {
      const lease = await rotation(bench, child);
      const differences = () => pairs.map(([recorded, typed]) => ({ flag: "--f", recorded, typed }));
      await assertSameOptions(bench, lease.entry, { differences, alternative: () => "go", place });
    });
    if (words === undefined) expect(kind).toBe("done");
    else
      expect([kind, failure?.message, failure?.details]).toMatchObject([
        "usage",
        `The unfinished rotation 1000000001 was started with other options: ${words}.`,
        {
          meaning: "Nothing was sent. It continues as it was started; go.",
          nextCommand: "integ journal recover 1000000001",
        },
      ]);
  });
});
