// Ends a user's command and its descendants. Without a terminal the command leads its own process group. On a terminal
// it stays in integ's group, so that it can ask for a password, and integ searches for its descendants.
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";

/** Bounds the search if a command keeps starting processes. */
const rounds = 10;

export function hasTerminal(): boolean {
  if (process.platform === "win32") return true;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}

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
  const pids = new Set([pid]);
  for (let round = 0, known = 0; round < rounds && known < pids.size; round++) {
    known = pids.size;
    // A stopped process starts no other, so the list is complete once a round finds no new process.
    for (const one of pids) kill(one, "SIGSTOP");
    addDescendants(pids, list());
  }
  for (const one of pids) kill(one, "SIGKILL");
}

function addDescendants(pids: Set<number>, listing: string): void {
  const pairs = listing.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  for (let before = -1; before !== pids.size; ) {
    before = pids.size;
    for (const [pid, parent] of pairs) if (pid !== undefined && pids.has(parent ?? 0)) pids.add(pid);
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended, or belongs to another user.
  }
}
