import { fork } from "node:child_process";
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { waitForLock } from "../../../src/disk/process-lock.ts";
import { newState } from "../../../src/sandbox/seed.ts";
import { Store, removeState } from "../../../src/sandbox/store.ts";
import { folder } from "./a-sandbox.ts";
import { bundled } from "./bundled.ts";

const fresh = () => newState({ now: Date.UTC(2026, 10, 21), entities: 3 });
const versions = async (store: Store) => [...(await store.current()).contractVersions];
const add = (store: Store, version: string) => store.change((state) => void state.contractVersions.push(version));

describe("the state", () => {
  const open = () => new Store(folder(), fresh);

  it("keeps what was changed", async () => {
    const store = open();
    await add(store, "a");
    expect(await versions(store)).toEqual(["2026-07-01", "a"]);
    expect(store.latest().contractVersions).toHaveLength(2);
  });

  it("keeps nothing of work that throws", async () => {
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
  it("is seen by every store over it, at once", async () => {
    const dir = folder();
    const [one, other] = [new Store(dir, fresh), new Store(dir, fresh)];
    for (let n = 0; n < 50; n++) {
      await add(n % 2 ? one : other, String(n));
      expect(await versions(one)).toHaveLength(n + 2);
      expect(await versions(other)).toHaveLength(n + 2);
    }
  });

  it("is not written where nothing changed, and is private where it is", async () => {
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

  it("is made anew where it was removed, with other secrets", async () => {
    const dir = folder();
    const store = new Store(dir, fresh);
    const before = (await store.current()).us.seeded.apiKey;
    await removeState(dir);
    expect(readdirSync(dir)).toEqual([]);
    expect((await store.current()).us.seeded.apiKey).not.toBe(before);
  });

  it("is refused when any bit of it is wrong, and left as it is", async () => {
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
    await refused(Buffer.from(sound.toString().replace('"format":2', '"format":3')));
    writeFileSync(path, sound);
    expect(await versions(new Store(dir, fresh))).toHaveLength(1);
  });

  it("grows by a line a change, which a cut or a flipped bit never turns into another", async () => {
    const dir = folder();
    const path = join(dir, "sandbox.json");
    const store = new Store(dir, fresh);
    await store.current();
    const first = statSync(path).size;
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      ids.push(`sa_${n}`);
      await store.change(({ us }) => us.serviceAccounts.push({ ...us.serviceAccounts.rows[0]!, id: `sa_${n}` }));
      await store.change(({ us }) => void us.serviceAccounts.by("id", `sa_${n}`)!.permissions.push(`p${n}`));
    }
    const sound = readFileSync(path);
    const added = async (): Promise<(readonly [string, number])[]> =>
      (await new Store(dir, fresh).current()).us.serviceAccounts.rows
        .filter(({ id }) => ids.includes(id))
        .map(({ id, permissions }) => [id, permissions.length]);
    const whole = await added();
    expect(whole.map(([id]) => id)).toEqual(ids);
    for (let length = first; length < sound.length; length += 97) {
      writeFileSync(path, sound.subarray(0, length));
      const left = await added();
      expect(left).toEqual(left.length === 0 ? [] : expect.arrayContaining(whole.slice(0, left.length - 1)));
      await add(new Store(dir, fresh), "next");
      expect(await added()).toEqual(left);
      expect(await versions(new Store(dir, fresh))).toContain("next");
    }
    for (let bit = first * 8; bit < (sound.length - 1) * 8; bit += 397) {
      const flipped = Buffer.from(sound);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      writeFileSync(path, flipped);
      await expect(new Store(dir, fresh).current(), `bit ${bit}`).rejects.toMatchObject({ code: "state_damaged" });
    }
  });

  it("takes back what a change that throws did to rows, and finds rows by what they hold now", async () => {
    const dir = folder();
    const store = new Store(dir, fresh);
    const before = JSON.stringify(await store.current());
    const broken = store.change(({ eu }) => {
      eu.accessKeys.by("id", "ak_eu_automation")!.secretHash = "x";
      eu.seeded.accessKeySecret = "x";
      eu.accessKeys.push({ ...eu.accessKeys.rows[0]!, id: "new" });
      throw new Error("no");
    });
    await expect(broken).rejects.toThrow("no");
    expect(JSON.stringify(await store.current())).toBe(before);
    expect(JSON.stringify(await new Store(dir, fresh).current())).toBe(before);
    expect((await store.current()).eu.accessKeys.by("secretHash", "x")).toBeUndefined();
    await store.change(({ eu }) => void (eu.accessKeys.by("id", "ak_eu_automation")!.secretHash = "y"));
    for (const one of [store, new Store(dir, fresh)])
      expect((await one.current()).eu.accessKeys.by("secretHash", "y")?.id).toBe("ak_eu_automation");
  });

  it("of the first format is read, and written anew with the next change; long ones are written anew too", async () => {
    const dir = folder();
    const path = join(dir, "sandbox.json");
    await new Store(dir, fresh).current();
    writeFileSync(path, readFileSync(path, "utf8").replace('"format":2', '"format":1'));
    const store = new Store(dir, fresh);
    await add(store, "a");
    expect(readFileSync(path, "utf8")).toMatch(/^\{"format":2,.*\n$/);
    const other = new Store(dir, fresh);
    await other.current();
    for (let n = 0; n < 6; n++) await add(store, `${n}`.repeat(200_000));
    expect(statSync(path).size).toBeLessThan(4_000_000);
    expect(await versions(other)).toHaveLength(8);
  });

  it("is waited for behind a living process, and then that is named", async () => {
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

  it("loses no change of many processes, some of them killed", async () => {
    const dir = folder();
    const program = await bundled("test/unit/sandbox/store-driver.ts");
    const told: string[] = [];
    const run = (name: string, killed: boolean) =>
      new Promise<void>((resolve) => {
        const child = fork(program, [dir, name], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
        child.on("message", (version: string) => told.push(version));
        child.on("exit", () => resolve());
        if (killed) child.once("message", () => setTimeout(() => child.kill("SIGKILL"), Math.random() * 100));
      });
    await Promise.all(["a", "b", "c", "d", "e", "f"].map((name, index) => run(name, index % 2 === 1)));
    const kept = new Set(await versions(new Store(dir, fresh)));
    expect(told.length).toBeGreaterThan(90);
    expect(told.filter((version) => !kept.has(version))).toEqual([]);
    rmSync(dir, { recursive: true });
  });
});
