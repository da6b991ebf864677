import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadKernelLock } from "../../../src/disk/kernel-lock.ts";
import { identify } from "../../../src/disk/lock-owner.ts";
import { tryLock } from "../../../src/disk/process-lock.ts";
import { openProfileStore } from "../../../src/profiles/store.ts";
import { aProfile, failureOf } from "./a-profile.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe("the profile store", () => {
  it("stores profiles, makes the first the default, and writes 0600 in 0700 under any umask", async () => {
    const configDir = join(temporaryFolder(), "new", "config");
    const store = await openProfileStore({ configDir });
    expect([store.list(), store.default]).toEqual([[], null]);
    const before = process.umask(0);
    const one = await store.add(aProfile({ name: "one" }));
    process.umask(before);
    const two = await store.add(aProfile({ name: "two" }));
    expect((await openProfileStore({ configDir })).list()).toEqual([one, two]);
    expect(store.default).toBe("one");
    await store.add(aProfile({ name: "three" }), { use: true });
    expect(store.default).toBe("three");
    expect([mode(configDir), mode(store.path)]).toEqual(["700", "600"]);
    expect(readdirSync(configDir)).toEqual(["profiles.json"]);
  });

  it("edits, removes and selects a profile", async () => {
    const store = await openProfileStore({ configDir: temporaryFolder() });
    const one = await store.add(aProfile({ name: "one" }));
    await store.add(aProfile({ name: "two" }));
    const edited = await store.edit("one", (profile) => ({ ...profile, region: "us", id: "x", name: "y" }));
    expect(edited).toEqual({ ...one, region: "us" });
    expect(store.get("one")).toEqual(edited);
    await store.use("two");
    expect(store.default).toBe("two");
    await store.remove("two");
    expect([store.default, store.list().length]).toEqual([null, 1]);
    await store.use("sandbox-eu");
    expect(store.default).toBe("sandbox-eu");
  });

  it.each([
    ["add a name twice", (store: Store) => store.add(aProfile({ name: "one" }))],
    ["add sandbox", (store: Store) => store.add(aProfile({ name: "sandbox" }))],
    ["add env", (store: Store) => store.add(aProfile({ name: "env" }))],
    ["add a path", (store: Store) => store.add(aProfile({ name: "../x" }))],
    ["add a long name", (store: Store) => store.add(aProfile({ name: "n".repeat(65) }))],
    ["edit a missing profile", (store: Store) => store.edit("absent", (it) => it)],
    ["remove a missing profile", (store: Store) => store.remove("absent")],
    ["use a missing profile", (store: Store) => store.use("absent")],
    ["store invalid values", (store: Store) => store.edit("one", (it) => ({ ...it, base_url: "http://example.com" }))],
  ])("refuses to %s, and changes nothing", async (_what, work) => {
    const store = await openProfileStore({ configDir: temporaryFolder() });
    await store.add(aProfile({ name: "one" }));
    const before = readFileSync(store.path, "utf8");
    expect((await failureOf(() => work(store))).kind).toBe("usage");
    expect(readFileSync(store.path, "utf8")).toBe(before);
  });
  type Store = Awaited<ReturnType<typeof openProfileStore>>;

  it("keeps a newer version's fields in profile, credential and file", async () => {
    const store = await openProfileStore({ configDir: temporaryFolder() });
    const credential = {
      kind: "api_key",
      basic_style: "apikey-user",
      source: "command",
      command: "x",
      later: 1,
    } as const;
    const profile = aProfile({ name: "one", credential, credential_origins: ["https://api.eu.example.com"] });
    const file = { version: 1, default: null, profiles: [{ ...profile, later: [2] }], later: { three: 3 } };
    writeFileSync(store.path, JSON.stringify(file), { mode: 0o600 });
    await store.edit("one", (it) => ({ ...it, region: "us" }));
    expect(JSON.parse(readFileSync(store.path, "utf8"))).toEqual({
      ...file,
      profiles: [{ ...profile, later: [2], region: "us" }],
    });
  });
});

describe("an invalid profiles.json", () => {
  const good = aProfile({ name: "one" });
  it.each([
    ["a trailing comma", `{\n  "version": 1,\n}`, "line 3, column 1: it is not valid JSON"],
    ["a truncated file", `{"version": 1, "default": nu`, "line 1, column 27: it is not valid JSON"],
    ["an empty file", "", "line 1, column 1: it is not valid JSON"],
    [
      "a wrong region",
      JSON.stringify({ version: 1, default: null, profiles: [{ ...good, region: "mars" }] }, null, 2),
      "line 7, column 17: profiles.0.region must be us or eu",
    ],
    [
      "plain http",
      JSON.stringify(
        { version: 1, default: null, profiles: [{ ...good, base_url: "http://api.example.com" }] },
        null,
        2,
      ),
      "line 8, column 19: profiles.0.base_url must be an https:// address",
    ],
    [
      "a repeated name",
      JSON.stringify({ version: 1, default: null, profiles: [good, { ...good, id: crypto.randomUUID() }] }),
      "must not repeat a name",
    ],
    ["a newer format", `{"version": 2, "default": null, "profiles": []}`, "line 1, column 13: version must be 1"],
    ["another thing", "[]", "line 1, column 1"],
  ])("%s: exit 2 with the place, and no command changes it", async (_what, text, words) => {
    const store = await openProfileStore({ configDir: temporaryFolder() });
    writeFileSync(store.path, text, { mode: 0o600 });
    for (const work of [
      () => store.list(),
      () => store.default,
      () => store.add(aProfile({ name: "new" })),
      () => store.remove("one"),
      () => store.use("one"),
    ]) {
      const failure = await failureOf(work);
      expect(failure.kind).toBe("usage");
      expect(failure.message).toContain(words);
      expect(failure.message).toContain(store.path);
    }
    expect(readFileSync(store.path, "utf8")).toBe(text);
  });

  it("may start with a byte order mark", async () => {
    const store = await openProfileStore({ configDir: temporaryFolder() });
    writeFileSync(store.path, `\uFEFF${JSON.stringify({ version: 1, default: null, profiles: [good] })}`, {
      mode: 0o600,
    });
    expect(store.list()).toEqual([good]);
  });
});

describe("permissions and links", () => {
  it("a file that others can change is not read, because it may contain commands", async () => {
    const store = await openProfileStore({ configDir: temporaryFolder() });
    await store.add(aProfile({ name: "one" }));
    chmodSync(store.path, 0o620);
    expect(await failureOf(() => store.list())).toMatchObject({
      kind: "usage",
      details: { nextCommand: `chmod 600 ${store.path}` },
    });
    chmodSync(store.path, 0o644);
    expect(store.list()).toHaveLength(1);
    await store.use("one");
    expect(mode(store.path)).toBe("600");
  });

  it("a folder that others can write to is refused", async () => {
    const configDir = temporaryFolder();
    chmodSync(configDir, 0o777);
    const store = await openProfileStore({ configDir });
    expect((await failureOf(() => store.add(aProfile({ name: "one" })))).kind).toBe("usage");
    expect(readdirSync(configDir)).toEqual([]);
  });

  it("a link to the file (dotfiles) stays, and its target is replaced", async () => {
    const folder = temporaryFolder();
    const real = join(folder, "dotfiles");
    mkdirSync(real, { mode: 0o700 });
    mkdirSync(join(folder, "config"), { mode: 0o700 });
    const store = await openProfileStore({ configDir: join(folder, "config") });
    writeFileSync(join(real, "mine.json"), `{"version":1,"default":null,"profiles":[]}`, { mode: 0o600 });
    symlinkSync(join(real, "mine.json"), store.path);
    await store.add(aProfile({ name: "one" }));
    expect(lstatSync(store.path).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(real, "mine.json"), "utf8")).toContain('"one"');
    expect(readdirSync(real)).toEqual(["mine.json"]);
  });

  it("a folder that cannot be created is reported", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "file"), "");
    const store = await openProfileStore({ configDir: join(folder, "file", "config") });
    expect(await failureOf(() => store.add(aProfile({ name: "one" })))).toMatchObject({ kind: "usage" });
  });
});

describe("a full disk", () => {
  it("is reported, and the old file stays complete (conf leaves a truncated one and reports success)", async (context) => {
    const disk = mountSmallDisk(64, context);
    const store = await openProfileStore({ configDir: disk });
    await store.add(aProfile({ name: "one" }));
    for (let index = 0; index < 30; index++) await store.add(aProfile({ name: `more-${index}` }));
    const before = readFileSync(store.path, "utf8");
    expect(before.length).toBeGreaterThan(4096);
    for (const free of [8192, 4096, 0]) {
      fillDisk(disk, free);
      const failure = await failureOf(() => store.add(aProfile({ name: "last" })));
      expect(failure).toMatchObject({ kind: "failed" });
      expect(failure.message).toContain("no space left");
      expect(readFileSync(store.path, "utf8")).toBe(before);
      expect(readdirSync(disk).sort()).toEqual(["filling", "profiles.json"]);
    }
  });
});

describe("several processes", () => {
  it("report the holder of the lock and the file to remove, also for a lock without an owner", async () => {
    const configDir = temporaryFolder();
    const path = join(configDir, "profiles.lock");
    const means = { self: identify(process.pid), kernel: loadKernelLock() };
    const store = await openProfileStore({ configDir, lockWaitMs: 30 });
    const lock = tryLock(path, means);
    const add = (): Promise<unknown> => store.add(aProfile({ name: "one" }));
    expect(await failureOf(add)).toMatchObject({
      kind: "failed",
      message: `${path} is held by process ${process.pid} on ${means.self.host}.`,
      details: { nextCommand: `rm ${path}` },
    });
    writeFileSync(path, "");
    expect(await failureOf(add)).toMatchObject({
      kind: "failed",
      message: `The lock ${path} has no owner.`,
      details: { nextCommand: `rm ${path}` },
    });
    lock.held?.release();
    expect(readdirSync(configDir)).toEqual([]);
  });
});
