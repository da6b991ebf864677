// Runs the commands of the guides in the order of the page, with addresses, ids and credentials replaced.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home, root } from "../support/program.ts";
import { creationWords, serviceOfFile } from "../support/service.ts";
import { typed } from "../support/typed-line.ts";
import { KeysDesk } from "./keys-desk.ts";

/** `codes` has the exit codes other than 0, and `notRun` the commands that are only parsed, with the reason. */
interface Guide {
  readonly page: string;
  readonly codes?: readonly (readonly [command: RegExp, code: number])[];
  readonly notRun?: readonly (readonly [command: RegExp, reason: string])[];
}

const guides: readonly Guide[] = [
  {
    page: "README.md",
    codes: [[/keys audit/, 10]],
    notRun: [[/^\$ /, "played word for word by readme.test.ts"]],
  },
  { page: "docs/quick-start.md" },
  { page: "docs/contracts.md" },
  { page: "docs/recovery.md" },
  { page: "docs/policy.md" },
  { page: "docs/agents/SKILL.md", codes: [[/keys audit/, 10]] },
  { page: "SECURITY.md" },
  {
    page: "docs/sandbox.md",
    notRun: [
      [/sandbox start/, "serve until Ctrl-C: sandbox-start.test.ts, sandbox-document.test.ts"],
      [/sandbox tour/, "runs for long: tour.test.ts"],
    ],
  },
];

const service = await serviceOfFile();
let desk: KeysDesk;
const homes: Home[] = [];
const counts: string[] = [];

beforeAll(async () => {
  desk = new KeysDesk(service, service.eu);
});

afterAll(async () => {
  console.log(`commands of the guides: ${counts.join("; ")}`);
  for (const home of homes) home.remove();
});

function commandsOf(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^[ \t]*```([a-z]*)\n([\s\S]*?)^[ \t]*```/gm)]
    .filter(([, language]) => language === "" || language === "sh")
    .map(([, , block]) => block!);
  return blocks
    .flatMap((block) => block.replaceAll("\\\n", " ").replaceAll("|\n", "| ").split("\n"))
    .map((line) => line.trim())
    .filter((line) => /(^|[|(] ?|\$ )integ (?!…|.* …$)/.test(line));
}

async function fault(spec: string): Promise<void> {
  await fetch(service.eu.control_url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ fault: spec }),
  });
}

/** A home with the profiles that the page assumes, and a program that exchanges a secret for a token. */
async function newHome(page: string): Promise<Home> {
  const { eu } = service;
  const at = new Home({
    API_KEY: eu.access_key_secret,
    SERVICE_ACCOUNT: eu.service_account_id,
    CLIENT_ID: "cid",
    API_KEY_ID: eu.access_key_id,
    CLIENT_SECRET: "unused",
  });
  homes.push(at);
  at.addToPath();
  mkdirSync(at.path("bin"), { recursive: true });
  writeFileSync(at.path("bin", "exchange-token"), `#!/bin/sh\ncat > /dev/null\necho ${eu.access_token}\n`);
  chmodSync(at.path("bin", "exchange-token"), 0o755);
  const address = ["--region", "eu", "--base-url", eu.base_url, "--organization-id", eu.organization_id];
  const legacy = ["--access-token-endpoint", eu.access_token_endpoint, "--token-endpoint", eu.token_endpoint];
  const add = (name: string, key: { id: string; secret: string }) =>
    at.integ(["profiles", "add", name, ...address, ...legacy, "--api-key-stdin", "--api-key-id", key.id], {
      input: key.secret,
    });
  if (page === "docs/recovery.md") {
    expect((await add("admin", { id: eu.access_key_id, secret: eu.access_key_secret })).code).toBe(0);
    expect((await add("ci", await desk.makeKey({ name: "ci" }))).code).toBe(0);
  }
  if (page === "docs/agents/SKILL.md") at.env.INTEG_AGENT = "1";
  if (page === "docs/policy.md" || page === "docs/agents/SKILL.md" || page === "SECURITY.md")
    expect((await add("prod", { id: eu.access_key_id, secret: eu.access_key_secret })).code).toBe(0);
  return at;
}

const create = (home: Home, ...more: string[]) => home.integ(creationWords({ us: service.eu }, ...more), { env: {} });

async function newClient(at: Home): Promise<string> {
  const { stdout } = await create(at, "--secret-file", "client.secret", "--json");
  return (JSON.parse(stdout) as { id: string }).id;
}

async function entryIn(home: Home, state: string): Promise<string> {
  const { stdout } = await home.integ(["journal", "list", "--state", state, "--json"]);
  return (JSON.parse(stdout) as { data: { id: string }[] }).data[0]!.id;
}

function writePolicy(at: Home): void {
  const [, policy = ""] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(join(root, "docs/policy.md"), "utf8")) ?? [];
  writeFileSync(at.path("integ.yaml"), policy.replace("sa_reporting", service.eu.service_account_id));
}

async function prepare(at: Home, line: string): Promise<string> {
  const { eu } = service;
  let text = line
    .replaceAll("https://api.eu.example.com", eu.base_url)
    .replaceAll("https://auth.eu.example.com/oauth/token", eu.token_endpoint)
    .replaceAll("5eed0000-0000-4000-8000-0000000000e5", eu.organization_id)
    .replace(/^\$ /, "");
  // Prompts need a terminal, so test/terminal tests them. Here the key comes from a pipe.
  if (/profiles add /.test(text) && !/-stdin/.test(text))
    text = `printf %s "$API_KEY" | ${text.replace(/ +#.*/, "")} --api-key-stdin`;
  if (/oauth-clients token/.test(text)) at.env.CLIENT_ID = await clientId(at);
  if (/keys (list|audit)|api \/api\/v1/.test(text)) await legacySettings(at);
  // The service would refuse the pages' invented credentials.
  if (text.includes("profiles add")) text = text.replace("profiles add", "profiles add --no-verify");
  if (text.includes("oac_1")) {
    await at.integ(["profiles", "edit", "prod", "--token-endpoint", eu.token_endpoint]);
    text = text.replace("oac_1", await newClient(at));
  }
  if (/\bak_1\b/.test(text)) text = text.replace("ak_1", (await desk.makeKey({ name: "replaced" })).id);
  if (text.includes("policy check")) writePolicy(at);
  if (text.includes("oc_123")) text = text.replace("oc_123", await newClient(at));
  if (text.includes("ak_123")) text = text.replace("ak_123", (await desk.makeKey({ name: "by-hand" })).id);
  // Without a terminal, --yes answers the question.
  if (/integ (apply|adopt|sandbox reset) /.test(`${text} `)) text = text.replace(/ +#.*|$/, " --yes");
  if (text.includes("xargs")) expect((await create(at, "--new", "--secret-file", "to-revoke.secret")).code).toBe(0);
  text = text.replace("profiles remove <name>", "profiles remove prod");
  if (text.includes("--replace-lost-secret")) {
    await fault("POST /v1/oauth_clients drop=after times=1");
    expect((await create(at, "--secret-file", "lost.secret", "--retry-for", "0")).code).toBe(7);
    expect((await at.integ(["journal", "recover"])).code).toBe(9);
    text = text.replace("1jt7q2mz8c", await entryIn(at, "secret_lost"));
  }
  if (text.includes("journal claim")) {
    expect((await create(at, "--new", "--secret-command", "exit 1")).code).toBe(12);
    text = text.replace("1jt7q2mz8c", await entryIn(at, "undelivered"));
  }
  return text;
}

async function clientId(at: Home): Promise<string> {
  const { stdout } = await at.integ(["oauth-clients", "list", "--json"]);
  return (JSON.parse(stdout) as { data: { client_id: string }[] }).data[0]!.client_id;
}

async function legacySettings(at: Home): Promise<void> {
  const { eu } = service;
  const settings = ["--organization-id", eu.organization_id, "--access-token-endpoint", eu.access_token_endpoint];
  await at.integ(["profiles", "edit", "prod", ...settings]);
}

describe.each(guides)("$page", ({ page, codes = [], notRun = [] }) => {
  it("has commands that end as the page says", async () => {
    const at = await newHome(page);
    const lines = commandsOf(page);
    expect(lines.length).toBeGreaterThan(1);
    let run = 0;
    for (const line of lines) {
      if (notRun.some(([command]) => command.test(line))) continue;
      const text = await prepare(at, line);
      const { status, stderr } = await typed(at, text);
      const code = codes.find(([command]) => command.test(line))?.[1] ?? 0;
      expect(`${status} ${line}`, stderr).toBe(`${code} ${line}`);
      run += 1;
    }
    const reasons = notRun.map(([command, reason]) => `${lines.filter((line) => command.test(line)).length} ${reason}`);
    counts.push(`${page} ${run} of ${lines.length} run${reasons.length > 0 ? ` (${reasons.join(", ")})` : ""}`);
  });
});
