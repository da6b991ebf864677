// Random input, most of it nearly valid. INTEG_TEST_SEED=<n> repeats the input of a run.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { anyCharacter } from "../support/any-text.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, Home, stayInThisProcess } from "../support/program.ts";
import { isFull } from "../support/sample.ts";

const seed = Number(process.env.INTEG_TEST_SEED ?? (isFull ? Date.now() % 1_000_000 : 1));
const perGrammar = Math.ceil((isFull ? 50_000 : 500) / 6);
const codes = new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
const canary = `canary-${crypto.randomUUID()}`;

const when = "2026-11-21T02:00:00.000Z";
const client = {
  object: "oauth_client",
  id: "oc_1",
  client_id: "cid_1",
  service_account_id: "sa_1",
  scopes: ["entity:read"],
  status: "active",
  created_at: when,
};
const key = { id: "ak_1", name: "ci", status: "active", keyType: "user_bound", createdAt: when, scopes: ["*"] };
const list = (rows: readonly object[]): object => ({
  object: "list",
  data: rows,
  has_more: false,
  next_page_token: null,
});

function validResponse(method: string, path: string): unknown {
  if (path.includes("token")) return { access_token: "token-1", token_type: "Bearer", expires_in: 3600 };
  if (path.startsWith("/v1/oauth_clients"))
    return method === "POST"
      ? { ...client, client_secret: "s3cr3t-1" }
      : method === "GET"
        ? client
        : { ...client, status: "revoked" };
  if (path.includes("access-keys")) return method === "GET" ? [key] : { ...key, secret: "s3cr3t-2" };
  return list([{ object: "entity", id: "ent_1", name: "One", created_at: when }]);
}

const strange = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    "",
    0,
    -1,
    1e21,
    true,
    [],
    {},
    "\u0000",
    "\u001b[31m",
    "../..",
    "a\nb",
    "\ud800",
    "💥",
    "__proto__",
  ),
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: anyCharacter, maxLength: 60 }),
);

/** Changes the field at position `at` of a value: replaces, removes, copies to another name, or repeats the field. */
type Change = readonly [at: number, how: "replace" | "remove" | "rename" | "repeat", by: unknown];
const change: fc.Arbitrary<Change> = fc.tuple(
  fc.nat({ max: 40 }),
  fc.constantFrom("replace", "remove", "rename", "repeat"),
  strange,
);

function changed(value: unknown, changes: readonly Change[]): unknown {
  let root: unknown = structuredClone(value);
  for (const [at, how, given] of changes) {
    const by = structuredClone(given);
    const places: [holder: Record<string, unknown>, name: string][] = [];
    const walk = (node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      for (const name of Object.keys(node)) {
        places.push([node as Record<string, unknown>, name]);
        walk((node as Record<string, unknown>)[name]);
      }
    };
    walk(root);
    const [holder, name] = places[at % Math.max(1, places.length)] ?? [];
    if (holder === undefined || name === undefined) root = by;
    else if (how === "remove") delete holder[name];
    else if (how === "replace") holder[name] = by;
    else if (how === "rename") holder[String(by)] = holder[name];
    else holder[name] = [holder[name], holder[name]];
  }
  return root;
}

/** How many thousandths of a text remain. */
const cutAt = fc.oneof({ weight: 4, arbitrary: fc.constant(1000) }, fc.nat({ max: 1000 }));

interface Reply {
  readonly status: number;
  readonly changes: readonly Change[];
  readonly headers: readonly (readonly [string, string])[];
  readonly cut: number;
}

const reply: fc.Arbitrary<Reply> = fc.record({
  status: fc.constantFrom(200, 200, 200, 200, 201, 202, 204, 206, 301, 400, 401, 403, 404, 409, 422, 429, 500, 503),
  changes: fc.array(change, { maxLength: 4 }),
  headers: fc.array(
    fc.constantFrom(
      ["content-type", "text/html"] as const,
      ["content-type", "application/json; charset=utf-16"] as const,
      ["retry-after", "-1"] as const,
      ["retry-after", "999999999999"] as const,
      ["location", "http://127.0.0.1:1/"] as const,
      ["date", "Thu, 01 Jan 1970 00:00:00 GMT"] as const,
      ["content-encoding", "gzip"] as const,
      ["request-id", "\u001b[2J".replaceAll("\u001b", "%1b")] as const,
    ),
    { maxLength: 2 },
  ),
  cut: cutAt,
});

let replies: readonly Reply[] = [];
let requestCount = 0;
let server: Server;
let base = "";
const homes: Home[] = [];

beforeAll(async () => {
  stayInThisProcess();
  server = createServer((request, response) => {
    const one = replies[requestCount++ % Math.max(1, replies.length)];
    const validBody = validResponse(request.method ?? "GET", request.url ?? "/");
    const text = JSON.stringify(one === undefined ? validBody : changed(validBody, one.changes)) ?? "";
    response.writeHead(one?.status ?? 200, {
      "content-type": "application/json",
      connection: "close",
      ...Object.fromEntries(one?.headers ?? []),
    });
    response.end(text.slice(0, Math.ceil((text.length * (one?.cut ?? 1000)) / 1000)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.close();
  for (const home of homes) home.remove();
});

function newHome(): Home {
  const home = new Home({
    INTEG_REGION: "us",
    INTEG_BASE_URL: base,
    INTEG_API_KEY: canary,
    INTEG_ACCESS_TOKEN: canary,
    INTEG_ORGANIZATION_ID: "7d4f7a2e-2d9c-4c1c-9b53-0a3c3f1f0b11",
    INTEG_TOKEN_ENDPOINT: `${base}/token`,
    INTEG_RETRY_FOR: "0s",
    INTEG_TIMEOUT: "5s",
  });
  homes.push(home);
  return home;
}

async function runAndCheck(
  home: Home,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  requestCount = 0;
  const ended = await home.integ(words, { env, input: "" });
  const { code, stdout, stderr } = ended;
  const about = `integ ${JSON.stringify(words)} ${JSON.stringify(env)}\n${code}\n${stderr}\n${stdout.slice(0, 500)}`;
  expect(codes.has(code ?? -1), about).toBe(true);
  expect(stderr, about).not.toMatch(/This is a bug in integ|^\s+at .*[:(]\d+:\d+\)?$/m);
  if (!words.includes(canary)) expect(stdout + stderr, about).not.toContain(canary);
  // oxlint-disable-next-line no-control-regex -- a control character that reaches the terminal is the defect that this looks for
  expect(stderr, about).not.toMatch(/\u001b\[2J|\u0000/);
  // After `--`, or as the value of an option, `--json` is an ordinary word.
  const isFlag = words.some((word, at) => word === "--json" && !words.slice(0, at).some((one) => one.startsWith("-")));
  const isJson = isFlag && code !== 0 && code !== 10;
  if (isJson && stderr !== "")
    expect(() => JSON.parse(stderr.trimEnd().split("\n").at(-1)!) as unknown, about).not.toThrow();
  return ended;
}

async function all<T>(grammar: fc.Arbitrary<T>, check: (value: T) => Promise<void>): Promise<void> {
  await fc.assert(fc.asyncProperty(grammar, check), { seed, numRuns: perGrammar, endOnFailure: true });
}

const reads = [
  ["entities", "list", "--json"],
  ["entities", "list", "--all", "--ndjson"],
  ["oauth-clients", "get", "oc_1", "--json"],
  ["keys", "list", "--json"],
  ["keys", "get", "ak_1"],
  ["keys", "audit"],
  ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--json", "--new"],
  ["oauth-clients", "revoke", "oc_1", "--yes", "--json"],
  ["keys", "create", "--name", "ci", "--json", "--yes"],
  ["doctor"],
  ["api", "/v1/entities"],
  ["people", "search", "--name", "x", "--json"],
] as const;

describe(`hostile input, seed ${seed}`, { timeout: 14_400_000 }, () => {
  it("in responses", async () => {
    const home = newHome();
    await all(
      fc.tuple(fc.constantFrom(...reads), fc.array(reply, { minLength: 1, maxLength: 3 })),
      async ([words, some]) => {
        replies = some;
        await runAndCheck(home, words);
        replies = [];
      },
    );
  });

  it("in the journal's bytes", async () => {
    const first = newHome();
    for (const scope of ["entity:read", "cohort:read", "organization:read"])
      await runAndCheck(first, ["oauth-clients", "create", "--service-account", "sa_1", "--scope", scope, "--json"]);
    const whole = readFileSync(first.path("state", "journal.ndjson"));
    expect(whole.length).toBeGreaterThan(1000);
    const edit = fc.tuple(
      fc.nat({ max: whole.length }),
      fc.nat({ max: 300 }),
      fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(undefined)),
    );
    const commands = [
      ["journal", "list", "--all", "--json"],
      ["journal", "verify"],
      ["journal", "recover", "--json"],
      ["journal", "prune", "--older-than", "1d", "--yes", "--json"],
    ] as const;
    await all(
      fc.tuple(fc.array(edit, { minLength: 1, maxLength: 3 }), fc.constantFrom(...commands)),
      async ([edits, words]) => {
        const home = newHome();
        mkdirSync(home.path("state"), { mode: 0o700 });
        let bytes: Uint8Array = whole;
        for (const [at, length, by = bytes.subarray(at, at + length)] of edits)
          bytes = Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(Math.min(bytes.length, at + length))]);
        writeFileSync(home.path("state", "journal.ndjson"), bytes, { mode: 0o600 });
        await runAndCheck(home, words);
        home.remove();
      },
    );
  });

  it("in arguments", async () => {
    const home = newHome();
    const nouns =
      "entities cohorts people oauth-clients keys profiles journal policy api doctor spec status plan".split(" ");
    const verbs =
      "list get create rotate revoke audit show add edit remove verify recover claim forget prune check init members search export".split(
        " ",
      );
    const flags =
      "--json --all --max --fields --limit --scope --name --yes --out --profile -o -p --since --state --overlap --expires-in --service-account --dry-run --older-than --secret-file --timeout -- -".split(
        " ",
      );
    const word = fc.oneof(
      fc.constantFrom(...flags),
      fc.constantFrom(
        ..."1 -1 0 90d 1e9 NaN a,b oc_1 .. / %00 ~ $(id) --= = \u202e".split(" "),
        "",
        " ",
        "x".repeat(5000),
      ),
      fc.string({ unit: anyCharacter, maxLength: 20 }).map((text) => text.replaceAll("\0", "")),
    );
    await all(
      fc.tuple(fc.constantFrom(...nouns), fc.constantFrom(...verbs), fc.array(word, { maxLength: 6 })),
      async ([noun, verb, words]) => {
        await runAndCheck(home, [noun, verb, ...words]);
      },
    );
  });

  it("in variables", async () => {
    const home = newHome();
    const names =
      "INTEG_PROFILE INTEG_OUTPUT INTEG_TIMEOUT INTEG_RETRY_FOR INTEG_REGION INTEG_BASE_URL INTEG_ORGANIZATION_ID INTEG_SERVICE_VERSION INTEG_TOKEN_ENDPOINT NO_COLOR HTTPS_PROXY HTTP_PROXY NO_PROXY LANG TERM COLUMNS".split(
        " ",
      );
    const value = fc.oneof(
      fc.constantFrom(
        ..."0 -1 1e9 xml http:// https://user:pass@host/ ftp://x http://[::1 ../.. 💥 2026-13-99 none".split(" "),
        "",
        " ",
      ),
      fc.string({ maxLength: 30 }),
    );
    await all(
      fc.tuple(
        fc.constantFrom(...reads),
        fc.array(fc.tuple(fc.constantFrom(...names), value), { minLength: 1, maxLength: 3 }),
      ),
      async ([words, set]) => {
        await runAndCheck(home, words, { INTEG_TIMEOUT: "2s", ...Object.fromEntries(set) });
      },
    );
  });
});
