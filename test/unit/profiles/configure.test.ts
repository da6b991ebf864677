import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { credentialsAt } from "../../../src/profiles/credentials.ts";
import {
  addProfile,
  editProfile,
  type NewCredential,
  type ProfileStores,
  removeProfile,
} from "../../../src/profiles/configure.ts";
import { oauthOf, type Profile, secretSourceOf } from "../../../src/profiles/profile.ts";
import { openProfileStore } from "../../../src/profiles/store.ts";
import { failureOf } from "./a-profile.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

const key: NewCredential = { kind: "api_key", basic_style: "apikey-user", secret: "canary-1" };
const client: NewCredential = {
  kind: "client_credentials",
  client_id: "cid",
  token_endpoint: "https://id.example.com/token",
  client_auth: "client_secret_basic",
  secret: "canary-2",
};
const prod = { name: "prod", region: "eu", base_url: "https://api.example.com/" } as const;

async function setUp(): Promise<ProfileStores & { keptSecrets: () => string[] }> {
  const configDir = temporaryFolder();
  const credentials = credentialsAt({ configDir, keychain: "file", env: {} });
  return {
    store: await openProfileStore({ configDir }),
    credentials,
    keptSecrets: () => {
      try {
        return readdirSync(credentials.folder);
      } catch {
        return [];
      }
    },
  };
}

async function secretOf(stores: ProfileStores, profile: Profile): Promise<string> {
  const source = secretSourceOf(profile.credential!);
  if (source.from !== "stored") throw new Error("not kept");
  return stores.credentials.read(source, profile.credential_origins);
}

describe("adding a profile", () => {
  it("stores the secret outside of profiles.json, bound to the origin", async () => {
    const stores = await setUp();
    const { profile } = await addProfile(stores, { ...prod, credential: key });
    expect(profile).toMatchObject({
      base_url: "https://api.example.com",
      credential_origins: ["https://api.example.com"],
    });
    expect(readFileSync(stores.store.path, "utf8")).not.toContain("canary");
    expect(stores.keptSecrets()).toHaveLength(1);
    const { profile: second } = await addProfile(stores, { ...prod, name: "second", credential: client });
    expect(second.credential_origins).toEqual(["https://id.example.com", "https://api.example.com"]);
  });

  it.each([
    ["a taken name", { ...prod, credential: key }],
    ["a reserved name", { ...prod, name: "sandbox", credential: key }],
    ["plain http", { ...prod, name: "new", base_url: "http://api.example.com", credential: key }],
    ["a bad organization", { ...prod, name: "new", organization_id: "x", credential: key }],
    ["a bad version", { ...prod, name: "new", service_version: "latest", credential: key }],
    [
      "a bad token endpoint",
      { ...prod, name: "new", credential: { ...client, token_endpoint: "http://id.example.com" } },
    ],
    [
      "a bad exchange endpoint",
      { ...prod, name: "new", credential: key, legacy: { kind: "access_token_endpoint", url: "nowhere" } as const },
    ],
    ["an empty key", { ...prod, name: "new", credential: { ...key, secret: "" } }],
    ["a key with a newline", { ...prod, name: "new", credential: { ...key, secret: "canary\n" } }],
  ])("with %s is exit 2 and leaves nothing behind", async (_what, settings) => {
    const stores = await setUp();
    await addProfile(stores, prod);
    const before = readFileSync(stores.store.path, "utf8");
    const failure = await failureOf(() => addProfile(stores, settings));
    expect(failure.kind).toBe("usage");
    expect(JSON.stringify(failure)).not.toContain("canary");
    expect(readFileSync(stores.store.path, "utf8")).toBe(before);
    expect(stores.keptSecrets()).toEqual([]);
  });
});

it.each(["\uD800canary", "canary\uDC00"])("a secret with half a character is refused: %j", async (secret) => {
  const stores = await setUp();
  const refused = await failureOf(() => addProfile(stores, { ...prod, credential: { ...key, secret } }));
  expect(refused).toMatchObject({ kind: "usage", message: expect.stringContaining("lone surrogate") });
  expect(stores.keptSecrets()).toEqual([]);
});

describe("changing a profile", () => {
  it("keeps the credential at the same origin; at another, drops it with its token source and reports it", async () => {
    const stores = await setUp();
    await addProfile(stores, { ...prod, credential: key, legacy: { kind: "access_token_command", command: "x" } });
    const same = await editProfile(stores, "prod", { base_url: "https://api.example.com/v2", region: "us" });
    expect(same.notes).toEqual([]);
    expect(same.profile).toMatchObject({ base_url: "https://api.example.com/v2", credential: { kind: "api_key" } });
    const { profile, notes } = await editProfile(stores, "prod", { base_url: "https://api.example.net" });
    expect(profile).toMatchObject({ credential: null, credential_origins: [] });
    expect(profile.legacy).toBeUndefined();
    expect(notes).toEqual([
      "The credential of profile prod was given for https://api.example.com: removed.",
      "The legacy token settings of profile prod were given for https://api.example.com: removed.",
    ]);
    expect(stores.keptSecrets()).toEqual([]);
  });

  it("drops client credentials when their token endpoint moves to another origin", async () => {
    const stores = await setUp();
    await addProfile(stores, { ...prod, credential: client });
    const oauth = { client_auth: "client_secret_basic", token_endpoint: "https://id.example.com/v2/token" } as const;
    const near = await editProfile(stores, "prod", { oauth });
    expect(near.profile.credential).toMatchObject({ token_endpoint: "https://id.example.com/v2/token" });
    const far = await editProfile(stores, "prod", {
      oauth: { ...oauth, token_endpoint: "https://id.example.net/token" },
    });
    expect([far.profile.credential, far.notes.length, stores.keptSecrets()]).toEqual([null, 1, []]);
  });

  const exchange = {
    token_endpoint: "https://id.example.com/token",
    client_auth: "client_secret_basic",
    audience: "api",
    issuer: "https://id.example.com",
  } as const;
  it.each([
    ["an API key with a token endpoint", { credential: key, oauth: exchange }],
    ["client credentials", { credential: { ...client, ...exchange } }],
    ["no credential", { credential: null, oauth: exchange }],
  ])("with %s to another base URL removes everything of the old token exchange, and reports it", async (_of, given) => {
    const stores = await setUp();
    await addProfile(stores, { ...prod, ...given });
    const { profile, notes } = await editProfile(stores, "prod", { base_url: "https://api.example.net" });
    expect(oauthOf(profile)).toBeUndefined();
    expect(JSON.stringify(profile)).not.toContain("example.com");
    expect(notes).toContain(
      "The token endpoint (with its audience and issuer) of profile prod was given for https://api.example.com: removed.",
    );
    const newEndpoint = { token_endpoint: "https://id.example.net/token", client_auth: "client_secret_basic" } as const;
    const again = await editProfile(stores, "prod", { base_url: "https://api.example.org", oauth: newEndpoint });
    expect(oauthOf(again.profile)).toEqual(newEndpoint);
  });

  it("to a new address with its new credential is one step", async () => {
    const stores = await setUp();
    await addProfile(stores, { ...prod, credential: key });
    const { profile, notes } = await editProfile(stores, "prod", {
      base_url: "https://api.example.net",
      credential: { ...key, secret: "canary-9" },
    });
    expect(notes).toEqual([]);
    expect(profile.credential_origins).toEqual(["https://api.example.net"]);
    expect(await secretOf(stores, profile)).toBe("canary-9");
    expect(stores.keptSecrets()).toHaveLength(1);
  });

  it("replaces a credential, deletes the old secret, and keeps the token endpoint", async () => {
    const stores = await setUp();
    await addProfile(stores, { ...prod, credential: client });
    const { profile } = await editProfile(stores, "prod", { credential: key });
    expect(profile.oauth?.token_endpoint).toBe("https://id.example.com/token");
    expect(stores.keptSecrets()).toHaveLength(1);
    const without = await editProfile(stores, "prod", { credential: null, organization_id: null });
    expect([without.profile.credential, stores.keptSecrets()]).toEqual([null, []]);
  });

  it("leaves the old secret usable if profiles.json cannot be written", async () => {
    const stores = await setUp();
    const { profile } = await addProfile(stores, { ...prod, credential: key });
    const full = (): Promise<never> => Promise.reject(new Failure("failed", "no space left"));
    const changes = { add: full, edit: full, remove: full, use: full };
    const store = {
      path: "",
      default: null,
      list: () => [profile],
      get: () => profile,
      named: () => profile,
      ...changes,
    };
    const broken: ProfileStores = { ...stores, store };
    expect((await failureOf(() => editProfile(broken, "prod", { credential: { ...key, secret: "new" } }))).kind).toBe(
      "failed",
    );
    expect(await secretOf(stores, profile)).toBe("canary-1");
    expect(stores.keptSecrets()).toHaveLength(1);
  });
});

describe("removing a profile", () => {
  it("deletes its secret", async () => {
    const stores = await setUp();
    const { profile } = await addProfile(stores, { ...prod, credential: key });
    await removeProfile(stores, profile);
    expect([stores.store.list(), stores.keptSecrets()]).toEqual([[], []]);
  });

  it("keeps a credential, and a profile of that name, that were stored since", async () => {
    const stores = await setUp();
    const { profile: seen } = await addProfile(stores, { ...prod, credential: key });
    await editProfile(stores, "prod", { credential: { ...key, secret: "new" } });
    expect((await failureOf(() => removeProfile(stores, seen))).kind).toBe("conflict");
    expect(await secretOf(stores, stores.store.named("prod"))).toBe("new");
    await removeProfile(stores, stores.store.named("prod"));
    const none = { ...prod, credential: null };
    const { profile: first } = await addProfile(stores, none);
    await removeProfile(stores, first);
    await addProfile(stores, none);
    expect((await failureOf(() => removeProfile(stores, first))).kind).toBe("conflict");
  });
});
