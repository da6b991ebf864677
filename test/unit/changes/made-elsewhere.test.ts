// A key given by hand may be used on two machines: a client that it returns is called lost here only if a request of this
// entry can have made it.
import { describe, expect, it } from "vitest";
import { wasMadeElsewhere } from "../../../src/changes/delivery-recovery.ts";
import { requestLeaves } from "../../../src/changes/sending.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import { intent } from "../journal/intent.ts";

const seconds = (count: number): string =>
  new Date(Date.parse("2026-11-21T02:00:00.000Z") + count * 1000).toISOString();

/** Its requests left after so many seconds. */
function sentAt(requests: readonly number[], changes: Partial<Entry> = {}): Entry {
  const fresh = newEntry(intent(), { id: "a", key: "nightly", at: seconds(0) });
  const detail = { own_key: false, requested_at: requests.map(seconds) };
  return { ...fresh, attempts: requests.length, clock_offset_ms: 0, detail, ...changes };
}

const hour = 3600;

describe("a client under a key given by hand", () => {
  it.each<[string, Entry, number, boolean]>([
    ["made while a request was under way", sentAt([1, hour]), 3, false],
    ["made a little later", sentAt([1, hour]), 60, false],
    ["made as late as the service may act", sentAt([1, hour]), 61, false],
    ["made between two requests", sentAt([1, hour]), 62, true],
    ["made as a later request left", sentAt([1, hour]), hour - 10, false],
    ["made before a later request left", sentAt([1, hour]), hour - 11, true],
    ["older than the entry", sentAt([1]), -11, true],
    ["as old as the entry, within what clocks differ", sentAt([1]), -9, false],
    ["of an entry that does not know when its requests left", sentAt([], { detail: { own_key: false } }), 600, false],
    ["where no clock was compared", sentAt([1], { clock_offset_ms: null }), 3, true],
    ["where the clock was an hour behind", sentAt([1], { clock_offset_ms: hour * 1000 }), hour + 3, false],
    ["where the clock was set right since", sentAt([1, 2 * hour], { clock_offset_ms: hour * 1000 }), 2 * hour, false],
    ["where it was found to be so before", sentAt([1], { detail: { own_key: false, made_before: true } }), 3, true],
    ["under a random key", sentAt([1], { detail: { own_key: true } }), 600, false],
  ])("%s", (_what, entry, after, isElsewhere) => {
    expect(wasMadeElsewhere(entry, seconds(after), true)).toBe(isElsewhere);
  });

  it("was made elsewhere if every request was answered", () => {
    expect(wasMadeElsewhere(sentAt([1]), seconds(3), false)).toBe(true);
    expect(wasMadeElsewhere(sentAt([1], { detail: { own_key: true } }), seconds(3), false)).toBe(false);
  });
});

describe("when requests left", () => {
  const now = Date.parse(seconds(7));

  it("is kept of the first one and each that follows, the last hundred", () => {
    expect(requestLeaves(sentAt([]), now)).toEqual({ requested_at: [seconds(7)] });
    expect(requestLeaves(sentAt([1]), now)).toEqual({ requested_at: [seconds(1), seconds(7)] });
    const many = requestLeaves(sentAt(Array.from({ length: 100 }, (_, index) => index)), now).requested_at;
    expect(many).toHaveLength(100);
    expect([many?.[0], many?.at(-1)]).toEqual([seconds(1), seconds(7)]);
  });

  it("is not kept under a random key, nor where the first one is not known", () => {
    expect(requestLeaves(sentAt([], { detail: { own_key: true } }), now)).toEqual({});
    expect(requestLeaves(sentAt([1], { detail: { own_key: false } }), now)).toEqual({});
  });
});
