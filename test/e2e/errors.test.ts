import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { expectScreens, goldenScreens } from "../support/golden-screens.ts";
import { binary } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, homeOfFile, serviceOfFile } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

const service = await serviceOfFile();
const at = homeOfFile(service.env);

beforeAll(async () => {
  writeFileSync(at.path("taken"), "mine");
  mkdirSync(at.path("folder"));
  const { base_url, organization_id } = service.us;
  const address = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id];
  for (const [name, ...commands] of [
    ["vault", "--api-key-command", "exit 4"],
    ["vault-legacy", "--api-key-command", "echo k", "--access-token-command", "cat >/dev/null; exit 5"],
  ] as const)
    await at.integ(["profiles", "add", name, "--no-verify", ...address, ...commands], {
      env: { INTEG_CONFIG_DIR: at.path("vaults") },
    });
});

interface Case {
  readonly what: string;
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly fault?: string;
  readonly under?: readonly string[];
}

const addWords = ["profiles", "add", "p", "--region", "us", "--base-url", "https://a.example"];

function errorCases(): readonly Case[] {
  const { service_account_id: sa, poor_service_account_id: poor } = service.us;
  const create = creationWords(service);
  const tooMuch = ["--scope", "service_account:manage", "--secret-file", "x1"];
  const nothing = { INTEG_REGION: "", INTEG_BASE_URL: "", INTEG_API_KEY: "", INTEG_ORGANIZATION_ID: "" };
  const legacy = { INTEG_ACCESS_TOKEN: service.us.access_token };
  return [
    { what: "a mistyped noun", words: ["entites", "list"] },
    { what: "a mistyped verb", words: ["entities", "lst"] },
    { what: "a mistyped flag", words: ["entities", "list", "--limt", "5"] },
    { what: "a missing argument", words: ["cohorts", "members"] },
    { what: "a word too many", words: ["journal", "path", "here"] },
    { what: "an invalid output format", words: ["entities", "list", "-o", "yml"] },
    { what: "two output formats", words: ["entities", "list", "-o", "table", "--ndjson"] },
    { what: "an invalid duration", words: ["entities", "list", "--timeout", "soon"] },
    { what: "an invalid contract version", words: ["entities", "list", "--service-version", "latest"] },
    {
      what: "a contract version that is not supported",
      words: ["entities", "list", "--service-version", "2020-01-01"],
    },
    { what: "a limit of 0", words: ["entities", "list", "--limit", "0"] },
    { what: "a page token of another list", words: ["entities", "list", "--page-token", "made-up"] },
    { what: "a filter the service does not have", words: ["entities", "list", "--filter", "colour=red"] },
    { what: "--out over a file", words: ["entities", "list", "--out", "taken", "-o", "ndjson"] },
    { what: "--out of a table", words: ["entities", "list", "--out", "entities.txt"] },
    { what: "--out of a dash", words: ["journal", "export", "--out", "-"] },
    { what: "nothing configured", words: ["entities", "list"], env: nothing },
    { what: "an unknown profile", words: ["entities", "list", "-p", "prdo"] },
    { what: "a credential without an address", words: ["entities", "list"], env: { ...nothing, INTEG_API_KEY: "k" } },
    { what: "an address without a credential", words: ["entities", "list"], env: { INTEG_API_KEY: "" } },
    {
      what: "plain http to another machine",
      words: ["entities", "list"],
      env: { INTEG_BASE_URL: "http://api.example" },
    },
    { what: "a wrong key", words: ["entities", "list"], env: { INTEG_API_KEY: "wrong" } },
    { what: "an expired key", words: ["entities", "list"], env: { INTEG_API_KEY: service.us.expired_api_key } },
    { what: "a key that may only read", words: create, env: { INTEG_API_KEY: service.us.scoped_api_key } },
    {
      what: "no such host",
      words: ["entities", "list", "--retry-for", "0"],
      env: { INTEG_BASE_URL: "https://integ.invalid" },
    },
    {
      what: "a refused connection",
      words: ["entities", "list", "--retry-for", "0"],
      env: { INTEG_BASE_URL: "http://127.0.0.1:9" },
    },
    {
      what: "an answer that is HTML",
      words: ["entities", "list", "--retry-for", "0"],
      fault: "GET /v1/entities body=html",
    },
    { what: "a redirect", words: ["entities", "list"], fault: "GET /v1/entities redirect=https://evil.example/" },
    {
      what: "a server that fails",
      words: ["entities", "list", "--retry-for", "0"],
      fault: "GET /v1/entities status=500",
    },
    {
      what: "too many requests",
      words: ["entities", "list", "--retry-for", "0"],
      fault: "GET /v1/entities status=429 retry-after=60",
    },
    { what: "no scope", words: ["oauth-clients", "create", "--service-account", sa] },
    { what: "a wildcard scope", words: [...create, "--scope", "entity:*"] },
    { what: "a key with a space", words: [...create, "--idempotency-key", "a b"] },
    { what: "a secret over a file", words: [...create, "--secret-file", "taken"] },
    { what: "a secret into a missing folder", words: [...create, "--secret-file", "nowhere/secret"] },
    { what: "a secret to one destination twice", words: [...create, "--secret-file", "a", "--secret-file", "./a"] },
    { what: "a secret to an unknown profile", words: [...create, "--secret-profile", "nobody"] },
    {
      what: "a service account that holds too little",
      words: ["oauth-clients", "create", "--service-account", poor, ...tooMuch],
    },
    {
      what: "an unknown service account",
      words: "oauth-clients create --service-account sa_nobody --scope entity:read --secret-file x2".split(" "),
    },
    {
      what: "a lost connection",
      words: [...create, "--secret-file", "x3", "--retry-for", "0"],
      fault: "POST /v1/oauth_clients drop=before",
    },
    {
      what: "a creation at an unreachable service",
      words: [...create, "--new", "--secret-file", "x4", "--retry-for", "0"],
      env: { INTEG_BASE_URL: "http://127.0.0.1:9" },
    },
    { what: "a secret that cannot be delivered", words: [...create, "--new", "--secret-command", "exit 3"] },
    { what: "an unknown client", words: ["oauth-clients", "get", "oac_nobody"] },
    { what: "a revocation that is not confirmed", words: ["oauth-clients", "revoke", "oac_nobody"] },
    { what: "an unknown journal entry", words: ["journal", "show", "zzzzz"] },
    { what: "a prune without an age", words: ["journal", "prune"] },
    {
      what: "a region that does not exist",
      words: ["profiles", "add", "p", "--region", "moon", "--base-url", "https://a.example", "--api-key-stdin"],
    },
    {
      what: "an invalid base URL",
      words: ["profiles", "add", "p", "--region", "us", "--base-url", "api", "--api-key-stdin"],
    },
    {
      what: "a profile without a key, without a terminal",
      words: ["profiles", "add", "p", "--region", "us", "--base-url", "https://a.example"],
    },
    {
      what: "a profile named like a built-in one",
      words: ["profiles", "add", "sandbox", "--region", "us", "--base-url", "https://a.example", "--api-key-stdin"],
    },
    { what: "keys without an organization", words: ["keys", "list"], env: { ...legacy, INTEG_ORGANIZATION_ID: "" } },
    { what: "keys without a bearer token", words: ["keys", "list"] },
    { what: "a key name that is empty", words: ["keys", "create", "--name", ""], env: legacy },
    {
      what: "an expiry in the past",
      words: ["keys", "create", "--name", "n", "--expires-at", "2001-01-01T00:00:00Z"],
      env: legacy,
    },
    { what: "an invalid key scope", words: ["keys", "create", "--name", "n", "--scope", "all"], env: legacy },
    { what: "a path beyond the API", words: ["api", "https://evil.example/v1"] },
    {
      what: "a creation without its key",
      words: ["api", "/v1/oauth_clients", "-X", "POST", "-f", "service_account_id=x"],
    },
    { what: "an invalid fault", words: ["sandbox", "start", "--fault", "POST /v1/entities explode=now"] },
    { what: "an unknown shell", words: ["completion", "tcsh"] },
  ];
}

function fullDisk(calls: string, path?: string): readonly string[] {
  const strace = `strace -f -qq -o /dev/null -e trace=${calls} -e inject=${calls}:error=ENOSPC`.split(" ");
  return path === undefined ? strace : [...strace, "-P", at.path(path)];
}

/** Cases that need strace. Without strace, their parts of the golden file stay unchanged. */
function fullDiskCases(): readonly Case[] {
  const journal = "a-journal.ndjson";
  writeFileSync(at.path(journal), "");
  const create = creationWords(service, "--new");
  const env = { INTEG_JOURNAL: at.path(journal) };
  return [
    {
      what: "a full disk under the journal",
      words: [...create, "--secret-file", "x5"],
      env,
      under: fullDisk("write,pwrite64", journal),
    },
    {
      what: "a shell that is killed while it looks for a command's program",
      words: [...create, "--secret-command", "cat"],
      under: "strace -f -qq -o /dev/null -e trace=dup2 -e inject=dup2:signal=KILL:when=1".split(" "),
    },
    {
      what: "a full disk under --out",
      words: ["entities", "list", "--all", "--out", "rows.json"],
      under: fullDisk("write,pwrite64", "rows.json"),
    },
    {
      what: "a full disk under the profiles",
      words: [...addWords, "--api-key-command", "echo k"],
      under: fullDisk("mkdir,mkdirat"),
    },
  ];
}

function moreCases(): readonly Case[] {
  const legacy = { INTEG_ACCESS_TOKEN: service.us.access_token };
  const vaults = { INTEG_CONFIG_DIR: at.path("vaults") };
  const proxied = { INTEG_BASE_URL: "https://api.example.com", HTTPS_PROXY: "http://127.0.0.1:9" };
  const full = existsSync("/dev/full") ? ["sh", "-c", 'exec "$@" >/dev/full', "sh"] : undefined;
  const onFullDisk: Case = { what: "a full disk under the list", words: ["entities", "list", "--json"], under: full };
  return [
    ...(full ? [onFullDisk] : []),
    { what: "an unreachable proxy", words: ["entities", "list", "--retry-for", "0"], env: proxied },
    { what: "a flag without its value", words: ["entities", "list", "--limit"] },
    { what: "an unknown cohort", words: ["cohorts", "members", "coh_nobody"] },
    { what: "a rotation of an unknown client", words: ["oauth-clients", "rotate", "oac_nobody"] },
    { what: "a token without a client", words: ["oauth-clients", "token"] },
    { what: "a token from a profile with an API key", words: ["oauth-clients", "token", "--from-profile"] },
    {
      what: "a token of a client, and no token endpoint",
      words: ["oauth-clients", "token", "--client-id", "cid_1", "--client-secret-stdin"],
    },
    { what: "a list into a missing folder", words: ["entities", "list", "--out", "nowhere/rows.json"] },
    { what: "a value after a flag that takes none", words: ["entities", "list", "--all=yes"] },
    { what: "a flag and nothing else", words: ["-v"] },
    { what: "an unknown key", words: ["keys", "revoke", "ak_nobody", "--yes"], env: legacy },
    { what: "a rotation of an unknown key", words: ["keys", "rotate", "ak_nobody", "--yes"], env: legacy },
    { what: "an invalid age", words: ["keys", "audit", "--max-age", "old"], env: legacy },
    { what: "a search for nothing", words: ["people", "search"], env: legacy },
    { what: "an unknown person", words: ["people", "membership", "per_nobody"], env: legacy },
    { what: "a recovery of an unknown entry", words: ["journal", "recover", "zzzzz"] },
    { what: "a claim of an unknown entry", words: ["journal", "claim", "zzzzz"] },
    { what: "an unknown entry, forgotten", words: ["journal", "forget", "zzzzz", "--yes"] },
    { what: "an unknown default profile", words: ["profiles", "use", "prdo"] },
    { what: "an edit of an unknown profile", words: ["profiles", "edit", "prdo", "--region", "eu"] },
    { what: "a removal of an unknown profile", words: ["profiles", "remove", "prdo", "--yes"] },
    { what: "an unknown endpoint", words: ["api", "/v1/nothing"] },
    { what: "a contract that was never published", words: ["spec", "show", "--contract-version", "1999-01-01"] },
    { what: "help for an unknown command", words: ["help", "entites"] },
    {
      what: "a secret as a flag's value",
      words: ["profiles", "add", "p", "--region", "us", "--base-url", "https://a.example", "--api-key", "canary"],
    },
    {
      what: "a base URL with the contract's prefix",
      words: ["profiles", "add", "p", "--region", "us", "--base-url", "https://a.example/v1/", "--api-key-stdin"],
    },
    { what: "a key command that fails", words: ["entities", "list", "-p", "vault"], env: vaults },
    { what: "a token command that fails", words: ["keys", "list", "-p", "vault-legacy"], env: vaults },
    { what: "a profile that is nearly right", words: ["entities", "list", "-p", "valut"], env: vaults },
    { what: "an unknown profile, shown", words: ["profiles", "show", "valut"], env: vaults },
    { what: "a list of clients with a wrong key", words: ["oauth-clients", "list"], env: { INTEG_API_KEY: "wrong" } },
    { what: "a page token for the raw command", words: ["api", "/v1/entities", "-f", "page_token=made-up"] },
    {
      what: "a contract check of an unreachable service",
      words: ["spec", "check", "--retry-for", "0"],
      env: { INTEG_BASE_URL: "http://127.0.0.1:9" },
    },
    { what: "a journal that is a folder", words: ["journal", "verify"], env: { INTEG_JOURNAL: at.path("folder") } },
    { what: "a state folder that is a file", words: ["sandbox", "status"], env: { INTEG_STATE_DIR: at.path("taken") } },
    { what: "a reset that is not confirmed", words: ["sandbox", "reset"] },
    { what: "a missing file", words: ["api", "/v1/entities", "-X", "POST", "--input", "nothing.json"] },
    { what: "a missing waiver file", words: ["keys", "audit", "--waivers", "nothing.json"], env: legacy },
  ];
}

/** Errors that differ with another binary, which creates a lock file first because it has no kernel lock. */
const lockErrors: ReadonlySet<string> = new Set(["a state folder that is a file"]);

function goldenPart(what: string): string {
  const part = goldenScreens()
    .split(/^(?=# )/m)
    .find((one) => one.startsWith(`# ${what}\n`));
  return `${part?.trimEnd() ?? ""}\n`;
}

function normalized(text: string): string {
  return text
    .replaceAll(at.folder, "HOME")
    .replaceAll(service.us.base_url, "https://us.example")
    .replace(/req_us_[0-9a-f]+/g, "req_1")
    .replace(/\b[1-9][0-9a-hjkmnp-tv-z]{9}\b/g, "1r23456789")
    .replace(/oac_us_[0-9a-f]+/g, "oac_us_1")
    .replace(/127\.0\.0\.1:\d{4,5}/g, "127.0.0.1:PORT")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UUID");
}

it("an error names the fault, its place and the correction", async () => {
  const sections: string[] = [];
  const steps: Step[] = [];
  for (const { what, words, env, fault, under } of [...errorCases(), ...moreCases(), ...fullDiskCases()]) {
    if ((under?.[0] === "strace" && isMissing("strace")) || (binary !== undefined && lockErrors.has(what))) {
      sections.push(goldenPart(what));
      continue;
    }
    if (fault) await service.fault(fault);
    const { code, stdout, stderr } = under
      ? await at.integ(words, { env, under, input: "some-key\n" })
      : await integHere(at, words, { env, input: "some-key\n" });
    if (fault) await service.calm();
    expect(code, what).not.toBe(0);
    expect(stdout, what).toBe("");
    expect(stderr, what).toMatch(/^Error: |"error":/m);
    expect(stderr, what).not.toMatch(/^ +at .+:\d+:\d+\b|undefined|\[object/m);
    sections.push(`# ${what}\n$ integ ${words.join(" ")}\n${normalized(stderr).trimEnd()}\n`);
    steps.push(stepIn({ what, env, stderr }));
  }
  await expectScreens("errors", sections.join("\n"));
  await typeEach(steps);
}, 120_000);

interface Step extends Pick<Case, "what" | "env"> {
  readonly message: string;
  readonly command: string | undefined;
  readonly sentence: string | undefined;
}

function stepIn({ what, env, stderr }: Pick<Case, "what" | "env"> & { readonly stderr: string }): Step {
  const [, message = "", command, sentence] = stderr.includes('{"error":')
    ? fromJson(stderr)
    : [
        "",
        /^Error: (.*)$/m.exec(stderr)?.[1],
        /^ {2}Next: (.*)$/m.exec(stderr)?.[1],
        /^ {2}Fix: (.*)$/m.exec(stderr)?.[1],
      ];
  return { what, env, message, command, sentence };
}

function fromJson(stderr: string): [string, string, string | undefined, string | undefined] {
  const { error } = JSON.parse(stderr.trimEnd().split("\n").at(-1)!) as { error: Record<string, string> };
  return ["", error.message!, error.next_command, error.hint];
}

function shellWords(command: string): string[] {
  const { stdout, status } = spawnSync("sh", ["-c", `integ() { printf '%s\\0' "$@"; }; ${command}`]);
  expect(status, command).toBe(0);
  return stdout.toString("utf8").split("\0").slice(0, -1);
}

/** Runs the command of each next step: it must exist, its options must parse, and the same error must not occur again. */
async function typeEach(steps: readonly Step[]): Promise<void> {
  let typed = 0;
  for (const { what, env, message, command, sentence } of steps) {
    if (sentence !== undefined) {
      expect(sentence, what).toMatch(/^[A-Z][a-z]+ .*\.$/);
      // A command in a sentence must be ready to paste.
      expect(sentence, what).not.toMatch(/\b(?:integ|kubectl|gh|vault) [^.;]*<[\w-]+>/);
    }
    if (command === undefined) continue;
    typed += 1;
    if (!command.startsWith("integ ")) {
      expect(spawnSync("sh", ["-c", command], { cwd: at.folder }).status, `${what}: ${command}`).toBe(0);
      continue;
    }
    const { code, stderr } = await integHere(at, shellWords(command), { env, input: "some-key\n" });
    expect(stderr, `${what}: ${command}`).not.toMatch(/^Error: (?:Unknown|Missing|Too many|Option|Required|Invalid)/m);
    if (code !== 0) expect(stepIn({ what, env, stderr }).message, `${what}: ${command}`).not.toBe(message);
  }
  const without = steps.filter((step) => step.command === undefined && step.sentence === undefined);
  expect(without.map(({ what }) => what)).toEqual([]);
  const sentences = steps.filter(({ sentence }) => sentence !== undefined).length;
  console.info(
    `next steps: ${steps.length} errors, each with one; ${typed} commands typed; ${sentences} sentences, 0 with a placeholder in a command`,
  );
}

function lastError(stderr: string): { exit_code: number } {
  expect(stderr.endsWith("\n")).toBe(true);
  return (JSON.parse(stderr.trimEnd().split("\n").at(-1)!) as { error: { exit_code: number } }).error;
}

it("a JSON error is alone on the last line, also without a command and after a command's own output", async () => {
  const { stdout } = await integHere(at, ["commands", "--json"]);
  const { commands } = JSON.parse(stdout) as { commands: { name: string; commands: unknown[] }[] };
  const nouns = new Set(commands.filter((one) => one.commands.length > 0).map(({ name }) => name));
  expect(nouns.size).toBeGreaterThan(8);
  for (const words of [[], ...[...nouns].map((noun) => [noun])]) {
    const { code, stderr } = await integHere(at, [...words, "--json"]);
    expect([code, lastError(stderr).exit_code], words.join(" ")).toEqual([2, 2]);
  }
  const noisy = creationWords(service, "--secret-command", "printf 'no newline' >&2; exit 1", "--json");
  const { code, stderr } = await integHere(at, noisy, { env: service.env });
  expect([code, lastError(stderr).exit_code, stderr]).toEqual([12, 12, expect.stringContaining("no newline")]);
});
