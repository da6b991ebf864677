import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HeldLock } from "../../src/disk/kernel-lock.ts";
import { waitForLock } from "../../src/disk/process-lock.ts";
import type { LockOwner } from "../../src/disk/lock-owner.ts";
import { bundleDriver, temporaryFolder } from "../support/bundle-driver.ts";
import { needStrace } from "./driver.ts";

let driver: { path: string; remove: () => void };
beforeAll(async () => {
  driver = await bundleDriver(join(import.meta.dirname, "process-lock-driver.ts"));
});
afterAll(() => driver.remove());

function start(...args: string[]): ChildProcess {
  return spawn(process.execPath, [driver.path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
}

function take(path: string, waitMs = 10_000): Promise<HeldLock> {
  const whenHeld = (owner: LockOwner | undefined): Error => new Error(`held by ${owner?.pid}`);
  return waitForLock(path, { waitMs, whenHeld });
}

async function deadLock(folder: string): Promise<Record<string, unknown>> {
  const child = start("hold", folder, "die");
  await once(child, "exit");
  expect(child.signalCode).toBe("SIGKILL");
  const owner: Record<string, unknown> = JSON.parse(readFileSync(join(folder, "x.lock"), "utf8"));
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
    expect(existsSync(join(folder, "x.lock"))).toBe(false);
  });

  it("waits for a living owner, then names it and the file", async () => {
    const folder = temporaryFolder();
    const child = start("hold", folder);
    await once(child.stdout!, "data");
    await expect(take(join(folder, "x.lock"), 100)).rejects.toThrow(`held by ${child.pid}`);
    child.kill("SIGKILL");
    await once(child, "exit");
    (await take(join(folder, "x.lock"), 0)).release();
  });

  it("comes too late with the right to a dead lock that another took: the lock of the living stays", async (context) => {
    needStrace(context);
    const folder = temporaryFolder();
    const lock = join(folder, "x.lock");
    writeFileSync(join(folder, "counter"), "0");
    await deadLock(folder);
    // It found the lock, judged its owner dead, and is stopped before it asks for the right to take over.
    const links = "?link,?linkat";
    const delay = [
      "-e",
      `trace=${links}`,
      "-e",
      `inject=${links}:delay_enter=1500000:when=1`,
      "-o",
      join(folder, "trace"),
    ];
    const late = spawn("strace", [...delay, process.execPath, driver.path, "countUp", folder, "", "1"]);
    const ended = once(late, "exit");
    while (readdirSync(folder).filter((name) => name.startsWith("x.lock.take-")).length === 0) await sleep(5);
    await sleep(300);
    const held = await take(lock);
    const mine = readFileSync(lock, "utf8");
    await sleep(2500);
    expect(readFileSync(lock, "utf8")).toBe(mine);
    expect(readFileSync(join(folder, "counter"), "utf8")).toBe("0");
    held.release();
    expect(await ended).toEqual([0, null]);
    expect(readFileSync(join(folder, "counter"), "utf8")).toBe("1");
    expect(readFileSync(join(folder, "trace"), "utf8")).toContain("(DELAYED)");
  });
});
