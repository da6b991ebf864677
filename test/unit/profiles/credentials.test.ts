import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { credentialsAt, type CredentialOptions } from "../../../src/profiles/credentials.ts";
import { openKeychain } from "../../../src/profiles/keychain.ts";
import { failureOf } from "./a-profile.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { fillDisk, mountSmallDisk } from "../../support/small-disk.ts";

const origins = ["https://api.example.com"];
const secret = "canary-5d1c";
const library = join(import.meta.dirname, "fake-keychain-library.cjs");

function fileCredentials(configDir = temporaryFolder()): ReturnType<typeof credentialsAt> {
  return credentialsAt({ configDir, keychain: "file", env: {} });
}

function withKeychain(
  mode: string,
  options: Partial<CredentialOptions> = {},
): { keychain: string; configDir: string; open: () => ReturnType<typeof credentialsAt> } {
  const keychain = temporaryFolder();
  const configDir = temporaryFolder();
  const env = {
    ...process.env,
    FAKE_KEYCHAIN: keychain,
    FAKE_MODE: mode,
    INTEG_API_KEY: "canary-env",
    INTEG_COMMAND_ENV: "FAKE_KEYCHAIN,FAKE_MODE",
  };
  const limitMs = mode === "hang" ? 1_000 : 20_000;
  const system = openKeychain({ env, library, probeLimitMs: limitMs, requestLimitMs: limitMs });
  return { keychain, configDir, open: () => credentialsAt({ configDir, env, system, ...options }) };
}

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe("credentials in a file", () => {
  it("are readable only by the owner under any umask, and can be read back", async () => {
    const configDir = join(temporaryFolder(), "config");
    const credentials = fileCredentials(configDir);
    const before = process.umask(0);
    const kept = await credentials.save(secret, origins);
    process.umask(before);
    expect(kept).toEqual({ ref: kept.ref, kept: "file" });
    const [name = ""] = readdirSync(credentials.folder);
    expect([mode(configDir), mode(credentials.folder), mode(join(credentials.folder, name))]).toEqual([
      "700",
      "700",
      "600",
    ]);
    expect(await credentials.read(kept, origins)).toBe(secret);
    await credentials.destroy(kept);
    await credentials.destroy(kept);
    expect(readdirSync(credentials.folder)).toEqual([]);
    expect((await failureOf(() => credentials.read(kept, origins))).kind).toBe("auth");
  });

  it.each([
    ["another host", ["https://api.example.net"]],
    ["another scheme", ["http://api.example.com"]],
    ["another port", ["https://api.example.com:8443"]],
    ["an additional origin", [...origins, "https://id.example.com"]],
    ["none", []],
  ])("are not returned for %s", async (_what, others) => {
    const credentials = fileCredentials();
    const kept = await credentials.save(secret, origins);
    const failure = await failureOf(() => credentials.read(kept, others));
    expect(failure.kind).toBe("auth");
    expect(JSON.stringify(failure)).not.toContain(secret);
  });

  it("are not read if others can read them, through a link, or from a folder or a pipe", async () => {
    const credentials = fileCredentials();
    const kept = await credentials.save(secret, origins);
    const path = join(credentials.folder, `${kept.ref}.json`);
    for (const open of [0o640, 0o604, 0o660, 0o777]) {
      chmodSync(path, open);
      expect(await failureOf(() => credentials.read(kept, origins))).toMatchObject({
        kind: "usage",
        details: { nextCommand: `chmod 600 ${path}` },
      });
    }
    chmodSync(path, 0o600);
    renameSync(path, `${path}.real`);
    symlinkSync(`${path}.real`, path);
    expect(await failureOf(() => credentials.read(kept, origins))).toMatchObject({ kind: "usage" });
    const other = { ref: crypto.randomUUID(), kept: "file" } as const;
    mkdirSync(join(credentials.folder, `${other.ref}.json`));
    expect(await failureOf(() => credentials.read(other, origins))).toMatchObject({ kind: "usage" });
  });

  it("that are damaged stop the command and stay unchanged", async () => {
    const credentials = fileCredentials();
    const kept = await credentials.save(secret, origins);
    const path = join(credentials.folder, `${kept.ref}.json`);
    writeFileSync(path, '{"origins":["https://api.example.com"],"sec');
    const failure = await failureOf(() => credentials.read(kept, origins));
    expect(failure).toMatchObject({ kind: "auth" });
    expect(readFileSync(path, "utf8")).toContain('"sec');
  });

  it("report a full disk before the secret exists, and leave nothing on it", async (context) => {
    const disk = mountSmallDisk(64, context);
    const credentials = fileCredentials(disk);
    await credentials.testWrite();
    expect(readdirSync(credentials.folder)).toEqual([]);
    fillDisk(disk, 4096);
    expect((await failureOf(() => credentials.testWrite())).message).toContain("no space left");
    expect(readdirSync(credentials.folder)).toEqual([]);
    fillDisk(disk, 0);
    expect((await failureOf(() => credentials.save(secret, origins))).kind).toBe("failed");
    expect(readdirSync(credentials.folder)).toEqual([]);
  });
});

describe("credentials in the keychain", () => {
  it("can be read back, bound to their origins, and leave no file and no trace in arguments or environment", async () => {
    const { keychain, configDir, open } = withKeychain("");
    const kept = await open().save(secret, origins);
    expect(kept).toEqual({ ref: kept.ref, kept: "keychain" });
    expect(await open().read(kept, origins)).toBe(secret);
    expect((await failureOf(() => open().read(kept, ["https://evil.example"]))).kind).toBe("auth");
    expect(readdirSync(configDir)).toEqual([]);
    const seen = readFileSync(join(keychain, "seen"), "utf8");
    expect(seen).not.toContain("canary-");
    expect(seen).toContain('"store":"secret-service"');
    await open().destroy(kept);
    expect(readdirSync(keychain)).toEqual(["seen"]);
    expect(await failureOf(() => open().read(kept, origins))).toMatchObject({ kind: "auth" });
  });

  it.each([
    ["refuses", "refuse", "AccessDenied"],
    ["hangs", "hang", "no response within 1 s"],
    ["dies", "crash", "does not run here"],
    ["returns something else", "garble", "something else"],
  ])("that %s are replaced by a file: reported and tried once a day", async (_what, behavior, why) => {
    let now = 1_000_000;
    const { keychain, configDir, open } = withKeychain(behavior, { now: () => now });
    const kept = await open().save(secret, origins);
    expect(kept).toMatchObject({ kept: "file", note: expect.stringContaining(why) });
    expect(await open().read(kept, origins)).toBe(secret);
    const sizeBefore = statSync(join(keychain, "seen")).size;
    expect((await open().save(secret, origins)).note).toBeUndefined();
    expect(statSync(join(keychain, "seen")).size).toBe(sizeBefore);
    expect(mode(join(configDir, "keychain.json"))).toBe("600");
    now += 25 * 60 * 60 * 1000;
    await open().save(secret, origins);
    expect(statSync(join(keychain, "seen")).size).toBeGreaterThan(sizeBefore);
  });

  it("that are locked later stop the command: no other credential is used, and none is written to a file", async () => {
    const { keychain, configDir, open } = withKeychain("later");
    const kept = await open().save(secret, origins);
    writeFileSync(join(keychain, "locked"), "");
    expect(await failureOf(() => open().read(kept, origins))).toMatchObject({
      kind: "auth",
      message: "The keychain did not return the profile's credential: it is locked.",
    });
    expect(readdirSync(configDir)).toEqual([]);
  });

  it("are unavailable if the library is missing", async () => {
    const configDir = temporaryFolder();
    const system = openKeychain({ env: process.env, library: join(configDir, "nowhere.cjs") });
    const kept = await credentialsAt({ configDir, env: {}, system }).save(secret, origins);
    expect(kept).toMatchObject({ kept: "file", note: expect.stringContaining("does not run here") });
  });
});
