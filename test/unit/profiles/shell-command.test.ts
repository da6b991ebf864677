import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { inputTools, runShell, secretFromCommand, type ShellOptions } from "../../../src/profiles/shell-command.ts";
import { Failure } from "../../../src/errors.ts";
import { passedVariables } from "../../../src/profiles/child-environment.ts";
import type { Environment } from "../../../src/profiles/resolution.ts";
import { failureOf } from "./a-profile.ts";
import { root } from "../../support/program.ts";
import { bundleDriver, temporaryFolder } from "../../support/bundle-driver.ts";

const options: ShellOptions = { env: process.env, timeLimitMs: 10_000 };
const secretOf = (command: string, more: Partial<ShellOptions> = {}): Promise<string> =>
  secretFromCommand(command, { ...options, ...more, flag: "--api-key-command", profile: "prod" });

describe("a command that prints a secret", () => {
  it.each([
    ["echo key", "key"],
    ["printf key", "key"],
    ["printf 'key\\r\\n'", "key"],
    ["printf 'key\\nurl: example\\nuser: me\\n'", "key"],
    ["printf ' spaces are kept \\n'", " spaces are kept "],
    ["printf 'k\\303\\251y\\n'", "kéy"],
    ["(sleep 30; echo late) & echo key", "key"],
  ])("%s", async (command, key) => {
    expect(await secretOf(command)).toBe(key);
  });

  it.each([
    ["fails", "echo canary; exit 3", "failed with exit status 3"],
    ["does not exist", "no-such-command-of-mine", "failed with exit status 127"],
    ["is killed", "echo canary; kill -TERM $$", "failed with signal SIGTERM"],
    ["prints nothing", "true", "printed nothing on its first line"],
    ["prints an empty line first", "echo; echo canary", "printed nothing on its first line"],
    ["prints a control character", "printf 'canary\\033[2J\\n'", "control characters"],
    ["prints a NUL", "printf 'cana\\000ry\\n'", "control characters"],
    ["prints invalid UTF-8", "printf 'canary\\377\\n'", "not UTF-8"],
    ["prints without end", "yes canary", "over 64 KiB"],
  ])("that %s: exit 3 without quoting its output", async (_what, command, words) => {
    const failure = await failureOf(() => secretOf(command));
    expect(failure.kind).toBe("auth");
    expect(failure.message).toContain("--api-key-command of profile prod");
    expect(failure.message).toContain(words);
    expect(failure.details.hint).toContain("store another in the profile with --api-key-command.");
    expect(JSON.stringify(failure)).not.toContain("canary");
  });

  it("that hangs is stopped in time, with its children", async () => {
    const before = performance.now();
    const failure = await failureOf(() => secretOf("echo canary; sleep 60", { timeLimitMs: 300 }));
    expect(failure.message).toContain("did not finish within");
    expect(performance.now() - before).toBeLessThan(5_000);
  });

  it("gets the documented variables and those of INTEG_COMMAND_ENV, and no input", async () => {
    const env = {
      PATH: process.env.PATH,
      https_proxy: "http://proxy",
      INTEG_STATE_DIR: "/state",
      INTEG_API_KEY: "canary",
      INTEG_JOURNAL_KEY: "canary",
      INTEG_JOURNAL: "postgresql://me:canary@db/journal",
      PGPASSWORD: "canary",
      VAULT_TOKEN: "canary",
      AWS_SECRET_ACCESS_KEY: "canary",
      MY_KEY: "canary",
      GH_TOKEN: "named",
      INTEG_COMMAND_ENV: "GH_TOKEN, NOT_SET",
    };
    expect(await environmentOf(env)).toEqual([
      "GH_TOKEN=named",
      "INTEG_STATE_DIR=/state",
      `PATH=${process.env.PATH}`,
      "https_proxy=http://proxy",
    ]);
  });

  it.each([
    ["GH_TOKEN;rm", ' "GH_TOKEN;rm": it is not the name of a variable.'],
    ["GH_TOKEN VAULT_TOKEN", ' "GH_TOKEN VAULT_TOKEN": it is not the name of a variable.'],
    ["GH_TOKEN,INTEG_API_KEY", ": no command gets integ's own variable INTEG_API_KEY."],
  ])("INTEG_COMMAND_ENV=%s: exit 2, and no command runs", async (names, why) => {
    const failure = await failureOf(() => environmentOf({ PATH: process.env.PATH, INTEG_COMMAND_ENV: names }));
    expect([failure.kind, failure.message]).toEqual(["usage", `Invalid INTEG_COMMAND_ENV${why}`]);
  });
});

it("docs/design/destinations.md lists every variable that a command gets", () => {
  const page = readFileSync(join(root, "docs/design/destinations.md"), "utf8");
  const [, chapter = ""] = /## What a command gets\n([\s\S]*?)\n## /.exec(page) ?? [];
  const rows = [...chapter.matchAll(/^\| ([^|`]+) \| (`.*`) \|$/gm)].map(([, purpose = "", names = ""]) => [
    purpose,
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  ]);
  expect(Object.fromEntries(rows)).toEqual(passedVariables);
});

/** A command's environment, without the variables that the shell itself sets. */
async function environmentOf(env: Environment): Promise<string[]> {
  const { stdout } = await runShell("cat >&2; env", { ...options, env });
  const lines = stdout.toString().trimEnd().split("\n");
  return lines.filter((line) => !/^(?:_|PWD|OLDPWD|SHLVL)=/.test(line)).toSorted();
}

async function shownOf(command: string, more: Partial<ShellOptions>): Promise<string> {
  const shown: Buffer[] = [];
  const onStderr = (chunk: Buffer): void => void shown.push(chunk);
  await runShell(command, { ...options, onStderr, env: { PATH: process.env.PATH }, ...more });
  return Buffer.concat(shown).toString();
}

describe("a secret that a command repeats", () => {
  const input = "canary/of+this.test=that-is-long-enough-to-be-wrapped-by-base64~~~~";
  const given = { input, echo: true };

  it.each([
    ["as it is", "echo before; cat; echo; echo after >&2", "***"],
    ["in pieces", "read s; printf '%.9s' $s; sleep 0.2; echo ${s#?????????}", "***"],
    ["in lines", "fold -w 7; echo", "***"],
    ["in base64", "base64", /^\*\*\*[\w=]{0,4}$/],
    ["in base64 after other text", "(printf a; cat) | base64", /^\w\w\*\*\*[\w=]{0,4}$/],
    ["in base64 between other text", "(printf ab; cat; printf '\\n') | base64", /^\w{3}\*\*\*[\w=]{0,4}$/],
    ["in JSON", String.raw`sed 's|/|\\/|; s|.*|"&"|'; echo`, '"***"'],
  ])("%s is masked", async (_how, command, seen) => {
    const lines = (await shownOf(command, given)).trim().split("\n");
    expect(lines.find((line) => line.includes("***"))).toMatch(seen);
    expect(lines.filter((line) => !/^(?:before|after)$/.test(line))).toHaveLength(1);
  });

  it("is not shown beyond 64 KiB, where it could be cut", async () => {
    expect(await shownOf("yes | head -c 70000; cat", given)).toBe(
      "(The command printed over 64 KiB, which are not shown.)\n",
    );
  });

  it("is not shown in agent mode, but reaches a caller that shows none of it", async () => {
    const env = { PATH: process.env.PATH, INTEG_AGENT: "1" };
    expect(await shownOf("cat; echo why >&2", { ...given, env })).toBe("");
    expect(await shownOf("cat | rev; exit 1", { ...given, env })).toMatch(/^\(In agent mode .* is not shown/);
    expect(await shownOf("echo why >&2; exit 1", { env, isStderrQuoted: false })).toBe("why\n");
  });
});

describe("a command that receives a secret", () => {
  it.each([
    ["that reads late", "sleep 1;"],
    ["that is started by another", "sh -c 'sleep 1'; "],
    ["that ignores signals", "trap '' TERM INT HUP; sleep 1;"],
  ])("%s gets nothing after it was stopped by its limit or an interruption", async (_what, before) => {
    const out = join(temporaryFolder(), "out");
    const stop = new AbortController();
    const both = [
      failureOf(() => runShell(`${before} cat > ${out}.late`, { ...options, input: "canary", timeLimitMs: 300 })),
      failureOf(() => runShell(`${before} cat > ${out}.off`, { ...options, input: "canary", signal: stop.signal })),
    ];
    setTimeout(() => stop.abort(new Failure("interrupted", "Interrupted.")), 300);
    await Promise.all(both);
    await new Promise((done) => setTimeout(done, 1300));
    expect([existsSync(`${out}.late`), existsSync(`${out}.off`)]).toEqual([false, false]);
  });

  it("can have a limit of 25 days, which does not become a millisecond", async () => {
    const timeLimitMs = 25 * 24 * 60 * 60 * 1000;
    expect(await runShell("sleep 0.2; cat", { ...options, input: "x", timeLimitMs })).toMatchObject({ status: 0 });
  });

  it("reads the secret from a real pipe, also as /dev/stdin, and no process has the secret as an argument", async () => {
    const out = join(temporaryFolder(), "out");
    const command = `cat /dev/stdin > ${out}; cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n' > ${out}.all`;
    const run = await runShell(command, { ...options, input: "canary-3f\n" });
    expect(run).toMatchObject({ status: 0, unread: 0 });
    expect(readFileSync(out, "utf8")).toBe("canary-3f\n");
    expect(readFileSync(`${out}.all`, "latin1")).not.toContain("canary-3f");
  });

  it("returns its first line (access token commands)", async () => {
    expect(await secretOf("read key; echo token-for-$key", { input: "k1" })).toBe("token-for-k1");
  });

  it.each([
    ["true", 10],
    ["exec 0<&-", 10],
    ["head -c 4 > /dev/null", 6],
    ["cat > /dev/null", 0],
    ["exit 0", 10],
  ])("%s leaves %d bytes unread", async (command, unread) => {
    expect((await runShell(command, { ...options, input: "0123456789" })).unread).toBe(unread);
  });

  it("is not started if this process is killed before it writes the input", async () => {
    const folder = temporaryFolder();
    const driver = await bundleDriver(join(import.meta.dirname, "killed-sender-driver.ts"));
    onTestFinished(driver.remove);
    const seen = `cat > '${join(folder, "taken")}'`;
    const { signal } = spawnSync(process.execPath, [driver.path, seen], { env: process.env });
    expect(signal).toBe("SIGKILL");
    await new Promise((done) => setTimeout(done, 300));
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(inputTools)("is not started without %s, which passes the secret", async (missing) => {
    const folder = temporaryFolder();
    for (const tool of inputTools) if (tool !== missing) symlinkSync(`/bin/${tool}`, join(folder, tool));
    const taken = join(folder, "taken");
    const run = await runShell(`: > '${taken}'`, { ...options, env: { PATH: folder }, input: "canary" });
    expect([run.status, existsSync(taken)]).toEqual([127, false]);
  });

  it("has its own exit status, and may read more than a pipe holds", async () => {
    expect((await runShell("cat > /dev/null; exit 7", { ...options, input: "x" })).status).toBe(7);
    const big = "x".repeat(300_000);
    const run = await runShell("wc -c", { ...options, input: big });
    expect(run.stdout.toString().trim()).toBe("300000");
    expect((await runShell("true", { ...options, input: big })).unread).toBeGreaterThan(0);
  });

  it("may contain quotes, dollar signs and newlines", async () => {
    const run = await runShell(`printf '%s' "a'b\\"$HOME" | wc -c\n: '"$1"'`, {
      ...options,
      input: "x",
      env: { ...process.env, HOME: "/h" },
    });
    expect(run.stdout.toString().trim()).toBe("6");
  });
});
