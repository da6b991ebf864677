// Takes the lock again and again until it is killed; tells whenever it finds another live process inside.
import { readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../../../src/sandbox/lock.ts";

const folder = process.argv[2]!;
const inside = join(folder, "inside");

function isLive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !/\) [ZX] /.test(stat);
  } catch {
    return false;
  }
}

function enter(): boolean {
  try {
    writeFileSync(inside, String(process.pid), { flag: "wx" });
    return false;
  } catch {
    const other = Number(readFileSync(inside, "utf8"));
    writeFileSync(inside, String(process.pid));
    return other !== 0 && other !== process.pid && isLive(other);
  }
}

async function main(): Promise<void> {
  for (;;) {
    const overlap = await withLock(join(folder, "lock"), () => {
      const overlap = enter();
      const until = performance.now() + Math.random();
      while (performance.now() < until);
      unlinkSync(inside);
      return overlap;
    });
    process.send!({ entered: 1, overlap });
  }
}

main().catch(() => process.send!({ entered: 0, overlap: true }));
