import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { addProfile, type ProfileStores } from "../../../src/profiles/configure.ts";
import { credentialsAt } from "../../../src/profiles/credentials.ts";
import { secretSourceOf } from "../../../src/profiles/profile.ts";
import { openProfileStore } from "../../../src/profiles/store.ts";
import type { SecretCheck, SecretFormat, SecretOptions, SingleRecord } from "../../../src/secrets/destination.ts";
import { hasContentId, type MayReplace } from "../../../src/secrets/destination.ts";
import { destinationFor, type DestinationTools, rememberedDestination } from "../../../src/secrets/registry.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { known } from "../../support/known-places.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { canary, client, delivery, filesWithCanary, key } from "./a-secret.ts";

interface Setup {
  readonly folder: string;
  readonly stores: ProfileStores;
  readonly stderr: string[];
  readonly tools: DestinationTools;
}

async function setUp(more: Partial<DestinationTools> = {}): Promise<Setup> {
  const folder = temporaryFolder();
  const configDir = join(folder, "config");
  const stores = {
    store: await openProfileStore({ configDir }),
    credentials: credentialsAt({ configDir, keychain: "file", env: {} }),
  };
  const stderr: string[] = [];
  const tools: DestinationTools = {
    env: process.env,
    cwd: folder,
    stdoutFd: 1,
    print: () => Promise.reject(new Error("nothing is printed here")),
    onStderr: (chunk) => stderr.push(Buffer.from(chunk).toString()),
    profiles: () => Promise.resolve(stores),
    http: () => Promise.reject(new Error("nothing is sent")),
    sleep: async () => {},
    ...known,
    ...more,
  };
  return { folder, stores, stderr, tools };
}

describe("the secret options", () => {
  const file = { kind: "file", path: "a" } as const;
  const command = { kind: "command", command: "cat" } as const;
  const profile = { kind: "profile", name: "p" } as const;

  it.each([
    ["a format with a profile", { to: [profile], as: "json" }],
    ["one file twice", { to: [file, { kind: "file", path: "./a" }] }],
    ["one command twice", { to: [command, file, { kind: "command", command: " cat" }] }],
    ["one profile twice", { to: [profile, profile] }],
    ["one store twice", { to: [0, 1].map(() => ({ kind: "store", to: "keychain:s/a" }) as const) }],
    ["a store without an address", { to: [{ kind: "store", to: "keychain" }] }],
    ["an invalid address", { to: [{ kind: "store", to: "keychain:s" }] }],
    ["integ's own keychain entry", { to: [{ kind: "store", to: "keychain:integ/prod" }] }],
  ] satisfies [string, SecretOptions][])("%s: exit 2", async (_what, options) => {
    const { folder, tools } = await setUp();
    expect((await failureOf(() => destinationFor(options, tools))).kind).toBe("usage");
    expect(readdirSync(folder)).toEqual([]);
  });

  it("refuse one file under two names of its folder: exit 2", async () => {
    const { folder, tools } = await setUp();
    symlinkSync(folder, join(folder, "link"));
    const two = await failureOf(() => destinationFor({ to: [file, { kind: "file", path: "link/a" }] }, tools));
    expect(two).toMatchObject({ kind: "usage", message: expect.stringContaining("given twice") });
  });

  it("with --force cover the content before any question, not what a person writes before the answer", async () => {
    const { folder, tools } = await setUp();
    const path = join(folder, "a");
    writeFileSync(path, "shown", { mode: 0o600 });
    const destination = await destinationFor({ to: [{ kind: "file", path }], force: true }, tools);
    writeFileSync(path, "written since");
    const consents: boolean[] = [];
    const may: MayReplace = async (place, found) =>
      void consents.push(hasContentId(found, "consent" in place ? place.consent : undefined, tools.digests));
    await destination.prepare("w", { may });
    await destination.release();
    writeFileSync(path, "shown");
    await destination.prepare("w", { may });
    await destination.release();
    expect(consents).toEqual([false, true]);
  });

  it("without a destination use standard output", async () => {
    expect((await destinationFor({ to: [] }, (await setUp()).tools)).isStdout).toBe(true);
    expect((await destinationFor({ to: [file] }, (await setUp()).tools)).isStdout).toBe(false);
  });
});

describe("--secret-command", () => {
  async function deliver(
    command: string,
    given?: Setup,
    more: { readonly as?: SecretFormat; readonly check?: SecretCheck; readonly commandLimitMs?: number } = {},
  ): Promise<Setup> {
    const at = given ?? (await setUp());
    const { commandLimitMs = 5_000, ...how } = more;
    const destination = await destinationFor({ to: [{ kind: "command", command, ...how }], commandLimitMs }, at.tools);
    await destination.check();
    expect(await destination.prepare("w")).toEqual({
      kind: "command",
      mark: expect.stringMatching(/^[0-9a-f]{8}$/),
      ...(how.check && { check: how.check.by }),
    });
    await destination.deliver(client, delivery);
    await destination.release();
    return at;
  }

  it("gets the secret on standard input in the format; its output goes to standard error", async () => {
    const at = await setUp();
    await deliver(`cat > ${at.folder}/raw; echo stored; echo careful >&2`, at);
    expect(readFileSync(join(at.folder, "raw"), "utf8")).toBe(canary);
    expect(at.stderr.join("")).toContain("stored");
    expect(at.stderr.join("")).toContain("careful");
    await deliver(`cat > ${at.folder}/json`, at, { as: "json" });
    expect(JSON.parse(readFileSync(join(at.folder, "json"), "utf8"))).toEqual({
      client_id: "cid_1",
      client_secret: canary,
    });
  });

  it("has no secret in its environment or arguments, nor in integ's", async () => {
    const at = await setUp({ env: { ...process.env, INTEG_API_KEY: "canary-env", INTEG_CLIENT_SECRET: "canary-env" } });
    await deliver(
      `env > ${at.folder}/seen; cat /proc/$$/cmdline /proc/$PPID/cmdline >> ${at.folder}/seen; cat > /dev/null`,
      at,
    );
    expect(readFileSync(join(at.folder, "seen"), "latin1")).not.toContain("canary-");
  });

  it.each([
    ["fails", "cat > /dev/null; exit 4", "failed with exit status 4"],
    ["ends with an unknown command", "cat > /dev/null; no-such-command-of-mine", "exit status 127"],
    ["reads nothing", "true", "without reading the secret"],
    ["closes its input", "exec <&-; sleep 0.1", "without reading the secret"],
    ["reads half", "dd bs=1 count=3 of=/dev/null 2>/dev/null", "without reading the secret"],
    ["hangs", "sleep 60", "did not finish within 1 s"],
  ])("that %s: exit 12", async (_what, command, words) => {
    const failure = await failureOf(() => deliver(command, undefined, { commandLimitMs: 1_000 }));
    expect(failure).toMatchObject({ kind: "undelivered", message: expect.stringContaining(words) });
    expect(JSON.stringify(failure)).not.toContain(canary);
  });

  it("gets the public facts in its environment, never the secret", async () => {
    const at = await setUp();
    await deliver(`env > ${at.folder}/seen; cat > /dev/null`, at);
    const seen = readFileSync(join(at.folder, "seen"), "utf8").split("\n");
    expect(seen).toEqual(
      expect.arrayContaining([
        "INTEG_RESOURCE_ID=oc_1",
        "INTEG_OAUTH_CLIENT_ID=cid_1",
        "INTEG_SERVICE_ACCOUNT=sa_1",
        "INTEG_PROFILE_NAME=prod",
        "INTEG_ENTRY=6k2f9",
      ]),
    );
    expect(seen.join()).not.toContain(canary);
  });

  it.each<[string, string, SecretCheck, SecretFormat]>([
    ["prints it back", "cat > kept", { command: "cat kept", by: "output" }, "raw"],
    ["prints it with a newline", "cat > kept", { command: "cat kept; echo", by: "output" }, "raw"],
    ["prints one field of it", "cat > kept", { command: `printf ${canary}`, by: "output" }, "json"],
    ["only ends with 0", "cat > kept", { command: "test -s kept", by: "exit" }, "raw"],
  ])("is accepted if its check %s", async (_what, command, check, as) => {
    const at = await setUp();
    await deliver(`cd ${at.folder}; ${command}`, at, {
      as,
      check: { ...check, command: `cd ${at.folder}; ${check.command}` },
    });
    expect(at.stderr.join("")).not.toContain(canary);
  });

  it.each<[string, SecretCheck, string]>([
    ["prints something else", { command: "echo another", by: "output" }, "something other"],
    ["prints two newlines", { command: `printf '${canary}\n\n'`, by: "output" }, "something other"],
    ["prints its beginning", { command: "printf canary-8f", by: "output" }, "something other"],
    ["prints nothing", { command: "true", by: "output" }, "something other"],
    ["fails", { command: "exit 3", by: "output" }, "exit status 3"],
    ["fails, if its exit status counts", { command: "exit 3", by: "exit" }, "exit status 3"],
    ["hangs", { command: "sleep 60", by: "exit" }, "did not finish within 1 s"],
  ])("is refused if its check %s: exit 12", async (_what, check, words) => {
    const failure = await failureOf(() => deliver("cat > /dev/null", undefined, { check, commandLimitMs: 1_000 }));
    expect(failure).toMatchObject({ kind: "undelivered", message: expect.stringContaining(words) });
    expect(JSON.stringify(failure)).not.toContain(canary);
  });

  it("that is empty: exit 2 before anything is sent", async () => {
    const destination = await destinationFor({ to: [{ kind: "command", command: " \n" }] }, (await setUp()).tools);
    expect((await failureOf(() => destination.check())).kind).toBe("usage");
  });
});

describe("--secret-profile", () => {
  const prod = { name: "prod", region: "eu", base_url: "https://api.example.com" } as const;
  const oauth = { token_endpoint: "https://id.example.com/token", client_auth: "client_secret_post" } as const;
  const issuedBy = { baseUrl: "https://api.example.com/" };

  it("makes an OAuth client the profile's credential, and is recognized later", async () => {
    const at = await setUp({ issuedBy });
    const { profile } = await addProfile(at.stores, {
      ...prod,
      oauth,
      credential: { kind: "api_key", basic_style: "apikey-user", secret: "old" },
    });
    const destination = await destinationFor(
      { to: [{ kind: "profile", name: "prod" }], yields: "oauth_client" },
      at.tools,
    );
    await destination.check();
    const record = (await destination.prepare("w")) as SingleRecord;
    expect(record).toEqual({ kind: "profile", name: "prod", profileId: profile.id, machine: "machine-1" });
    const delivered = async (): Promise<boolean> => {
      const remembered = await rememberedDestination(destination.record as SingleRecord, at.tools);
      return remembered.completeDelivery(delivery.may);
    };
    expect(await delivered()).toBe(false);
    await destination.deliver(client, delivery);
    const now = at.stores.store.get("prod")!;
    expect(now.credential).toMatchObject({
      kind: "client_credentials",
      client_id: "cid_1",
      client_auth: "client_secret_post",
    });
    const source = secretSourceOf(now.credential!);
    if (source.from !== "stored") throw new Error("not kept");
    expect(await at.stores.credentials.read(source, now.credential_origins)).toBe(canary);
    expect(await delivered()).toBe(true);
    expect(filesWithCanary(at.folder)).toHaveLength(1);
    expect(readdirSync(at.stores.credentials.folder)).toHaveLength(1);
  });

  it("makes an access key the profile's credential, and keeps its style", async () => {
    const at = await setUp({ issuedBy });
    await addProfile(at.stores, {
      ...prod,
      credential: { kind: "api_key", basic_style: "key-as-user", secret: "old" },
    });
    const destination = await destinationFor({ to: [{ kind: "profile", name: "prod" }] }, at.tools);
    await destination.prepare("w");
    await destination.deliver(key, delivery);
    expect(at.stores.store.get("prod")!.credential).toMatchObject({ basic_style: "key-as-user", key_id: "key_1" });
    const remembered = await rememberedDestination(destination.record as SingleRecord, at.tools);
    expect(await remembered.completeDelivery(delivery.may)).toBe(true);
  });

  it.each([
    ["does not exist", "nope", {}, "does not exist"],
    ["is the sandbox's", "sandbox", {}, "its credentials are its own"],
    ["is the environment's", "env", {}, "it is the environment's"],
    ["has no token endpoint", "prod", {}, "no token endpoint"],
    ["belongs to another host", "prod", { issuedBy: { baseUrl: "https://api.eu.example.com" } }, "issues the secret"],
    ["is issued by the sandbox", "prod", { issuedBy: { baseUrl: "sandbox://eu" } }, "issues the secret"],
    [
      "is another organization's",
      "prod",
      { issuedBy: { ...issuedBy, organizationId: "22222222-2222-4333-8444-555555555555" } },
      "another organization",
    ],
  ])("that %s: exit 2 before anything is sent", async (_what, name, more, words) => {
    const at = await setUp({ issuedBy, ...more });
    await addProfile(at.stores, { ...prod, organization_id: "11111111-2222-4333-8444-555555555555" });
    const destination = await destinationFor({ to: [{ kind: "profile", name }], yields: "oauth_client" }, at.tools);
    for (const step of [() => destination.check(), () => destination.prepare("w")]) {
      expect(await failureOf(step)).toMatchObject({ kind: "usage", message: expect.stringContaining(words) });
    }
  });

  it("that was removed, or removed and added again: exit 12, and no copy of the secret is kept", async () => {
    for (const again of [false, true]) {
      const at = await setUp({ issuedBy });
      await addProfile(at.stores, { ...prod, oauth });
      const destination = await destinationFor({ to: [{ kind: "profile", name: "prod" }] }, at.tools);
      await destination.prepare("w");
      await at.stores.store.remove("prod");
      if (again) await addProfile(at.stores, { ...prod, oauth });
      expect((await failureOf(() => destination.deliver(client, delivery))).kind).toBe("undelivered");
      expect(filesWithCanary(at.folder)).toEqual([]);
    }
  });
});
