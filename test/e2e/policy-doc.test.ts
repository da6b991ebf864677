// Runs the nightly job of docs/policy.md on hosted runners. Each night starts with an empty disk.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Account } from "../support/account.ts";
import { type GitHubServer, startGitHub } from "../support/github-server.ts";
import { PostgresServer, role, teamAccess } from "../support/postgres.ts";
import { type Ended, ended, Home, root } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

interface Step {
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const page = readFileSync(join(root, "docs", "policy.md"), "utf8");
const chapter = page.split("\n## A nightly job on hosted runners\n")[1]!;

describe.skipIf(isMissing("PostgreSQL"))("docs/policy.md, hosted", () => {
  let server: PostgresServer;
  let service: Service;
  let github: GitHubServer;
  let account: Account;
  const homes: Home[] = [];

  beforeAll(async () => {
    [server, service, github] = await Promise.all([PostgresServer.start(), startService(), startGitHub()]);
    account = new Account(service);
    const init = await newRunner().integ(["journal", "init"], { env: nightly().env });
    expect(init.code, init.stderr).toBe(0);
  });
  afterAll(async () => {
    for (const home of homes) home.remove();
    await Promise.all([service.stop(), server.remove(), github.close()]);
  });

  const withLocalValues = (text: string): string =>
    text
      .replaceAll("db.example.com", `127.0.0.1:${server.port}`)
      .replaceAll("https://api.eu.example.com", service.us.base_url)
      .replaceAll("https://auth.eu.example.com/oauth/token", service.us.token_endpoint)
      .replaceAll("INTEG_REGION: eu", "INTEG_REGION: us")
      .replaceAll("sa_reporting", service.us.service_account_id)
      .replaceAll("acme/reporting", "my-org/my-repo");

  /** The only command of the workflow besides the installation. */
  function nightly(): { line: string; env: Record<string, string> } {
    const [, text = ""] = /```yaml\n([\s\S]*?)```/.exec(chapter) ?? [];
    const { jobs } = parse(withLocalValues(text)) as { jobs: { apply: { steps: Step[] } } };
    const [step, ...more] = jobs.apply.steps.filter(({ run: line }) => line && !line.includes("npm install"));
    expect(more).toEqual([]);
    const values: Record<string, string> = {
      "secrets.INTEG_API_KEY": service.us.api_key,
      "secrets.INTEG_JOURNAL_PASSWORD": role.password,
      "secrets.INTEG_JOURNAL_KEY": teamAccess.INTEG_JOURNAL_KEY,
      "vars.INTEG_ESCROW": "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
      "secrets.SECRET_WRITER_TOKEN": github.token,
    };
    const filled = Object.entries(step!.env!).map(([name, value]) => [
      name,
      value.replaceAll(/\$\{\{ (.*?) \}\}/g, (_all, key: string) => values[key]!),
    ]);
    const env = Object.fromEntries(filled) as Record<string, string>;
    // The test's server is not github.com, so integ uses the token of an enterprise host.
    const server = { GITHUB_API_URL: github.origin, GH_ENTERPRISE_TOKEN: env.GH_TOKEN! };
    return { line: step!.run!, env: { ...env, ...server, GITHUB_ACTIONS: "true" } };
  }

  function policy(): string {
    const [, text = ""] = /```yaml\n(version: 1[^`]*)```/.exec(page) ?? [];
    const [, store = ""] = /`secret: ("github:[^`]*")`/.exec(chapter) ?? [];
    expect(store).not.toBe("");
    return withLocalValues(text.replace(/secret: \{.*\}/, `secret: ${store}`));
  }

  function newRunner(): Home {
    const home = new Home({ CI: "true" });
    homes.push(home);
    home.addToPath();
    writeFileSync(home.path("integ.yaml"), policy());
    return home;
  }

  function run(home: Home, line: string, env: Readonly<Record<string, string>>): Promise<Ended> {
    return ended(spawn("bash", ["-eo", "pipefail", "-c", line], { cwd: home.folder, env: { ...home.env, ...env } }));
  }

  it("creates missing credentials in one of two simultaneous runs, and changes nothing the next night", async () => {
    const { line, env } = nightly();
    const runs = await Promise.all([run(newRunner(), line, env), run(newRunner(), line, env)]);
    expect(runs.map(({ code, stderr }) => ({ code, stderr: code === 0 ? "" : stderr }))).toEqual([
      { code: 0, stderr: "" },
      { code: 0, stderr: "" },
    ]);
    const [client, ...others] = await account.live();
    expect(others).toEqual([]);
    const secret = github.secret("CLIENT_SECRET")!;
    expect(github.changes("CLIENT_SECRET")).toBe(1);
    expect(await account.opens(client!.client_id!, secret)).toBe(true);
    const next = await run(newRunner(), line, env);
    expect(next.code, next.stderr).toBe(0);
    expect(next.stdout).toMatch(/reporting\s+oauth_client\s+none\s+unchanged/);
    expect((await account.live()).map(({ id }) => id)).toEqual([client!.id]);
    for (const { stdout, stderr } of [...runs, next]) expect(stdout + stderr).not.toContain(secret);
  });

  it("checks a pull request without a credential, and applies only the reviewed plan", async () => {
    const { env } = nightly();
    const [check = "", plan = "", apply = ""] = [...chapter.matchAll(/`(integ[^`]*)`/g)]
      .map(([, line = ""]) => line.replaceAll("\n", " "))
      .filter((line) => !line.startsWith("integ journal"));
    expect([check, plan, apply]).toEqual([
      "integ policy check --offline",
      "integ plan --exit-code --out plan.json",
      "integ apply plan.json",
    ]);
    const request = newRunner();
    expect((await run(request, check, {})).code).toBe(0);
    const wider = policy().replace("[entity:read]", "[entity:read, organization:read]");
    writeFileSync(request.path("integ.yaml"), wider);
    const planned = await run(request, plan, env);
    expect(planned.code, planned.stderr).toBe(10);
    expect(planned.stdout).toContain("other scopes: +organization:read");
    const other = newRunner();
    writeFileSync(other.path("integ.yaml"), policy());
    writeFileSync(other.path("plan.json"), readFileSync(request.path("plan.json")));
    expect((await run(other, `${apply} --yes`, env)).code).toBe(2);
    expect(await account.live()).toHaveLength(1);
    const applied = await run(request, `${apply} --yes`, env);
    expect(applied.code, applied.stderr).toBe(0);
    expect(await account.live()).toHaveLength(2);
    expect(github.changes("CLIENT_SECRET")).toBe(2);
  });
});
