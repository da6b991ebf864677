import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withOwnerLock } from "../../../src/profiles/owner-lock.ts";
import { failureOf } from "./a-profile.ts";
import { bundleDriver, temporaryFolder } from "./bundle-driver.ts";
import { needStrace } from "./every-call.ts";

let driver: { path: string; remove: () => void };
beforeAll(async () => {
  driver = await bundleDriver(join(import.meta.dirname, "store-driver.ts"));
});
afterAll(() => driver.remove());

function start(...args: string[]): ChildProcess {
  return spawn(process.execPath, [driver.path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
}

async function deadLock(folder: string): Promise<Record<string, unknown>> {
  const child = start("hold", folder, "die");
  await once(child, "exit");
  expect(child.signalCode).toBe("SIGKILL");
  const owner: Record<string, unknown> = JSON.parse(readFileSync(join(folder, "lock"), "utf8"));
  return owner;
}

describe("a lock between processes", () => {
  it("counts right with eight processes that meet the lock of a dead one", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "counter"), "0");
    await deadLock(folder);
    const children = Array.from({ length: 8 }, () => start("countUp", folder, "", "25"));
    const ends = await Promise.all(children.map((child) => once(child, "exit")));
    expect(ends).toEqual(children.map(() => [0, null]));
    expect(readFileSync(join(folder, "counter"), "utf8")).toBe("200");
    expect(existsSync(join(folder, "lock"))).toBe(false);
  });

  it("is taken over at once from a dead owner, also along a chain of dead heirs", async () => {
    const folder = temporaryFolder();
    const lock = join(folder, "lock");
    const first = await deadLock(folder);
    // Two processes died one after the other while they held the right to take over.
    const heir = { ...first, token: "heir-1" };
    writeFileSync(`${lock}.${String(first.token)}`, JSON.stringify(heir));
    writeFileSync(`${lock}.${String(first.token)}.heir-1`, JSON.stringify({ ...first, token: "heir-2" }));
    let ran = false;
    await withOwnerLock(lock, () => void (ran = true), { waitMs: 0 });
    expect(ran).toBe(true);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("waits for a living owner, then names it and the file", async () => {
    const folder = temporaryFolder();
    const child = start("hold", folder);
    await once(child.stdout!, "data");
    const failure = await failureOf(() => withOwnerLock(join(folder, "lock"), () => "no", { waitMs: 100 }));
    expect(failure).toMatchObject({ kind: "failed", details: { hint: `rm '${join(folder, "lock")}'` } });
    expect(failure.message).toContain(`process ${child.pid}`);
    child.kill("SIGKILL");
    await once(child, "exit");
    await expect(withOwnerLock(join(folder, "lock"), () => "yes", { waitMs: 0 })).resolves.toBe("yes");
  });

  it.each([
    ["the same number with another start time", { started: "1" }, true],
    ["an earlier start of the machine", { boot: "another" }, true],
    ["another machine", { host: "elsewhere", pid: 999_999_999 }, false],
    ["another container's numbers", { pid_namespace: "pid:[1]", pid: 999_999_999 }, false],
    ["itself", {}, false],
  ])("judges an owner by proof: %s", async (_what, facts, isDead) => {
    if (process.platform !== "linux") return;
    const folder = temporaryFolder();
    const lock = join(folder, "lock");
    let mine = "";
    await withOwnerLock(lock, () => void (mine = readFileSync(lock, "utf8")));
    const owner: Record<string, unknown> = JSON.parse(mine);
    writeFileSync(lock, JSON.stringify({ ...owner, ...facts }));
    const attempt = withOwnerLock(lock, () => "taken", { waitMs: 30 });
    if (isDead) await expect(attempt).resolves.toBe("taken");
    else await expect(attempt).rejects.toThrow("is held by process");
  });

  it("comes too late with the right to a dead lock that another took: the lock of the living stays", async (context) => {
    needStrace(context);
    const folder = temporaryFolder();
    const lock = join(folder, "lock");
    writeFileSync(join(folder, "counter"), "0");
    await deadLock(folder);
    // It found the lock, judged its owner dead, and is stopped before it asks for the right to take over.
    const links = "?link,?linkat";
    const delay = [
      "-e",
      `trace=${links}`,
      "-e",
      `inject=${links}:delay_enter=1500000:when=2`,
      "-o",
      join(folder, "trace"),
    ];
    const late = spawn("strace", [...delay, process.execPath, driver.path, "countUp", folder, "", "1"]);
    const ended = once(late, "exit");
    while (readdirSync(folder).filter((name) => name.startsWith("lock-")).length === 0) await sleep(5);
    await sleep(300);
    await withOwnerLock(lock, async () => {
      const mine = readFileSync(lock, "utf8");
      await sleep(2500);
      expect(readFileSync(lock, "utf8")).toBe(mine);
      expect(readFileSync(join(folder, "counter"), "utf8")).toBe("0");
    });
    expect(await ended).toEqual([0, null]);
    expect(readFileSync(join(folder, "counter"), "utf8")).toBe("1");
    expect(readFileSync(join(folder, "trace"), "utf8")).toContain("(DELAYED)");
  });

  it("names a lock file that no integ wrote, and leaves it", async () => {
    const lock = join(temporaryFolder(), "lock");
    writeFileSync(lock, "");
    expect((await failureOf(() => withOwnerLock(lock, () => "no"))).details.hint).toBe(`rm '${lock}'`);
    expect(existsSync(lock)).toBe(true);
  });

  it("is given back when the work fails", async () => {
    const folder = temporaryFolder();
    await expect(
      withOwnerLock(join(folder, "lock"), () => {
        throw new Error("work");
      }),
    ).rejects.toThrow("work");
    expect(readdirSync(folder)).toEqual([]);
  });
});
