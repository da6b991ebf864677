import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync, statfsSync } from "node:fs";
import { hostname } from "node:os";
import { errorCode } from "./error-words.ts";
import { tryParseJson } from "../json.ts";

/** Identifies a process even if its number is reused. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since boot; null if unknown. */
  readonly start: string | null;
  /** Boot id of the machine; null if unknown. */
  readonly boot: string | null;
  /** PID and time namespaces: the same number in another container is another process. */
  readonly space: string | null;
  readonly host: string;
}

export interface LockOwner extends ProcessIdentity {
  readonly random: string;
  /** True if the owner also has a kernel lock: if another process can get that lock, the owner has ended. */
  readonly kernel: boolean;
}

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

interface Stat {
  readonly state: string;
  readonly threads: number;
  readonly start: string;
}

/** Fields 3, 20 and 22 of /proc/<pid>/stat; the name in field 2 may contain spaces and parentheses. */
function processStat(pid: number): Stat | null {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, threads, start] = [fields?.[0], fields?.[17], fields?.[19]];
  if (state === undefined || threads === undefined || start === undefined) return null;
  return { state, threads: Number(threads), start };
}

export function identify(pid: number): ProcessIdentity {
  const spaces = [`/proc/${pid}/ns/pid`, `/proc/${pid}/ns/time`].map((link) => attempt(() => readlinkSync(link)));
  return {
    pid,
    start: processStat(pid)?.start ?? null,
    boot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()),
    space: spaces[0] === null ? null : spaces.join(" "),
    host: hostname(),
  };
}

export function newOwner(self: ProcessIdentity, kernel: boolean): LockOwner {
  return { ...self, random: randomBytes(9).toString("base64url"), kernel };
}

export function readOwner(text: string): LockOwner | undefined {
  const read = tryParseJson(text);
  return isOwner(read) ? read : undefined;
}

function isOwner(read: unknown): read is LockOwner {
  if (typeof read !== "object" || read === null) return false;
  const owner: Partial<Record<keyof LockOwner, unknown>> = read;
  return (
    Number.isSafeInteger(owner.pid) &&
    [owner.start, owner.boot, owner.space].every((value) => value === null || typeof value === "string") &&
    typeof owner.host === "string" &&
    typeof owner.random === "string" &&
    /^[\w-]{1,40}$/.test(owner.random) &&
    typeof owner.kernel === "boolean"
  );
}

/** A process of another user counts as running, because the signal fails with `EPERM`. */
export function isNotRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return errorCode(error) === "ESRCH";
  }
}

/** File systems that only one running kernel mounts: ext, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS. */
const localFileSystems = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010]);

function isLocal(path: string): boolean {
  return localFileSystems.has(attempt(() => statfsSync(path).type) ?? 0);
}

/**
 * True if the owner has certainly ended: its machine has rebooted (on an unshared disk), its process number is unused
 * or belongs to a process with another start time, or the process is a zombie.
 */
export function hasCertainlyEnded(owner: LockOwner, self: ProcessIdentity, lockPath: string): boolean {
  if (owner.boot === self.boot) return hasEnded(owner, self);
  if (owner.boot !== null && self.boot !== null) return isLocal(lockPath);
  // Without a boot id, the owner may have run in this boot or an earlier one. In both cases it has ended if it belongs
  // to this container and no process has its number.
  return self.boot !== null && isSameContainer(owner, self) && isLocal(lockPath) && isNotRunning(owner.pid);
}

/** Equal namespaces and host names mean one container only if the lock is on a local disk. */
function isSameContainer(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  return owner.space !== null && owner.space === self.space && owner.host === self.host;
}

export function hasEnded(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  if (!isVisible(owner, self)) return false;
  if (isNotRunning(owner.pid)) return true;
  const stat = processStat(owner.pid);
  if (stat === null || owner.start === null) return false;
  if (stat.start !== owner.start) return true;
  return (stat.state === "Z" || stat.state === "X") && stat.threads <= 1;
}

/** True if this process can check the owner's process: same boot, machine and container. */
export function isVisible(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  return owner.boot === self.boot && owner.space === self.space && (owner.boot !== null || owner.host === self.host);
}

export function describeOwner(owner: LockOwner | undefined, self: ProcessIdentity): string {
  if (owner === undefined) return "a process that left no name";
  const { pid, host } = owner;
  if (isVisible(owner, self)) return `process ${pid}`;
  if (host !== self.host) return `process ${pid} on ${host}`;
  return owner.boot === self.boot
    ? `process ${pid} of another container on this machine`
    : `process ${pid} of another boot of ${host}`;
}
