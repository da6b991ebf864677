// The output of `policy init` is valid and has no suspicious setting, whatever the account contains.
import { describe, expect, it } from "vitest";
import { type DraftItem, draftPolicy } from "../../../src/policy/draft.ts";
import { findingsOf } from "../../../src/policy/findings.ts";
import type { KeyItem, Policy } from "../../../src/policy/policy.ts";
import { readPolicy } from "../../../src/policy/read.ts";

const [second, minute, day] = [1000, 60_000, 86_400_000];

function read(items: readonly DraftItem[]): Policy {
  const text = draftPolicy(items, { id: "pol_of_this_test", profile: "prod" });
  return readPolicy({ text, file: "integ.yaml", folder: "/srv", nowMs: Date.parse("2026-11-22T00:00:00Z") });
}

const key = (lifeMs: number | undefined, nth = 0): DraftItem => ({
  kind: "access_key",
  id: `key_${nth}`,
  baseName: "deploy",
  lifeMs,
  lines: ["type: service_account", 'scopes: ["*"]', "secret: unknown"],
});
const client = (nth: number, account = `sa_${nth}`): DraftItem => ({
  kind: "oauth_client",
  id: `oac_${nth}`,
  baseName: account,
  lines: [`service_account: ${account}`, "scopes: [entity:read]", "secret: unknown"],
});

describe("the first policy", () => {
  it.each([0, 1, 19, 20, 21])("for %d clients of one account is valid; a full account is reported", (count) => {
    const policy = read(Array.from({ length: count }, (_, nth) => client(nth, "sa_1")));
    const others = findingsOf(policy).filter(({ rule }) => rule !== "secret_unknown");
    expect(others.map(({ rule }) => rule)).toEqual(count < 20 ? [] : ["too_many_clients"]);
  });

  const lives = [
    ...[0.5, 0.99, 1, 5, 59.99, 60, 90, 360, 1380].map((minutes) => minutes * minute),
    ...[1, 1.5, 2, 3, 4, 7, 8, 9, 14, 30, 60, 89, 90, 91, 104, 105, 180, 365, 730, 3650].map((days) => days * day),
  ].flatMap((ms) => [ms, ms + 700, Math.max(second, ms - 700), ms + 40 * second]);

  it.each(lives)("for a key valid for %d ms rotates it before its end, and never extends its lifetime", (lifeMs) => {
    const policy = read([key(lifeMs)]);
    expect(findingsOf(policy).map(({ rule }) => rule)).toEqual(["secret_unknown"]);
    const { expiresInMs = Infinity, rotate } = policy.items[0] as KeyItem;
    const { beforeExpiryMs = Infinity, overlapMs = Infinity, everyMs = 0 } = rotate ?? {};
    expect(expiresInMs).toBeLessThanOrEqual(lifeMs + minute);
    expect(expiresInMs).toBeGreaterThan(lifeMs - minute - second);
    expect(beforeExpiryMs).toBeLessThan(expiresInMs);
    expect(overlapMs).toBeLessThan(beforeExpiryMs);
    expect(everyMs + beforeExpiryMs).toBeLessThan(expiresInMs);
  });

  it("for a key that does not expire rotates it by age", () => {
    const { expiresInMs, rotate } = read([key(undefined)]).items[0] as KeyItem;
    expect([expiresInMs, rotate?.everyMs, rotate?.beforeExpiryMs]).toEqual([undefined, 90 * day, undefined]);
  });
});

it.each([
  ["curl -H 'Authorization: Bearer 0123456789abcdef0123' -d @-", ["secret_in_file"]],
  ["GH_TOKEN=ghp_0123456789abcdef gh secret set X", ["secret_in_file"]],
  ["mysql --password=Zm9vYmFyYmF6cXV4 -e 'update'", ["secret_in_file"]],
  ['curl -H "Authorization: Bearer $TOKEN" -d @-', []],
  ["deploy-secret --token-file /run/token", []],
])("a command (%s) is searched for a secret", (command, rules) => {
  const policy = read([
    { ...client(1), lines: ["service_account: sa_1", "scopes: [a]", `secret: ${JSON.stringify({ command })}`] },
  ]);
  expect(findingsOf(policy).map(({ rule }) => rule)).toEqual(rules);
});
