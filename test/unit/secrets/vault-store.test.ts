// After a lost response to a write, a read decides. The server is test/support/vault-server.ts.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { hasContentId, type MayReplace, type SecretOptions } from "../../../src/secrets/destination.ts";
import { destinationFor } from "../../../src/secrets/registry.ts";
import { startTlsFront } from "../../support/tls-front.ts";
import { vaultOfFile } from "../../support/vault-server.ts";
import { canary, mayReplace } from "./a-secret.ts";
import { closeConnections, deliver, setUp, endOf, isFound, prepared, type StoreSetup } from "./a-store.ts";
import { isMissing } from "../../support/tools.mjs";

const vault = await vaultOfFile();
afterEach(() => {
  closeConnections();
  vault.calm();
  vault.isSealed = false;
  vault.secrets.clear();
});

const path = "secret/apps/ci";
const to = `vault:${path}#client_secret`;
const all = ["create", "read", "update", "patch"];

function at(token = vault.token(...all), env: Readonly<Record<string, string>> = {}): StoreSetup {
  return setUp({ VAULT_ADDR: vault.origin, VAULT_TOKEN: token, ...env });
}

const ways: readonly [string, readonly string[], () => void][] = [
  ["patched", all, () => vault.put(path, { client_secret: "old", other: "kept" })],
  ["replaced", ["create", "read", "update"], () => vault.put(path, { client_secret: "old", other: "kept" })],
  ["created", all, () => {}],
  [
    "created again",
    all,
    () => {
      vault.put(path, { client_secret: "old", other: "gone" });
      vault.put(path, {}, { isDeleted: true });
    },
  ],
];

const write = /^(?:PATCH|POST) \/v1\/secret\/data/;
const versions = (): number => vault.secrets.get(path)?.length ?? 0;

describe("--force", () => {
  const store = { kind: "store", to } as const;
  const several = { kind: "several", places: [{ state: "failed", at: { ...store, facts: {} } }] } as const;

  it.each<[string, SecretOptions]>([
    ["a typed destination", { to: [store], force: true }],
    ["a destination of the entry", { to: [], force: true, remembered: several }],
  ])(
    "for %s covers the content before a question, not what a person writes before the answer",
    async (_what, options) => {
      vault.put(path, { client_secret: "shown" });
      const { tools } = at();
      const destination = await destinationFor(options, tools);
      vault.put(path, { client_secret: "written since" });
      const consents: boolean[] = [];
      const may: MayReplace = async (place, found) =>
        void consents.push(hasContentId(found, "consent" in place ? place.consent : undefined, tools.digests));
      await destination.prepare("w", { may });
      vault.put(path, { client_secret: "shown" });
      await destination.prepare("w", { may });
      expect(consents).toEqual([false, true]);
    },
  );

  it("does not keep a destination that fails from the others of the entry", async () => {
    const { tools } = at("no token of this server");
    await expect(destinationFor({ to: [], force: true, remembered: several }, tools)).resolves.toBeDefined();
  });
});

describe.each(ways)("a secret that is %s", (way, capabilities, arrange) => {
  const others = way === "patched" || way === "replaced" ? { other: "kept" } : {};
  const begin = async (
    may?: MayReplace,
  ): Promise<{ at: StoreSetup; before: number; finish: () => Promise<string> }> => {
    arrange();
    const here = at(vault.token(...capabilities));
    const destination = await prepared(here, to);
    return { at: here, before: versions(), finish: () => endOf(() => deliver(here, destination, may)) };
  };

  it("is exactly the secret, in one more version, next to the other fields", async () => {
    const { at: here, before, finish } = await begin();
    expect(await finish()).toBe("delivered");
    expect([vault.current(path), versions()]).toEqual([{ client_secret: canary, ...others }, before + 1]);
    expect(vault.log.filter((line) => write.test(line))).toEqual([
      `${way === "patched" ? "PATCH" : "POST"} /v1/secret/data/apps/ci`,
    ]);
    const method = capabilities.includes("patch") ? "patch" : "replace";
    expect(here.record).toEqual({
      kind: "store",
      to,
      facts: { server: vault.origin, namespace: "root", mount: "secret/", method },
      proof: expect.stringMatching(/^[0-9a-f]{8}\.[\w-]{43}$/),
    });
    expect(await isFound(here)).toBe(true);
  });

  it.each<[string, boolean, () => void]>([
    ["another field", true, () => vault.put(path, { ...vault.current(path), new: "1" })],
    ["the same field", false, () => vault.put(path, { ...vault.current(path), client_secret: "theirs" })],
    ["only the version", true, () => vault.put(path, { ...vault.current(path) })],
  ])("overwrites nothing after someone else changed %s", async (_what, isOurs, change) => {
    for (const when of ["before the write", "with its response lost"]) {
      vault.secrets.clear();
      vault.calm();
      const { at: here, before, finish } = await begin(mayReplace("old"));
      if (when === "before the write") change();
      else {
        vault.plan(write, change);
        vault.plan(write, "lost before");
      }
      expect(await finish()).toMatch(isOurs ? /^delivered$/ : /^conflict: /);
      const theirs = vault.secrets.get(path)?.[before]?.fields;
      const expected = isOurs ? { ...theirs, client_secret: canary } : theirs;
      expect([versions(), vault.current(path)]).toEqual([before + (isOurs ? 2 : 1), expected]);
      expect(await isFound(here)).toBe(isOurs);
    }
  });
});

describe("before anything is sent to the API", () => {
  const no = (words: string | RegExp, kind = "usage"): RegExp =>
    new RegExp(`^${kind}: [^]*${typeof words === "string" ? words : words.source}`);
  const end = (here: StoreSetup, address = to): Promise<string> => endOf(() => prepared(here, address));

  it.each<[string, Readonly<Record<string, string | undefined>>, RegExp]>([
    ["an empty server", { VAULT_ADDR: "" }, no("needs VAULT_ADDR")],
    ["an invalid server address", { VAULT_ADDR: "vault.example.com" }, no("Invalid VAULT_ADDR: ")],
    [
      "a server without TLS",
      { VAULT_ADDR: "http://vault.example.com" },
      no("Invalid VAULT_ADDR .* plain http is allowed to this machine only"),
    ],
    ["a server with a password", { VAULT_ADDR: "https://me:pass@vault.example.com" }, no("Invalid VAULT_ADDR: ")],
    ["a token with a newline", { VAULT_TOKEN: "a\n" }, no("VAULT_TOKEN contains a line break")],
  ])("%s", async (_what, env, expected) => {
    const here = setUp({ VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.root, HOME: "/no/such/home", ...env });
    expect(await end(here)).toMatch(expected);
    expect(vault.log).toEqual([]);
  });

  it("a sealed server is reported without waiting, and a busy one is waited for", async () => {
    const waits: number[] = [];
    const sleep = async (ms: number): Promise<void> => void waits.push(ms);
    const env = { VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.token(...all) };
    vault.isSealed = true;
    expect(await end(setUp(env, { sleep }))).toMatch(no("is sealed"));
    expect([waits, vault.log.filter((line) => line.includes("/mounts/"))]).toEqual([[], [expect.anything()]]);
    vault.isSealed = false;
    vault.calm();
    vault.plan(/\/mounts\//, { status: 503, body: { errors: ["busy"] } }, 2);
    expect(await end(setUp(env, { sleep }))).toBe("delivered");
    expect(waits).toHaveLength(2);
    // If the server is sealed during the write, integ does not wait either.
    waits.length = 0;
    const here = setUp(env, { sleep });
    const destination = await prepared(here, to);
    vault.plan(write, () => (vault.isSealed = true));
    expect(await endOf(() => deliver(here, destination))).toMatch(no("is sealed", "undelivered"));
    expect(waits).toEqual([]);
  });

  it("a closed port", async () => {
    const here = setUp({ VAULT_ADDR: "http://127.0.0.1:1", VAULT_TOKEN: "token" });
    expect(await end(here)).toMatch(/^unreachable: Vault at http:\/\/127\.0\.0\.1:1 gave no response/);
  });
});

it("a delivery finds the mount with any slashes, and sends the namespace", async () => {
  const here = at(vault.root, { VAULT_NAMESPACE: "/admin/" });
  await deliver(here, await prepared(here, "vault:team/apps/a b/c#the field"));
  expect(vault.current("team/apps/a b/c")).toEqual({ "the field": canary });
  expect(here.record).toMatchObject({ facts: { namespace: "admin", mount: "team/apps/" } });
  expect(vault.requests.every(({ headers }) => headers["x-vault-namespace"] === "admin")).toBe(true);
});

it.each(["constructor", "__proto__", "toString"])("a delivery treats the field %s like any other", async (field) => {
  const here = at();
  await deliver(here, await prepared(here, `vault:${path}#${field}`));
  expect(Object.entries(vault.current(path) ?? {})).toEqual([[field, canary]]);
});

it.skipIf(isMissing("openssl"))(
  "a delivery trusts the authorities of VAULT_CACERT, and without it only the system's",
  async () => {
    const front = await startTlsFront(vault.origin);
    const folder = mkdtempSync(join(tmpdir(), "integ-vault-"));
    const path = join(folder, "ca.pem");
    writeFileSync(path, front.authority);
    const env = { VAULT_ADDR: front.origin };
    expect(await endOf(() => prepared(at(vault.root, env), to))).toMatch(/^unreachable: .*TLS handshake failed/);
    expect(vault.log).toEqual([]);
    const here = at(vault.root, { ...env, VAULT_CACERT: path });
    expect(await endOf(async () => deliver(here, await prepared(here, to)))).toBe("delivered");
    closeConnections();
    await front.close();
    rmSync(folder, { recursive: true });
  },
);

it("a secret is sent only to the recorded server", async () => {
  const here = at();
  await deliver(here, await prepared(here, to));
  const moved = { ...here, tools: { ...here.tools, env: { ...here.tools.env, VAULT_NAMESPACE: "admin" } } };
  expect(await endOf(() => isFound(moved))).toMatch(/^usage: .*the namespace was root, and is admin now/);
});
