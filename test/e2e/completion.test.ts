// The built program prints the committed scripts, and completes words from local data only, even if the data is damaged.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Home, root } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { isMissing } from "../support/tools.mjs";

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.remove());

describe("integ completion", () => {
  const files = { bash: "integ.bash", zsh: "_integ", fish: "integ.fish", powershell: "integ.ps1" };
  it.each(Object.entries(files))("%s prints completions/%s", async (shell, file) => {
    const { code, stdout, stderr } = await home.integ(["completion", shell]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(readFileSync(join(root, "completions", file), "utf8"));
  });

  it("prints the same in every output format", async () => {
    const { stdout } = await home.integ(["completion", "bash", "-o", "json"], { env: { INTEG_DEBUG: "1" } });
    expect(stdout).toBe(readFileSync(join(root, "completions", "integ.bash"), "utf8"));
  });

  it("refuses an unknown shell", async () => {
    const { code, stdout, stderr } = await home.integ(["completion", "tcsh"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("bash, zsh, fish, powershell");
  });
});

describe("integ __complete", () => {
  const lines: Readonly<Record<string, readonly string[]>> = {
    profiles: ["profiles", "show"],
    entries: ["journal", "show"],
    undelivered: ["journal", "claim"],
    clients: ["oauth-clients", "get"],
    keys: ["keys", "revoke"],
  };
  const kinds = Object.keys(lines);
  const completing = (kind: string): string[] => ["__complete", ...lines[kind]!, ":"];
  const none = "values \n";
  const sandboxes = `${none}sandbox\tus, on this machine\nsandbox-eu\teu, on this machine\n`;

  it.each([
    ["entities list --fields :id,", "id,type id,status id,display_name id,email id,created_at id,updated_at"],
    ["oauth-clients create --scope :", "entity:read organization:read service_account:manage"],
    ["keys create --scope :", "* push-ingest:*"],
    ["oauth-clients create --secret-to :v", "vault: github: k8s: keychain:"],
    ["cohorts members c --fields :", ""],
  ])("completes values that need no account: %s", async (line, expected) => {
    const { stdout } = await integHere(home, ["__complete", ...line.split(" ")]);
    expect(stdout.split("\n").slice(1, -1)).toEqual(expected.split(" ").filter(Boolean));
  });

  it("completes only service accounts that were used, and entries that can be claimed", async () => {
    const create = ["oauth-clients", "create", "-p", "sandbox", "--scope", "entity:read", "--new"];
    const request = [...create, "--service-account", "sa_us_automation"];
    await integHere(home, [...request, "--secret-file", "a"]);
    const kept = await integHere(home, [...request, "--secret-command", "exit 1"]);
    expect(kept.code).toBe(12);
    const names = async (line: string): Promise<string[]> =>
      (await integHere(home, ["__complete", ...line.split(" ")])).stdout.split("\n").slice(1, -1);
    expect(await names("oauth-clients create --service-account :")).toEqual(["sa_us_automation\t"]);
    const all = await names("journal show :");
    expect(all).toHaveLength(2);
    expect(await names("journal claim :")).toEqual(all.filter((line) => line.includes("undelivered")));
  });

  it("is not shown in the help", async () => {
    const { stdout } = await home.integ(["--help"]);
    expect(stdout).toContain("completion");
    expect(stdout).not.toContain("__complete");
  });

  it.each(kinds)("creates no file on a new machine for %s", async (kind) => {
    const { code, stdout, stderr } = await home.integ(completing(kind));
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: kind === "profiles" ? sandboxes : none, stderr: "" });
    expect(readdirSync(home.folder)).toEqual([]);
  });

  it.each(kinds)("is silent for %s if files are damaged", async (kind) => {
    mkdirSync(home.path("config"));
    writeFileSync(home.path("config", "profiles.json"), '{"version":');
    mkdirSync(home.path("state"), { mode: 0o700 });
    mkdirSync(home.path("state", "journal.ndjson"));
    const { code, stdout, stderr } = await home.integ(completing(kind));
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: kind === "profiles" ? sandboxes : none, stderr: "" });
  });

  it.each(kinds)("does not connect to a shared journal for %s", async (kind) => {
    const env = { INTEG_JOURNAL: "postgresql://192.0.2.1/journal" };
    const { code, stderr } = await home.integ(completing(kind), { env, timeoutMs: 5000 });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  it("removes line breaks and terminal controls from values", async () => {
    mkdirSync(home.path("config"));
    const profiles = [{ name: "a\tb\nc", region: "u\x1b[31ms", base_url: "x\u202Ey" }];
    writeFileSync(home.path("config", "profiles.json"), JSON.stringify({ version: 1, profiles }));
    const { stdout } = await home.integ(completing("profiles"));
    expect(stdout.split("\n")[1]).toBe("a b c\tu [31ms, x y");
  });

  const traced = !isMissing("strace");
  it.skipIf(!traced).each(kinds)("opens no connection for %s", async (kind) => {
    const trace = home.path("trace");
    const env = { INTEG_BASE_URL: "https://api.example.com", INTEG_API_KEY: "k", INTEG_REGION: "us" };
    const { code } = await home.integ(completing(kind), {
      under: ["strace", "-f", "-e", "trace=%network", "-o", trace],
      env,
    });
    expect(code).toBe(0);
    const calls = readFileSync(trace, "utf8").match(
      /\b(socket|connect|sendto)\((AF_INET6?|\d+, \{sa_family=AF_INET6?).*/g,
    );
    expect(calls ?? []).toEqual([]);
    rmSync(trace);
  });

  it.skipIf(!traced)("is checked by a trace that shows connections", async () => {
    const trace = home.path("trace");
    await home.integ(["entities", "list", "-p", "sandbox"], {
      under: ["strace", "-f", "-e", "trace=%network", "-o", trace],
    });
    expect(existsSync(trace) && /connect\(\d+, \{sa_family=AF_INET/.test(readFileSync(trace, "utf8"))).toBe(true);
  });
});

describe("integ commands", () => {
  it("prints one command per line", async () => {
    const { code, stdout } = await home.integ(["commands"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^integ oauth-clients create {2,}Create a client/m);
  });

  it("prints everything as JSON for programs", async () => {
    const { code, stdout } = await home.integ(["commands", "--json"]);
    expect(code).toBe(0);
    const document = JSON.parse(stdout);
    const names = "object name version summary global_flags flags commands environment exit_codes";
    expect(Object.keys(document)).toEqual(names.split(" "));
    expect(document.version).toBe(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version);
    expect(document.commands.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["profiles", "doctor", "api"]),
    );
  });

  it("prints one complete command per line as ndjson", async () => {
    const { stdout } = await home.integ(["commands", "--ndjson"]);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const create = rows.find(({ command }) => command === "integ oauth-clients create");
    expect(create.flags.map(({ name }: { name: string }) => name)).toContain("--secret-file");
  });
});
