// Ending a person's command with all that it has started. If there is no terminal it has a process group of its own. At a
// terminal it stays in ours, since a new group would have no terminal to ask for a password at: there its descendants are
// looked for.
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";

/** More rounds than any honest command forks while it is being stopped. */
const rounds = 10;

/** Whether a person may be asked something by what this process starts. */
export function hasTerminal(): boolean {
  if (process.platform === "win32") return true;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}

/**
 * @param options.leadsGroup it was started as the first of a process group
 * @param options.env of the programs that find its descendants
 */
export async function killCommand(
  child: ChildProcess,
  { leadsGroup, env }: { readonly leadsGroup: boolean; readonly env: Readonly<Record<string, string | undefined>> },
): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  if (leadsGroup) return kill(-pid, "SIGKILL");
  const { spawnSync } = await import("node:child_process");
  if (process.platform === "win32") return void spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"], { env });
  const list = (): string => spawnSync("ps", ["-A", "-o", "pid=,ppid="], { env, encoding: "utf8" }).stdout ?? "";
  const found = new Set([pid]);
  for (let round = 0, known = 0; round < rounds && known < found.size; round++) {
    known = found.size;
    // A stopped process starts no other: once a round finds no new one, all are found.
    for (const one of found) kill(one, "SIGSTOP");
    addDescendants(found, list());
  }
  for (const one of found) kill(one, "SIGKILL");
}

function addDescendants(found: Set<number>, listing: string): void {
  const pairs = listing.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const [pid, parent] of pairs) if (pid !== undefined && found.has(parent ?? 0)) found.add(pid);
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it has ended, or is another user's
  }
}
