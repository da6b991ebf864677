import { fork } from "node:child_process";
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { waitForLock } from "../../../src/disk/process-lock.ts";
import { newState } from "../../../src/sandbox/seed.ts";
import { byId } from "../../../src/sandbox/state.ts";
import { Store, removeState } from "../../../src/sandbox/store.ts";
import { folder } from "./a-sandbox.ts";
import { bundled } from "./bundled.ts";

const fresh = () => newState({ now: Date.UTC(2026, 10, 21), entities: 3 });
const versions = async (store: Store) => [...(await store.current()).contractVersions];
const add = (store: Store, version: string) => store.change((state) => void state.contractVersions.push(version));

describe("the state", () => {
  const open = () => new Store(folder(), fresh);

  it("keeps changes", async () => {
    const store = open();
    await add(store, "a");
    expect(await versions(store)).toEqual(["2026-07-01", "a"]);
    expect(store.latest().contractVersions).toHaveLength(2);
  });

  it("keeps nothing of an action that throws", async () => {
    const store = open();
    const broken = store.change((state) => {
      state.contractVersions.push("half");
      throw new Error("no");
    });
    await expect(broken).rejects.toThrow("no");
    expect(await versions(store)).toEqual(["2026-07-01"]);
    await add(store, "a");
    expect(await versions(store)).toEqual(["2026-07-01", "a"]);
  });
});

describe("the state file", () => {
  it("is visible to every store that uses it, immediately", async () => {
    const dir = folder();
    const [one, other] = [new Store(dir, fresh), new Store(dir, fresh)];
    for (let n = 0; n < 50; n++) {
      await add(n % 2 ? one : other, String(n));
      expect(await versions(one)).toHaveLength(n + 2);
      expect(await versions(other)).toHaveLength(n + 2);
    }
  });

  it("is not written without a change, and is private", async () => {
    const dir = folder();
    const store = new Store(dir, fresh);
    await store.current();
    const before = statSync(join(dir, "sandbox.json"));
    await store.change((state) => state.settings.seed);
    expect(statSync(join(dir, "sandbox.json")).ino).toBe(before.ino);
    await add(store, "a");
    const after = statSync(join(dir, "sandbox.json"));
    expect(after.size).toBeGreaterThan(before.size);
    expect(after.mode & 0o777).toBe(0o600);
    expect(readdirSync(dir)).toEqual(["sandbox.json"]);
  });

  it("is created again after its removal, with other secrets", async () => {
    const dir = folder();
    const store = new Store(dir, fresh);
    const before = (await store.current()).us.seeded.apiKey;
    await removeState(dir);
    expect(readdirSync(dir)).toEqual([]);
    expect((await store.current()).us.seeded.apiKey).not.toBe(before);
  });

  it("is refused if any bit is wrong, and left unchanged", async () => {
    const dir = folder();
    const path = join(dir, "sandbox.json");
    await new Store(dir, fresh).current();
    const sound = readFileSync(path);
    const refused = async (bytes: Buffer): Promise<void> => {
      writeFileSync(path, bytes);
      await expect(new Store(dir, fresh).current()).rejects.toMatchObject({
        code: "state_damaged",
        message: expect.stringContaining("integ sandbox reset"),
      });
      await expect(add(new Store(dir, fresh), "x")).rejects.toMatchObject({ code: "state_damaged" });
      expect(readFileSync(path).equals(bytes)).toBe(true);
    };
    for (let length = 0; length < sound.length; length += length < 120 ? 1 : 997)
      await refused(sound.subarray(0, length));
    for (let bit = 0; bit < sound.length * 8; bit += bit < 960 ? 7 : 4999) {
      const flipped = Buffer.from(sound);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      await refused(flipped);
    }
    await refused(Buffer.from(sound.toString().replace('"format":1', '"format":2')));
    writeFileSync(path, sound);
    expect(await versions(new Store(dir, fresh))).toHaveLength(1);
  });

  it("restores rows after a change that throws", async () => {
    const dir = folder();
    const store = new Store(dir, fresh);
    const before = JSON.stringify(await store.current());
    const broken = store.change(({ eu }) => {
      byId(eu.accessKeys, "ak_eu_automation")!.secretHash = "x";
      eu.seeded.accessKeySecret = "x";
      eu.accessKeys.push({ ...eu.accessKeys[0]!, id: "new" });
      throw new Error("no");
    });
    await expect(broken).rejects.toThrow("no");
    expect(JSON.stringify(await store.current())).toBe(before);
    expect(JSON.stringify(await new Store(dir, fresh).current())).toBe(before);
    expect((await store.current()).eu.accessKeys.some(({ secretHash }) => secretHash === "x")).toBe(false);
    await store.change(({ eu }) => void (byId(eu.accessKeys, "ak_eu_automation")!.secretHash = "y"));
    for (const one of [store, new Store(dir, fresh)])
      expect((await one.current()).eu.accessKeys.find(({ secretHash }) => secretHash === "y")?.id).toBe(
        "ak_eu_automation",
      );
  });

  it("is waited for while a running process has it, and then that process is named", async () => {
    const dir = folder();
    await new Store(dir, fresh).current();
    const lock = await waitForLock(join(dir, "sandbox.json.lock"), { whenHeld: () => new Error() });
    const clock = vi.spyOn(performance, "now").mockReturnValueOnce(0).mockReturnValue(20_000);
    const late = add(new Store(dir, fresh), "late");
    await expect(late).rejects.toThrow(`is held by process ${process.pid} and was not released in time`);
    clock.mockRestore();
    lock.release();
    await removeState(dir);
    expect(readdirSync(dir)).toEqual([]);
  });

  it("keeps every change of many processes, some of which are killed", async () => {
    const dir = folder();
    const program = await bundled("test/unit/sandbox/store-driver.ts");
    const reported: string[] = [];
    const run = (name: string, killed: boolean) =>
      new Promise<void>((resolve) => {
        const child = fork(program, [dir, name], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
        child.on("message", (version: string) => reported.push(version));
        child.on("exit", () => resolve());
        if (killed) child.once("message", () => setTimeout(() => child.kill("SIGKILL"), Math.random() * 100));
      });
    await Promise.all(["a", "b", "c", "d", "e", "f"].map((name, index) => run(name, index % 2 === 1)));
    const kept = new Set(await versions(new Store(dir, fresh)));
    expect(reported.length).toBeGreaterThan(90);
    expect(reported.filter((version) => !kept.has(version))).toEqual([]);
    rmSync(dir, { recursive: true });
  });
});
