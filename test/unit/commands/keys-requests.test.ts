import { describe, expect, it } from "vitest";
import { oldKeyOf, refuseShortLife, replacementOf } from "../../../src/commands/keys/replacement.ts";
import { expiryOf } from "../../../src/commands/keys/new-key.ts";
import { columnsFor } from "../../../src/commands/running/read.ts";
import { Failure } from "../../../src/errors.ts";

const now = Date.parse("2026-11-21T00:00:00.000Z");

function rows(...values: Record<string, unknown>[]) {
  return {
    rows: values.map((value) => ({ value, text: JSON.stringify(value) })),
    saysMore: false,
  };
}

describe("an expiry", () => {
  it.each([
    [{}, undefined],
    [{ expiresIn: "90d" }, { at: "2027-02-19T00:00:00.000Z", fingerprint: "in 7776000000 ms" }],
    [{ expiresAt: "2027-01-01T00:00:00Z" }, { at: "2027-01-01T00:00:00.000Z", fingerprint: "2027-01-01T00:00:00Z" }],
    [{ expiresAt: "never" }, { at: null, fingerprint: "never" }],
    [{ expiresIn: "never" }, { at: null, fingerprint: "never" }],
  ])("%j", (flags, expiry) => {
    expect(expiryOf(flags, now)).toEqual(expiry);
  });
});

describe("a replacement", () => {
  const old = { name: "n", keyType: "service_account", scopes: ["*"], expiresAt: null };

  it("has the old key's properties, and options override them", () => {
    expect(replacementOf(old, {}, now).request).toEqual({ name: "n", keyType: "service_account", scopes: ["*"] });
    const flags = {
      name: "m",
      type: "user_bound" as const,
      scope: ["push-ingest:*"],
      expiresIn: "1d",
      marker: true as const,
    };
    expect(replacementOf(old, flags, now)).toEqual({
      request: { name: "m", keyType: "user_bound", scopes: ["push-ingest:*"], expiresAt: "2026-11-22T00:00:00.000Z" },
      expiry: "in 86400000 ms",
      marked: true,
    });
  });

  it("never gets a longer lifetime silently: an expired or unreadable expiry must be given", () => {
    for (const expiresAt of ["2026-11-20T00:00:00Z", "soon"])
      expect(() => replacementOf({ ...old, expiresAt }, {}, now)).toThrow("--expires-in");
    expect(replacementOf({ ...old, expiresAt: "soon" }, { expiresAt: "never" }, now).request.expiresAt).toBeUndefined();
  });

  it("needs a flag for each property that the API does not return, and widens no unknown scope", () => {
    const flags = { name: "--name", keyType: "--type", scopes: "--scope", expiresAt: "--expires-in" };
    for (const [member, flag] of Object.entries(flags))
      expect(() => replacementOf({ ...old, [member]: undefined }, {}, now)).toThrow(flag);
    expect(() => replacementOf({ ...old, scopes: ["reports:*"] }, {}, now)).toThrow(Failure);
  });

  it("must outlive the overlap, or is refused before anything is sent", () => {
    const expiresAt = "2026-11-21T02:00:00.000Z";
    const until = (hours: number): number => now + hours * 3_600_000;
    for (const hours of [2, 12])
      expect(() => refuseShortLife({ name: "n", expiresAt }, until(hours))).toThrow("before the overlap ends");
    expect(() => refuseShortLife({ name: "n", expiresAt }, until(1.9))).not.toThrow();
    expect(() => refuseShortLife({ name: "n" }, until(12))).not.toThrow();
  });

  it("is refused for a key that is not in a complete list; an incomplete list gives no properties", () => {
    expect(() => oldKeyOf(rows({ id: "b" }), "a")).toThrow(Failure);
    expect(oldKeyOf({ ...rows({ id: "b" }), saysMore: true }, "a")).toEqual({});
    expect(oldKeyOf(rows({ name: "no id" }), "a")).toEqual({});
    expect(() => oldKeyOf(rows({ id: "a", status: "revoked" }), "a")).toThrow("revoked");
  });
});

describe("columns", () => {
  const documented = [
    { path: "id", heading: "id" },
    { path: "name", heading: "name" },
  ];

  it("are the documented fields that any row has, in their order", () => {
    expect(columnsFor([{ x: 1 }, { name: "n", id: "a" }], documented)).toEqual(documented);
    expect(columnsFor([{ name: "n" }], documented)).toEqual([documented[1]]);
    expect(columnsFor([], documented)).toEqual(documented);
  });

  it("are otherwise the plain fields, times formatted, at most ten", () => {
    const row = { at: "2026-11-21T00:00:00Z", nested: {}, plain: 1, "a.b": 2 };
    expect(columnsFor([row], documented)).toEqual([
      { path: "at", heading: "at", kind: "time", isDetail: true },
      { path: "plain", heading: "plain", isDetail: true },
    ]);
    const wide = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`f${index}`, index]));
    expect(columnsFor([wide], [])).toHaveLength(10);
    expect(columnsFor([{ only: {} }], [])).toEqual([{ path: "only", heading: "only", isDetail: true }]);
  });
});
