// Checks the journal's file and folder, copies damaged bytes, describes failures, and ends writes after a failed sync.
import { hash } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { createFile } from "../../disk/atomic-write.ts";
import { type ErrorCause, errorCode, failedCall, fileFailure, systemWords } from "../../disk/error-words.ts";
import { makeFolders } from "../../disk/private-file.ts";
import { isAt, syncFolder } from "../../disk/write.ts";
import { Failure } from "../../errors.ts";
import { formatVersion } from "../entry.ts";
import { recordStart } from "../record.ts";
import type { Damage } from "./scan.ts";
import { type Advice, type NextStep, shell } from "../../next-step.ts";

/**
 * With `repair`, makes the file private if other users can read it.
 * @throws Failure `usage` if the file is not plain, has a second name, is another user's or is writable by others
 */
export function checkFile(fd: number, path: string, options: { repair?: boolean } = {}): void {
  const stats = fs.fstatSync(fd);
  const { mode, nlink, uid } = stats;
  const refused = (what: string, step: NextStep): Failure => new Failure("usage", `The journal ${path} ${what}.`, step);
  if (!stats.isFile()) throw refused("is not a plain file", { hint: "Set INTEG_JOURNAL to a file's path." });
  if (nlink > 1 || (nlink === 0 && isAt(path, fd))) throw secondNameFailure(path);
  const user = process.geteuid?.();
  if (user === undefined) return;
  if (uid !== user)
    throw refused(`belongs to another user (${uid})`, {
      nextCommand: user === 0 ? shell`chown ${user} ${path}` : shell`sudo chown ${user} ${path}`,
    });
  if (mode & 0o022)
    throw refused(`can be written by others (mode ${octal(mode)})`, { nextCommand: shell`chmod 600 ${path}` });
  if (options.repair && mode & 0o077) fs.fchmodSync(fd, 0o600);
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

/** Creates a missing folder (0700). @throws Failure `usage` if everyone may rename its files */
export function prepareFolder(folder: string): void {
  const stats = fs.statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) makeFolders(folder);
  const { mode } = stats ?? fs.statSync(folder);
  if (process.geteuid === undefined || (mode & 0o1002) !== 0o002) return;
  throw new Failure("usage", `Other users can rename files in the journal's folder ${folder} (mode ${octal(mode)}).`, {
    nextCommand: shell`chmod 700 ${folder}`,
    hint: "Set INTEG_JOURNAL to a file in a folder of its own below it, or close the folder to others.",
  });
}

/** Refuses a file that is mounted by itself: processes that use its other path do not see its locks. */
export function assertNotMounted(path: string): void {
  const escaped = (name: string): string =>
    name.replaceAll(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
  let mounts: string[];
  try {
    const name = escaped(fs.realpathSync(path));
    mounts = fs
      .readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.split(" ")[4] === name);
  } catch {
    return; // The file is missing, or the system has no such list.
  }
  if (mounts.length > 0) throw secondNameFailure(path);
}

function secondNameFailure(path: string): Failure {
  return new Failure("usage", `The journal ${path} has a second name (a hard link, or a mount of the single file).`, {
    meaning: "Nothing was sent and nothing changed: by the other name a process would not see the locks of this one.",
    hint: "Remove the second name, or mount the journal's folder instead of the file.",
  });
}

/** Refuses a file that is not a journal. Zeros are allowed: a power failure during the first append can leave them. */
export function assertJournal(bytes: Buffer, path: string): void {
  const start = bytes.toString("latin1", 0, recordStart.length);
  if (recordStart.startsWith(start) || bytes.every((byte) => byte === 0)) return;
  throw new Failure("usage", `The file ${path} is not a journal of integ.`, {
    meaning: "It is left as it is.",
    hint: "Set INTEG_JOURNAL to another path, or move the file away.",
  });
}

export function otherFormat(what: string, format: number): Failure {
  const isNewer = format > formatVersion;
  const hint = isNewer ? "Upgrade integ, then run the command again." : "Move the file away.";
  return new Failure(
    "usage",
    `${what} was written by ${isNewer ? "a newer integ" : "another integ"} (format ${format}).`,
    { meaning: "Nothing was read, sent or changed.", hint },
  );
}

const advice: Readonly<Partial<Record<ErrorCause, Advice>>> = {
  denied: "Give yourself access to it, or set INTEG_JOURNAL to a path that you can write.",
  read_only: "Set INTEG_JOURNAL to a path on a file system that can be written.",
  not_folder: "Set INTEG_JOURNAL to a path in a folder: a part of this one is a file.",
  long_name: "Set INTEG_JOURNAL to a shorter path.",
  link: "Set INTEG_JOURNAL to the file itself: a symbolic link is not followed.",
  full: "Free space on the disk, then run the command again.",
  quota: "Free space in your quota, then run the command again.",
};

/** A journal at another path would lack the entries, so the advice is to make this file accessible. */
const adviceForItsEntries: typeof advice = {
  ...advice,
  denied: "Give yourself access to it and its folder, then run the command again.",
  read_only: "Mount its file system writable, then run the command again.",
};

/** @returns for a file error a Failure, `usage` if the path is unusable, else `failed`; other errors unchanged */
export function journalFailure(
  error: unknown,
  action: string,
  about: { readonly path: string; readonly meaning?: string | undefined },
): unknown {
  if (errorCode(error) === undefined) return error;
  const hints = /^(?:lock an entry of|update|prune) /.test(action) ? adviceForItsEntries : advice;
  return fileFailure(error, action, { ...about, hints, words: systemWords });
}

export function takenOverFailure(id: string, meaning: string): Failure {
  return new Failure("failed", `Journal entry ${id} was taken over by another process.`, {
    meaning: `${meaning} This process sends nothing more.`,
    nextCommand: shell`integ journal show ${id}`,
  });
}

/** Copies damage to `<journal>.damaged-<offset>-<hash>`, and an incomplete append to `<journal>.torn-<time>`, each once. */
export function setAside(
  journal: string,
  { damage, torn }: { readonly damage: readonly Damage[]; readonly torn: Damage | undefined },
  now: () => number,
): void {
  const bad = damage.map(({ offset, bytes }) => ({
    suffix: `damaged-${offset}-${hash("sha256", bytes, "hex").slice(0, 12)}`,
    bytes,
  }));
  if (torn) bad.push({ suffix: `torn-${new Date(now()).toISOString().replaceAll(/[-:.]/g, "")}`, bytes: torn.bytes });
  for (const { suffix, bytes } of bad)
    for (let number = 1; ; number += 1) {
      const path = `${journal}.${suffix}${number === 1 ? "" : `-${number}`}`;
      const existing = fs.lstatSync(path, { throwIfNoEntry: false });
      if (existing?.isFile() && fs.readFileSync(path).equals(bytes)) break;
      if (existing !== undefined) continue;
      createFile(path, bytes);
      break;
    }
}

export class DiskHealth {
  readonly #path: string;
  readonly #synced = new Set<string>();
  #hasSyncFailed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Refuses writes after a failed sync: the kernel may drop the data and report success for the next sync. */
  during(work: () => void): void {
    if (this.#hasSyncFailed)
      throw new Failure("failed", `The journal ${this.#path} could not be synced to the disk before.`, {
        meaning: "Nothing more is written to it by this process.",
        nextCommand: shell`integ journal verify`,
      });
    try {
      work();
    } catch (error) {
      if (failedCall(error)?.call === "fsync") this.#hasSyncFailed = true;
      throw error;
    }
  }

  syncName(path: string, fd: number): void {
    const { dev, ino } = fs.fstatSync(fd, { bigint: true });
    if (this.#synced.has(`${dev}:${ino}`)) return;
    const folder = dirname(path);
    syncFolder(folder);
    // A crashed process may have left a new folder's parent unsynced. A parent that cannot be opened got no new folder.
    syncFolder(dirname(folder), { unlessDenied: true });
    this.#synced.add(`${dev}:${ino}`);
  }
}
