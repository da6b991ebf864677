import { describe, expect, it } from "vitest";
import { judgeKey } from "../../../src/commands/keys/audit-rules.ts";
import { applyWaivers, readWaivers } from "../../../src/commands/keys/audit-waivers.ts";
import { Failure } from "../../../src/errors.ts";

const day = 86_400_000;
const now = Date.parse("2026-11-21T12:00:00.000Z");
const at = { path: "waivers.json", now };
const limits = { maxAgeMs: 90 * day, maxIdleMs: 30 * day, expiresWithinMs: 14 * day };
const { findings } = judgeKey(
  {
    id: "ak_1",
    status: "active",
    expiresAt: null,
    createdAt: "2026-11-01T00:00:00Z",
    lastUsedAt: "2026-11-20T00:00:00Z",
    scopes: ["*"],
    keyType: "service_account",
  },
  1,
  { now, limits, caller: { name: "profile p", isSecretStored: true, ownership: () => "other" } },
)!;

function file(...waivers: object[]): string {
  return JSON.stringify({ waivers });
}

describe("a waiver", () => {
  it("suppresses its finding until the end of its day", () => {
    const [waiver] = readWaivers(
      file({ rule: "no_expiry", key: "ak_1", until: "2026-11-21", reason: "leaves today" }),
      at,
    );
    const during = applyWaivers(findings, [waiver!], Date.parse("2026-11-21T23:59:59.999Z"));
    expect(during.findings.map(({ rule }) => rule)).toEqual(["full_access"]);
    expect(during.waived).toMatchObject([{ id: "no_expiry:ak_1", until: "2026-11-21", reason: "leaves today" }]);
    const after = applyWaivers(findings, [waiver!], Date.parse("2026-11-22T00:00:00.000Z"));
    expect(after.findings).toHaveLength(2);
    expect(after.ended).toEqual([waiver]);
    expect(after.waived).toEqual([]);
  });

  it("with a time ends at that time", () => {
    const waivers = readWaivers(file({ rule: "no_expiry", key: "ak_1", until: "2026-11-21T13:00:00Z" }), at);
    expect(applyWaivers(findings, waivers, now).findings).toHaveLength(1);
    expect(applyWaivers(findings, waivers, now + 3_600_000).findings).toHaveLength(2);
  });

  it("of another key or rule suppresses nothing, and is reported as unused", () => {
    const waivers = readWaivers(
      file({ rule: "no_expiry", key: "ak_2", until: "2026-12-01" }, { rule: "idle", key: "ak_1", until: "2026-12-01" }),
      at,
    );
    const applied = applyWaivers(findings, waivers, now);
    expect(applied.findings).toHaveLength(2);
    expect(applied.unused).toHaveLength(2);
  });

  it("given twice lasts for the longer time", () => {
    const waivers = readWaivers(
      file(
        { rule: "no_expiry", key: "ak_1", until: "2026-11-20" },
        { rule: "no_expiry", key: "ak_1", until: "2026-12-01" },
      ),
      at,
    );
    expect(applyWaivers(findings, waivers, now).findings).toHaveLength(1);
    expect(applyWaivers(findings, waivers, now).ended).toEqual([]);
  });
});

describe("a defective file is refused with the place", () => {
  it.each([
    ["no JSON", "{", "not valid JSON"],
    ["a list under", '{"waiver":[]}', "a list under"],
    ["null", "null", "a list under"],
    ["a word", file("x" as never), "waiver 1: it is not an object"],
    ["an unknown rule", file({ rule: "no-expiry", key: "ak_1", until: "2026-12-01" }), 'unknown rule "no-expiry"'],
    ["no key", file({ rule: "idle", until: "2026-12-01" }), '"key"'],
    ["no end", file({ rule: "idle", key: "ak_1" }), "a waiver ends"],
    ["an impossible date", file({ rule: "idle", key: "ak_1", until: "2026-02-31" }), "a waiver ends"],
    ["a word in place of a date", file({ rule: "idle", key: "ak_1", until: "never" }), "a waiver ends"],
    ["an end beyond a year", file({ rule: "idle", key: "ak_1", until: "2036-01-01" }), "a year is the longest"],
    ["a mistyped member", file({ rule: "idle", key: "ak_1", untill: "2026-12-01" }), "unknown member"],
    ["an invalid second waiver", file({ rule: "idle", key: "a", until: "2026-12-01" }, {}), "waiver 2"],
  ])("%s", (_name, text, words) => {
    expect(() => readWaivers(text, at)).toThrowError(Failure);
    expect(() => readWaivers(text, at)).toThrowError(words);
    try {
      readWaivers(text, at);
    } catch (error) {
      expect((error as Failure).kind).toBe("usage");
    }
  });
});
