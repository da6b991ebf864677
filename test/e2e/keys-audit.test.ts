import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Ended, Home } from "../support/program.ts";
import { deskOfTests, type KeysDesk } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

interface Audit {
  readonly object: string;
  readonly data: { id: string; rule: string; severity: string; key_id: string; message: string; remedy: string }[];
  readonly audit: {
    keys: number;
    keys_judged: number;
    complete: boolean;
    findings_by_severity: Record<string, number>;
  };
  readonly unjudged: unknown[];
  readonly waived: { id: string; until: string }[];
  readonly waivers_ended: unknown[];
  readonly waivers_unused: unknown[];
}

function audit(at: Home, ...flags: string[]): Promise<Ended> {
  return at.integ(["keys", "audit", "--json", ...flags]);
}

describe("keys audit", () => {
  it("leaves the key of a policy item to the policy, because a rotation by hand would move its secret", async () => {
    const at = desk.withToken();
    const item = "  night: { type: service_account, scopes: ['push-ingest:*'], secret: { file: night.secret } }";
    writeFileSync(at.path("integ.yaml"), `version: 1\nid: pol_of_this_test\naccess_keys:\n${item}\n`);
    expect((await at.integ(["apply", "--yes"])).code).toBe(0);
    const { data } = JSON.parse((await audit(at)).stdout) as Audit;
    const found = data.filter(({ remedy }) => remedy.includes("its item night"));
    expect(found.map(({ rule, remedy }) => [rule, remedy.includes("integ apply")])).toEqual([["no_expiry", true]]);
  });

  it("finds every kind of risk among the sandbox's keys, exits 10, and changes nothing", async () => {
    const at = desk.withToken();
    const { code, stdout, stderr } = await audit(at);
    expect(code).toBe(10);
    const report = JSON.parse(stdout) as Audit;
    expect(report).toMatchObject({ object: "list", unjudged: [], audit: { complete: true } });
    expect(new Set(report.data.map(({ rule }) => rule))).toEqual(
      new Set([
        "expired_active",
        "expiring",
        "no_expiry",
        "never_used",
        "idle",
        "too_old",
        "full_access",
        "user_bound",
      ]),
    );
    expect(report.data.some(({ key_id }) => key_id === "ak_us_retired")).toBe(false);
    expect(report.data[0]).toMatchObject({
      id: "expired_active:ak_us_expired",
      severity: "high",
      remedy: "integ keys revoke ak_us_expired",
    });
    const last = JSON.parse(stderr.trim().split("\n").at(-1)!);
    expect(last.error).toMatchObject({ kind: "findings", exit_code: 10 });
    expect(await desk.sent("POST", /./)).toBe(0);
  });

  it("has flags for its thresholds; a bad one is exit 2", async () => {
    const at = desk.withToken();
    const { stdout } = await audit(at, "--max-age", "1000d", "--max-idle", "1000d", "--expires-within", "1s");
    const rules = (JSON.parse(stdout) as Audit).data.map(({ rule }) => rule);
    for (const rule of ["idle", "too_old", "expiring"]) expect(rules).not.toContain(rule);
    expect((await audit(at, "--max-age", "old")).code).toBe(2);
    expect((await audit(at, "--fail-on", "terrible")).code).toBe(2);
  });

  it("omits waived findings until their date; --fail-on sets the lowest severity that fails", async () => {
    const at = desk.withToken();
    const until = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const waivers = [
      { rule: "expired_active", key: "ak_us_expired", until, reason: "goes tomorrow" },
      { rule: "idle", key: "ak_us_retired", until },
      { rule: "too_old", key: "ak_us_idle", until: "2020-01-01" },
    ];
    writeFileSync(at.path("waivers.json"), JSON.stringify({ waivers }));
    const { code, stdout } = await audit(at, "--waivers", "waivers.json", "--fail-on", "high");
    expect(code).toBe(0);
    const report = JSON.parse(stdout) as Audit;
    expect(report.waived).toMatchObject([{ id: "expired_active:ak_us_expired", until }]);
    expect(report.waivers_unused).toMatchObject([{ rule: "idle", key: "ak_us_retired" }]);
    expect(report.waivers_ended).toMatchObject([{ rule: "too_old", key: "ak_us_idle" }]);
    expect(report.data.map(({ id }) => id)).toContain("too_old:ak_us_idle");
    expect((await audit(at, "--fail-on", "high")).code).toBe(10);
  });

  it("lists findings in the other formats, one per line in line formats", async () => {
    const at = desk.withToken();
    const { stdout } = await at.integ(["keys", "audit", "--ndjson"]);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.every(({ object, id }) => object === "finding" && typeof id === "string")).toBe(true);
    const table = await at.integ(["keys", "audit"]);
    expect(table.stdout.split("\n")[0]).toContain("NEXT STEP");
    const chosen = await audit(at, "--fields", "severity,key_id");
    const { data } = JSON.parse(chosen.stdout) as Audit;
    expect(data).toHaveLength(lines.length);
    expect(data[0]).toEqual({ severity: "high", key_id: "ak_us_expired" });
    const yaml = await at.integ(["keys", "audit", "--fields", "severity,key_id", "-o", "yaml"]);
    expect(yaml.stdout).toContain("severity: high");
  });

  it("names the command that sets a missing organization id", async () => {
    const { at } = await desk.withProfile();
    expect((await at.integ(["profiles", "edit", "p", "--organization-id", ""])).code).toBe(0);
    const { code, stderr } = await at.integ(["keys", "audit"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("integ profiles edit p --organization-id <id>")]);
  });

  it("neutralizes hostile text from the service", async () => {
    const at = desk.withToken();
    await desk.service.fault("GET /api/v1/access-keys text=hostile");
    const { stdout, stderr } = await at.integ(["keys", "audit"]);
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  });
});
