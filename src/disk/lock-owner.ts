import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync, statfsSync } from "node:fs";
import { hostname } from "node:os";
import { errorCode } from "./error-words.ts";

/** Identifies a process, even after its number was given to another one. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Its start in clock ticks since boot; null if the system does not say. */
  readonly start: string | null;
  /** The running boot of its machine; null if the system does not say. */
  readonly boot: string | null;
  /** Process number and time namespace: the same number in another container is another process. */
  readonly space: string | null;
  readonly host: string;
}

export interface LockOwner extends ProcessIdentity {
  /** Names this one taking of the lock. */
  readonly random: string;
  /** True if the holder also has a kernel lock on the file: the file without that lock is proof of its death. */
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

/** Fields 3, 20 and 22 of /proc/<pid>/stat; the name in field 2 may hold spaces and brackets. */
function processStat(pid: number): Stat | null {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, threads, start] = [fields?.[0], fields?.[17], fields?.[19]];
  if (state === undefined || threads === undefined || start === undefined) return null;
  return { state, threads: Number(threads), start };
}

/** This process (or the one of that number on this machine) as it goes into a lock file. */
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

/** The owner that a lock file names, or undefined if its text is not whole. */
export function readOwner(text: string): LockOwner | undefined {
  const read = attempt((): unknown => JSON.parse(text));
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

/** Whether no process of that number runs here; one of another user counts as running. */
export function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return errorCode(error) === "ESRCH";
  }
}

/** File systems that one running kernel alone has mounted: ext, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS. */
const localFileSystems = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010]);

/** Whether only processes of one boot of one machine can have written there. */
function isLocal(path: string): boolean {
  return localFileSystems.has(attempt(() => statfsSync(path).type) ?? 0);
}

/**
 * Whether the owner has ended beyond doubt: its machine was booted again (on a disk that no other machine shares), no
 * process has its number, the process of that number started at another time, or it has ended and only waits to be
 * reaped. Doubt (another machine, another container, a system that says nothing) is not proof.
 * @param lockPath the lock's file.
 */
export function isProvenDead(owner: LockOwner, self: ProcessIdentity, lockPath: string): boolean {
  if (owner.boot === self.boot) return hasEnded(owner, self);
  if (owner.boot !== null && self.boot !== null) return isLocal(lockPath);
  // An owner that could not read its boot: it was this one or an earlier one, and no process has its number in either.
  return self.boot !== null && isNeighbour(owner, self) && isLocal(lockPath) && isGone(owner.pid);
}

/** Whether both ran in the same container, as far as names go: on a disk of one machine alone they are enough. */
function isNeighbour(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  return owner.space !== null && owner.space === self.space && owner.host === self.host;
}

/** Whether the process has ended beyond doubt: one that can be looked at from here, in the same boot of the same machine. */
export function hasEnded(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  if (!canBeLookedAt(owner, self)) return false;
  if (isGone(owner.pid)) return true;
  const stat = processStat(owner.pid);
  if (stat === null || owner.start === null) return false;
  if (stat.start !== owner.start) return true;
  return (stat.state === "Z" || stat.state === "X") && stat.threads <= 1;
}

/** Whether the process runs, or ran, as far as this one can see it: the same boot of the same machine, the same container. */
export function canBeLookedAt(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  return owner.boot === self.boot && owner.space === self.space && (owner.boot !== null || owner.host === self.host);
}

/** The holder in words for a person. Its number means something only if this process can see it. */
export function describeOwner(owner: LockOwner | undefined, self: ProcessIdentity): string {
  if (owner === undefined) return "a process that left no name";
  const { pid, host } = owner;
  if (canBeLookedAt(owner, self)) return `process ${pid}`;
  if (host !== self.host) return `process ${pid} on ${host}`;
  return owner.boot === self.boot
    ? `process ${pid} of another container on this machine`
    : `process ${pid} of another boot of ${host}`;
}
