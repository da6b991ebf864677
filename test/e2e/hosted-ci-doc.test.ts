// Runs the chapters of docs/ci.md about hosted runners. Each night starts with an empty disk.
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Account } from "../support/account.ts";
import { askPsql, PostgresServer, role, teamAccess } from "../support/postgres.ts";
import { type Ended, ended, Home, root } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

type Variables = Readonly<Record<string, string>>;
interface Step {
  readonly run?: string;
  readonly env?: Variables;
}

const page = readFileSync(join(root, "docs", "ci.md"), "utf8");

describe.skipIf(isMissing("PostgreSQL"))("docs/ci.md, hosted", () => {
  let server: PostgresServer;
  let service: Service;
  let account: Account;
  let identity: string;
  let recipient: string;
  const homes: Home[] = [];

  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    account = new Account(service);
    const at = newRunner();
    identity = at.path("identity.txt");
    const [setup = ""] = blocks("GitHub-hosted runners", "sh");
    const address = `postgresql://postgres@127.0.0.1:${server.port}/integ`;
    const asPostgres = (text: string): string => askPsql(address, { password: "", text });
    asPostgres(`CREATE ROLE integ_owner LOGIN PASSWORD '${role.password}'; ALTER DATABASE integ OWNER TO integ_owner`);
    const init = await run(at, setup, {});
    expect(init.code, init.stderr).toBe(0);
    const team = readFileSync(join(root, "docs", "team.md"), "utf8");
    asPostgres((team.match(/^GRANT .*;$/gm) ?? []).join("\n"));
    execFileSync(process.execPath, [join(root, "scripts", "release.mjs")], { stdio: "pipe" });
    recipient = execFileSync("sh", ["-c", 'age-keygen -y "$0"', identity], { encoding: "utf8" }).trim();
    expect(init.stdout + init.stderr).toContain(recipient);
  });
  afterAll(async () => {
    for (const home of homes) home.remove();
    await service.stop();
    await server.remove();
  });

  const withLocalValues = (text: string): string =>
    text
      .replaceAll("db.example.com", `127.0.0.1:${server.port}`)
      .replaceAll("https://api.eu.example.com", service.us.base_url)
      .replaceAll("https://auth.eu.example.com/oauth/token", service.us.token_endpoint)
      .replaceAll("INTEG_REGION: eu", "INTEG_REGION: us")
      .replaceAll("sa_reporting", service.us.service_account_id);

  function blocks(heading: string, language: string): string[] {
    const chapter = page.split(`\n## ${heading}\n`)[1]!.split("\n## ")[0]!;
    return [...chapter.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, blockLanguage, text]) =>
      blockLanguage === language ? [withLocalValues(text!)] : [],
    );
  }

  /** A machine with stand-ins for `gh` and `glab`, which by default store a value in the file `stored`. */
  function newRunner(tool = "exec cat > stored", { hasInteg = true } = {}): Home {
    const home = new Home({ ...teamAccess, npm_config_offline: "true" });
    homes.push(home);
    if (hasInteg) home.addToPath();
    else home.env.PATH = `${home.path("global", "bin")}:${home.path("bin")}:${home.env.PATH}`;
    home.env.npm_config_prefix = home.path("global");
    mkdirSync(home.path("bin"), { recursive: true });
    for (const name of ["gh", "glab"]) {
      const text = `#!/bin/sh\n[ -n "$GH_TOKEN$GITLAB_TOKEN" ] || exit 4\necho "$@" >> words\ncase "$*" in *" get "*) cat stored; exit ;; esac\n${tool}\n`;
      writeFileSync(home.path("bin", name), text);
      chmodSync(home.path("bin", name), 0o755);
    }
    return home;
  }

  function filled(variables: Variables = {}): Variables {
    const values: Variables = {
      "vars.INTEG_ESCROW": recipient,
      "secrets.INTEG_API_KEY": service.us.api_key,
      "secrets.INTEG_JOURNAL_PASSWORD": role.password,
      "secrets.INTEG_JOURNAL_KEY": teamAccess.INTEG_JOURNAL_KEY,
      "secrets.SECRET_WRITER_TOKEN": "unused",
      "github.repository": "my-org/my-repo",
    };
    return Object.fromEntries(
      Object.entries(variables).map(([name, value]) => [
        name,
        value.replaceAll(/\$\{\{ (.*?) \}\}/g, (_all, key: string) => values[key]!),
      ]),
    );
  }

  function run(home: Home, text: string, env: Variables): Promise<Ended> {
    const child = spawn("bash", ["-eo", "pipefail", "-c", text], { cwd: home.folder, env: { ...home.env, ...env } });
    return ended(child);
  }

  const workflow = () => {
    const [policy = "", text = ""] = blocks("GitHub-hosted runners", "yaml");
    const { env, steps } = (parse(text) as { jobs: { apply: { env: Variables; steps: Step[] } } }).jobs.apply;
    const [install, step, ...more] = steps.filter(({ run: line }) => line !== undefined);
    expect([install!.env, more]).toEqual([undefined, []]);
    const ofJob = { ...filled(env), GITHUB_ACTIONS: "true" };
    return { policy, install: install!.run!, line: step!.run!, ofJob, env: { ...ofJob, ...filled(step!.env) } };
  };

  /** A machine without integ, with the policy, and with the release of `npm run release` in `ci`. */
  function checkedOut(policy: string, tool?: string): Home {
    const runner = newRunner(tool, { hasInteg: false });
    writeFileSync(runner.path("integ.yaml"), policy);
    cpSync(join(root, "build", "release"), runner.path("ci"), { recursive: true });
    return runner;
  }

  async function installed(policy: string, tool?: string): Promise<Home> {
    const runner = checkedOut(policy, tool);
    const { install, ofJob } = workflow();
    const { code, stdout, stderr } = await run(runner, install, ofJob);
    expect([code, stdout], stderr).toEqual([0, expect.stringContaining("integ-1.0.0.tgz: OK")]);
    return runner;
  }

  it("GitHub: a package that its checksum does not fit is not installed", async () => {
    const runner = checkedOut("");
    appendFileSync(runner.path("ci", "integ-1.0.0.tgz"), "more");
    const { install, ofJob } = workflow();
    expect((await run(runner, install, ofJob)).code).toBe(1);
    expect(existsSync(runner.path("global"))).toBe(false);
  });

  it("GitHub: a failed delivery is claimed elsewhere, and the next night, on an empty disk, changes nothing", async () => {
    const { policy, line, env } = workflow();
    const first = await installed(policy, "exit 1");
    const failed = await run(first, line, env);
    expect(failed.code, failed.stderr).toBe(12);

    const desk = newRunner();
    const [, claim = ""] = blocks("GitHub-hosted runners", "sh");
    const { stdout } = await run(desk, "integ journal list --state undelivered --json", env);
    const [{ id }] = (JSON.parse(stdout) as { data: [{ id: string }] }).data;
    const personEnv = { ...env, GITHUB_ACTIONS: "", ENTRY: id };
    const claimed = await run(desk, claim.replace("identity.txt", identity), personEnv);
    expect(claimed.code, claimed.stderr).toBe(0);
    const secret = readFileSync(desk.path("stored"), "utf8");
    const [client, ...others] = await account.live();
    expect(others).toEqual([]);
    expect(await account.opens(client!.client_id!, secret)).toBe(true);

    const second = await installed(policy);
    const next = await run(second, line, env);
    expect(next.code, next.stderr).toBe(0);
    expect(await account.live()).toHaveLength(1);
    for (const { stdout: out, stderr } of [failed, claimed, next])
      expect((out + stderr).replaceAll(/^::add-mask::.*$/gm, "")).not.toContain(secret);
  });

  it("GitHub: the plan of a pull request is applied as it was shown", async () => {
    await account.clear();
    const { policy, env } = workflow();
    const [plan = "", apply = ""] = blocks("A plan in a pull request", "sh");
    const runner = await installed(policy.replace("reporting:", "planned:").replace("REPORTING", "PLANNED"));
    const { GH_TOKEN: _writer, ...reading }: Variables = env;
    const summary = runner.path("summary.md");
    const planned = await run(runner, plan, { ...reading, GITHUB_STEP_SUMMARY: summary });
    expect(planned.code, planned.stderr).toBe(0);
    expect(readFileSync(summary, "utf8")).toMatch(/planned .* client of sa.* with entity:read .* create/);
    expect(await account.live()).toEqual([]);
    const applied = await run(runner, apply, env);
    expect(applied.code, applied.stderr).toBe(0);
    expect(await account.live()).toHaveLength(1);
  });

  it("GitLab: the job creates the client and stores its secret, the next one changes nothing", async () => {
    await account.clear();
    const [destination = "", text = ""] = blocks("GitLab CI/CD", "yaml");
    const policy = workflow().policy.replace(/^ +secret: .*\n/m, destination.replaceAll(/^/gm, "    "));
    expect(policy).toContain("glab variable update");
    const { credentials, install } = parse(text) as Record<string, { variables: Variables; script: string[] }>;
    expect([install!.variables, credentials!.script]).toEqual([undefined, [expect.stringContaining("integ apply")]]);
    const project = { INTEG_API_KEY: service.us.api_key, INTEG_ESCROW: recipient, GITLAB_TOKEN: "unused", CI: "true" };
    const runner = checkedOut(policy.replace("reporting:", "gitlab:"));
    const made = await run(runner, install!.script.join("\n"), { CI: "true" });
    expect(made.code, made.stderr).toBe(0);
    const night = () => run(runner, credentials!.script.join("\n"), { ...credentials!.variables, ...project });
    const first = await night();
    expect(first.code, first.stderr).toBe(0);
    const secret = readFileSync(runner.path("stored"), "utf8");
    const [client] = await account.live();
    expect(await account.opens(client!.client_id!, secret)).toBe(true);
    expect(readFileSync(runner.path("words"), "utf8")).toContain("variable update REPORTING_SECRET --masked --raw");
    expect((await night()).code).toBe(0);
    expect(await account.live()).toHaveLength(1);
    expect(first.stdout + first.stderr).not.toContain(secret);
  });
});
