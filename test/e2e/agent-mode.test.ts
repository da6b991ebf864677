// A coding agent stores all output, so integ prints no secret in agent mode.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { agentVariables } from "../../src/profiles/agent-mode.ts";
import { Account, type ReceivedRequest } from "../support/account.ts";
import { Canaries } from "../support/canaries.ts";
import { type Ended, ended, Home } from "../support/program.ts";
import { creationWords, homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
function home(env: Readonly<Record<string, string>> = {}): Home {
  const { token_endpoint, access_token } = service.us;
  return homeOfTest({
    ...service.env,
    INTEG_TOKEN_ENDPOINT: token_endpoint,
    INTEG_ACCESS_TOKEN: access_token,
    INTEG_AGENT: "1",
    ...env,
  });
}

const client = (...more: string[]): string[] => creationWords(service, ...more);

interface JsonError {
  readonly error: {
    readonly kind: string;
    readonly message: string;
    readonly hint?: string;
    readonly next_command?: string;
  };
}

const errorOf = ({ stderr }: Ended): JsonError["error"] =>
  (JSON.parse(stderr.trim().split("\n").at(-1) ?? "") as JsonError).error;

describe("agent mode", () => {
  it.each(["INTEG_AGENT", ...agentVariables])("is on with %s: output and errors are JSON", async (variable) => {
    const at = home({ INTEG_AGENT: "", [variable]: "1" });
    const listed = await at.integ(["entities", "list", "--max", "1"]);
    expect(JSON.parse(listed.stdout)).toMatchObject({ object: "list" });
    const refused = await at.integ(client());
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(errorOf(refused).message).toContain(variable);
  });

  it("is off with INTEG_AGENT=0, even if other variables are set", async () => {
    const at = home({ INTEG_AGENT: "0", CLAUDECODE: "1" });
    expect((await at.integ(["entities", "list", "--max", "1"])).stdout).toMatch(/^ID /);
  });

  it("keeps an explicitly requested format", async () => {
    expect((await home().integ(["entities", "list", "--max", "1", "-o", "table"])).stdout).toMatch(/^ID /);
    expect((await home({ INTEG_OUTPUT: "csv" }).integ(["entities", "list", "--max", "1"])).stdout).toMatch(/^id,/);
  });

  it("is not consent: a question that needs --yes still needs it", async () => {
    const at = home();
    const existing = await at.integ(client("--secret-file", "a.secret"));
    const { id } = JSON.parse(existing.stdout) as { id: string };
    const withoutYes = await at.integ(["oauth-clients", "revoke", id]);
    expect([withoutYes.code, withoutYes.stdout]).toEqual([2, ""]);
    const { next_command, hint } = errorOf(withoutYes);
    expect([next_command, hint]).toEqual([undefined, "Ask a person, and add --yes only if they agree to this change."]);
    const asPerson = await at.integ(["oauth-clients", "revoke", id, "--json"], { env: { INTEG_AGENT: "0" } });
    expect(errorOf(asPerson).next_command).toBe(`integ oauth-clients revoke ${id} --json --yes`);
    expect((await at.integ(["oauth-clients", "revoke", id, "--yes"])).code).toBe(0);
  });

  it("refuses a creation whose secret would be printed, and suggests destinations", async () => {
    const at = home();
    const commands = [
      client(),
      ["keys", "create", "--name", "agent"],
      ["keys", "rotate", "ak_us_ending", "--by-replacement", "--yes"],
      ["keys", "rotate", "ak_us_ending", "--yes"],
    ];
    const changes = async (): Promise<ReceivedRequest[]> =>
      (await new Account(service).requests()).filter(({ method }) => method !== "GET");
    const before = await changes();
    for (const words of commands) {
      const ended = await at.integ(words);
      expect([ended.code, ended.stdout], words.join(" ")).toEqual([2, ""]);
      for (const flag of ["--secret-file", "--secret-command", "--secret-profile", "--secret-to"])
        expect(errorOf(ended).hint, words.join(" ")).toContain(flag);
    }
    const api = ["api", "/v1/oauth_clients", "-X", "POST", "-H", "Idempotency-Key: agent", "-f", "a=b"];
    const keysApi = ["api", "/api/v1/access-keys", "-X", "POST", "-f", "name=a"];
    for (const [words, ...hints] of [
      [api, "integ oauth-clients create", "--secret-file", "--secret-to"],
      [keysApi, "integ keys create", "--secret-file", "--secret-to"],
      [["api", "/v1/other", "-X", "POST"], "Ask a person"],
      [["api", "/v1/oauth_clients/oac_1", "-X", "DELETE", "--yes"], "Ask a person"],
      [["journal", "init"], "Ask a person to run this command: it has no destination"],
      [["oauth-clients", "token", "--client-id", "cid_1", "--client-secret-stdin"], "it has no destination"],
    ] as const) {
      const ended = await at.integ(words, { input: "a secret of some client" });
      expect([ended.code, ended.stdout], words.join(" ")).toEqual([2, ""]);
      for (const hint of hints) expect(errorOf(ended).hint, words.join(" ")).toContain(hint);
    }
    expect(await changes()).toEqual(before);
    expect(JSON.parse((await at.integ(["journal", "list", "--all"])).stdout)).toMatchObject({ data: [] });
  });

  it("recovers a change that a person started at a terminal, without printing its secret", async () => {
    const at = home();
    await service.fault("POST /v1/oauth_clients drop=after times=1");
    const lost = await at.integ(client(), { env: { INTEG_AGENT: "0" } });
    await service.calm();
    expect(lost.code, lost.stderr).toBe(9);
    const recovered = await at.integ(["journal", "recover", "--replace-lost-secret"]);
    expect(recovered.code, recovered.stdout + recovered.stderr).not.toBe(0);
    expect(recovered.stdout).not.toMatch(/client_secret":"[^"]/);
    const later = await at.integ(["journal", "recover", "--replace-lost-secret", "--secret-file", "late.secret"]);
    expect(later.code, later.stderr).toBe(0);
    expect(readFileSync(at.path("late.secret"), "utf8")).not.toBe("");
  });

  it("shows nothing that a delivery command or its check prints, not even if it fails", async () => {
    const at = home();
    const take = "tee -a kept; echo >> kept";
    const commands = [
      client("--secret-command", take),
      client("--new", "--secret-command", `(${take}) >&2`),
      client(
        "--new",
        "--secret-command",
        `tee checked | ${take}`,
        "--secret-check-command",
        "cat checked >&2; cat checked",
      ),
      client("--new", "--secret-command", `${take}; tail -n1 kept | rev; exit 1`),
    ];
    const ends: Ended[] = [];
    for (const words of commands) ends.push(await at.integ(words));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 12]);
    const { data } = JSON.parse((await at.integ(["journal", "list"])).stdout) as { data: { id: string }[] };
    for (const { id } of data) ends.push(await at.integ(["journal", "claim", id, "--secret-command", take]));
    const canaries = new Canaries();
    const secrets = readFileSync(at.path("kept"), "utf8").match(/.+/g) ?? [];
    for (const secret of [...secrets, ...secrets.map((one) => [...one].reverse().join(""))])
      canaries.add("kept", secret);
    expect(canaries.secrets).toBeGreaterThanOrEqual(8);
    const outputs = ends.map(({ stdout, stderr }) => stdout + stderr);
    expect(outputs.flatMap((output) => canaries.search("output", output))).toEqual([]);
    expect(outputs.map((output) => output.includes("output is not shown"))).toEqual([false, false, false, true, false]);
  });

  it("prints no secret that its commands create", async () => {
    const at = home();
    const canaries = new Canaries();
    for (const [name, value] of Object.entries(service.us))
      if (/api_key$|access_key_secret|access_token$/.test(name)) canaries.add(name, value as string);
    const created = await at.integ(client("--secret-file", "client.secret"));
    const { id } = JSON.parse(created.stdout) as { id: string };
    const commands = [
      ["oauth-clients", "rotate", id, "--secret-file", "next.secret"],
      ["keys", "create", "--name", "agent", "--secret-file", "key.secret"],
      ["keys", "rotate", "ak_us_ending", "--by-replacement", "--secret-file", "rotated.secret", "--yes"],
      ["api", "/api/v1/access-keys", "--debug"],
      ["profiles", "list"],
      ["profiles", "show", "sandbox"],
      ["journal", "list", "--all"],
      ["journal", "export"],
      ["doctor"],
      ["keys", "audit"],
      ["status"],
    ];
    const ends = [created];
    for (const words of commands) ends.push(await at.integ(words));
    // The credentials of a local sandbox are not secrets, because they open no account. These commands print no others.
    const sandbox = at.start(["sandbox", "start"]);
    sandbox.stdout!.once("data", () => sandbox.kill("SIGINT"));
    const ofSandbox = [await ended(sandbox), await at.integ(["sandbox", "status"])];
    const made = new Canaries();
    for (const file of readdirSync(at.folder).filter((name) => name.endsWith(".secret")))
      for (const some of [canaries, made]) some.add(file, readFileSync(at.path(file), "utf8").trim());
    for (const { stdout, stderr } of ofSandbox) {
      expect(JSON.parse(stdout)).toMatchObject({ object: "sandbox", us: { api_key: expect.stringContaining("sbx_") } });
      expect(made.search("output", stdout + stderr)).toEqual([]);
    }
    expect(canaries.secrets).toBeGreaterThan(10);
    const seen = ends.flatMap(({ stdout, stderr }) => [
      ...canaries.search("stdout", stdout),
      ...canaries.search("stderr", stderr),
    ]);
    expect(seen).toEqual([]);
  });
});
