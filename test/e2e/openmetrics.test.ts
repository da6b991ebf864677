import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Home, root } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const service = await serviceOfFile();
const common = { profile: "env", region: "us" };
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses with the reference implementation of the Prometheus project. */
const reader = `import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
print(json.dumps([{"name": s.name, "labels": s.labels, "value": s.value} for f in read(sys.stdin.read()) for s in f.samples]))`;

function samplesIn(input: string): Sample[] {
  const env = { PATH: "/usr/bin:/bin" };
  return JSON.parse(execFileSync("python3", ["-c", reader], { input, env, encoding: "utf8" })) as Sample[];
}

function home(env: Readonly<Record<string, string>> = {}): Home {
  return homeOfTest({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token, ...env });
}

const policy = `version: 1
id: pol_4b1d7e0c92a6f358
oauth_clients:
  reporting:
    service_account: SA
    scopes: [entity:read]
    secret: { file: reporting.secret }
  later:
    service_account: SA
    scopes: [entity:read]
    secret: { file: later.secret }
`;

describe.skipIf(isMissing("an OpenMetrics parser"))("the samples", () => {
  it("have each credential's times, the slots, what is due, and the time of the check", async () => {
    const at = home();
    writeFileSync(at.path("integ.yaml"), policy.replaceAll("SA", service.us.service_account_id));
    const hostile = 'a"b\\c\u001b[31m\u202e';
    const words = ["keys", "create", "--name", hostile, "--scope", "push-ingest:*", "--no-marker", "--yes"];
    const created = await at.integ([...words, "--expires-in", "30d", "--secret-file", "key.secret", "--json"]);
    expect(created.code, created.stderr).toBe(0);
    expect((await at.integ(["apply", "--yes", "--only", "reporting"])).code).toBe(0);
    const { code, stdout, stderr } = await at.integ(["status", "-o", "openmetrics"]);
    expect(code, stderr).toBe(0);
    const samples = samplesIn(stdout);
    for (const { labels } of samples) expect(labels).toMatchObject(common);
    const of = (name: string): Sample[] => samples.filter((sample) => sample.name === name);
    const { data } = JSON.parse((await at.integ(["keys", "list", "--json"])).stdout) as {
      data: { id: string; expiresAt: string | null; createdAt: string; lastUsedAt: string | null; status: string }[];
    };
    const keys = data.filter(({ status }) => status !== "revoked");
    const times = (text: (key: (typeof data)[0]) => string | null): object =>
      Object.fromEntries(keys.flatMap((key) => (text(key) === null ? [] : [[key.id, Date.parse(text(key)!) / 1000]])));
    const values = (name: string): object =>
      Object.fromEntries(
        of(name).flatMap(({ labels, value }) => (labels.kind === "access_key" ? [[labels.id, value]] : [])),
      );
    expect(values("integ_credential_expiry_timestamp_seconds")).toEqual(times(({ expiresAt }) => expiresAt));
    expect(values("integ_credential_created_timestamp_seconds")).toEqual(times(({ createdAt }) => createdAt));
    expect(values("integ_credential_last_used_timestamp_seconds")).toEqual(times(({ lastUsedAt }) => lastUsedAt));
    const { id } = JSON.parse(created.stdout) as { id: string };
    const own = of("integ_credential_expiry_timestamp_seconds").find(({ labels }) => labels.id === id);
    expect(own!.labels.name).toBe('a"b\\c\\u{1b}[31m\\u{202e}');
    expect(of("integ_client_slots_used")).toMatchObject([
      { labels: { service_account: service.us.service_account_id }, value: 1 },
    ]);
    expect(of("integ_policy_items")).toEqual(
      expect.arrayContaining(
        ["create", "none"].map((action) => ({ name: "integ_policy_items", labels: { action, ...common }, value: 1 })),
      ),
    );
    expect(of("integ_status_timestamp_seconds")[0]!.value).toBeCloseTo(Date.now() / 1000, -3);
    // An apply of some items says nothing about the others.
    expect(of("integ_policy_last_successful_apply_timestamp_seconds")).toEqual([]);
  });

  it("have the time of the last successful apply: one without changes counts, a failed or a dry one does not", async () => {
    const at = home({ INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
    const [text] = policy.replaceAll("SA", service.us.service_account_id).split("  later:");
    writeFileSync(at.path("integ.yaml"), text!);
    const lastApply = async (): Promise<Sample | undefined> =>
      samplesIn((await at.integ(["status", "-o", "openmetrics"])).stdout).find(
        ({ name }) => name === "integ_policy_last_successful_apply_timestamp_seconds",
      );
    const apply = async (...words: string[]) => {
      await service.settle();
      return at.integ(["apply", "--yes", "--retry-for", "0", ...words]);
    };
    expect((await apply()).code).toBe(0);
    const first = (await lastApply())!;
    expect(first.labels).toEqual({ policy: "pol_4b1d7e0c92a6f358", ...common });
    expect((await apply()).code).toBe(0);
    const second = (await lastApply())!;
    expect(second.value).toBeGreaterThan(first.value);
    expect((await apply("--only", "reporting")).code).toBe(0);
    expect((await apply("--dry-run")).code).toBe(0);
    writeFileSync(at.path("integ.yaml"), text!.replace("[entity:read]", "[organization:read]"));
    await service.fault("DELETE /v1/oauth_clients/* status=500");
    const failed = await apply();
    await service.calm();
    expect(failed.code, failed.stderr).not.toBe(0);
    expect((await lastApply())!.value, failed.stderr).toBe(second.value);
    const [file = ""] = readdirSync(at.path("state", "applied"));
    execFileSync("sh", ["-c", "rm $0 && mkdir $0", at.path("state", "applied", file)]);
    const unnoted = await apply();
    expect([unnoted.code, unnoted.stderr]).toEqual([0, expect.stringContaining("time of this apply was not stored: ")]);
    expect([await lastApply(), ...readdirSync(at.path("state", "applied"))]).toEqual([undefined, file]);
  });

  it("count unfinished entries", async () => {
    const at = home();
    expect((await at.integ(creationWords(service, "--secret-command", "exit 1"))).code).toBe(12);
    const samples = samplesIn((await at.integ(["status", "-o", "openmetrics"])).stdout);
    expect(samples).toContainEqual({
      name: "integ_changes_unfinished",
      labels: { state: "undelivered", ...common },
      value: 1,
    });
  });
});

describe("the file", () => {
  it("replaces an earlier one atomically, and other users may read it", async () => {
    const at = home();
    at.addToPath();
    writeFileSync(at.path("integ.yaml"), policy.replaceAll("SA", service.us.service_account_id));
    writeFileSync(at.path("integ.prom"), "old");
    const [line = ""] = /^.*integ\.prom$/m.exec(readFileSync(join(root, "docs", "ci.md"), "utf8")) ?? [];
    const text = line.replace("/var/lib/node_exporter/", "");
    const run = () => execFileSync("bash", ["-e", "-c", text], { cwd: at.folder, env: at.env, stdio: "pipe" });
    expect(run).toThrow("integ.prom exists, and is not an earlier output");
    expect(readFileSync(at.path("integ.prom"), "utf8")).toBe("old");
    writeFileSync(at.path("integ.prom"), "# TYPE integ_x gauge\n");
    run();
    expect(readFileSync(at.path("integ.prom"), "utf8")).toMatch(/^# TYPE integ_[^]*\n# EOF\n$/);
    expect(statSync(at.path("integ.prom")).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(readdirSync(at.folder).filter((name) => name.startsWith("integ.prom"))).toEqual(["integ.prom"]);
  });

  it("is unchanged if the keys cannot be read, and written without them if the profile has no credential for them", async () => {
    const at = home();
    const words = ["status", "-o", "openmetrics", "--out", "integ.prom", "--retry-for", "0"];
    expect(await at.integ(words)).toMatchObject({ code: 0 });
    const whole = readFileSync(at.path("integ.prom"), "utf8");
    expect(whole).toContain('integ_read_ok{what="access_keys",profile="env",region="us"} 1\n');
    for (const fault of ["status=403", "status=500", "body=truncated"]) {
      await service.fault(`GET /api/v1/access-keys ${fault}`);
      const ended = await at.integ(words);
      await service.calm();
      expect([ended.code === 0, readFileSync(at.path("integ.prom"), "utf8")], fault).toEqual([false, whole]);
    }
    const refused = await at.integ(words, { env: { INTEG_ACCESS_TOKEN: "sbx_us_none" } });
    expect([refused.code, readFileSync(at.path("integ.prom"), "utf8")]).toEqual([3, whole]);
    const keyless = await at.integ(words, { env: { INTEG_ACCESS_TOKEN: "" } });
    expect([keyless.code, keyless.stderr]).toEqual([0, expect.stringContaining("Access keys are not included")]);
    const samples = readFileSync(at.path("integ.prom"), "utf8");
    expect(samples).toContain('integ_read_ok{what="access_keys",profile="env",region="us"} 0\n');
    expect(samples).not.toContain('kind="access_key"');
  });

  it("must not be a symbolic link", async () => {
    const at = home();
    writeFileSync(at.path("real.prom"), "# TYPE integ_x gauge\n");
    symlinkSync("real.prom", at.path("integ.prom"));
    const ended = await at.integ(["status", "-o", "openmetrics", "--out", "integ.prom"]);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("is a symbolic link")]);
    expect(readFileSync(at.path("real.prom"), "utf8")).toBe("# TYPE integ_x gauge\n");
  });

  it.each([
    [["status", "--out", "integ.prom"], "--out needs -o openmetrics"],
    [["status", "-o", "openmetrics", "--out", "nowhere/integ.prom"], "mkdir -p nowhere"],
    [["keys", "list", "-o", "openmetrics"], "Use openmetrics with integ status."],
  ])("of %j is an error, and no file is left", async (words, message) => {
    // No service is at this address: integ must refuse the command before it sends a request.
    const at = home({ INTEG_BASE_URL: "http://127.0.0.1:1" });
    const { code, stdout, stderr } = await at.integ(words);
    expect([code, stdout], stderr).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(existsSync(at.path("integ.prom"))).toBe(false);
  });
});
