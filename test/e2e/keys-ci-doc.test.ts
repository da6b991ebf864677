// Runs the snippets of docs/ci.md, except those that other tests run (`hosted`).
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Ended, ended, Home, root } from "../support/program.ts";
import { serviceOfFile } from "../support/service.ts";
import { KeysDesk } from "./keys-desk.ts";

interface Snippet {
  readonly language: string;
  readonly text: string;
}

const page = readFileSync(join(root, "docs", "ci.md"), "utf8");
const snippets: Snippet[] = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
  language: language!,
  text: text!,
}));

const service = await serviceOfFile();
let desk: KeysDesk;
let at: Home;
let deploy: { id: string; secret: string };
let own: { id: string; secret: string };
const usedSnippets = new Set<Snippet>();
let printed = "";

beforeAll(async () => {
  desk = new KeysDesk(service, service.eu);
  at = new Home();
  for (const folder of ["etc", "var"]) mkdirSync(at.path(folder));
  at.addToPath();
  // A stand-in for `gh`, which reads the secret from standard input as `gh` does.
  writeFileSync(
    at.path("bin", "gh"),
    `#!/bin/sh\n[ -n "$GH_TOKEN" ] || exit 4\necho "$@" >> '${at.path("gh.words")}'\nexec cat > '${at.path("gh.secret")}'\n`,
  );
  chmodSync(at.path("bin", "gh"), 0o755);
  deploy = await desk.makeKey({ name: "deploy", keyType: "service_account", expiresAt: "2030-01-01T00:00:00.000Z" });
  own = await desk.makeKey({ name: "rotator" });
});

afterAll(() => at.remove());

function snippet(language: string, excerpt: string): string {
  const match = snippets.find((one) => one.language === language && one.text.includes(excerpt));
  if (!match) throw new Error(`docs/ci.md has no ${language} snippet with ${excerpt}`);
  usedSnippets.add(match);
  return match.text
    .replaceAll("https://api.eu.example.com", service.eu.base_url)
    .replaceAll("5eed0000-0000-4000-8000-0000000000e5", service.eu.organization_id)
    .replaceAll("/etc/deploy/", `${at.path("etc")}/`)
    .replaceAll("/var/lib/integ/", `${at.path("var")}/`);
}

async function run(shell: readonly string[], text: string, env: Record<string, string> = {}): Promise<Ended> {
  const [program = "", ...words] = shell;
  const child = spawn(program, [...words, text], {
    cwd: at.folder,
    env: { ...at.env, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const done = await ended(child);
  printed += done.stdout + done.stderr;
  return done;
}

const sh = ["sh", "-c"];

async function liveDeploy(): Promise<string[]> {
  return (await desk.live("deploy")).map(({ id }) => id);
}

describe("docs/ci.md", () => {
  it("the profile's commands work", async () => {
    const { code, stderr } = await run(sh, snippet("sh", "profiles add"), {
      ADMIN_KEY: own.secret,
      ADMIN_KEY_ID: own.id,
    });
    expect(code, stderr).toBe(0);
    expect((await at.integ(["keys", "list", "-p", "rotator"])).code).toBe(0);
  });

  it("GitHub Actions: each step works, the secret is only in the store, the old key works until the overlap ends", async () => {
    const workflow = parse(snippet("yaml", "self-hosted")) as {
      on: { schedule: { cron: string }[] };
      jobs: { rotate: { env: Record<string, string>; steps: { name: string; run: string }[] } };
    };
    expect(workflow.on.schedule[0]!.cron).toMatch(/^\d+ \d+ \* \* \*$/);
    const { env, steps } = workflow.jobs.rotate;
    // The workflow reads the configuration from another folder than this home's.
    const { stdout } = await run(
      sh,
      `mkdir -p '${at.path("var")}' && cp -r '${at.path("config")}' '${at.path("var")}'`,
    );
    expect(stdout).toBe("");
    const codes: (number | null)[] = [];
    for (const step of steps)
      codes.push((await run(["bash", "-eo", "pipefail", "-c"], step.run, { ...env, GITHUB_ACTIONS: "true" })).code);
    expect(codes).toEqual([0, 0, 10]);
    expect(JSON.parse(readFileSync(at.path("audit.json"), "utf8")).data[0]).toMatchObject({ severity: "high" });
    expect(readFileSync(at.path("gh.words"), "utf8")).toBe("secret set DEPLOY_KEY\n");
    const secret = readFileSync(at.path("gh.secret"), "utf8").trimEnd();
    expect(await desk.opens(secret)).toBe(true);
    expect(printed).not.toContain(secret);
    expect(await liveDeploy()).toHaveLength(2);
    expect(await desk.opens(deploy.secret)).toBe(true);
  });

  it("GitHub Actions: a night with a lost response locks no one out, and the next night repairs it", async () => {
    const workflow = parse(snippet("yaml", "self-hosted")) as {
      jobs: { rotate: { env: Record<string, string>; steps: { name: string; run: string }[] } };
    };
    const { env, steps } = workflow.jobs.rotate;
    const night = async (): Promise<(number | null)[]> => {
      const codes: (number | null)[] = [];
      for (const step of steps.slice(0, 2)) {
        const given = { ...env, GITHUB_ACTIONS: "true", INTEG_RETRY_FOR: "0" };
        codes.push((await run(["bash", "-eo", "pipefail", "-c"], step.run, given)).code);
        if (codes.at(-1) !== 0) break;
      }
      return codes;
    };
    const stored = (): string => readFileSync(at.path("gh.secret"), "utf8").trimEnd();
    const before = stored();
    const fault = { fault: "POST /api/v1/access-keys drop=after times=1" };
    const controlResponse = await fetch(service.eu.control_url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(fault),
    });
    expect(controlResponse.ok).toBe(true);
    expect((await night()).at(-1)).toBe(7);
    expect(stored()).toBe(before);
    expect(await desk.opens(before)).toBe(true);
    expect((await night())[0]).toBe(0);
    expect(stored()).not.toBe(before);
    expect(await desk.opens(stored())).toBe(true);
    expect(printed.replaceAll(/^::add-mask::.*$/gm, "")).not.toContain("sbx_eu_aks_");
  });

  it("plain cron: the script works at the time and path of the crontab", async () => {
    const cron = snippet("crontab", "rotate-deploy-key").trim().split(" ");
    const text = snippet("sh", "#!/bin/sh");
    expect(cron).toHaveLength(7);
    expect(text).toContain(`# ${cron[6]}`);
    writeFileSync(at.path("bin", "rotate-deploy-key"), text, { mode: 0o755 });
    const { code, stderr } = await run([at.path("bin", "rotate-deploy-key")], "");
    expect(code, stderr).toBe(0);
    const file = at.path("etc", "key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const secret = readFileSync(file, "utf8").trimEnd();
    expect(await desk.opens(secret)).toBe(true);
    expect(printed).not.toContain(secret);
  });

  it("the job's own key is rotated", async () => {
    const { code, stderr } = await run(sh, snippet("sh", "--update-profile"));
    expect(code, stderr).toBe(0);
    expect(await desk.opens(own.secret)).toBe(false);
    expect((await at.integ(["keys", "list", "-p", "rotator"])).code).toBe(0);
  });

  it("the gate works with its waiver file", async () => {
    const { waivers } = JSON.parse(snippet("json", "waivers")) as { waivers: { until: string }[] };
    const nextMonth = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
    // Extends the page's waivers, so that this test does not depend on the date.
    const running = waivers.map(({ until, ...waiver }) => ({
      ...waiver,
      until: until > nextMonth ? until : nextMonth,
    }));
    writeFileSync(at.path("keys-waivers.json"), JSON.stringify({ waivers: running }));
    const { code, stdout } = await run(["bash", "-o", "pipefail", "-c"], snippet("sh", "keys audit -p"));
    expect(code).toBe(10);
    expect(stdout).toContain("high expired_active:ak_eu_expired");
    expect(stdout).not.toContain("no_expiry:ak_eu_forgotten");
  });

  it("the findings for code scanning and the report are written", async () => {
    const { code, stderr } = await run(["bash", "-e", "-c"], snippet("sh", "sarif"));
    expect(code, stderr).toBe(0);
    const { runs } = JSON.parse(readFileSync(at.path("audit.sarif"), "utf8")) as { runs: [{ results: object[] }] };
    expect(runs[0].results.length).toBeGreaterThan(0);
    expect(readFileSync(at.path("report.html"), "utf8")).toMatch(/^<!doctype html>/i);
  });

  // Parts of the snippets that hosted-ci-doc.test.ts, client-assertion.test.ts and openmetrics.test.ts run.
  const hosted =
    "oauth_clients: ubuntu-latest glab resource_group INTEG_ESCROW_IDENTITY ACTIONS_ID_TOKEN IDENTITY_TOKEN integ.prom age-keygen plan.json".split(
      " ",
    );

  it("each snippet was run, and none printed a secret", () => {
    expect(snippets.filter((one) => !usedSnippets.has(one) && !hosted.some((part) => one.text.includes(part)))).toEqual(
      [],
    );
    expect(snippets.length).toBeGreaterThan(5);
    expect(printed).not.toMatch(/sbx_eu_aks_/);
  });
});
