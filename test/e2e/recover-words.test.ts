// Tries each variable and flag alone in a recovery, as `integ commands` lists them.
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Account, type ListedClient } from "../support/account.ts";
import { Home, stayInThisProcess } from "../support/program.ts";
import { type Moment, RewindableService } from "../support/rewindable-service.ts";

interface Flag {
  readonly name: string;
  readonly value: { readonly name: string; readonly choices: readonly string[] | null } | null;
}
interface Command {
  readonly command: string;
  readonly flags: readonly Flag[];
  readonly commands: readonly Command[];
}
interface Described extends Command {
  readonly environment: readonly { readonly name: string }[];
  readonly global_flags: readonly Flag[];
}

/** Values by variable, flag or placeholder. By default, a flag's value is its last choice or `1`, and a variable's is `1`. */
const values: Readonly<Record<string, string>> = {
  INTEG_PROFILE: "other",
  INTEG_SERVICE_VERSION: "2020-01-01",
  INTEG_OUTPUT: "csv",
  INTEG_TIMEOUT: "29s",
  INTEG_RETRY_FOR: "2s",
  INTEG_REGION: "eu",
  INTEG_TOKEN_ENDPOINT: "http://127.0.0.1:9/token",
  INTEG_ORGANIZATION_ID: "00000000-0000-4000-8000-000000000000",
  HTTPS_PROXY: "http://127.0.0.1:9",
  TERM: "dumb",
  "--profile": "other",
  "--service-version": "2020-01-01",
  "--fields": "id",
  duration: "2s",
  path: "another",
  command: "cat > another",
};

let service: RewindableService;
let account: Account;
const at = new Home();
const kept = mkdtempSync(join(tmpdir(), "integ-kept-"));
let afterRotation: Moment;
let old: string;

async function putBack(): Promise<void> {
  for (const name of readdirSync(at.folder)) rmSync(join(at.folder, name), { recursive: true });
  cpSync(kept, at.folder, { recursive: true });
  await service.rewind(afterRotation);
}

/** Replaces ids and credentials of new clients with `<new>`, so that the requests of two runs can be equal. */
async function receivedRequests(): Promise<string[]> {
  return (await account.requests()).map(({ method, path, body, headers }) =>
    [method, path, body, headers.authorization, headers["service-version"]]
      .join(" ")
      .replaceAll(/(?:oac|cid)_\w+|Basic [\w=]{90,}/g, (text) => (text === old ? text : "<new>")),
  );
}

const recovery = ["journal", "recover", "--yes"];

async function requestsOf(words: readonly string[], env: Readonly<Record<string, string>>): Promise<string[]> {
  const before = (await receivedRequests()).length;
  await at.integ([...recovery, ...words], { env });
  return (await receivedRequests()).slice(before);
}

async function isDone(): Promise<boolean> {
  const [live, ...more]: readonly ListedClient[] = await account.live();
  const file = ["s", "another", "2s"].map((name) => at.path(name)).find((path) => existsSync(path));
  if (live === undefined || more.length > 0 || live.id === old || file === undefined) return false;
  const [secret = ""] = /sbx_\w+/.exec(readFileSync(file, "utf8")) ?? [];
  return account.opens(live.client_id ?? "", secret);
}

beforeAll(async () => {
  stayInThisProcess();
  service = await RewindableService.start();
  account = new Account(service);
  const { us } = service;
  for (const [name, input] of [
    ["p", us.api_key],
    ["other", us.other_account_api_key],
  ] as const) {
    const words = ["profiles", "add", name, "--region", "us", "--base-url", us.base_url, "--token-endpoint"];
    const added = await at.integ([...words, us.token_endpoint, "--api-key-stdin", "--no-verify"], { input });
    expect(added.code, added.stderr).toBe(0);
  }
  ({ id: old } = await account.make(["entity:read"]));
  await service.fault("POST /v1/oauth_clients drop=before times=1");
  const rotate = ["oauth-clients", "rotate", old, "--secret-file", "s", "--retry-for", "0"];
  expect((await at.integ(rotate)).code).toBe(7);
  await service.calm();
  cpSync(at.folder, kept, { recursive: true });
  afterRotation = service.moment();
});
afterAll(async () => {
  at.remove();
  rmSync(kept, { recursive: true });
  await service.stop();
});

it("no variable or flag changes the request that is sent", { timeout: 600_000 }, async () => {
  const described = JSON.parse((await at.integ(["commands", "--json"])).stdout) as Described;
  const recover = described.commands.find(({ command }) => command === "integ journal")!.commands;
  const { flags } = recover.find(({ command }) => command === "integ journal recover")!;
  const valueOf = ({ name, value }: Flag): string[] =>
    value === null ? [] : [values[name] ?? value.choices?.at(-1) ?? values[value.name] ?? "1"];
  const variations: (readonly [name: string, words: readonly string[], env: Readonly<Record<string, string>>])[] = [
    ...described.environment.map(({ name }) => [name, [], { [name]: values[name] ?? "1" }] as const),
    ...[...flags, ...described.global_flags].map((flag) => [flag.name, [flag.name, ...valueOf(flag)], {}] as const),
  ];
  expect(variations.length).toBeGreaterThan(80);
  await putBack();
  const plain = await requestsOf([], {});
  expect([plain.length > 2, await isDone()]).toEqual([true, true]);
  const wrong: string[] = [];
  let refused = 0;
  for (const [name, words, env] of variations) {
    await putBack();
    let sent = await requestsOf(words, env);
    if (sent.length === 0) {
      refused += 1;
      sent = await requestsOf([], {});
    }
    if (sent.join("\n") !== plain.join("\n") || !(await isDone())) wrong.push(`${name}: ${sent.join("\n")}`);
  }
  expect(wrong).toEqual([]);
  expect(refused).toBeLessThan(variations.length / 2);
});
