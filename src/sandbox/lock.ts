// Owns: one holder at a time of a file, among all processes of this machine; a killed holder never blocks the next.
// Must not know: what the lock protects.
//
// The lock is a file that appears whole by `link`, and names its holder: machine start, process id and start time, and
// a nonce. A dead holder's file is removed only by whoever holds the lock of that nonce (the same kind of lock, one
// level down) and still finds the nonce there. Nobody else may remove it, so a late comer never removes a live one.
import { codeOf } from "./failure-code.ts";
import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, readlinkSync, rmSync, unlinkSync, writeFileSync } from "node:fs";

interface Holder {
  readonly boot: string;
  readonly space: string;
  readonly pid: number;
  readonly started: string;
  readonly nonce: string;
}

function readOr(path: string, missing: string): string {
  try {
    return readFileSync(path, "latin1").trim();
  } catch {
    return missing;
  }
}

/** Start time in clock ticks and state letter of a process; undefined where /proc does not tell. */
function processFacts(pid: number | "self"): { started: string; state: string } | undefined {
  const stat = readOr(`/proc/${pid}/stat`, "");
  // The second field is a name in brackets that may hold spaces and brackets of its own.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return stat === "" ? undefined : { state: fields[0]!, started: fields[19]! };
}

let cachedSelf: Omit<Holder, "nonce"> | undefined;

function self(): Omit<Holder, "nonce"> {
  cachedSelf ??= {
    boot: readOr("/proc/sys/kernel/random/boot_id", ""),
    space: pidNamespace(),
    pid: process.pid,
    started: processFacts("self")?.started ?? "",
  };
  return cachedSelf;
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/** True only where it is proven that no process holds this any more. */
function isDead(holder: Holder): boolean {
  const me = self();
  if (holder.boot !== me.boot) return holder.boot !== "" && me.boot !== "";
  if (holder.space !== me.space) return false; // another container's process cannot be seen from here
  const facts = processFacts(holder.pid);
  if (facts) return facts.started !== holder.started || "ZX".includes(facts.state);
  try {
    process.kill(holder.pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
}

/** Who holds the lock: undefined where nobody does, `unreadable` where a crash of the machine left an empty file. */
function holderOf(path: string): Holder | "unreadable" | undefined {
  try {
    const holder: Holder | null = JSON.parse(readFileSync(path, "utf8"));
    return holder !== null && typeof holder.nonce === "string" ? holder : "unreadable";
  } catch (error) {
    return codeOf(error) === "ENOENT" ? undefined : "unreadable";
  }
}

const nonceOf = (holder: Holder | "unreadable"): string => (holder === "unreadable" ? holder : holder.nonce);

/** Takes the lock when it is free: a function that gives it back, or undefined. */
function tryLock(path: string): (() => void) | undefined {
  const nonce = randomBytes(6).toString("hex");
  const claim = `${path}.${nonce}.claim`;
  try {
    writeFileSync(claim, JSON.stringify({ ...self(), nonce }), { mode: 0o600, flag: "wx" });
    linkSync(claim, path);
    return () => unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    removeDead(path);
    return undefined;
  } finally {
    rmSync(claim, { force: true });
  }
}

function removeDead(path: string): void {
  const holder = holderOf(path);
  if (holder === undefined || (holder !== "unreadable" && !isDead(holder))) return;
  const giveBack = tryLock(`${path}.${nonceOf(holder)}`);
  if (!giveBack) return;
  try {
    const now = holderOf(path);
    if (now !== undefined && nonceOf(now) === nonceOf(holder)) unlinkSync(path);
  } finally {
    giveBack();
  }
}

/**
 * Runs `work` while no other process holds `path`. `work` is synchronous: the lock is held for its time only.
 * @throws Error where a live process keeps the lock for longer than `patienceMs` (default 10 s), naming it
 */
export async function withLock<T>(path: string, work: () => T, patienceMs = 10_000): Promise<T> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const giveBack = tryLock(path);
    if (giveBack) {
      try {
        return work();
      } finally {
        giveBack();
      }
    }
    if (Date.now() > end) throw new Error(busySentence(path));
    await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 8));
  }
}

function busySentence(path: string): string {
  const holder = holderOf(path);
  const who = holder === undefined || holder === "unreadable" ? "another process" : `process ${holder.pid}`;
  return `The sandbox's state is held by ${who} and was not given back in time (${path}).`;
}
