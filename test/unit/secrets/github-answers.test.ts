import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { gitHubOfFile } from "../../support/github-server.ts";
import type { StoreResponse } from "../../support/store-server.ts";
import { client, delivery } from "./a-secret.ts";
import { closeConnections, setUp, prepared } from "./a-store.ts";

const github = await gitHubOfFile();
afterEach(() => {
  closeConnections();
  github.calm();
  github.forgetSecrets();
});

const tokenHint =
  "Use a token that may write the secrets there: classic with the scope repo (for an organization admin:org), or fine-grained with Secrets (write). The token of a workflow run cannot.";
const body = { message: "as GitHub says it" };

async function failureOf(to: string, { isWrite }: { isWrite: boolean }): Promise<Failure> {
  const here = setUp({ GITHUB_API_URL: github.origin, GH_ENTERPRISE_TOKEN: github.token });
  try {
    const destination = await prepared(here, to, delivery.may);
    if (isWrite) await destination.deliver(client, delivery);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

const requests: Record<
  string,
  { readonly request: RegExp; readonly isWrite: boolean; readonly to: string; readonly what: string }
> = {
  "the repository": { request: /^GET \/repos\/my-org\/my-repo$/, isWrite: false, to: "#A", what: "be found" },
  "the environment": {
    request: /^GET .*\/environments\/production$/,
    isWrite: false,
    to: "@production#A",
    what: "be found",
  },
  "the public key": {
    request: /public-key$/,
    isWrite: false,
    to: "#A",
    what: "be encrypted: GitHub does not give the public key",
  },
  "the secret's time": { request: /^GET .*secrets\/A$/, isWrite: false, to: "#A", what: "be looked at" },
};

const meanings: Record<
  string,
  { readonly status: number; readonly kind: string; readonly words: (what: string) => string; readonly hint?: string }
> = {
  "400": { status: 400, kind: "usage", words: (what) => ` cannot ${what}: GitHub answered 400.` },
  "401": { status: 401, kind: "auth", words: () => ": GitHub does not accept the token.", hint: tokenHint },
  "403": { status: 403, kind: "auth", words: (what) => `: permission denied: it cannot ${what}.`, hint: tokenHint },
  "422": { status: 422, kind: "usage", words: (what) => ` cannot ${what}: GitHub answered 422.` },
  "499": { status: 499, kind: "usage", words: (what) => ` cannot ${what}: GitHub answered 499.` },
};

describe.each(Object.entries(requests))("for %s, GitHub refuses", (_request, { request, to, what }) => {
  it.each(Object.entries(meanings))("with %s", async (_status, { status, kind, words, hint }) => {
    github.plan(request, { status, body }, 9);
    const failure = await failureOf(`github:my-org/my-repo${to}`, { isWrite: false });
    const name = `--secret-to github:my-org/my-repo${to}`;
    expect(failure.message).toBe(`${name}${words(what)}`);
    expect(failure).toMatchObject({ kind, details: { problem: { status, detail: "as GitHub says it" } } });
    expect(failure.details.hint).toBe(hint);
  });

  it("with its own error, repeatedly", async () => {
    github.plan(request, { status: 500, body: { message: 7 } }, 99);
    const failure = await failureOf(`github:my-org/my-repo${to}`, { isWrite: false });
    expect(failure.kind).toBe("unreachable");
    expect(failure.message).toContain("GitHub answered 500");
    expect(failure.details.problem).toEqual({ status: 500, detail: undefined });
  });
});

describe("a rate limit", () => {
  const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString().slice(0, 16);

  it.each<[string, StoreResponse, number | undefined]>([
    ["429 with a wait", { status: 429, headers: { "retry-after": "7200" } }, 7200],
    ["403 with a wait", { status: 403, headers: { "retry-after": "7200" } }, 7200],
    ["429 with a wait of a year", { status: 429, headers: { "retry-after": "31622400" } }, 31_622_400],
    ["429 with a wait of more than a year", { status: 429, headers: { "retry-after": "31622401" } }, undefined],
    ["429 with no wait", { status: 429 }, undefined],
    ["403 with nothing left and no time", { status: 403, headers: { "x-ratelimit-remaining": "0" } }, undefined],
  ])("%s", async (_what, response, wait) => {
    github.plan(/./, { ...response, body }, 99);
    const failure = await failureOf("github:my-org/my-repo#A", { isWrite: false });
    expect(failure).toMatchObject({
      kind: "rate_limited",
      message: "--secret-to github:my-org/my-repo#A: GitHub limits the rate of requests.",
      details: { problem: { status: response.status, detail: "as GitHub says it" } },
    });
    if (wait === undefined) expect(failure.details.hint).toBeUndefined();
    else {
      const times = [wait, wait - 2].map((seconds) => inSeconds(seconds));
      expect(times.map((time) => `Wait until ${time}`)).toContain(String(failure.details.hint).slice(0, 27));
      expect(failure.details.hint).toMatch(/^Wait until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, /);
    }
  });
});

it("a request has the token, and the version and format that the code was written for", async () => {
  const here = setUp({ GITHUB_API_URL: github.origin, GH_ENTERPRISE_TOKEN: github.token });
  await prepared(here, "github:my-org/my-repo#A", delivery.may);
  for (const { headers } of github.requests)
    expect(headers).toMatchObject({
      accept: "application/vnd.github+json",
      authorization: `Bearer ${github.token}`,
      "x-github-api-version": "2022-11-28",
    });
  expect(github.requests.length).toBe(3);
});
