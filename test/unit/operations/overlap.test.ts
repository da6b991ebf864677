// The rotation that clients and keys share: which overlap is waited for, and how one that was typed otherwise is refused.
import { describe, expect, it } from "vitest";
import { isWaitedFor, overlapDifferences, refuseBegunOtherwise } from "../../../src/operations/rotation.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import type { Entry, EntryProgress } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { DestinationRecord } from "../../../src/secrets/destination.ts";
import { AWorld } from "./a-world.ts";
import { intent } from "../journal/intent.ts";

const minutes = 60_000;

/** A rotation in the journal, and its creation, which is done. @param its what the creation's entry says otherwise */
async function rotation(bench: Workbench, its: Partial<Entry> = {}): Promise<EntryLease> {
  const admit = async (changes: object): Promise<EntryLease> =>
    (await bench.journal.admit(intent({ ...changes }), { fresh: true })).lease;
  const lease = await admit({ operation: "oauth_client.rotate", detail: { overlap_ms: 0, keep_old: false } });
  const child = await admit({ operation: "oauth_client.create", parent: lease.entry.id });
  await child.record({ state: "done", resource_id: "new", destination: file("/secret"), ...its });
  return lease;
}

const file = (path: string): DestinationRecord => ({ kind: "file", path, as: "raw" });

it.each([
  [0, true],
  [15 * minutes - 1, true],
  [15 * minutes, true],
  [15 * minutes + 1, false],
])("an overlap of %i ms is waited for: %s", (ms, is) => expect(isWaitedFor(ms)).toBe(is));

describe("a rotation that is typed otherwise", () => {
  const entry = (detail: EntryProgress["detail"]): Entry => ({ detail }) as Entry;
  it.each<[EntryProgress["detail"], { overlapMs: number; keepOld?: boolean }, unknown]>([
    [{}, { overlapMs: 0 }, ["0s", "0s", "not given", "not given"]],
    [{ overlap_ms: 5000 }, { overlapMs: 60_000, keepOld: true }, ["5s", "60s", "not given", "given"]],
    [{ keep_old: true }, { overlapMs: 1, keepOld: false }, ["0s", "0.001s", "given", "not given"]],
  ])("%j as %j", (detail, typed, words) => {
    const said = overlapDifferences(entry(detail), typed);
    expect(said.map(({ flag }) => flag)).toEqual(["--overlap", "--keep-old"]);
    expect(said.flatMap(({ begun, typed }) => [begun, typed])).toEqual(words);
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
    ["the place", {}, file("/other"), [], "the destination of the secret was /secret, and is /other now"],
    ["the place, which was not asked for", {}, { kind: "stdout" }, [], undefined],
    ["the place of one that is not done", { state: "unknown" }, file("/other"), [], undefined],
    ["the place of one without any", { destination: null }, file("/other"), [], undefined],
    ["no place", {}, undefined, [], undefined],
  ])("%s", async (_what, child, place, pairs, words) => {
    const world = new AWorld();
    const { kind, failure } = await world.run(async (bench) => {
      const lease = await rotation(bench, child);
      const differences = () => pairs.map(([begun, typed]) => ({ flag: "--f", begun, typed }));
      await refuseBegunOtherwise({ bench, lease, place, asked: { differences, wayOut: () => "go" } });
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
