import * as fc from "fast-check";
import { expect, test } from "vitest";
import { idPattern, newEntryId, normalizeId } from "../../../src/journal/lookup.ts";

const now = Date.UTC(2026, 10, 21);

test("ids are ten typable characters and sort by admission, whatever the clock does", () => {
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

test("ids of different seconds sort by time without knowing each other", () => {
  const early = newEntryId(now, { random: 2 ** 20 - 1 });
  const late = newEntryId(now + 1000, { random: 0 });
  expect(early < late).toBe(true);
});

test("what is misread for another digit finds its entry all the same", () => {
  expect(normalizeId(" 1RS6RSQKSJ ")).toBe("1rs6rsqksj");
  expect(normalizeId("olI")).toBe("011");
});
