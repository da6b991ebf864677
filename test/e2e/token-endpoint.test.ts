// A token endpoint that is busy or down: waited for as it asks, within --retry-for, by reads and by changes. Nothing was
// sent to the service meanwhile, so that no outcome is unknown (§8; RFC 6749 §4.4: an exchange is safe to repeat).
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { type Service, startService } from "../support/service.ts";

const tokenPaths = { oauth: "/oauth/token", legacy: "/api/v1/access-tokens" };
let service: Service;
let at: Home;

beforeAll(async () => {
  service = await startService();
  at = new Home();
  const manager = new Home(service.env);
  const words = ["oauth-clients", "create", "--service-account", service.us.service_account_id, "--json"];
  const scopes = ["service_account:manage", "entity:read"].flatMap((scope) => ["--scope", scope]);
  const made = await manager.integ([...words, ...scopes]);
  const { client_id, client_secret }: { client_id: string; client_secret: string } = JSON.parse(made.stdout);
  manager.remove();
  const { base_url, token_endpoint, organization_id, access_token_endpoint } = service.us;
  const place = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id];
  const client = ["--client-id", client_id, "--client-secret-stdin", "--token-endpoint", token_endpoint];
  expect((await integHere(at, ["profiles", "add", "oauth", ...place, ...client], { input: client_secret })).code).toBe(
    0,
  );
  const key = ["--api-key-stdin", "--access-token-endpoint", access_token_endpoint];
  const input = service.us.access_key_secret;
  expect((await integHere(at, ["profiles", "add", "legacy", ...place, ...key], { input })).code).toBe(0);
});

afterEach(() => service.calm());
afterAll(async () => {
  at.remove();
  await service.stop();
});

interface Logged {
  readonly method: string;
  readonly path: string;
  readonly at: string;
  readonly status: number;
}

async function requests(): Promise<readonly Logged[]> {
  const { requests } = (await service.control("GET")) as { requests: Logged[] };
  return requests;
}

/** Statuses of one path in the order of time. */
async function statusesOf(path: string): Promise<number[]> {
  return (await requests()).filter((one) => one.path === path).map(({ status }) => status);
}

/** The shortest pause between two requests to a path, ms. */
async function shortestPauseMs(path: string): Promise<number> {
  const times = (await requests()).filter((one) => one.path === path).map((one) => Date.parse(one.at));
  return Math.min(...times.slice(1).map((time, index) => time - times[index]!));
}

const creation = () => ["--service-account", service.us.service_account_id, "--scope", "entity:read"];
const cases: readonly [string, keyof typeof tokenPaths, () => string[]][] = [
  ["a read", "oauth", () => ["entities", "list", "--json"]],
  ["a creation", "oauth", () => ["oauth-clients", "create", ...creation(), "--new", "--json"]],
  ["the exchange itself", "oauth", () => ["oauth-clients", "token", "--from-profile", "--json"]],
  ["api", "oauth", () => ["api", "/v1/entities"]],
  ["a read of the legacy contract", "legacy", () => ["keys", "list", "--json"]],
  ["a creation of the legacy contract", "legacy", () => ["keys", "create", "--name", "k", "--json"]],
];

describe.each(cases)("%s (%s)", (_, way, words) => {
  const run = (...more: string[]) => at.integ([...words(), "-p", way, ...more]);
  const path = tokenPaths[way];

  it("waits as the token endpoint asks, too busy (429) and then down (503)", async () => {
    await service.fault(`POST ${path} status=429 retry-after=1 times=1`);
    await service.fault(`POST ${path} status=503 retry-after=1 times=1 after=1`);
    const { code, stderr } = await run();
    expect([code, await statusesOf(path)], stderr).toEqual([0, [429, 503, 200]]);
    // Waits of our own are shorter than a second so early.
    expect(await shortestPauseMs(path)).toBeGreaterThanOrEqual(1000);
  });

  it("gives up at once where that does not fit --retry-for, and nothing was sent", async () => {
    await service.fault(`POST ${path} retry-after=3600`);
    const { code, stderr } = await run("--retry-for", "1m");
    expect(code, stderr).toBe(6);
    expect((await requests()).map((one) => one.path)).toEqual([path]);
    const journal = await integHere(at, ["journal", "list", "--json"]);
    expect(JSON.parse(journal.stdout).data).toEqual([]);
  });
});
