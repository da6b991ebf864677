import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { Profile, StoredProfiles } from "../../../src/profiles/profile.ts";
import { needsChoice, needsStored, emptyStore, resolveProfile } from "../../../src/profiles/resolution.ts";
import { aProfile, failureOf } from "./a-profile.ts";
import { sampled } from "../../support/sample.ts";

const prod = aProfile({ name: "prod", base_url: "https://prod.example.com/" });
const test = aProfile({
  name: "test",
  region: "us",
  base_url: "https://test.example.com",
  organization_id: "11111111-2222-4333-8444-555555555555",
});

function stored(profiles: Profile[] = [prod, test], byDefault: string | null = "prod"): StoredProfiles {
  return { default: byDefault, list: () => profiles, get: (name) => profiles.find((it) => it.name === name) };
}

const unreadable: StoredProfiles = {
  get default(): string {
    throw new Failure("usage", "profiles.json is broken");
  },
  list: () => {
    throw new Failure("usage", "profiles.json is broken");
  },
  get: () => {
    throw new Failure("usage", "profiles.json is broken");
  },
};

const address = { INTEG_BASE_URL: "https://ci.example.com", INTEG_REGION: "eu" };
const client = { INTEG_CLIENT_ID: "id", INTEG_CLIENT_SECRET: "s", INTEG_TOKEN_ENDPOINT: "https://id.example.com/t" };

describe("the order of docs/design/commands.md", () => {
  it.each([
    ["-p", { flagProfile: "test", env: { INTEG_PROFILE: "prod" } }, "test", "flag"],
    ["-p over the environment", { flagProfile: "test", env: { ...address, INTEG_API_KEY: "k" } }, "test", "flag"],
    [
      "the environment over INTEG_PROFILE",
      { env: { ...address, INTEG_API_KEY: "k", INTEG_PROFILE: "test" } },
      "env",
      "environment",
    ],
    ["INTEG_PROFILE over the default", { env: { INTEG_PROFILE: "test" } }, "test", "INTEG_PROFILE"],
    ["the default", { env: {} }, "prod", "default"],
    ["sandbox by -p", { flagProfile: "sandbox", env: {} }, "sandbox", "flag"],
    ["sandbox-eu by INTEG_PROFILE", { env: { INTEG_PROFILE: "sandbox-eu" } }, "sandbox-eu", "INTEG_PROFILE"],
    ["-p env", { flagProfile: "env", env: { ...address, INTEG_API_KEY: "k" } }, "env", "flag"],
  ])("%s", (_what, input, name, source) => {
    expect(resolveProfile({ ...input, stored: stored() })).toMatchObject({ name, source });
  });

  it("uses address and region of the selected profile", () => {
    expect(resolveProfile({ env: {}, stored: stored() })).toMatchObject({
      id: prod.id,
      region: "eu",
      baseUrl: "https://prod.example.com",
      notes: [],
    });
    expect(resolveProfile({ flagProfile: "sandbox-eu", env: {}, stored: stored() })).toMatchObject({
      id: "sandbox:eu",
      region: "eu",
      baseUrl: "sandbox://eu",
    });
    expect(resolveProfile({ env: { ...address, INTEG_API_KEY: "k" }, stored: stored() })).toMatchObject({
      id: "env:https://ci.example.com",
      region: "eu",
      baseUrl: "https://ci.example.com",
    });
  });

  it("reports that -p leaves the environment's address and credentials unused", () => {
    const env = { ...address, INTEG_API_KEY: "k" };
    const { notes, baseUrl } = resolveProfile({ flagProfile: "test", env, stored: stored() });
    expect(baseUrl).toBe("https://test.example.com");
    expect(notes).toEqual(["INTEG_BASE_URL, INTEG_API_KEY, INTEG_REGION are not used: --profile test was given."]);
  });

  it("ignores a lone credential variable if -p is given, with a note", () => {
    const { notes } = resolveProfile({ flagProfile: "test", env: { INTEG_API_KEY: "k" }, stored: stored() });
    expect(notes.join()).toContain("INTEG_API_KEY is not used");
  });

  it("needs no readable store for the environment or the sandbox", () => {
    expect(resolveProfile({ env: { ...address, INTEG_API_KEY: "k" }, stored: unreadable }).name).toBe("env");
    expect(resolveProfile({ flagProfile: "sandbox", env: {}, stored: unreadable }).name).toBe("sandbox");
    expect(() => resolveProfile({ env: {}, stored: unreadable })).toThrow("profiles.json is broken");
  });

  it("does not depend on the store if the store is not used", async () => {
    const outcome = async (flagProfile: string | undefined, env: Record<string, string>, store: StoredProfiles) =>
      await Promise.resolve()
        .then(() => resolveProfile({ flagProfile, env, stored: store }))
        .catch((error: unknown) => (error as Failure).message);
    const names = [undefined, "env", "sandbox", "sandbox-eu", "test", "nobody"];
    const environments: Record<string, string>[] = [
      {},
      { INTEG_API_KEY: "k" },
      address,
      { ...address, INTEG_API_KEY: "k" },
    ];
    const needed: string[] = [];
    for (const flagProfile of names)
      for (const named of names)
        for (const one of environments) {
          const env = { ...one, ...(named === undefined ? {} : { INTEG_PROFILE: named }) };
          if (needsStored({ flagProfile, env })) needed.push(`${flagProfile} ${named}`);
          else expect(await outcome(flagProfile, env, emptyStore)).toEqual(await outcome(flagProfile, env, stored()));
        }
    expect(new Set(needed)).toContain("undefined undefined");
    expect(needed.some((line) => line.startsWith("sandbox") || line.startsWith("env"))).toBe(false);
  });
});

describe("never a silent choice", () => {
  it.each([
    ["an API key without an address", { INTEG_API_KEY: "k" }, "INTEG_BASE_URL"],
    ["a client id without an address", { INTEG_CLIENT_ID: "k" }, "INTEG_BASE_URL"],
    ["a client secret without an address", { INTEG_CLIENT_SECRET: "k" }, "INTEG_BASE_URL"],
    ["an access token without an address", { INTEG_ACCESS_TOKEN: "k" }, "INTEG_BASE_URL"],
    ["the same with INTEG_PROFILE", { INTEG_API_KEY: "k", INTEG_PROFILE: "test" }, "INTEG_BASE_URL"],
    ["an address without a credential", address, "INTEG_API_KEY"],
    ["an address and an empty key", { ...address, INTEG_API_KEY: "" }, "INTEG_API_KEY is set but empty"],
    [
      "an address and only a token endpoint",
      { ...address, INTEG_TOKEN_ENDPOINT: "https://a.example" },
      "INTEG_API_KEY",
    ],
    ["two credentials", { ...address, ...client, INTEG_API_KEY: "k" }, "two credentials"],
    ["a key and half a client", { ...address, INTEG_API_KEY: "k", INTEG_CLIENT_ID: "i" }, "two credentials"],
    [
      "a client without its secret",
      { ...address, INTEG_CLIENT_ID: "i" },
      "INTEG_CLIENT_SECRET and INTEG_TOKEN_ENDPOINT",
    ],
    ["a client without its endpoint", { ...address, ...client, INTEG_TOKEN_ENDPOINT: "" }, "INTEG_TOKEN_ENDPOINT"],
    ["no region", { ...address, INTEG_REGION: "", INTEG_API_KEY: "k" }, "Set INTEG_REGION to us or eu."],
    ["a wrong region", { ...address, INTEG_REGION: "EU", INTEG_API_KEY: "k" }, "Set INTEG_REGION to us or eu."],
    [
      "plain http",
      { ...address, INTEG_BASE_URL: "http://ci.example.com", INTEG_API_KEY: "k" },
      "Invalid INTEG_BASE_URL: it must be https",
    ],
    ["a bad organization", { ...address, INTEG_API_KEY: "k", INTEG_ORGANIZATION_ID: "x" }, "INTEG_ORGANIZATION_ID"],
    ["a key with a newline", { ...address, INTEG_API_KEY: "k3y\n" }, "INTEG_API_KEY contains a line break"],
    ["an unknown INTEG_PROFILE", { INTEG_PROFILE: "nope" }, "named by INTEG_PROFILE"],
  ])("%s: exit 2 with the variable to set", async (_what, env, words) => {
    const failure = await failureOf(() => resolveProfile({ env, stored: stored() }));
    expect(failure.kind).toBe("usage");
    expect(JSON.stringify(failure)).toContain(words);
    expect(JSON.stringify(failure)).not.toContain("k3y");
  });

  it("an unknown -p: exit 2 with the existing names", async () => {
    const failure = await failureOf(() => resolveProfile({ flagProfile: "prd", env: {}, stored: stored() }));
    expect(failure.kind).toBe("usage");
    expect(failure.details.meaning).toContain("prod, test, sandbox, sandbox-eu");
  });

  it("-p env without the environment: exit 2", async () => {
    expect((await failureOf(() => resolveProfile({ flagProfile: "env", env: {}, stored: stored() }))).kind).toBe(
      "usage",
    );
  });

  it("no profile and no variables: exit 3 with both ways to set one up", async () => {
    const failure = await failureOf(() => resolveProfile({ env: {}, stored: stored([], null) }));
    expect(failure.kind).toBe("auth");
    expect(JSON.stringify(failure)).toContain("integ profiles add");
    expect(JSON.stringify(failure)).toContain("--profile sandbox");
  });

  it("profiles without a default: exit 2 with the way to select one", async () => {
    const failure = await failureOf(() => resolveProfile({ env: {}, stored: stored([test], null) }));
    expect(failure).toMatchObject({ kind: "usage", details: { nextCommand: "integ profiles use test" } });
  });

  it("an access token alone is a credential of the environment", () => {
    expect(resolveProfile({ env: { ...address, INTEG_ACCESS_TOKEN: "t" }, stored: stored() }).name).toBe("env");
  });
});

describe("INTEG_ORGANIZATION_ID", () => {
  it("equals a profile's own in upper or lower case", () => {
    const id = "AAAAAAAA-2222-4333-8444-55555555BBBB";
    const env = { INTEG_ORGANIZATION_ID: id };
    const requested = resolveProfile({ flagProfile: "prod", env, stored: stored() });
    expect(requested.organizationId).toBe(id.toLowerCase());
    const upper = { ...test, organization_id: id };
    const both = { default: null, get: () => upper, list: () => [upper] };
    const own = resolveProfile({ flagProfile: "test", env: { INTEG_ORGANIZATION_ID: id.toLowerCase() }, stored: both });
    expect([own.organizationId, own.notes]).toEqual([id.toLowerCase(), []]);
  });

  const requested = "aaaaaaaa-2222-4333-8444-555555555555";
  it("completes a profile without an organization, and never replaces one", () => {
    const env = { INTEG_ORGANIZATION_ID: requested };
    expect(resolveProfile({ flagProfile: "prod", env, stored: stored() }).organizationId).toBe(requested);
    const own = resolveProfile({ flagProfile: "test", env, stored: stored() });
    expect(own.organizationId).toBe(test.organization_id);
    expect(own.notes.join()).toContain("INTEG_ORGANIZATION_ID is not used");
  });

  it("belongs to the environment's address if there is one", () => {
    const env = { ...address, INTEG_API_KEY: "k", INTEG_ORGANIZATION_ID: requested };
    expect(resolveProfile({ env, stored: stored() }).organizationId).toBe(requested);
    expect(resolveProfile({ flagProfile: "prod", env, stored: stored() }).organizationId).toBeUndefined();
  });
});

describe("any environment", () => {
  const value = (...values: string[]): fc.Arbitrary<string | undefined> => fc.constantFrom(undefined, "", ...values);
  const environment = fc.record({
    INTEG_BASE_URL: value("https://ci.example.com", "http://ci.example.com"),
    INTEG_REGION: value("us", "eu", "x"),
    INTEG_API_KEY: value("canary-key"),
    INTEG_CLIENT_ID: value("id"),
    INTEG_CLIENT_SECRET: value("canary-client"),
    INTEG_TOKEN_ENDPOINT: value("https://id.example.com/t"),
    INTEG_ACCESS_TOKEN: value("canary-token"),
    INTEG_PROFILE: value("test", "sandbox", "nope"),
  });

  it("gives address and credential of one source, or a usage or auth error, without a secret in either", () => {
    fc.assert(
      fc.property(environment, fc.constantFrom(undefined, "prod", "sandbox", "env", "nope"), (env, flagProfile) => {
        let shown: unknown;
        try {
          const resolution = resolveProfile({
            env,
            stored: stored(),
            ...(flagProfile !== undefined && { flagProfile }),
          });
          shown = resolution;
          const fromEnvironment = resolution.from.kind === "environment";
          expect(resolution.baseUrl === "https://ci.example.com").toBe(fromEnvironment);
          expect(resolution.name === "env").toBe(fromEnvironment);
          const credentials = [env.INTEG_API_KEY, env.INTEG_CLIENT_ID, env.INTEG_CLIENT_SECRET, env.INTEG_ACCESS_TOKEN];
          if (flagProfile === undefined && credentials.some(Boolean)) expect(fromEnvironment).toBe(true);
          if (flagProfile !== undefined && flagProfile !== "env") expect(resolution.name).toBe(flagProfile);
        } catch (error) {
          if (!(error instanceof Failure)) throw error;
          expect(["usage", "auth"]).toContain(error.kind);
          shown = [error.message, error.details];
        }
        expect(JSON.stringify(shown)).not.toContain("canary-");
      }),
      { numRuns: sampled(2000) },
    );
  });
});

describe("a question for the profile", () => {
  it.each([
    ["no other source", { env: {} }, stored(undefined, null), true],
    ["there is a default", { env: {} }, stored(), false],
    ["-p", { env: {}, flagProfile: "prod" }, stored(undefined, null), false],
    ["INTEG_PROFILE", { env: { INTEG_PROFILE: "none" } }, stored(undefined, null), false],
    ["an address", { env: address }, stored(undefined, null), false],
    ["a credential without an address", { env: { INTEG_API_KEY: "k" } }, stored(undefined, null), false],
    ["nothing is stored", { env: {} }, emptyStore, false],
  ])("is needed only if nothing else selects the profile: %s", (_what, input, profiles, expected) => {
    expect(needsChoice({ ...input, stored: profiles })).toBe(expected);
    const resolve = (): unknown => resolveProfile({ ...input, stored: profiles });
    if (expected) expect(resolve).toThrow("No default profile is set, and no profile was named.");
  });
});
