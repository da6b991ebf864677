import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { auditKeys as auditOf } from "../../../src/commands/keys/audit-all.ts";
import { command } from "../../../src/commands/keys/audit.ts";
import {
  type AuditInput,
  type Caller,
  type Finding,
  isAtLeast,
  ruleNames,
  type UnjudgedRule,
} from "../../../src/commands/keys/audit-rules.ts";

const day = 86_400_000;
const now = Date.parse("2026-11-21T12:00:00.000Z");
const limits = { maxAgeMs: 90 * day, maxIdleMs: 30 * day, expiresWithinMs: 14 * day };

function at(offsetMs: number): string {
  return new Date(now + offsetMs).toISOString();
}

const sound = {
  id: "ak_1",
  name: "nightly",
  keyType: "service_account",
  status: "active",
  lastUsedAt: at(-day),
  expiresAt: at(60 * day),
  createdAt: at(-10 * day),
  scopes: ["push-ingest:*"],
};

const caller: Caller = { name: "profile p", isSecretStored: true, ownership: () => "other" };

interface Judgment {
  readonly findings: Finding[];
  readonly unjudged: UnjudgedRule[];
  readonly judged: number;
}

function auditKeys(keys: readonly Record<string, unknown>[], at: AuditInput): Judgment {
  const { findings, unjudged, judged } = auditOf(keys, at);
  return { findings: [...findings], unjudged: [...unjudged], judged };
}

function audit(...keys: object[]): Judgment {
  return auditKeys(keys as Record<string, unknown>[], { now, limits, caller });
}

function rulesOf(change: object): string[] {
  return audit({ ...sound, ...change }).findings.map(({ rule }) => rule);
}

function without(member: keyof typeof sound): object {
  const { [member]: _, ...rest } = sound;
  return rest;
}

describe("a safe key", () => {
  it("has no finding, and every rule was judged", () => {
    expect(audit(sound)).toEqual({ findings: [], unjudged: [], judged: 1 });
  });

  it("is not judged once it is revoked", () => {
    expect(audit({ ...sound, status: "revoked", expiresAt: at(-day), scopes: ["*"], lastUsedAt: null })).toEqual({
      findings: [],
      unjudged: [],
      judged: 0,
    });
  });
});

describe("each rule at its limit", () => {
  it.each([
    ["expired_active", { expiresAt: at(0) }, ["expired_active"]],
    ["expiring at the limit", { expiresAt: at(14 * day) }, ["expiring"]],
    ["not yet expiring", { expiresAt: at(14 * day + 1) }, []],
    ["expiring in a moment", { expiresAt: at(1) }, ["expiring"]],
    ["no_expiry", { expiresAt: null }, ["no_expiry"]],
    ["idle at the limit", { lastUsedAt: at(-30 * day) }, []],
    ["idle", { lastUsedAt: at(-30 * day - 1) }, ["idle"]],
    ["at the age limit", { createdAt: at(-90 * day) }, []],
    ["too_old", { createdAt: at(-90 * day - 1) }, ["too_old"]],
    ["never_used", { lastUsedAt: null }, ["never_used"]],
    ["never used in its first day", { lastUsedAt: null, createdAt: at(-day) }, []],
    ["never used after its first day", { lastUsedAt: null, createdAt: at(-day - 1) }, ["never_used"]],
    ["full_access", { scopes: ["push-ingest:*", "*"] }, ["full_access"]],
    ["user_bound", { keyType: "user_bound", boundEmail: "ada@example.com" }, ["user_bound"]],
  ])("%s", (_name, change, rules) => {
    expect(rulesOf(change)).toEqual(rules);
  });

  it("never used is minor while the key is new, but not after the idle limit", () => {
    expect(audit({ ...sound, lastUsedAt: null }).findings[0]!.severity).toBe("low");
    expect(audit({ ...sound, lastUsedAt: null, createdAt: at(-31 * day) }).findings[0]!.severity).toBe("medium");
  });

  it("findings are sorted by severity, with id and remedy", () => {
    const { findings } = audit({ ...sound, expiresAt: at(-day), lastUsedAt: null });
    expect(findings.map(({ id, severity }) => [id, severity])).toEqual([
      ["expired_active:ak_1", "high"],
      ["never_used:ak_1", "low"],
    ]);
    expect(findings[0]!.remedy).toBe("integ keys revoke ak_1");
  });

  it("of two keys with the same severity, the one that ends first is first, and a running overlap is waited for", () => {
    const keys = [30, 3, null, 9].map((days) => ({
      ...sound,
      id: `ak_${days}`,
      expiresAt: days === null ? null : at(days * day),
      scopes: ["*"],
    }));
    const ending = new Map([["ak_9", "Wait until then."]]) as AuditInput["ending"];
    const { findings } = auditKeys(keys, { now, limits, caller, ending });
    expect([...new Set(findings.map(({ key_id }) => key_id))]).toEqual(["ak_3", "ak_9", "ak_30", "ak_null"]);
    expect(findings.filter(({ remedy }) => remedy === "Wait until then.").map(({ key_id }) => key_id)).toContain(
      "ak_9",
    );
  });

  it("the help names every rule, which a waiver needs", () => {
    for (const rule of ruleNames) expect(command.more).toContain(rule);
  });

  it("an id with shell characters is quoted in the command", () => {
    const [first] = audit({ ...sound, id: "x'; rm -rf ~", expiresAt: at(-day) }).findings;
    expect(first!.remedy).toBe("integ keys revoke 'x'\\''; rm -rf ~'");
  });
});

describe("missing data", () => {
  it.each([
    ["expiresAt", ["no_expiry"]],
    ["lastUsedAt", ["never_used"]],
    ["createdAt", ["too_old"]],
    ["scopes", ["full_access"]],
    ["keyType", ["user_bound"]],
  ] as const)("without %s the rule is listed as not judged, and there is no finding", (member, rules) => {
    const { findings, unjudged } = audit(without(member));
    expect(findings).toEqual([]);
    expect(unjudged.map(({ rule, key_id }) => [rule, key_id])).toEqual(rules.map((rule) => [rule, "ak_1"]));
    expect(unjudged[0]!.reason).toContain(member);
  });

  it("without a status, only the revoked state of an expired key is not judged", () => {
    const { findings, unjudged } = audit({ ...without("status"), expiresAt: at(-day), scopes: ["*"] });
    expect(findings.map(({ rule }) => rule)).toEqual(["full_access"]);
    expect(unjudged.map(({ rule }) => rule)).toEqual(["expired_active"]);
  });

  it.each(["suspended", "Active", "ACTIVE", " active", "", 1, null])(
    "of an undocumented status %j: no finding is claimed",
    (status) => {
      const { findings, unjudged, judged } = audit({ ...sound, status, scopes: ["*"] });
      expect(judged).toBe(0);
      expect(findings).toEqual([]);
      expect(unjudged).toHaveLength(ruleNames.length);
    },
  );

  it.each([
    ["a word", "soon"],
    ["an impossible date", "2026-13-45T00:00:00Z"],
    ["a time without a zone", "2026-11-21T12:00:00"],
    ["a number", 1_700_000_000],
  ])("an invalid time (%s) is not judged", (_name, value) => {
    expect(audit({ ...sound, expiresAt: value }).unjudged.map(({ rule }) => rule)).toEqual(["no_expiry"]);
    expect(audit({ ...sound, expiresAt: value }).findings).toEqual([]);
  });

  it("a last use in the future is not judged beyond clock skew", () => {
    expect(audit({ ...sound, lastUsedAt: at(day) }).unjudged.map(({ rule }) => rule)).toEqual(["never_used"]);
    expect(audit({ ...sound, lastUsedAt: at(60_000) })).toMatchObject({ findings: [], unjudged: [] });
  });

  it("a row without an id is judged, and its finding names the row", () => {
    const { findings } = audit(sound, { ...without("id"), expiresAt: null });
    expect(findings.map(({ id, key_id }) => [id, key_id])).toEqual([["no_expiry:row-2", null]]);
  });
});

describe("properties", () => {
  const row = fc.record(
    {
      id: fc.oneof(fc.string(), fc.integer()),
      name: fc.oneof(fc.string(), fc.constant(null)),
      keyType: fc.oneof(fc.constantFrom("user_bound", "service_account"), fc.string(), fc.integer()),
      status: fc.oneof(fc.constantFrom("active", "revoked"), fc.string(), fc.constant(null)),
      lastUsedAt: fc.oneof(
        fc.date({ noInvalidDate: true }).map((d) => d.toISOString()),
        fc.constant(null),
        fc.string(),
        fc.integer(),
      ),
      expiresAt: fc.oneof(
        fc.date({ noInvalidDate: true }).map((d) => d.toISOString()),
        fc.constant(null),
        fc.string(),
        fc.boolean(),
      ),
      createdAt: fc.oneof(
        fc.date({ noInvalidDate: true }).map((d) => d.toISOString()),
        fc.string(),
        fc.constant(null),
      ),
      scopes: fc.oneof(fc.array(fc.constantFrom("*", "push-ingest:*")), fc.string(), fc.array(fc.integer())),
    },
    { requiredKeys: [] },
  );

  it("no rule both has a finding for a row and lists the row as not judged, and none throws", () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 5 }), (rows) => {
        const { findings, unjudged, judged } = auditKeys(rows, { now, limits, caller });
        expect(judged).toBeLessThanOrEqual(rows.length);
        for (const { id, severity } of findings) {
          expect(id).toContain(":");
          expect(isAtLeast(severity, "low")).toBe(true);
        }
        for (const [index] of rows.entries()) {
          const alone = auditKeys([rows[index]!], { now, limits, caller });
          const found = alone.findings.map(({ rule }) => rule);
          expect(alone.unjudged.filter(({ rule }) => found.includes(rule))).toEqual([]);
        }
        expect(unjudged.every(({ reason }) => reason !== "")).toBe(true);
      }),
    );
  });
});

describe("the caller's own key", () => {
  const risky = { ...sound, scopes: ["*"], keyType: "user_bound", expiresAt: null, createdAt: at(-100 * day) };
  const remedies = (how: Partial<Caller>): string[] => {
    const at = { now, limits, caller: { ...caller, ...how } };
    const rows = [risky, { ...risky, lastUsedAt: null }, { ...risky, expiresAt: at.now }] as Record<string, unknown>[];
    return auditKeys(rows, at).findings.map(({ remedy }) => remedy);
  };

  it("gets no remedy that locks the caller out: it is replaced in its profile, or kept", () => {
    const own = remedies({ ownership: () => "own" });
    expect(own.length).toBeGreaterThan(8);
    for (const remedy of own)
      expect(remedy).toMatch(/ --update-profile|^Keep its scope: profile p needs it to administer keys\.$/);
    for (const remedy of own) expect(remedy).not.toContain("push-ingest");
    for (const remedy of remedies({ ownership: () => "own", isSecretStored: false, name: "the environment" }))
      expect(remedy).toMatch(/^(Give the environment another key, then|Keep its scope): /);
  });

  it("if it is only possibly the caller's, no remedy can be pasted unchanged", () => {
    for (const remedy of remedies({ ownership: () => "maybe" }))
      expect(remedy).toMatch(/^Check that profile p does not use this key, then: integ .*[^.]$/);
    for (const remedy of remedies({})) expect(remedy).toMatch(/^integ keys (revoke|rotate) ak_1/);
  });
});
