// Tests an OAuth client without a stored secret, with an independent token server (oidc-provider).
import { createPublicKey, createSign, generateKeyPairSync, randomUUID } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { ended, type Home, root } from "../support/program.ts";
import { homeOfTest, startService } from "../support/service.ts";
import { teamKey } from "../support/team-journal.ts";
import { isMissing } from "../support/tools.mjs";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
let tokens: Server;
let api: Server;
let exchanges: URLSearchParams[] = [];
let reads: string[] = [];

const addressOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const endpoint = (): string => `${addressOf(tokens)}/token`;

beforeAll(async () => {
  let answer: ReturnType<Provider["callback"]>;
  tokens = createServer((request, response) => {
    request.on("data", (body: Buffer) => exchanges.push(new URLSearchParams(body.toString())));
    answer(request, response);
  }).listen(0, "127.0.0.1");
  api = createServer((request, response) => {
    reads.push(request.headers.authorization ?? "");
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"object":"list","data":[{"id":"e1"}],"next_page_token":null,"has_more":false}');
  }).listen(0, "127.0.0.1");
  await Promise.all([once(tokens, "listening"), once(api, "listening")]);
  const authentication = { token_endpoint_auth_method: "private_key_jwt", token_endpoint_auth_signing_alg: "ES256" };
  const flow = { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] };
  const keys = [createPublicKey(privateKey).export({ format: "jwk" })];
  const provider = new Provider(addressOf(tokens), {
    clients: [{ client_id: "job", ...authentication, ...flow, jwks: { keys } }],
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    ttl: { ClientCredentials: 600 },
  });
  answer = provider.callback();
});

afterEach(() => void ([exchanges, reads] = [[], []]));
afterAll(() => [tokens, api].forEach((server) => server.close()));

function home(...proof: readonly string[]): { at: Home; add: string[] } {
  const at = homeOfTest();
  writeFileSync(at.path("key.pem"), pem, { mode: 0o600 });
  const words = ["profiles", "add", "p", "--region", "us", "--base-url", addressOf(api), "--client-id", "job"];
  return { at, add: [...words, "--token-endpoint", endpoint(), ...proof] };
}

const seconds = (fromNow: number): number => Math.floor(Date.now() / 1000) + fromNow;

function assertion(claims: Readonly<Record<string, unknown>> = {}): string {
  const usual = { iss: "job", sub: "job", aud: endpoint(), exp: seconds(300), iat: seconds(0), jti: randomUUID() };
  const signed = [{ alg: "ES256" }, { ...usual, ...claims }].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  const signature = createSign("SHA256").update(signed.join(".")).sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
  return [...signed, signature.toString("base64url")].join(".");
}

it("a client signs with its private key, and profiles show the key's path", async () => {
  const { at, add } = home("--client-key-file", "key.pem");
  expect(await at.integ(add)).toMatchObject({ code: 0 });
  const { code, stderr } = await at.integ(["entities", "list", "--debug"]);
  expect(code, stderr).toBe(0);
  expect(reads.at(-1)).toMatch(/^Bearer \S+$/);
  const sent = exchanges.map((exchange) => exchange.get("client_assertion")!);
  for (const one of sent) expect(stderr).not.toContain(one.split(".")[2]);
  expect(new Set(sent).size).toBe(sent.length);
  const { stdout } = await at.integ(["profiles", "show", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ credential: { client_id: "job", kept_in: "key file" } });
});

it("a client gets a new assertion from a command for each exchange, and sends it only there", async () => {
  const { at, add } = home("--client-assertion-command", 'sed -n "$(cat n)p" assertions; echo $(($(cat n)+1)) > n');
  const all = Array.from({ length: 9 }, () => assertion());
  writeFileSync(at.path("assertions"), `${all.join("\n")}\n`);
  writeFileSync(at.path("n"), "1\n");
  expect(await at.integ(add)).toMatchObject({ code: 0 });
  for (const _ of [1, 2])
    expect((await at.integ(["entities", "list", "--debug"])).stderr).not.toContain(all[0]!.slice(-40));
  const token = await at.integ(["oauth-clients", "token", "--from-profile", "--json"]);
  expect(JSON.parse(token.stdout)).toMatchObject({ token_type: "Bearer" });
  expect((await at.integ(["doctor", "--json"])).stdout).toContain("gives a token");
  const used = exchanges.map((exchange) => exchange.get("client_assertion"));
  expect(used).toEqual(all.slice(0, used.length));
  expect(used.length).toBeGreaterThan(4);
  expect(reads.join("\n")).not.toContain(all[0]);
});

it("CI needs no profile and no secret: the environment names the command", async () => {
  const at = homeOfTest({
    INTEG_BASE_URL: addressOf(api),
    INTEG_REGION: "us",
    INTEG_CLIENT_ID: "job",
    INTEG_CLIENT_ASSERTION_COMMAND: "cat assertion",
    INTEG_TOKEN_ENDPOINT: endpoint(),
  });
  writeFileSync(at.path("assertion"), assertion());
  expect(await at.integ(["entities", "list", "--json"])).toMatchObject({ code: 0 });
  const both = await at.integ(["entities", "list"], { env: { INTEG_CLIENT_SECRET: "s" } });
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("two ways")]);
  const none = await at.integ(["entities", "list"], { env: { INTEG_CLIENT_ASSERTION_COMMAND: "exit 1" } });
  expect([none.code, none.stderr]).toEqual([
    3,
    expect.stringContaining("Fix: Correct the command in INTEG_CLIENT_ASSERTION_COMMAND."),
  ]);
});

it.skipIf(isMissing("curl", "jq"))("the steps of docs/ci.md work on GitHub and GitLab", async () => {
  const service = await startService();
  onTestFinished(() => void service.stop());
  const page = readFileSync(join(root, "docs", "ci.md"), "utf8")
    .replaceAll("https://auth.eu.example.com/oauth/token", endpoint())
    .replaceAll("sa_reporting", service.us.service_account_id)
    .replaceAll("${{ vars.INTEG_CLIENT_ID }}", "job")
    .replaceAll("${{ secrets.INTEG_JOURNAL_KEY }}", teamKey);
  const yaml = (heading: string): string[] => {
    const chapter = page.split(`\n## ${heading}\n`)[1]!.split("\n## ")[0]!;
    return [...chapter.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text]) => text!);
  };
  const [policy = ""] = yaml("GitHub-hosted runners");
  const [github, gitlab] = yaml("A job without a stored API key").map((text) => parse(text));
  // The sandbox does not know the tokens of the independent server, so the relay uses the API key in their place.
  const relayed = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method, url, headers } = request;
    reads.push(headers.authorization ?? "");
    const body: Buffer[] = [];
    for await (const chunk of request) body.push(chunk as Buffer);
    const own = { "content-type": "application/json", "idempotency-key": String(headers["idempotency-key"] ?? "") };
    const authorization = `Basic ${Buffer.from(`${service.us.api_key}:`).toString("base64")}`;
    const sent = { method, headers: { ...own, authorization }, ...(body.length > 0 && { body: Buffer.concat(body) }) };
    const answer = await fetch(service.us.base_url + url, sent);
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  };
  const relay = createServer((request, response) => void relayed(request, response)).listen(0, "127.0.0.1");
  onTestFinished(() => relay.close().closeAllConnections());
  const identity = createServer(({ url, headers }, response) => {
    const requestUrl = new URL(url!, "http://here");
    const isAllowed = headers.authorization === "bearer request-token" && requestUrl.searchParams.get("v") === "2";
    response.writeHead(isAllowed ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify({ value: assertion({ aud: requestUrl.searchParams.get("audience") }) }));
  }).listen(0, "127.0.0.1");
  await Promise.all([once(identity, "listening"), once(relay, "listening")]);
  const at = homeOfTest();
  at.addToPath();
  writeFileSync(at.path("integ.yaml"), policy);
  writeFileSync(at.path("bin", "gh"), '#!/bin/sh\n[ -n "$GH_TOKEN" ] && exec cat > stored\n', { mode: 0o755 });
  const on = async (line: string, env: Readonly<Record<string, string>>) => {
    const child = spawn("bash", ["-eo", "pipefail", "-c", line], { cwd: at.folder, env: { ...at.env, ...env } });
    const { code, stdout, stderr } = await ended(child);
    expect(code, stderr).toBe(0);
    return stdout + stderr;
  };
  const [step] = github;
  // This job's journal is a file. hosted-ci-doc.test.ts tests the same job with PostgreSQL.
  const ofJob = { INTEG_REGION: "us", INTEG_BASE_URL: addressOf(relay), INTEG_TOKEN_ENDPOINT: endpoint() };
  await on(step.run, {
    ...ofJob,
    ...step.env,
    ACTIONS_ID_TOKEN_REQUEST_URL: `${addressOf(identity)}/token?v=2`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: "request-token",
  });
  const IDENTITY_TOKEN = assertion({ aud: gitlab.id_tokens.IDENTITY_TOKEN.aud });
  expect(readFileSync(at.path("stored"), "utf8")).toMatch(/^sbx_us_cs_\w+$/);
  const { credentials } = parse(yaml("GitLab CI/CD")[1]!) as { credentials: { script: string[] } };
  const variables = { ...ofJob, ...gitlab.variables, INTEG_CLIENT_ID: "job", IDENTITY_TOKEN };
  expect(await on(credentials.script.join("\n"), variables)).toMatch(/^reporting +oauth_client +none +unchanged /m);
  for (const authorization of reads) expect(authorization).toMatch(/^Bearer \S+$/);
  identity.close();
  expect(exchanges).toHaveLength(2);
});

const wrong: readonly (readonly [string, () => string, string, number])[] = [
  ["that is empty", () => "", "printed nothing", 0],
  ["that is not a JWT", () => "not-a-token", "not a signed JWT", 0],
  ["with a second line", () => `${assertion()}\nmore`, "more than one line", 0],
  ["that has expired", () => assertion({ exp: 1_700_000_000 }), 'expires "2023-11-14T22:13:20.000Z"', 0],
  ["that is not valid yet", () => assertion({ nbf: 4_000_000_000 }), 'valid from "2096-10-02T07:06:40.000Z"', 0],
  ["whose expiry is not a time", () => assertion({ exp: "soon" }), 'expires "soon", which is not a time in seconds', 1],
  ["without an expiry", () => assertion({ exp: undefined }), "; it needs a time of expiry.", 1],
  ["that expired a moment ago", () => assertion({ exp: seconds(-30) }), "; it has expired.", 1],
  ["that is valid in a moment", () => assertion({ nbf: seconds(30) }), "; it is not valid yet.", 1],
  ["from the future", () => assertion({ iat: seconds(3600), aud: "" }), "; it was issued in the future.", 1],
  ["for another server", () => assertion({ aud: "https://else.example" }), "; the audience is usually", 1],
  ["with another subject", () => assertion({ sub: "someone" }), '; the subject is usually the client id "job".', 1],
  ["from another issuer", () => assertion({ iss: "someone" }), '; the issuer is usually the client id "job".', 1],
  ["with another signature", () => assertion().slice(0, -9) + "A".repeat(9), "check the key that signed it", 1],
];

it.each(wrong)("an assertion %s is refused with exit 3 and the reason", async (_what, printed, words, sent) => {
  const { at, add } = home("--client-assertion-command", "cat assertion", "--no-verify");
  writeFileSync(at.path("assertion"), printed());
  expect(await at.integ(add)).toMatchObject({ code: 0 });
  const { code, stderr } = await at.integ(["entities", "list", "--retry-for", "0"]);
  expect([code, exchanges.length, reads]).toEqual([3, sent, []]);
  expect(stderr).toContain(words);
  const signature = readFileSync(at.path("assertion"), "utf8").split(".")[2];
  if (signature) expect(stderr).not.toContain(signature.split("\n")[0]);
});

const notKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n";
it.each([
  ["is missing", (path: string) => chmodSync(path, 0o600), "other.pem", "there is no file"],
  ["can be read by others", (path: string) => chmodSync(path, 0o644), "key.pem", "chmod 600"],
  ["is not a key", (path: string) => writeFileSync(path, notKey), "key.pem", "not a private key"],
] as const)("a private key that %s is refused before anything is sent", async (_what, change, name, words) => {
  const { at, add } = home("--client-key-file", name, "--no-verify");
  expect(await at.integ(add)).toMatchObject({ code: 0 });
  change(at.path("key.pem"));
  const { code, stderr } = await at.integ(["entities", "list"]);
  expect([[2, 3].includes(code!), exchanges, reads]).toEqual([true, [], []]);
  expect(stderr).toContain(words);
});

it("a profile has only one way to authenticate", async () => {
  const { at, add } = home("--client-key-file", "key.pem", "--client-assertion-command", "cat assertion");
  const both = await at.integ(add);
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("contradict each other")]);
  expect(exchanges).toEqual([]);
});
