// The pure rules beside the commands: expiries, what a replacement must be told, whose key is whose, which columns to show.
import { describe, expect, it } from "vitest";
import { lockOutWarning, refuseToLockOut } from "../../../src/commands/keys/rotate.ts";
import { oldKeyOf, replacementOf } from "../../../src/commands/keys/replacement.ts";
import { expiryOf } from "../../../src/commands/keys/new-key.ts";
import { columnsFor } from "../../../src/commands/running/read.ts";
import { Failure } from "../../../src/errors.ts";
import type { ActiveProfile } from "../../../src/profiles/profile.ts";

const now = Date.parse("2026-11-21T00:00:00.000Z");

function rows(...values: Record<string, unknown>[]) {
  return {
    rows: values.map((value) => ({ value, text: JSON.stringify(value) })),
    wrappedIn: undefined,
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

  it("is like the old key, and flags win", () => {
    expect(replacementOf(old, {}, now).request).toEqual({ name: "n", keyType: "service_account", scopes: ["*"] });
    const flags = {
      name: "m",
      type: "user_bound" as const,
      scope: ["push-ingest:*"],
      expiresIn: "1d",
      nameMarker: true as const,
    };
    expect(replacementOf(old, flags, now)).toEqual({
      request: { name: "m", keyType: "user_bound", scopes: ["push-ingest:*"], expiresAt: "2026-11-22T00:00:00.000Z" },
      expiry: "in 86400000 ms",
      marked: true,
    });
  });

  it("never lives longer without a word: an expiry that is past or no time must be given", () => {
    for (const expiresAt of ["2026-11-20T00:00:00Z", "soon"])
      expect(() => replacementOf({ ...old, expiresAt }, {}, now)).toThrow("--expires-in");
    expect(replacementOf({ ...old, expiresAt: "soon" }, { expiresAt: "never" }, now).request.expiresAt).toBeUndefined();
  });

  it("of a key that a whole list does not have is none; where the list may leave it out everything must be told", () => {
    expect(() => oldKeyOf(rows({ id: "b" }), "a")).toThrow(Failure);
    expect(oldKeyOf({ ...rows({ id: "b" }), saysMore: true }, "a")).toEqual({});
    expect(oldKeyOf(rows({ name: "no id" }), "a")).toEqual({});
    expect(() => oldKeyOf(rows({ id: "a", status: "revoked" }), "a")).toThrow("revoked");
  });
});

describe("the profile's own key", () => {
  const profile = { name: "p", keyId: "a" } as ActiveProfile;
  const choice = { id: "a", updateProfile: false, yes: false };

  it("is not taken away without being asked to", () => {
    expect(() => refuseToLockOut(profile, choice)).toThrow(Failure);
    expect(() => refuseToLockOut(profile, { ...choice, secretProfile: "q" })).toThrow(Failure);
    for (const agreed of [{ updateProfile: true }, { yes: true }, { secretProfile: "p" }])
      expect(refuseToLockOut(profile, { ...choice, ...agreed })).toBe(true);
  });

  it("where it is not known, or another one, nothing is refused", () => {
    expect(refuseToLockOut({ name: "p" } as ActiveProfile, choice)).toBe(false);
    expect(refuseToLockOut(profile, { ...choice, id: "b" })).toBe(false);
  });

  it("the way out that is named rotates as it was asked to", () => {
    for (const [byReplacement, hint] of [
      [false, "integ keys rotate a --update-profile"],
      [true, "integ keys rotate a --by-replacement --update-profile"],
    ] as const)
      expect(() => refuseToLockOut(profile, { ...choice, byReplacement })).toThrow(
        expect.objectContaining({ details: expect.objectContaining({ hint }) }),
      );
  });

  it("where it is not known, a person is told what would lock the profile out, and not who has answered that", () => {
    expect(lockOutWarning({ name: "p" }, choice)).toContain("--update-profile");
    // The profile env is not kept by integ, and refuses --update-profile.
    expect(lockOutWarning({ name: "env" }, choice)).toContain("environment");
    expect(lockOutWarning({ name: "env" }, choice)).not.toContain("--update-profile");
    for (const told of [{ updateProfile: true }, { yes: true }, { secretProfile: "p" }])
      expect(lockOutWarning({ name: "p" }, { ...choice, ...told })).toBeUndefined();
    expect(lockOutWarning(profile, { ...choice, id: "b" })).toBeUndefined();
  });
});

describe("columns", () => {
  const documented = [
    { path: "id", heading: "id" },
    { path: "name", heading: "name" },
  ];

  it("are the documented ones that any row has, in their order", () => {
    expect(columnsFor([{ x: 1 }, { name: "n", id: "a" }], documented)).toEqual(documented);
    expect(columnsFor([{ name: "n" }], documented)).toEqual([documented[1]]);
    expect(columnsFor([], documented)).toEqual(documented);
  });

  it("else the plain fields as they come, times as times, at most ten", () => {
    const row = { at: "2026-11-21T00:00:00Z", nested: {}, plain: 1, "a.b": 2 };
    expect(columnsFor([row], documented)).toEqual([
      { path: "at", heading: "at", kind: "time" },
      { path: "plain", heading: "plain" },
    ]);
    const wide = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`f${index}`, index]));
    expect(columnsFor([wide], [])).toHaveLength(10);
    expect(columnsFor([{ only: {} }], [])).toEqual([{ path: "only", heading: "only" }]);
  });
});
