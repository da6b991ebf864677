import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addProfile, editProfile, type ProfileStores } from "../../src/profiles/configure.ts";
import { credentialsAt } from "../../src/profiles/credentials.ts";
import { secretSourceOf } from "../../src/profiles/profile.ts";
import { openProfileStore } from "../../src/profiles/store.ts";
import { bundleDriver, temporaryFolder } from "../support/bundle-driver.ts";
import { callsOf, chosenOf, type Fault, needStrace, pointsOf, runWithFault } from "./driver.ts";
import { recordFigure } from "../support/figures.mjs";

let driver: { path: string; remove: () => void };
beforeAll(async () => {
  driver = await bundleDriver(join(import.meta.dirname, "profile-change-driver.ts"));
});
afterAll(() => driver.remove());

async function open(configDir: string): Promise<ProfileStores> {
  return {
    store: await openProfileStore({ configDir, lockWaitMs: 0 }),
    credentials: credentialsAt({ configDir, keychain: "file", env: {} }),
  };
}

/** The credential as a command would find it: id and secret always belong together. */
async function credentialIn(rooms: ProfileStores): Promise<string> {
  const profile = rooms.store.get("prod")!;
  const { credential, credential_origins } = profile;
  const source = secretSourceOf(credential!);
  if (source.from !== "stored") throw new Error("not kept");
  const secret = await rooms.credentials.read(source, credential_origins);
  return `${credential!.kind === "client_credentials" ? credential!.client_id : "key"}:${secret}`;
}

describe("the order of calls", () => {
  it("a secret is synced with its folder before profiles.json names it; the new file is synced before it is moved", async (context) => {
    needStrace(context);
    const configDir = join(temporaryFolder(), "config");
    await addProfile(await open(configDir), { name: "prod", region: "eu", base_url: "https://api.example.com" });
    const calls = callsOf([driver.path, configDir], configDir);
    const whole = "openat fchmod pwrite64 fsync openat fsync close close";
    // The secret, the lock, profiles.json, the end of the lock.
    const candidate = "openat pwrite64 fsync close rename .*openat fsync close";
    expect(calls).toMatch(new RegExp(`${whole}.* link unlink .*${candidate} rename openat fsync close unlink close`));
  });
});

const faults: Fault[] = process.env.INTEG_TEST_FULL ? ["kill", "EIO", "EIO+", "ENOSPC", "ENOSPC+"] : ["kill", "ENOSPC"];

describe("another credential for a profile, disturbed at every file call", () => {
  it.for(faults)(
    "%s: the old one or the new one, whole, and the next change is not blocked",
    async (fault, context) => {
      needStrace(context);
      const root = temporaryFolder();
      const template = join(root, "template");
      const configDir = join(root, "config");
      await addProfile(await open(template), {
        name: "prod",
        region: "eu",
        base_url: "https://api.example.com",
        credential: { kind: "api_key", basic_style: "apikey-user", secret: "canary-old" },
      });
      const fresh = (): void => {
        rmSync(configDir, { recursive: true, force: true });
        mkdirSync(configDir, { mode: 0o700 });
        cpSync(template, configDir, { recursive: true });
      };
      fresh();
      const command = [driver.path, configDir];
      const points = pointsOf(command, configDir);
      expect(points.length).toBeGreaterThan(25);
      const ends = { old: 0, new: 0 };
      const chosen = chosenOf(points, { name: `another credential, ${fault}`, sample: 20 });
      for (const point of chosen) {
        const at = `${fault} at ${point.call} ${point.nth}`;
        const { stdout } = runWithFault(command, { point, fault, fresh });
        const rooms = await open(configDir);
        const found = await credentialIn(rooms);
        expect(["key:canary-old", "new:canary-new"], at).toContain(found);
        if (stdout.includes("changed")) expect(found, at).toBe("new:canary-new");
        await editProfile(rooms, "prod", { region: "us" });
        expect(await credentialIn(await open(configDir)), at).toBe(found);
        ends[found === "new:canary-new" ? "new" : "old"]++;
      }
      recordFigure("profile change", { points: points.length, hit: chosen.length, violations: 0 }, fault);
      expect(Math.min(ends.old, ends.new)).toBeGreaterThan(0);
    },
  );
});
