import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { assertOwnKeys, countMerged, mergeStep, type MergeStep } from "../../../src/journal/merge.ts";
import { recordContent, recordHash } from "../../../src/journal/record.ts";
import { ada, intent } from "./intent.ts";

const at = "2026-11-21T00:00:00.000Z";

function entryOf(id: string, changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id, at, key: `key-${id}` }), ...changes };
}

/** The records of an entry that took some steps. */
function records(id: string, states: readonly Entry["state"][] = ["open", "unknown", "done"]) {
  const contents: string[] = [];
  for (const state of states) {
    const prev = contents.at(-1);
    contents.push(recordContent(entryOf(id, { state }), { by: ada, prev: prev && recordHash(prev) }));
  }
  return { id, contents };
}

function refusalOf(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it was taken");
}

describe("an entry that comes", () => {
  const coming = records("1000000001");
  const hashes = coming.contents.map((content) => recordHash(content));

  it("is whole where nothing of it is, and stands as its newest record says", () => {
    const step = mergeStep(coming, () => []);
    expect(step).toMatchObject({ id: "1000000001", contents: coming.contents, there: 0 });
    expect(step.entry).toMatchObject({ id: "1000000001", state: "done" });
  });

  it.each([1, 2, 3])("adds what follows the %i records that are there", (there) => {
    const asked: string[] = [];
    const step = mergeStep(coming, (id) => {
      asked.push(id);
      return hashes.slice(0, there);
    });
    expect(step).toMatchObject({ contents: coming.contents.slice(there), there });
    expect(asked).toEqual(["1000000001"]);
  });

  it("adds nothing where more is there", () => {
    expect(mergeStep({ ...coming, contents: coming.contents.slice(0, 1) }, () => hashes)).toMatchObject({
      contents: [],
      there: 3,
    });
  });

  it.each([1, 2, 3])("contradicts what is there if record %i differs", (number) => {
    const other = hashes.with(number - 1, "f".repeat(64));
    const failure = refusalOf(() => mergeStep(coming, () => other));
    expect(failure.kind).toBe("conflict");
    expect(failure.message).toBe(`The entry 1000000001 contradicts the one in the journal: record ${number} differs.`);
    expect(failure.details).toEqual({
      meaning: "Nothing was imported.",
      nextCommand: "integ journal show 1000000001",
      entry: "1000000001",
    });
  });

  it.each([
    ["has no record", { id: "1000000001", contents: [] }],
    ["is not JSON", { id: "1000000001", contents: ["{"] }],
    ["is of another id", { id: "1000000002", contents: coming.contents }],
    [
      "has a record of another among its own",
      { id: "1000000001", contents: [...records("1000000002").contents, ...coming.contents] },
    ],
    ["has no entry in it", { id: "1000000001", contents: ['"v":1'] }],
  ])("is refused if it %s", (_what, broken) => {
    const failure = refusalOf(() => mergeStep(broken, () => []));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(`The records of entry ${broken.id} are not those of a journal.`);
    expect(failure.details).toEqual({ meaning: "Nothing was imported." });
  });
});

describe("what was merged is counted", () => {
  const step = (there: number, contents: number): MergeStep => ({
    id: "x",
    entry: entryOf("x"),
    contents: Array.from({ length: contents }, () => ""),
    there,
  });

  it.each([
    [[], { added: 0, extended: 0, unchanged: 0 }],
    [[step(0, 2)], { added: 1, extended: 0, unchanged: 0 }],
    [[step(1, 2)], { added: 0, extended: 1, unchanged: 0 }],
    [[step(2, 0)], { added: 0, extended: 0, unchanged: 1 }],
    [[step(0, 1), step(0, 1), step(3, 1), step(1, 0), step(4, 0), step(9, 0)], { added: 2, extended: 1, unchanged: 3 }],
  ])("%#", (steps, counts) => {
    expect(countMerged(steps)).toEqual(counts);
  });
});

describe("two entries with one idempotency key", () => {
  const step = (id: string, changes: Partial<Entry> = {}): MergeStep => ({
    id,
    entry: entryOf(id, changes),
    contents: [""],
    there: 0,
  });

  it("are refused, whether one of them is there or both come", () => {
    const one = step("1000000001", { idempotency_key: "k" });
    const other = step("1000000002", { idempotency_key: "k" });
    for (const work of [
      () => assertOwnKeys([one, other], () => undefined),
      () => assertOwnKeys([other], () => "1000000001"),
    ]) {
      const failure = refusalOf(work);
      expect(failure.kind).toBe("conflict");
      expect(failure.message).toBe(
        "The entry 1000000002 contradicts the one in the journal: entry 1000000001 has its idempotency key.",
      );
    }
  });

  it("are fine at two addresses, without a key, and if both are the same entry", () => {
    const asked: Entry[] = [];
    const own = step("1000000001", { idempotency_key: "k" });
    assertOwnKeys([own, step("1000000002", { idempotency_key: "k", base_url: "https://us.example.com" })], (entry) => {
      asked.push(entry);
      return undefined;
    });
    expect(asked).toHaveLength(2);
    assertOwnKeys([own], () => "1000000001");
    assertOwnKeys(
      [step("1000000001", { idempotency_key: null }), step("1000000002", { idempotency_key: null })],
      () => "1000000003",
    );
  });
});
