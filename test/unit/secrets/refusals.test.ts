import fs, { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { addProfile, editProfile, type ProfileStores } from "../../../src/profiles/configure.ts";
import { credentialsAt } from "../../../src/profiles/credentials.ts";
import { openProfileStore } from "../../../src/profiles/store.ts";
import { commandDestination } from "../../../src/secrets/command.ts";
import { foundAt } from "../../../src/secrets/delivered-secret.ts";
import type { RecordOf, SecretOptions } from "../../../src/secrets/destination.ts";
import { open as openKeychain } from "../../../src/secrets/keychain-store.ts";
import { profileDestination, rememberedProfile } from "../../../src/secrets/profile.ts";
import { destinationFor, type DestinationTools, rememberedDestination } from "../../../src/secrets/registry.ts";
import { maskLines } from "../../../src/secrets/stdout.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { diskError, onDisk } from "../../support/disk-calls.ts";
import { known } from "../../support/known-places.ts";
import { failureOf } from "../profiles/a-profile.ts";
import { canary, client, delivery, key } from "./a-secret.ts";

const onLinux = it.runIf(process.platform === "linux");

function toolsAt(folder: string): DestinationTools {
  return {
    env: { PATH: process.env.PATH },
    cwd: folder,
    stdoutFd: 1,
    print: async () => {},
    onStderr: () => {},
    profiles: () => Promise.reject(new Error("no profile is needed")),
    http: () => Promise.reject(new Error("nothing is sent")),
    sleep: async () => {},
    ...known,
  };
}

async function profilesAt(folder: string): Promise<ProfileStores> {
  return {
    store: await openProfileStore({ configDir: folder }),
    credentials: credentialsAt({ configDir: folder, keychain: "file", env: {} }),
  };
}

describe("secret options", () => {
  it.each<[SecretOptions, string, unknown]>([
    [
      { to: [{ kind: "store", to: "valut:a/b" }] },
      "it is not the address of a store that integ supports",
      "Write vault:<mount>/<path>#<field> or github:<owner>/<repo>[@<environment>]#<NAME> or k8s:<namespace>/<secret>#<key> or keychain:<service>/<account>; for another store use --secret-command.",
    ],
    [{ to: [], as: "json" }, "--secret-format and --secret-env are for --secret-file and --secret-command.", undefined],
    [
      { to: [], force: true },
      "--force replaces existing content, and no destination can have any.",
      "Add --secret-file <path> or another destination, or leave --force out.",
    ],
    [{ to: [{ kind: "file", path: "" }] }, "--secret-file names no file.", undefined],
    [
      { to: [{ kind: "file", path: "a b/" }] },
      "The secret cannot go to a b/: that names a folder.",
      "Name a file in it: --secret-file 'a b/client.secret'.",
    ],
    [{ to: [{ kind: "profile", name: "" }] }, "--secret-profile names no profile.", undefined],
  ])("%j", async (options, message, hint) => {
    const failure = await failureOf(() => destinationFor(options, toolsAt("/")));
    expect([failure.kind, failure.message]).toEqual(["usage", expect.stringContaining(message)]);
    expect(failure.details.hint).toEqual(hint);
  });

  it("also let --force apply to an entry's several destinations", async () => {
    const remembered: RecordOf<"several"> = {
      kind: "several",
      places: [{ state: "pending", at: { kind: "file", path: "/folder/x", as: "raw" } }],
    };
    const to = await destinationFor({ to: [], force: true, remembered }, toolsAt("/folder"));
    expect(to.record).toMatchObject({ kind: "several", places: [{ at: { kind: "file", path: "/folder/x" } }] });
  });
});

describe("a command that is not recorded", () => {
  const remembered: RecordOf<"several"> = {
    kind: "several",
    places: [{ state: "failed", at: { kind: "command", mark: "m" } }],
  };
  it("must be typed again, at every step", async () => {
    const to = await destinationFor({ to: [], remembered }, toolsAt("/"));
    expect(to.isStdout).toBe(false);
    for (const step of [() => to.check({ before: remembered }), () => to.prepare("w", { before: remembered })])
      expect(await failureOf(step)).toMatchObject({
        kind: "usage",
        message: "Commands are not stored: pass --secret-command again.",
      });
    expect((await failureOf(() => to.deliver(client, delivery))).message).toContain("pass --secret-command again");
    await to.release();
  });

  it.each<RecordOf<"command"> | { readonly kind: "stdout" }>([{ kind: "command", mark: "m" }, { kind: "stdout" }])(
    "leaves nothing to check: %j",
    async (record) => {
      const found = await rememberedDestination(record, { ...toolsAt("/"), profiles: async () => ({}) as never });
      expect([await found.completeDelivery(delivery.may), await found.reread()]).toEqual([false, undefined]);
      expect(found.removeReserve("e")).toBeUndefined();
    },
  );
});

describe("a command", () => {
  const check = (command: string, more: object = {}, env: object = { PATH: process.env.PATH }): Promise<unknown> =>
    failureOf(() =>
      commandDestination({ command, ...more }, { env: env as never, ...known, onStderr: () => {} }).check(),
    );
  onLinux("without a shell is refused", async () => {
    const { value, calls } = await onDisk(
      () => check("true"),
      ({ call }) => (call === "access" ? diskError("ENOENT", "access") : undefined),
    );
    expect(value).toMatchObject({
      kind: "usage",
      message: "--secret-command needs /bin/sh, and it cannot be run here.",
    });
    expect(calls.filter(({ call }) => call === "access").map(({ args }) => args)).toEqual([
      ["/bin/sh", fs.constants.X_OK],
    ]);
  });

  onLinux("whose program is missing is refused, and so is one that cannot receive the secret", async () => {
    expect(await check("no-such-tool-of-mine")).toEqual({
      kind: "usage",
      message: '--secret-command: the program "no-such-tool-of-mine" was not found.',
      details: { hint: "Install it, or correct the command." },
    });
    for (const [path, missing] of [["/no/such", "cat"]] as const)
      expect(await check("exit 0", {}, { PATH: path })).toEqual({
        kind: "usage",
        message: `--secret-command: the program "${missing}" was not found.`,
        details: {
          meaning: "integ passes the secret to the command through it.",
          hint: "Add its folder to PATH.",
        },
      });
    const folder = temporaryFolder();
    writeFileSync(join(folder, "cat"), "#!/bin/sh\n", { mode: 0o755 });
    expect(await check("exit 0", {}, { PATH: folder })).toMatchObject({
      message: '--secret-command: the program "wc" was not found.',
      details: { hint: "Add its folder to PATH." },
    });
  });

  it("that a person interrupts counts as not delivered", async () => {
    const reason = new Failure("interrupted", "Interrupted.");
    const place = commandDestination(
      { command: "sleep 5" },
      { env: { PATH: process.env.PATH }, ...known, onStderr: () => {}, signal: AbortSignal.abort(reason) },
    );
    const failure = await failureOf(() => place.deliver(client, delivery));
    expect(failure.kind).toBe("undelivered");
    expect(failure.message).toMatch(
      /^The --secret-command did not finish: it is not known whether it took the secret\. /,
    );
  });
});

describe("a mask", () => {
  it.each([
    ["a\rb", "::add-mask::a%0Db\n"],
    ["a\nb", "::add-mask::a%0Ab\n"],
    ["100%", "::add-mask::100%25\n"],
  ])("of %j is one line", (secret, line) => {
    const lines = maskLines(secret, "{}");
    expect(lines.startsWith(line)).toBe(true);
    expect(
      lines
        .split("\n")
        .slice(0, -1)
        .every((one) => one.startsWith("::add-mask::")),
    ).toBe(true);
  });
});

describe("a profile", () => {
  const prod = { name: "prod", region: "eu", base_url: "https://api.example.com" } as const;
  const oauth = { token_endpoint: "https://id.example.com/token", client_auth: "client_secret_post" } as const;
  const refusal = "The secret cannot become the credential of profile";
  const made = async (settings: object = {}): Promise<ProfileStores> => {
    const stores = await profilesAt(temporaryFolder());
    await addProfile(stores, { ...prod, ...settings });
    return stores;
  };

  it("that refuses the secret is undelivered", async () => {
    const stores = await made();
    const place = profileDestination({ name: "prod" }, { ...known, stores });
    expect(place.isStdout).toBe(false);
    expect(await failureOf(() => place.deliver(client, delivery))).toMatchObject({
      kind: "undelivered",
      message: `${refusal} prod: it has no token endpoint.`,
    });
    const with_ = profileDestination({ name: "prod" }, { ...known, stores: await made({ oauth }) });
    expect(await failureOf(() => with_.deliver({ ...client, clientId: undefined }, delivery))).toMatchObject({
      kind: "undelivered",
      message: `${refusal} prod: the client has no client id.`,
    });
  });

  it("without a known issuer accepts any key, in the usual style", async () => {
    const stores = await made();
    const place = profileDestination({ name: "prod", yields: "access_key" }, { ...known, stores });
    expect(await place.check()).toEqual(place.record);
    await place.deliver(key, delivery);
    expect(stores.store.get("prod")!.credential).toMatchObject({
      kind: "api_key",
      basic_style: "apikey-user",
      key_id: "key_1",
    });
  });

  it("is recognized later by its secret, under its own id, and not by the key's id", async () => {
    const stores = await made();
    const place = profileDestination({ name: "prod" }, { ...known, stores });
    await place.prepare("w");
    await place.deliver(key, delivery);
    const { record } = place as { record: RecordOf<"profile"> };
    const found = (change: Partial<RecordOf<"profile">> = {}): Promise<boolean> =>
      rememberedProfile({ ...record, ...change }, { ...known, stores: async () => stores }).completeDelivery(
        delivery.may,
      );
    expect(await found()).toBe(true);
    expect([await found({ profileId: "another" }), await found({ proof: undefined })]).toEqual([false, false]);
    const credential = { kind: "api_key", basic_style: "apikey-user", key_id: "key_1", secret: "wrong" } as const;
    await editProfile(stores, "prod", { credential });
    expect(await found()).toBe(false);
    await stores.store.remove("prod");
    expect(await found()).toBe(false);
  });

  it("that another process replaced meanwhile is checked again, and not overwritten", async () => {
    const stores = await made();
    const place = profileDestination({ name: "prod" }, { ...known, stores });
    await place.prepare("w");
    const credential = { kind: "api_key", basic_style: "apikey-user", secret: "theirs" } as const;
    let decisions = 0;
    const may: typeof delivery.may = async () => {
      decisions += 1;
      if (decisions === 1) await editProfile(stores, "prod", { credential });
      else throw new Failure("usage", "It is another's.");
    };
    expect((await failureOf(() => place.deliver(key, { ...delivery, may }))).kind).toBe("undelivered");
    expect([decisions, stores.store.get("prod")!.credential?.kind]).toEqual([2, "api_key"]);
  });

  it("whose store cannot be written is refused before anything is sent, and no defect is hidden", async () => {
    const stores = await made();
    const refused = new Failure("failed", "It cannot be written.");
    const testWrite = vi.spyOn(stores.credentials, "testWrite").mockRejectedValue(refused);
    onTestFinished(() => testWrite.mockRestore());
    const place = profileDestination({ name: "prod" }, { ...known, stores });
    expect((await failureOf(() => place.prepare("w"))).message).toBe("It cannot be written.");
    const broken = new TypeError("a defect");
    const get = vi.spyOn(stores.store, "get").mockImplementation(() => {
      throw broken;
    });
    onTestFinished(() => get.mockRestore());
    await expect(place.deliver(key, delivery)).rejects.toBe(broken);
  });
});

describe("the keychain as a store", () => {
  it.each([
    ["s/a", "s/a"],
    ["my service/an/account", "my service/an/account"],
    ["integrated/a", "integrated/a"],
  ])("has the address %s", (address, normal) => {
    expect(openKeychain(address, { env: {} } as never).address).toBe(normal);
  });

  it.each(["s", "/a", "s/", "", "s/a\u0007", "s\n/a"])("has no address %j", async (address) => {
    expect(await failureOf(() => openKeychain(address, { env: {} } as never))).toMatchObject({
      kind: "usage",
      message: expect.stringContaining("it is not keychain:<service>/<account>"),
      details: { hint: "Write it like --secret-to keychain:my-service/my-account." },
    });
  });

  it("never overwrites integ's own entries", async () => {
    expect(await failureOf(() => openKeychain("integ/prod", { env: {} } as never))).toEqual({
      kind: "usage",
      message: '--secret-to keychain:integ/prod: integ keeps its own credentials under "integ".',
      details: { hint: "Name another service." },
    });
  });

  onLinux("reports at each step that it cannot be used", async () => {
    const env = { PATH: process.env.PATH, DBUS_SESSION_BUS_ADDRESS: "unix:path=/no/such" };
    const store = openKeychain("s/a", { env } as never);
    expect(await store.check()).toEqual({});
    const ends = await Promise.all(
      [() => store.prepare({}), () => store.write("x", {}, { is: "absent" }), () => store.look({})].map((step) =>
        failureOf(step),
      ),
    );
    expect(ends.map(({ kind }) => kind)).toEqual(["usage", "undelivered", "unreachable"]);
    for (const { message, details } of ends) {
      expect(message).toMatch(/^--secret-to keychain:s\/a: the keychain cannot be used: .+\.$/);
      expect(details).toEqual({ hint: "Unlock the keychain or start its service, or name another destination." });
    }
  });
});

describe("the content of a file destination", () => {
  onLinux.each(["open", "fstat", "read"])("is not known where %s fails", async (failing) => {
    const path = join(temporaryFolder(), "client");
    writeFileSync(path, canary);
    const { value } = await onDisk(
      () => failureOf(async () => foundAt(path)),
      ({ call }) => (call === failing ? diskError("EIO", call) : undefined),
    );
    expect(value).toMatchObject({ kind: "failed", message: expect.stringContaining(`Cannot read ${path}`) });
  });
});
