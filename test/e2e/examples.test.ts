// Every example of the help pages is run against a sandbox: only ids, addresses and secret stores are this machine's.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { startService, type Service } from "../support/service.ts";
import { KeysDesk } from "./keys-desk.ts";

interface Command {
  readonly command: string;
  readonly examples: readonly { readonly line: string }[];
  readonly commands: readonly Command[];
}

/** What is only parsed (test/unit/edge/command-line.test.ts), and why. */
const notRun: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^integ sandbox (start|tour)/, "serves until Ctrl-C or runs for long (sandbox-start.test.ts, tour.test.ts)"],
  [/powershell/, "is for PowerShell"],
  [/^integ (apply|plan|adopt|policy|schema)/, "needs a policy file (policy tests)"],
  [/journal (init|release)|postgresql:/, "needs a database or another process (team tests)"],
  [/--name reporting/, "needs a policy file (policy tests)"],
  [/--from-profile/, "needs a profile with client credentials (oauth-profile.test.ts)"],
  [/--update-profile/, "locks out the profile of the others (keys-rotation.test.ts)"],
  [
    /profiles (add|edit) \S+ .*(https:\/\/api\.|vault read)|profiles edit/,
    "changes addresses (guides.test.ts, profiles.test.ts)",
  ],
];

/** Exit codes that are not 0. */
const codes: readonly (readonly [line: RegExp, code: number])[] = [
  [/(keys|oauth-clients) audit/, 10],
  // The sandbox searches by query alone.
  [/--param email/, 1],
];

let service: Service;
let desk: KeysDesk;
let at: Home;

beforeAll(async () => {
  service = await startService();
  desk = new KeysDesk(service, service.us);
  at = new Home();
  at.addToPath();
  mkdirSync(at.path("bin"), { recursive: true });
  for (const name of ["gh", "vault", "deploy-secret", "pass"]) {
    writeFileSync(at.path("bin", name), "#!/bin/sh\ncat > /dev/null\n");
    chmodSync(at.path("bin", name), 0o755);
  }
  const { us } = service;
  const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
  const legacy = ["--access-token-endpoint", us.access_token_endpoint, "--token-endpoint", us.token_endpoint];
  for (const name of ["prod", "old"]) {
    const words = ["profiles", "add", name, ...address, ...legacy, "--api-key-stdin", "--api-key-id", us.access_key_id];
    expect((await at.integ(words, { input: us.access_key_secret })).code).toBe(0);
  }
  writeFileSync(at.path("keys-waivers.json"), '{"waivers":[]}');
});

afterAll(async () => {
  at.remove();
  await service.stop();
});

async function examples(): Promise<string[]> {
  const { stdout } = await integHere(at, ["commands", "--json"]);
  const below = (commands: readonly Command[]): string[] =>
    commands.flatMap((one) => [...one.examples.map(({ line }) => line), ...below(one.commands)]);
  return below((JSON.parse(stdout) as { commands: Command[] }).commands);
}

async function client(...more: string[]): Promise<{ id: string; client_id: string; code: number | null }> {
  const request = ["--service-account", service.us.service_account_id, "--scope", "entity:read", "--new", "--json"];
  const { stdout, code } = await at.integ(["oauth-clients", "create", ...request, ...more]);
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

async function overlap(): Promise<string> {
  const { id } = await client("--secret-file", "./overlap-1");
  const words = ["oauth-clients", "rotate", id, "--overlap", "36h", "--secret-file", "./overlap-2"];
  expect((await at.integ(words)).code).toBe(0);
  const { stdout } = await at.integ(["journal", "list", "--state", "waiting", "--json"]);
  return (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id;
}

/** The example with what is here. */
async function here(line: string, index: number): Promise<string> {
  let text = line
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
  if (text.includes("per_123")) {
    const { stdout } = await at.integ(["people", "search", "a", "--json"]);
    text = text.replace("per_123", (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id);
  }
  if (text.includes("keys get nightly-sync")) await desk.makeKey({ name: "nightly-sync" });
  if (text.includes("--now")) text = text.replace("6k2f9", await overlap());
  if (text.includes("journal claim")) text = text.replace("6k2f9", await entry("undelivered"));
  if (text.includes("--replace-lost-secret"))
    text = text.replace("6k2f9", await entry("secret_lost", "POST /v1/oauth_clients drop=after times=1"));
  if (text.includes("6k2f9"))
    text = text.replace("6k2f9", await entry("unknown", "POST /v1/oauth_clients drop=before times=1"));
  if (text.includes("cid_1")) {
    const made = await client("--secret-file", "./client.secret");
    text = text.replace("cid_1", made.client_id).replace(/client-\d+\.secret/, "client.secret");
  }
  return text;
}

it("are run, or parsed for a reason", { timeout: 300_000 }, async () => {
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
    const text = await here(line, index);
    const asks =
      /(revoke|forget|remove|rotate|reset|prune) /.test(text) &&
      !/--yes|--by-replacement|oauth-clients rotate/.test(text);
    const { status, stderr } = spawnSync("bash", ["-eo", "pipefail", "-c", asks ? `${text} --yes` : text], {
      cwd: at.folder,
      env: at.env,
      encoding: "utf8",
      timeout: 60_000,
    });
    const code = codes.find(([pattern]) => pattern.test(line))?.[1] ?? 0;
    run += 1;
    if (status !== code) failed.push(`${status} not ${code}: ${text}\n${stderr}`);
  }
  const parsed = [...reasons].map(([reason, count]) => `${count} ${reason}`);
  console.log(`examples of the help pages: ${run} of ${lines.length} run; parsed only: ${parsed.join("; ")}`);
  expect(failed).toEqual([]);
});
