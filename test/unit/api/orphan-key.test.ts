import { describe, expect, it } from "vitest";
import type { Rows } from "../../../src/api/json/unknown-list.ts";
import { findOrphan, settleMs, type Criteria } from "../../../src/api/orphan-key.ts";

const sent = Date.parse("2026-11-21T02:00:00.000Z");
const later = sent + 60 * 60_000;

function rows(...values: object[]): Rows {
  const of = (value: object) => ({ text: JSON.stringify(value), value: value as Record<string, unknown> });
  return { rows: values.map(of), saysMore: false };
}

function at(offsetMs: number): string {
  return new Date(sent + offsetMs).toISOString();
}

const orphan = {
  id: "ak_new",
  name: "ci",
  keyType: "user_bound",
  status: "active",
  lastUsedAt: null,
  expiresAt: null,
  createdAt: at(200),
  createdByUserId: "user_1",
  scopes: ["*"],
};
const other = { ...orphan, id: "ak_own", name: "admin", createdAt: at(-1e9), lastUsedAt: at(0) };

function sought(change: Partial<Criteria> = {}): Criteria {
  return {
    request: { name: "ci" },
    marked: false,
    createdAfter: sent,
    sentUntil: sent + 1000,
    isClockKnown: true,
    skewMs: 5 * 60_000,
    userId: "user_1",
    knownIds: new Set(),
    ownId: "ak_own",
    ...change,
  };
}

describe("a matching key", () => {
  it("is found, and is certain only with the marker", () => {
    expect(findOrphan(rows(other, orphan), sought(), later)).toMatchObject({
      kind: "one",
      key: { id: "ak_new" },
      certain: false,
    });
    expect(findOrphan(rows(other, orphan), sought({ marked: true }), later)).toMatchObject({
      kind: "one",
      certain: true,
    });
  });

  it("is found by its name alone if the list shows no more", () => {
    expect(findOrphan(rows(other, { id: "ak_new", name: "ci" }), sought(), later)).toMatchObject({ kind: "one" });
  });

  it("with the marker is found with any clock error", () => {
    const strange = { ...orphan, createdAt: at(-1e10) };
    expect(findOrphan(rows(other, strange), sought({ marked: true }), later)).toMatchObject({
      kind: "one",
      certain: true,
    });
  });

  it("that was used is never an orphan: someone has its secret", () => {
    for (const marked of [true, false])
      expect(findOrphan(rows({ ...orphan, lastUsedAt: at(500) }), sought({ marked }), later).kind).toBe("used");
  });

  it("cannot be identified among two, or without an id", () => {
    expect(findOrphan(rows(orphan, { ...orphan, id: "ak_2" }), sought(), later)).toMatchObject({
      kind: "several",
      keys: [{}, {}],
    });
    const { id: _, ...nameless } = orphan;
    expect(findOrphan(rows(nameless), sought(), later).kind).toBe("several");
  });
});

describe("a key of that name that does not match", () => {
  it.each([
    ["made before", { createdAt: at(-5 * 60_000 - 1) }],
    ["made long after", { createdAt: at(1000 + 15 * 60_000 + 1) }],
    ["made at an unknown time, of another user", { createdAt: undefined, createdByUserId: "user_2" }],
    ["of another user", { createdByUserId: "user_2" }],
    ["of another type", { keyType: "service_account" }],
    ["with other scopes", { scopes: ["push-ingest:*"] }],
    ["with an expiry that was not requested", { expiresAt: at(1e9) }],
  ])("%s: not an orphan, and nothing is certain", (_name, change) => {
    const search = findOrphan(rows(other, { ...orphan, ...change }), sought(), later);
    expect(search.kind).toBe("none");
    expect(search).toMatchObject({ doubts: [expect.stringContaining("ak_new")] });
  });

  it.each([
    ["revoked", { status: "revoked" }, {}],
    ["the journal's own", {}, { knownIds: new Set(["ak_new"]) }],
    ["of another name", { name: "ci2" }, {}],
    ["made more than a day before", { createdAt: at(-25 * 3_600_000) }, {}],
    ["made more than a day after", { createdAt: at(25 * 3_600_000) }, {}],
  ])("%s: certainly nothing was made", (_name, change, known) => {
    expect(findOrphan(rows(other, { ...orphan, ...change }), sought(known), later)).toEqual({
      kind: "none",
      doubts: [],
    });
  });

  it("matches within clock skew, to the second", () => {
    const request = { name: "ci", expiresAt: "2027-01-01T00:00:00.500Z" };
    const near = { ...orphan, createdAt: at(-4 * 60_000), expiresAt: "2027-01-01T00:00:00Z" };
    expect(findOrphan(rows(near), sought({ request }), later).kind).toBe("one");
  });
});

describe("an absent key", () => {
  it.each([
    ["the list has more pages", { ...rows(other), saysMore: true }, later],
    ["the list is empty", rows(), later],
    ["the list lacks the caller's key", rows({ ...other, id: "ak_x" }), later],
    ["a key has no name", rows(other, { id: "ak_y" }), later],
    ["it is too early", rows(other), sent + 1000 + settleMs - 1],
  ])("proves nothing if %s", (_name, list, now) => {
    const search = findOrphan(list, sought(), now);
    expect(search).toEqual({ kind: "none", doubts: [expect.any(String)] });
  });

  it("proves that no key was created if the list is complete, late enough and has the caller's own key", () => {
    expect(findOrphan(rows(other), sought(), sent + 1000 + settleMs)).toEqual({ kind: "none", doubts: [] });
  });
});
