import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { activate, type ActivationTools } from "../../../src/profiles/active-profile.ts";
import { credentialsAt } from "../../../src/profiles/credentials.ts";
import { addProfile, type NewCredential } from "../../../src/profiles/configure.ts";
import type { ActiveProfile, LegacyAccess } from "../../../src/profiles/profile.ts";
import { resolveProfile } from "../../../src/profiles/resolution.ts";
import { openProfileStore } from "../../../src/profiles/store.ts";
import { failureOf } from "./a-profile.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

const organization_id = "11111111-2222-4333-8444-555555555555";
const base_url = "https://api.example.com";

interface Setup {
  readonly credential?: NewCredential;
  readonly legacy?: LegacyAccess;
  readonly organization?: boolean;
  readonly tamper?: (text: string) => string;
}

async function prod(setup: Setup): Promise<ActiveProfile> {
  const configDir = temporaryFolder();
  const store = await openProfileStore({ configDir });
  const credentials = credentialsAt({ configDir, keychain: "file", env: {} });
  const { credential, legacy, organization = true } = setup;
  await addProfile(
    { store, credentials },
    {
      name: "prod",
      region: "eu",
      base_url,
      ...(credential && { credential }),
      ...(legacy && { legacy }),
      ...(organization && { organization_id }),
    },
  );
  if (setup.tamper) {
    writeFileSync(store.path, setup.tamper(readFileSync(store.path, "utf8")));
  }
  return activate(resolveProfile({ env: {}, stored: store }), { env: process.env, credentials, commandLimitMs: 5_000 });
}

const key: NewCredential = { kind: "api_key", basic_style: "key-as-user", secret: "canary-key" };
const client: NewCredential = {
  kind: "client_credentials",
  client_id: "cid",
  token_endpoint: "https://id.example.com/token",
  client_auth: "client_secret_post",
  audience: "aud",
  secret: "canary-secret",
};

describe("the credential of a stored profile", () => {
  it("is the stored key with its style", async () => {
    expect(await (await prod({ credential: key })).credential()).toEqual({
      kind: "api_key",
      key: "canary-key",
      style: "key-as-user",
    });
  });

  it("is the client with its endpoint", async () => {
    const profile = await prod({ credential: client });
    expect(await profile.credential()).toEqual({
      kind: "client_credentials",
      clientId: "cid",
      clientSecret: "canary-secret",
      tokenEndpoint: "https://id.example.com/token",
      clientAuth: "client_secret_post",
      audience: "aud",
    });
    expect(profile.oauth?.token_endpoint).toBe("https://id.example.com/token");
  });

  it("is printed by a command once, and again after a failure", async () => {
    const counter = join(temporaryFolder(), "count");
    const command = `echo x >> ${counter}; test $(wc -l < ${counter}) -gt 1 && echo key`;
    const profile = await prod({ credential: { kind: "api_key", basic_style: "apikey-user", command } });
    expect(existsSync(counter)).toBe(false);
    expect((await failureOf(() => profile.credential())).kind).toBe("auth");
    expect(await profile.credential()).toMatchObject({ key: "key" });
    expect(await profile.credential()).toMatchObject({ key: "key" });
    expect(readFileSync(counter, "utf8")).toBe("x\nx\n");
  });

  it("that is missing is exit 3 with the command to type", async () => {
    const profile = await prod({});
    expect(await failureOf(() => profile.credential())).toMatchObject({
      kind: "auth",
      details: { nextCommand: "integ profiles edit prod --api-key-stdin" },
    });
  });

  it.each([
    [
      "a kept key, another host",
      { credential: key, tamper: (text: string) => text.replace(base_url, "https://evil.example") },
    ],
    [
      "a kept key, another port",
      { credential: key, tamper: (text: string) => text.replace(`"${base_url}"`, `"${base_url}:8443"`) },
    ],
    [
      "a kept key, the binding changed with it",
      { credential: key, tamper: (text: string) => text.replaceAll(base_url, "https://evil.example") },
    ],
    [
      "a client, another token endpoint",
      { credential: client, tamper: (text: string) => text.replace("id.example.com/token", "evil.example/token") },
    ],
    [
      "a client, another base URL",
      { credential: client, tamper: (text: string) => text.replace(base_url, "https://evil.example") },
    ],
    [
      "a command, another host",
      {
        credential: { kind: "api_key", basic_style: "apikey-user", command: "echo canary-key" } as const,
        tamper: (text: string) => text.replace(base_url, "https://evil.example"),
      },
    ],
  ])("is sent to no other origin after an edit by hand: %s", async (_what, setup) => {
    const profile = await prod({ ...setup, legacy: { kind: "access_token_command", command: "cat" } });
    const again = setup.credential.kind === "api_key" ? "--api-key-stdin" : "--client-secret-stdin";
    for (const ask of [() => profile.credential(), () => profile.legacy()]) {
      const failure = await failureOf(ask);
      expect(failure.kind).toBe("auth");
      expect(failure.details.nextCommand).toBe(`integ profiles edit prod ${again}`);
      expect(JSON.stringify(failure)).not.toContain("canary");
    }
  });
});

describe("a profile's source of legacy bearer tokens", () => {
  it("is a command that gets the key's secret on standard input", async () => {
    const profile = await prod({
      credential: key,
      legacy: { kind: "access_token_command", command: "read k; echo t-$k" },
    });
    const legacy = await profile.legacy();
    if (legacy.kind !== "exchange_command") throw new Error(legacy.kind);
    expect(legacy.secret).toBe("canary-key");
    expect(await legacy.run("another")).toBe("t-another");
  });

  it("is an endpoint that gets the key's secret", async () => {
    const url = "https://api.example.com/exchange";
    const profile = await prod({ credential: key, legacy: { kind: "access_token_endpoint", url } });
    expect(await profile.legacy()).toMatchObject({ kind: "exchange_endpoint", url, secret: "canary-key" });
  });

  it.each([
    [
      "no organization: exit 2, before anything is run",
      { credential: key, organization: false, legacy: { kind: "access_token_command", command: "exit 9" } as const },
      "usage",
    ],
    ["no token source", { credential: key }, "auth"],
    [
      "an endpoint and no key",
      { credential: client, legacy: { kind: "access_token_endpoint", url: "https://api.example.com/x" } as const },
      "auth",
    ],
  ])("%s", async (_what, setup, kind) => {
    const profile = await prod(setup);
    expect((await failureOf(() => profile.legacy())).kind).toBe(kind);
  });
});

describe("the environment's profile and the sandbox", () => {
  const address = { INTEG_BASE_URL: base_url, INTEG_REGION: "us" };
  const tools = (env: Record<string, string>): ActivationTools => ({
    env,
    credentials: credentialsAt({ configDir: "/nowhere", keychain: "file", env }),
  });
  const open = async (env: Record<string, string>): Promise<ActiveProfile> =>
    activate(resolveProfile({ env, stored: await openProfileStore({ configDir: "/nowhere" }) }), tools(env));

  it("uses the environment's variables", async () => {
    expect(await (await open({ ...address, INTEG_API_KEY: "k" })).credential()).toEqual({
      kind: "api_key",
      key: "k",
      style: "apikey-user",
    });
    const client = {
      INTEG_CLIENT_ID: "i",
      INTEG_CLIENT_SECRET: "s",
      INTEG_TOKEN_ENDPOINT: "https://id.example.com/t",
      INTEG_AUDIENCE: "a",
    };
    expect(await (await open({ ...address, ...client })).credential()).toEqual({
      kind: "client_credentials",
      clientId: "i",
      clientSecret: "s",
      tokenEndpoint: "https://id.example.com/t",
      clientAuth: "client_secret_basic",
      audience: "a",
    });
  });

  it("has a legacy token only if one is given with an organization", async () => {
    const token = { ...address, INTEG_ACCESS_TOKEN: "t" };
    expect((await failureOf(async () => (await open(token)).legacy())).kind).toBe("usage");
    const whole = { ...token, INTEG_ORGANIZATION_ID: organization_id };
    expect(await (await open(whole)).legacy()).toEqual({ kind: "access_token", token: "t" });
    expect((await failureOf(async () => (await open(whole)).credential())).kind).toBe("auth");
    const keyOnly = { ...address, INTEG_API_KEY: "k", INTEG_ORGANIZATION_ID: organization_id };
    expect((await failureOf(async () => (await open(keyOnly)).legacy())).kind).toBe("auth");
  });

  it("uses the sandbox's own credentials and organization", async () => {
    const resolution = resolveProfile({
      flagProfile: "sandbox-eu",
      env: {},
      stored: await openProfileStore({ configDir: "/nowhere" }),
    });
    const regions: string[] = [];
    const profile = await activate(resolution, {
      ...tools({}),
      sandbox: async (region) => {
        regions.push(region);
        return {
          organizationId: organization_id,
          credential: async () => ({ kind: "api_key", key: "k", style: "apikey-user" }),
          legacy: async () => ({ kind: "access_token", token: "t" }),
        };
      },
    });
    expect([regions, profile.organizationId, profile.baseUrl]).toEqual([["eu"], organization_id, "sandbox://eu"]);
    expect(await profile.legacy()).toEqual({ kind: "access_token", token: "t" });
    expect(await profile.credential()).toMatchObject({ key: "k" });
  });
});
