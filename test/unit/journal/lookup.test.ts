import * as fc from "fast-check";
import { expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { findEntry, idPattern, newEntryId, normalizeId } from "../../../src/journal/lookup.ts";
import { intent } from "./intent.ts";

const now = Date.UTC(2026, 10, 21);

test("ids have ten typable characters and sort by admission, whatever the clock does", () => {
  const step = fc.record({ ms: fc.integer({ min: -10_000_000, max: 10_000_000 }), random: fc.nat(2 ** 20 - 1) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 40 }), (steps) => {
      let newest: string | undefined;
      for (const { ms, random } of steps) {
        const id = newEntryId(now + ms, { random, newest });
        expect(id).toMatch(idPattern);
        if (newest !== undefined) expect(id > newest).toBe(true);
        newest = id;
      }
    }),
  );
});

test("ids of different seconds sort by time without a common state", () => {
  const early = newEntryId(now, { random: 2 ** 20 - 1 });
  const late = newEntryId(now + 1000, { random: 0 });
  expect(early < late).toBe(true);
});

test("look-alike characters in an id still find its entry", () => {
  expect(normalizeId(" 1RS6RSQKSJ ")).toBe("1rs6rsqksj");
  expect(normalizeId("olI")).toBe("011");
});

test.each([
  ["of the first second", Date.UTC(2025, 0, 1), { random: 0 }, "0000000000"],
  ["of an earlier second equals that of the first", 0, { random: 5 }, "0000000005"],
  ["of now", now, { random: 2 ** 20 - 1 }, "1rrpc0zzzz"],
  ["uses the remainder of too large a number", now, { random: 2 ** 20 + 7 }, "1rrpc00007"],
  ["is above the newest of the same second", now, { random: 3, newest: "1rrpc0zzzz" }, "1rrpc10003"],
  ["is the successor of a later one", now, { random: 1024 + 2, newest: "2000000000" }, "2000000003"],
  ["follows the clock after an older one", now, { random: 3, newest: "1rrpc00000" }, "1rrpc00003"],
  ["ignores invalid ids", now, { random: 3, newest: "newest" }, "1rrpc00003"],
])("an id %s", (_what, nowMs, options, id) => {
  expect(newEntryId(nowMs, options)).toBe(id);
});

test("an entry is selected by its whole id, or by a unique prefix", () => {
  const entriesWith = (...ids: string[]): Entry[] =>
    ids.map((id) => ({ ...newEntry(intent(), { id, key: null, at: "2026-11-21T02:00:00.000Z" }) }));
  const all = entriesWith("1rs1m00001", "1rs1m00002", "2rs1m00001");
  expect(findEntry(all, "2").id).toBe("2rs1m00001");
  expect(findEntry(all, " 1RSIM00002 ").id).toBe("1rs1m00002");
  expect(() => findEntry(all, "1")).toThrow(
    '"1" fits 2 entries: 1rs1m00001 (oauth_client.create, open), 1rs1m00002 (oauth_client.create, open).',
  );
  for (const none of ["3", "", " "]) expect(() => findEntry(all, none)).toThrow(`Journal entry "${none}" not found.`);
  const seven = entriesWith(...Array.from({ length: 7 }, (_, index) => `1rs1m0000${index}`));
  expect(() => findEntry(seven, "1")).toThrow(
    /^"1" fits 7 entries: (?:1rs1m0000[0-4] \([^)]*\)(?:, )?){5}, and 2 more\.$/,
  );
});

test("an id follows the newest one that integ generated", () => {
  const wanted = newEntryId(now, { random: 7 });
  expect([wanted, newEntryId(now, { random: 7, newest: wanted })]).toEqual(["1rrpc00007", "1rrpc0000f"]);
  expect(newEntryId(now, { random: 7, newest: "0000000001" })).toBe(wanted);
  for (const newest of ["UPPER", "zzzzzzzzzzz", "ilouilouil"])
    expect(newEntryId(now, { random: 7, newest })).toBe(wanted);
  expect(newEntryId(0, { random: 2 ** 20 + 5 })).toBe("0000000005");
});
