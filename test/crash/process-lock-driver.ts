// One process that works under a lock, for the tests of several processes at once.
import { readFileSync, writeFileSync } from "node:fs";
import { waitForLock } from "../../src/disk/process-lock.ts";

const [, , work = "", folder = "", label = "", count = "1"] = process.argv;

async function locked(work: () => Promise<void>): Promise<void> {
  const lock = await waitForLock(`${folder}/x.lock`, { waitMs: 60_000, whenHeld: () => new Error("held") });
  try {
    await work();
  } finally {
    lock.release();
  }
}

/** Adds one to a counter that is read and written apart: a second holder would lose a count. */
async function countUp(): Promise<void> {
  const counter = `${folder}/counter`;
  for (let index = 0; index < Number(count); index++) {
    await locked(async () => {
      const before = Number(readFileSync(counter, "utf8"));
      await new Promise((resolve) => setTimeout(resolve, 1));
      writeFileSync(counter, String(before + 1));
    });
  }
}

/** Takes the lock and dies with it, or holds it until it is killed. */
async function hold(): Promise<void> {
  await locked(async () => {
    process.stdout.write("held\n");
    if (label === "die") process.kill(process.pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  });
}

const works: Record<string, () => Promise<void>> = { countUp, hold };
works[work]?.().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
