// Runs the examples of the help pages against a sandbox, with their ids, addresses and secret stores replaced.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { PostgresServer, teamAccess } from "../support/postgres.ts";
import { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords, serviceOfFile } from "../support/service.ts";
import { KeysDesk } from "./keys-desk.ts";
import { isMissing } from "../support/tools.mjs";
import { typed } from "../support/typed-line.ts";

interface Command {
  readonly command: string;
  readonly examples: readonly { readonly line: string }[];
  readonly commands: readonly Command[];
}

/** Examples that are only parsed (test/unit/edge/run.test.ts), with the reason. */
const notRun: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^integ sandbox start/, "serve until Ctrl-C (sandbox-start.test.ts)"],
  [/^integ sandbox tour/, "runs for long (tour.test.ts)"],
  [/powershell/, "is for PowerShell"],
  [/journal release/, "need an entry that another process holds (team.test.ts)"],
  ...(isMissing("PostgreSQL") ? [[/journal init|postgresql:/, "need PostgreSQL"] as const] : []),
];

const codes: readonly (readonly [line: RegExp, code: number])[] = [
  [/keys audit/, 10],
  // Exit 1: the sandbox searches people only by `query`.
  [/--param email/, 1],
  // Exit 10: the plan has changes.
  [/^integ plan.* --exit-code(?!.*;)/, 10],
];

const service = await serviceOfFile();
let desk: KeysDesk;
let account: Account;
let at: Home;
let server: PostgresServer | undefined;
const homes: Home[] = [];

function newHome(): Home {
  const home = new Home();
  homes.push(home);
  home.addToPath();
  mkdirSync(home.path("bin"), { recursive: true });
  const addProgram = (name: string, text: string): void => {
    writeFileSync(home.path("bin", name), `#!/bin/sh\n${text}\n`);
    chmodSync(home.path("bin", name), 0o755);
  };
  for (const name of ["gh", "deploy-secret"]) addProgram(name, "cat > /dev/null");
  for (const name of ["pass", "vault"])
    addProgram(name, `case "$1" in show | read) echo '${service.us.access_key_secret}' ;; *) cat > /dev/null ;; esac`);
  writeFileSync(home.path("keys-waivers.json"), '{"waivers":[]}');
  return home;
}

async function addProfile(
  home: Home,
  name: string,
  key = { id: service.us.access_key_id, secret: service.us.access_key_secret },
) {
  const { us } = service;
  const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
  const legacy = ["--access-token-endpoint", us.access_token_endpoint, "--token-endpoint", us.token_endpoint];
  const words = ["profiles", "add", name, ...address, ...legacy, "--api-key-stdin", "--api-key-id", key.id];
  const { code, stderr } = await integHere(home, words, { input: key.secret });
  expect(code, stderr).toBe(0);
}

beforeAll(async () => {
  desk = new KeysDesk(service, service.us);
  account = new Account(service);
  at = newHome();
  for (const name of ["prod", "old"]) await addProfile(at, name);
});

afterAll(async () => {
  for (const home of homes) home.remove();
  await server?.remove();
});

async function examples(): Promise<string[]> {
  const { stdout } = await integHere(at, ["commands", "--json"]);
  const below = (commands: readonly Command[]): string[] =>
    commands.flatMap((one) => [...one.examples.map(({ line }) => line), ...below(one.commands)]);
  return below((JSON.parse(stdout) as { commands: Command[] }).commands);
}

async function client(...more: string[]): Promise<{ id: string; client_id: string; code: number | null }> {
  const { stdout, stderr, code } = await at.integ(creationWords(service, "--new", "--json", ...more));
  if (code !== 0 && code !== 7 && code !== 12) throw new Error(stderr);
  return {
    ...(code === 0 ? (JSON.parse(stdout) as { id: string; client_id: string }) : { id: "", client_id: "" }),
    code,
  };
}

async function entry(state: string, fault?: string): Promise<string> {
  if (fault !== undefined) await service.fault(fault);
  await client("--retry-for", "0", ...(state === "undelivered" ? ["--secret-command", "exit 1"] : []));
  if (state === "secret_lost") await at.integ(["journal", "recover"]);
  const { stdout } = await at.integ(["journal", "list", "--state", state, "--json"]);
  return (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id;
}

async function ownKeyOf(home: Home): Promise<string> {
  const { stdout } = await home.integ(["profiles", "show", "prod", "--json"]);
  return (JSON.parse(stdout) as { credential: { key_id: string } }).credential.key_id;
}

async function startOverlap(): Promise<string> {
  const { id } = await client("--secret-file", "./overlap-1");
  const words = ["oauth-clients", "rotate", id, "--overlap", "36h", "--secret-file", "./overlap-2"];
  expect((await at.integ(words)).code).toBe(0);
  const { stdout } = await at.integ(["journal", "list", "--state", "waiting", "--json"]);
  return (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id;
}

/** Examples that need their own home, because they change state that others use. */
const ownHomes: readonly (readonly [line: RegExp, arrange: (home: Home) => Promise<void>])[] = [
  [/profiles add/, async () => {}],
  [/profiles edit/, (home) => addProfile(home, "prod")],
  [
    /--update-profile/,
    async (home) =>
      addProfile(home, "prod", await desk.makeKey({ name: "own", scopes: ["*"], keyType: "service_account" })),
  ],
  [
    /--from-profile/,
    async (home) => {
      const { client_id } = await client("--secret-file", "./app.secret", "--force");
      const { us } = service;
      const where = ["--region", "us", "--base-url", us.base_url, "--token-endpoint", us.token_endpoint];
      const words = ["profiles", "add", "app", ...where];
      const secret = readFileSync(at.path("app.secret"), "utf8");
      const added = await integHere(home, [...words, "--client-id", client_id, "--client-secret-stdin"], {
        input: secret,
      });
      expect(added.code, added.stderr).toBe(0);
    },
  ],
  [
    /journal init|postgresql:/,
    async (home) => {
      server ??= await PostgresServer.start();
      Object.assign(home.env, teamAccess);
      await addProfile(home, "prod");
      if (!(await integHere(home, ["journal", "init"], { env: { INTEG_JOURNAL: server.address() } })).code) return;
      throw new Error("no journal was created");
    },
  ],
  [/^integ (policy init|journal move)/, (home) => addProfile(home, "prod")],
  [/^integ (plan|apply|adopt|policy check)|--name reporting/, arrangePolicy],
];

async function arrangePolicy(home: Home): Promise<void> {
  await addProfile(home, "prod");
  const account = service.us.service_account_id;
  const text = `version: 1
id: pol_of_this_test
oauth_clients:
  reporting: { service_account: ${account}, scopes: [entity:read], rotate: { every: 60d }, secret: { file: r.secret } }
`;
  for (const name of ["integ.yaml", "prod.yaml"]) writeFileSync(home.path(name), text);
}

async function runEarlierCommands(home: Home, line: string): Promise<void> {
  const run = async (...words: string[]): Promise<void> => {
    const { code, stderr } = await home.integ(words);
    expect([0, 10], stderr).toContain(code);
  };
  if (/apply plan\.json/.test(line) && !line.includes(";")) await run("plan", "--out", "plan.json");
  if (/--name reporting --secret-file|--finish/.test(line)) await run("apply", "--yes");
  if (line.includes("--finish"))
    await run("oauth-clients", "rotate", "--name", "reporting", "--overlap", "36h", "--secret-file", "next.secret");
  if (line.includes("access-key deploy")) await desk.makeKey({ name: "deploy" });
}

async function prepare(line: string, index: number): Promise<string> {
  let text = line
    .replace("https://api.eu.example.com", service.eu.base_url)
    .replace("https://api.us.example.com", service.us.base_url)
    .replace("6f1c…", service.us.organization_id)
    .replace("db.example.com", `127.0.0.1:${server?.port}`)
    .replaceAll("sa_1", service.us.service_account_id)
    .replaceAll("coh_1", service.us.cohort_ids[0]!)
    .replace("./client.secret", `./client-${index}.secret`)
    .replace("./key.secret", `./key-${index}.secret`);
  for (const name of ["oc_123", "oc_124", "oc_1"])
    if (text.includes(name)) text = text.replace(name, (await client("--secret-file", `./${name}-${index}`)).id);
  for (const name of ["ak_123", "ak_124"])
    if (text.includes(name))
      text = text.replace(
        name,
        (await desk.makeKey({ name: `${name}-${index}`, expiresAt: "2030-01-01T00:00:00.000Z" })).id,
      );
  text = text.replace("profiles add", "profiles add --no-verify");
  // Prompts need a terminal, so test/terminal tests them. Here the key comes from a pipe.
  if (/profiles add --no-verify prod/.test(text)) text = `pass show integ | ${text} --api-key-stdin`;
  if (text.includes("per_123")) {
    const { stdout } = await at.integ(["people", "search", "a", "--json"]);
    text = text.replace("per_123", (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id);
  }
  if (text.includes("import journal.ndjson")) await at.integ(["journal", "export", "--out", "journal.ndjson"]);
  if (text.includes("keys get nightly-sync")) await desk.makeKey({ name: "nightly-sync" });
  if (text.includes("--now")) text = text.replace("6k2f9", await startOverlap());
  if (text.includes("journal claim")) text = text.replace("6k2f9", await entry("undelivered"));
  if (text.includes("--replace-lost-secret"))
    text = text.replace("6k2f9", await entry("secret_lost", "POST /v1/oauth_clients drop=after times=1"));
  if (text.includes("6k2f9"))
    text = text.replace("6k2f9", await entry("unknown", "POST /v1/oauth_clients drop=before times=1"));
  if (text.includes("cid_1")) {
    const created = await client("--secret-file", "./client.secret");
    text = text.replace("cid_1", created.client_id).replace(/client-\d+\.secret/, "client.secret");
  }
  return text;
}

it("each example runs, or is only parsed for a reason", { timeout: 300_000 }, async () => {
  const failed: string[] = [];
  const reasons = new Map<string, number>();
  const lines = await examples();
  let run = 0;
  for (const [index, line] of lines.entries()) {
    const reason = notRun.find(([pattern]) => pattern.test(line))?.[1];
    if (reason !== undefined) {
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      continue;
    }
    const before = new Set((await account.live()).map(({ id }) => id));
    const arrange = ownHomes.find(([pattern]) => pattern.test(line))?.[1];
    const home = arrange === undefined ? at : newHome();
    await arrange?.(home);
    if (arrange === arrangePolicy) await runEarlierCommands(home, line);
    const isOwn = line.includes("--update-profile");
    const text = isOwn ? line.replace("ak_123", await ownKeyOf(home)) : await prepare(line, index);
    const asks =
      /(revoke|forget|remove|rotate|reset|prune|apply|adopt|trust|--fix)( |$)/.test(text) &&
      !/--yes|--by-replacement|oauth-clients rotate/.test(text);
    const env = line.startsWith("integ journal init") ? { ...home.env, INTEG_JOURNAL: server!.address() } : home.env;
    const { status, stderr } = await typed(home, asks ? `${text} --yes` : text, env);
    // Frees the slots that the example used.
    if (arrange !== undefined)
      for (const { id } of await account.live())
        if (!before.has(id))
          await service.control("POST", `/oauth_clients/${id}`, { status: "revoked", cleanup: "confirmed" });
    const code = codes.find(([pattern]) => pattern.test(line))?.[1] ?? 0;
    run += 1;
    if (status !== code) failed.push(`${status} not ${code}: ${text}\n${stderr}`);
  }
  const parsed = [...reasons].map(([reason, count]) => `${count} ${reason}`);
  console.log(`examples of the help pages: ${run} of ${lines.length} run; parsed only: ${parsed.join("; ")}`);
  expect(failed).toEqual([]);
});
