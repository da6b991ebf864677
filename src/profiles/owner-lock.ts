// Owns: a lock between processes that names its owner; one left by a dead process never blocks the next.
// Must not know: what it protects. Design: journal.md «Making it true» (age and mtime prove nothing).
//
// The lock is a hard link to a file that was complete and synced before, so nobody ever reads half an owner. A lock of
// an owner proven dead may be replaced by whoever first links `<lock>.<token of the dead>`, itself a lock of the same
// kind (its holder may die too, and is inherited in the same way). Under that right the dead lock cannot change any
// more, so "still the dead one?" and the rename over it need not be one step. Tokens never repeat: a right that came
// late finds another token and does nothing.
import { linkSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { Failure } from "../errors.ts";
import { errorCode, fileFailure, writeNewPrivateFile } from "./private-file.ts";

const Owner = z.object({
  pid: z.int(),
  host: z.string(),
  boot: z.string(),
  pid_namespace: z.string(),
  started: z.string(),
  token: z.string(),
});
type Owner = z.infer<typeof Owner>;

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}

/** State and start time (clock ticks since boot) of a process as Linux tells them; empty elsewhere or when it is gone. */
function processFacts(pid: number | "self"): { state: string; started: string } {
  const text = readText(`/proc/${pid}/stat`);
  // The name in parentheses may hold anything, also spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", started: fields[19] ?? "" };
}

function describeMyself(): Owner {
  let pidNamespace = "";
  try {
    pidNamespace = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Not Linux, or hidden: then a process id is taken for one of this machine.
  }
  return {
    pid: process.pid,
    host: hostname(),
    boot: readText("/proc/sys/kernel/random/boot_id"),
    pid_namespace: pidNamespace,
    started: processFacts("self").started,
    token: crypto.randomUUID(),
  };
}

/** True only where it is certain that the owner cannot act any more; anything doubtful counts as alive. */
function isProvenDead(owner: Owner, me: Owner): boolean {
  if (owner.host !== me.host) return false;
  if (owner.boot !== me.boot) return owner.boot !== "" && me.boot !== "";
  if (owner.pid_namespace !== me.pid_namespace) return false;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if (errorCode(error) === "ESRCH") return true;
  }
  const { state, started } = processFacts(owner.pid);
  if (state === "Z" || state === "X") return true;
  return started !== "" && owner.started !== "" && started !== owner.started;
}

function readOwner(path: string): Owner | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw fileFailure(error, "read the lock", path);
  }
  try {
    return Owner.parse(JSON.parse(text));
  } catch (error) {
    throw new Failure("failed", `The lock ${path} names no owner.`, {
      meaning: "It was not written by integ, or the disk lost it.",
      hint: `rm '${path}'`,
      cause: error,
    });
  }
}

interface Claim {
  readonly me: Owner;
  /** A complete, synced file that names me: what the lock becomes a link to. */
  readonly file: string;
}

/** One try. True: the lock is ours. An owner: it is held. Undefined: it moved meanwhile, try again at once. */
function tryLock(path: string, claim: Claim): true | Owner | undefined {
  try {
    linkSync(claim.file, path);
    return true;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw fileFailure(error, "make the lock", path);
  }
  const owner = readOwner(path);
  if (owner === undefined || !isProvenDead(owner, claim.me)) return owner;
  const right = `${path}.${owner.token}`;
  const inherited = tryLock(right, claim);
  if (inherited !== true) return inherited;
  try {
    if (readOwner(path)?.token !== owner.token) return undefined;
    const next = `${claim.file}.${owner.token}`;
    linkSync(claim.file, next);
    renameSync(next, path);
    return true;
  } finally {
    unlinkSync(right);
  }
}

function writeClaim(path: string): Claim {
  const me = describeMyself();
  const file = `${path}-${me.token}`;
  try {
    writeNewPrivateFile(file, JSON.stringify(me));
  } catch (error) {
    throw fileFailure(error, "make the lock", file);
  }
  return { me, file };
}

/**
 * Removes what dead processes left beside a lock that is ours: claims, and rights to locks that are no more. Only of
 * the proven dead; whoever still counts on such a right looks again and finds our lock.
 */
function sweep(path: string, me: Owner): void {
  const folder = dirname(path);
  const name = basename(path);
  for (const other of readdirSync(folder)) {
    if (!other.startsWith(`${name}-`) && !other.startsWith(`${name}.`)) continue;
    const text = readText(join(folder, other));
    const owner = text === "" ? undefined : Owner.safeParse(parseJson(text)).data;
    if (owner !== undefined && isProvenDead(owner, me)) rmSync(join(folder, other), { force: true });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function waitForLock(path: string, claim: Claim, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const holder = tryLock(path, claim);
    if (holder === true) return;
    if (performance.now() > deadline) throw heldFailure(path, holder);
    if (holder !== undefined) await sleep(5 + Math.random() * 20);
  }
}

function heldFailure(path: string, holder: Owner | undefined): Failure {
  const who = holder ? `process ${holder.pid} on ${holder.host}` : "one process after the other";
  return new Failure("failed", `${path} is held by ${who}.`, {
    meaning: "Another integ is changing the same file; if that process is certainly gone, remove the lock.",
    ...(holder && { hint: `rm '${path}'` }),
  });
}

/**
 * Runs `work` while no other process that uses the same lock does.
 * @param path the lock file; its folder exists
 * @param options.waitMs how long a living holder is waited for (default 10 s)
 * @throws Failure `failed` naming the holder after that time; `usage` where the folder takes no lock
 */
export async function withOwnerLock<T>(
  path: string,
  work: () => T | Promise<T>,
  options: { readonly waitMs?: number } = {},
): Promise<T> {
  const claim = writeClaim(path);
  try {
    await waitForLock(path, claim, options.waitMs ?? 10_000);
  } finally {
    unlinkSync(claim.file);
  }
  try {
    sweep(path, claim.me);
    return await work();
  } finally {
    unlinkSync(path);
  }
}
