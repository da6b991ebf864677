import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gap, layoutOf } from "../../../src/output/formats/layout.ts";
import { relativeTime, relativeTimeWidth, timeAhead } from "../../../src/output/relative-time.ts";
import { now } from "./streams.ts";

describe("the layout of a table", () => {
  const wish = fc.record({
    width: fc.nat(100),
    least: fc.nat(100),
    otherwise: fc.constantFrom("block", "below", "away"),
  } as const);
  const total = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) + gap * (list.length - 1);

  it("fits the width, gives columns their wanted width if possible, and never cuts or hides protected ones", () => {
    fc.assert(
      fc.property(fc.array(wish, { minLength: 1, maxLength: 10 }), fc.integer({ min: 1, max: 200 }), (wishes, room) => {
        const layout = layoutOf(wishes, { room });
        const needed = wishes.filter(({ otherwise }) => otherwise === "block");
        const fewest = needed.map(({ width, least }) => Math.min(width, least));
        if (layout.kind === "blocks") {
          expect(total(fewest)).toBeGreaterThan(room);
          return;
        }
        const { shown, widths, below } = layout;
        expect(total(widths)).toBeLessThanOrEqual(room);
        if (total(wishes.map(({ width }) => width)) <= room) expect(widths).toEqual(wishes.map(({ width }) => width));
        for (const [at, index] of shown.entries()) {
          const { width, least } = wishes[index]!;
          expect(widths[at]).toBeGreaterThanOrEqual(Math.min(width, least));
          expect(widths[at]).toBeLessThanOrEqual(width);
        }
        const away = [...wishes.keys()].filter((at) => ![...shown, ...below].includes(at));
        expect(below.every((at) => wishes[at]!.otherwise === "below")).toBe(true);
        expect(away.every((at) => wishes[at]!.otherwise === "away")).toBe(true);
        expect(wishes.every(({ otherwise }, index) => otherwise !== "block" || shown.includes(index))).toBe(true);
      }),
    );
  });

  it("narrows the widest column of words, and never an id", () => {
    const wishes = [30, 50, 10].map(
      (width, index) => ({ width, least: index === 0 ? width : 8, otherwise: index > 0 ? "below" : "block" }) as const,
    );
    expect(layoutOf(wishes, { room: 74 })).toEqual({ kind: "rows", shown: [0, 1, 2], widths: [30, 30, 10], below: [] });
    expect(layoutOf(wishes, { room: 40 })).toEqual({ kind: "rows", shown: [0, 1], widths: [30, 8], below: [2] });
    expect(layoutOf(wishes, { room: 29 })).toEqual({ kind: "blocks" });
  });

  it("is quick with a cell of any size", () => {
    expect(layoutOf([{ width: 1e9, least: 8, otherwise: "block" }], { room: 80 })).toMatchObject({ widths: [80] });
  });
});

describe("relative times", () => {
  const ago = (ms: number): string => relativeTime(new Date(now - ms).toISOString(), now);
  const minute = 60_000;
  const day = 24 * 60 * minute;

  it.each([
    [0, "just now"],
    [1000, "1 second ago"],
    [59_999, "1 minute ago"],
    [minute, "1 minute ago"],
    [60 * minute, "60 minutes ago"],
    [3 * day + minute, "3 days ago"],
    [30 * day, "30 days ago"],
    [364 * day, "1 year ago"],
    [800 * day, "2 years ago"],
    [-5 * minute, "in 5 minutes"],
    // A typed lifetime is displayed a moment later, when slightly less of it remains.
    [-(90 * day - 1000), "in 90 days"],
    [-(24 * 60 * minute - 1000), "in 24 hours"],
    [-(365 * day - 1000), "in 1 year"],
    [-(7 * day - 60 * minute), "in 6 days"],
    [-200 * day, "in 6 months"],
  ])("%d ms", (ms, expected) => {
    expect(ago(ms)).toBe(expected);
  });

  it("leave any other text unchanged", () => {
    for (const text of [
      "",
      "never",
      "2026-11-21",
      "2026-11-21T12:00:00",
      "2026-99-99T12:00:00Z",
      "1",
      "Sat, 21 Nov 2026",
    ]) {
      expect(relativeTime(text, now)).toBe(text);
    }
    expect(relativeTime("2026-11-21T13:30:00+01:00", now)).toBe("in 30 minutes");
  });

  it.each([
    [36 * 60 * minute - 1, "in 36 hours"],
    [80 * minute, "in 80 minutes"],
    [minute, "in 1 minute"],
    [3 * day, "in 3 days"],
    [10_000, "in 10 seconds"],
    [-day, "now"],
  ])("%i ms ahead: %s, with the local day and time", (ms, words) => {
    const then = new Date(now + ms);
    const clock = [then.getHours(), then.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
    expect(timeAhead(then.toISOString(), now)).toMatch(
      new RegExp(`^${words} \\(${then.getDate()} [A-Z][a-z]{2} ${clock}\\)$`),
    );
  });

  it("fit into a table's column", () => {
    const longest = [59_000, 119 * 60_000, 47 * 3_600_000, 120 * day, 11 * 30 * day, 98 * 365 * day];
    const lengths = longest.flatMap((ms) => [ago(ms).length, ago(-ms).length]);
    expect(Math.max(...lengths)).toBe(relativeTimeWidth);
  });
});
