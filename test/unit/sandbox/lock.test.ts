import { execFile, fork, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withLock } from "../../../src/sandbox/lock.ts";
import { folder } from "./a-sandbox.ts";
import { bundled } from "./bundled.ts";

const onLinux = existsSync("/proc/self/stat");
const hasStrace = spawnSync("strace", ["-qq", "-e", "trace=none", "true"]).status === 0;
if (!hasStrace) console.warn("skipped without strace: a late comer of the sandbox's lock");

/** The holder file of this very process, as the lock writes it, with some facts changed. */
async function holderFile(path: string, changes: object): Promise<void> {
  let text = "";
  await withLock(path, () => {
    text = readFileSync(path, "utf8");
  });
  writeFileSync(path, JSON.stringify({ ...JSON.parse(text), nonce: "0123456789ab", ...changes }));
}

async function isTaken(path: string): Promise<boolean> {
  return await withLock(path, () => true, 60).catch((error: Error) => {
    expect(error.message).toContain("is held by");
    return false;
  });
}

describe("the lock", () => {
  it("leaves nothing behind, and is given back where the work throws", async () => {
    const dir = folder();
    const path = join(dir, "lock");
    expect(await withLock(path, () => 7)).toBe(7);
    await expect(
      withLock(path, () => {
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(await withLock(path, () => 8)).toBe(8);
    expect(readdirSync(dir)).toEqual([]);
  });

  it("waits for a live holder, then names it", async () => {
    const path = join(folder(), "lock");
    await holderFile(path, {});
    await expect(withLock(path, () => 1, 60)).rejects.toThrow(`process ${process.pid}`);
  });

  it.runIf(onLinux)("takes over from the dead, and from nobody else", async () => {
    const path = join(folder(), "lock");
    await holderFile(path, { pid: 2 ** 22 + 1 });
    expect(await isTaken(path)).toBe(true);
    await holderFile(path, { started: "1" }); // the same number, another process
    expect(await isTaken(path)).toBe(true);
    await holderFile(path, { boot: "another start of this machine" });
    expect(await isTaken(path)).toBe(true);
    await holderFile(path, { space: readlinkSync("/proc/self/ns/pid").replace(/\d/, "9"), pid: 2 ** 22 + 1 });
    expect(await isTaken(path)).toBe(false); // a process of another container cannot be seen
  });

  it("takes over an empty file that a crash of the machine left", async () => {
    const path = join(folder(), "lock");
    writeFileSync(path, "");
    expect(await isTaken(path)).toBe(true);
  });

  it.runIf(onLinux)("takes over where one died while taking over", async () => {
    const path = join(folder(), "lock");
    await holderFile(path, { pid: 2 ** 22 + 1 });
    await holderFile(`${path}.0123456789ab`, { pid: 2 ** 22 + 2, nonce: "ba9876543210" });
    expect(await isTaken(path)).toBe(true);
    expect(existsSync(`${path}.0123456789ab`)).toBe(false);
  });

  it.runIf(onLinux && hasStrace)("is not taken from a live holder by one who saw the dead one before", async () => {
    const dir = folder();
    const path = join(dir, "lock");
    const program = await bundled("test/unit/sandbox/lock-latecomer-driver.ts");
    await holderFile(path, { pid: 2 ** 22 + 1 });
    // Its second link is the one that lets it remove the dead holder: it comes to it after we have taken over.
    const delay = ["-f", "-qq", "-e", "inject=link,linkat:delay_enter=1500000:when=2", "-o", join(dir, "trace")];
    const late = new Promise<string>((resolve, reject) => {
      execFile("strace", [...delay, process.execPath, program, path], (error, stdout) =>
        error ? reject(error) : resolve(stdout),
      );
    });
    while (!/link(at)?\(.*EEXIST/.test(existsSync(join(dir, "trace")) ? readFileSync(join(dir, "trace"), "utf8") : ""))
      await new Promise((resolve) => setTimeout(resolve, 5));
    const left = await withLock(path, () => {
      const until = Date.now() + 3000;
      while (Date.now() < until);
      return Date.now();
    });
    expect(Number(await late)).toBeGreaterThanOrEqual(left);
  });

  it.runIf(onLinux)("lets one in at a time, of eight processes that are killed all the while", async () => {
    const dir = folder();
    const program = await bundled("test/unit/sandbox/lock-driver.ts");
    const report = { entered: 0, overlaps: 0, killed: 0 };
    const worker = async (): Promise<void> => {
      while (report.entered < 200 || report.killed < 15) {
        const child = fork(program, [dir], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
        child.once("message", () => setTimeout(() => child.kill("SIGKILL"), Math.random() * 60));
        child.on("message", ({ entered, overlap }: { entered: number; overlap: boolean }) => {
          report.entered += entered;
          if (overlap) report.overlaps += 1;
        });
        await new Promise((resolve) => child.on("exit", resolve));
        report.killed += 1;
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(report.overlaps).toBe(0);
    expect(await withLock(join(dir, "lock"), () => true)).toBe(true);
  });
});
