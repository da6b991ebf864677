// The journal's file: opened with care, read on from what is known, appended to so that it lasts; bad bytes are set aside.
import { hash, randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { createFile, removeTemporaries, replaceFile } from "../../disk/atomic-write.ts";
import { failedCall, isMissing } from "../../disk/error-words.ts";
import { careful, syncFolder, writeAll } from "../../disk/write.ts";
import { Failure } from "../../errors.ts";
import { Fold } from "../fold.ts";
import { historyFindings } from "../history.ts";
import { digestOf, headerLine, type KeptPart, seal, type Slice, sumIn } from "../record.ts";
import { type Damage, type Scan, scanBytes } from "./scan.ts";
import { assertCurrent, assertOurs, checkFile, prepareFolder } from "./safety.ts";
import { shell } from "../../next-step.ts";

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = fs.constants;
const headLength = 256;
const newline = 10;

/** What was read so far. The last record read is found again before anything behind it is believed. */
interface Known {
  readonly fold: Fold;
  readonly head: Buffer;
  readonly anchor: { readonly offset: number; readonly line: number; readonly bytes: Buffer };
}

export interface Reading {
  readonly fold: Fold;
  /** Damage behind the last sound record. */
  readonly damage: readonly Damage[];
  /** An append that a crash cut short; to a reader without the lock perhaps one under way. */
  readonly torn: Damage | undefined;
  readonly size: number;
  /** There is a file, and nothing in it. */
  readonly isEmptied: boolean;
}

export class JournalFile {
  readonly path: string;
  readonly #now: () => number;
  #known: Known | undefined;
  /** Device and inode whose name in the folder this process has synced. */
  #synced = "";
  /** Names of the damaged places that this process knows to be set aside. */
  readonly #aside = new Set<string>();
  /** Set by a sync that failed: what the kernel then holds is not to be trusted, so nothing is written any more. */
  #broken = false;

  constructor(path: string, now: () => number) {
    this.path = path;
    this.#now = now;
  }

  /** Reads what is new; a missing file is an empty journal. Changes nothing. */
  read(): Reading {
    let fd: number;
    try {
      fd = fs.openSync(this.path, O_RDONLY | careful);
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#known = undefined;
      return { fold: new Fold(), damage: [], torn: undefined, size: 0, isEmptied: false };
    }
    try {
      checkFile(fd, this.path);
      return this.#refresh(fd);
    } finally {
      fs.closeSync(fd);
    }
  }

  /** All that stands in the file, in its order. */
  scan(): Scan {
    const fd = fs.openSync(this.path, O_RDONLY | careful);
    try {
      return scanBytes(readBytes(fd, 0, fs.fstatSync(fd).size), { offset: 0, line: 1 });
    } finally {
      fs.closeSync(fd);
    }
  }

  #refresh(fd: number): Reading {
    const { size } = fs.fstatSync(fd);
    const head = readBytes(fd, 0, Math.min(headLength, size));
    return this.#readOn(fd, head, size) ?? this.#readAll(fd, size);
  }

  /** What stands behind the last record read, where the file is the one that was read and that record still stands. */
  #readOn(fd: number, head: Buffer, size: number): Reading | undefined {
    const known = this.#known;
    if (!known || !head.subarray(0, known.head.length).equals(known.head)) return undefined;
    const { anchor, fold } = known;
    const bytes = readBytes(fd, anchor.offset, size - anchor.offset);
    if (!bytes.subarray(0, anchor.bytes.length).equals(anchor.bytes)) return undefined;
    const scan = scanBytes(bytes, anchor);
    if (scan.found[0]?.text.end !== anchor.bytes.length) return undefined;
    return this.#take({ ...scan, found: scan.found.slice(1) }, { fold, head, size });
  }

  #readAll(fd: number, size: number): Reading {
    this.#known = undefined;
    const bytes = readBytes(fd, 0, size);
    const fold = new Fold();
    const reading = this.#take(scanBytes(bytes, { offset: 0, line: 1 }), {
      fold,
      head: bytes.subarray(0, headLength),
      size,
    });
    if (!fold.isJournal && size > 0) assertOurs(bytes, this.path);
    return reading;
  }

  #take(scan: Scan, at: { fold: Fold; head: Buffer; size: number }): Reading {
    const { fold, head, size } = at;
    const last = scan.found.at(-1);
    const reach = last?.offset ?? 0;
    // Damage behind the last sound record is read again next time, so it is not the fold's yet.
    fold.add({ found: scan.found, damage: scan.damage.filter((damage) => damage.offset < reach) });
    if (last) {
      const { offset, line, text } = last;
      this.#known = { fold, head, anchor: { offset, line, bytes: text.bytes.subarray(text.start, text.end) } };
    }
    return {
      fold,
      damage: scan.damage.filter((damage) => damage.offset >= reach),
      torn: scan.torn,
      size,
      isEmptied: size === 0,
    };
  }

  /** Makes the journal's folder where it is missing, and refuses one that is not safe. */
  prepareFolder(): void {
    this.#assertTrusted();
    try {
      prepareFolder(dirname(this.path));
    } catch (error) {
      throw this.#noteFailedSync(error);
    }
  }

  /**
   * Appends records, synced with the folder's entry, or changes nothing. The caller holds the journal's lock.
   * @param make gives their contents, from what stands in the file now
   * @throws Failure, or the error of the file call.
   */
  append(make: (fold: Fold) => readonly string[]): void {
    this.#assertTrusted();
    let fd: number | undefined;
    try {
      fd = fs.openSync(this.path, O_RDWR | O_CREAT | O_APPEND | careful, 0o600);
      checkFile(fd, this.path, { repair: true });
      const { size, fold } = this.#readyToAppend(fd);
      const ended = size === 0 || readBytes(fd, size - 1, 1)[0] === newline;
      const start = `${ended ? "" : "\n"}${size === 0 ? this.#header() : ""}`;
      let after = size === 0 ? sumIn(start) : fold.lastSum;
      const lines = make(fold).map((content) => {
        const line = seal(content, after);
        after = sumIn(line);
        return line;
      });
      this.#write(fd, { bytes: Buffer.from(`${start}${lines.join("")}`), size });
    } catch (error) {
      throw this.#noteFailedSync(error);
    } finally {
      if (fd !== undefined) fs.closeSync(fd);
    }
  }

  /** Sets aside what is damaged or torn. @returns what stays, and its size */
  #readyToAppend(fd: number): { size: number; fold: Fold } {
    const reading = this.#refresh(fd);
    assertCurrent(reading.fold, this.path);
    this.#keepDamage(reading);
    const { fold, torn } = reading;
    if (!torn) return { size: reading.size, fold };
    this.#keepTorn(torn);
    fs.ftruncateSync(fd, torn.offset);
    return { size: torn.offset, fold };
  }

  #header(kept?: KeptPart): string {
    const file = randomBytes(9).toString("base64url");
    return headerLine({ file, createdAt: new Date(this.#now()).toISOString(), kept });
  }

  #assertTrusted(): void {
    if (!this.#broken) return;
    throw new Failure("failed", `The journal ${this.path} could not be synced to the disk before.`, {
      meaning: "Nothing more is written to it by this process.",
      nextCommand: shell`integ journal verify`,
    });
  }

  /** A sync that fails is never tried again: the kernel may drop what it could not write and report success next time. */
  #noteFailedSync(error: unknown): unknown {
    if (failedCall(error)?.call === "fsync") this.#broken = true;
    return error;
  }

  #write(fd: number, data: { bytes: Buffer; size: number }): void {
    try {
      writeAll(fd, data.bytes);
      fs.fsyncSync(fd);
      this.#syncName(fd);
    } catch (error) {
      try {
        fs.ftruncateSync(fd, data.size);
      } catch {
        // The next append finds a torn end, or a record that was never acted upon.
      }
      throw error;
    }
  }

  #syncName(fd: number): void {
    const { dev, ino } = fs.fstatSync(fd, { bigint: true });
    if (this.#synced === `${dev}:${ino}`) return;
    const folder = dirname(this.path);
    syncFolder(folder);
    // The folder may be one that a process made and did not live to sync; a parent that is not ours to open is not ours.
    syncFolder(dirname(folder), { unlessDenied: true });
    this.#synced = `${dev}:${ino}`;
  }

  /** Copies damaged places beside the journal, each once; they stay in the file too until it is pruned. */
  setAside(reading: Reading): void {
    this.#assertTrusted();
    try {
      this.#keepDamage(reading);
    } catch (error) {
      throw this.#noteFailedSync(error);
    }
  }

  /** Copies damaged places to `<journal>.damaged-<offset>-<hash>`. */
  #keepDamage(reading: Reading): void {
    for (const { offset, bytes } of [...reading.fold.damage, ...reading.damage]) {
      const suffix = `damaged-${offset}-${hash("sha256", bytes, "hex").slice(0, 12)}`;
      if (this.#aside.has(suffix)) continue;
      this.#keep(suffix, bytes);
      this.#aside.add(suffix);
    }
  }

  /** Copies the end of an incomplete append to `<journal>.torn-<time>`. */
  #keepTorn(torn: Damage): void {
    this.#keep(`torn-${new Date(this.#now()).toISOString().replaceAll(/[-:.]/g, "")}`, torn.bytes);
  }

  /** Bytes that are no sound record are never thrown away, and each kept once. */
  #keep(suffix: string, bytes: Buffer): void {
    for (let number = 1; ; number += 1) {
      const path = `${this.path}.${suffix}${number === 1 ? "" : `-${number}`}`;
      const there = fs.lstatSync(path, { throwIfNoEntry: false });
      if (there?.isFile() && fs.readFileSync(path).equals(bytes)) return;
      if (there === undefined) return createFile(path, bytes);
    }
  }

  /**
   * Writes the journal again with the records of each entry that stays: aside, synced, renamed. Damaged bytes are set
   * aside first. The caller holds the journal's lock.
   * @param going ids of the entries that are forgotten.
   */
  replace(reading: Reading, going: ReadonlySet<string>): void {
    this.#assertTrusted();
    try {
      assertCurrent(reading.fold, this.path);
      this.#keepDamage(reading);
      if (reading.torn) this.#keepTorn(reading.torn);
      removeTemporaries(this.path); // of one that was killed here: nobody else writes one under this lock
      const staying = reading.fold.ids().filter((id) => !going.has(id));
      const lines = staying.flatMap((id) => reading.fold.lines(id)).map(textOf);
      const gaps = staying.filter((id) => historyFindings(id, reading.fold.lines(id)).length > 0);
      const kept = { records: lines.length, digest: digestOf(lines.map(sumIn)), gaps };
      replaceFile(this.path, Buffer.from(`${this.#header(kept)}${lines.map((line) => `${line}\n`).join("")}`));
    } catch (error) {
      throw this.#noteFailedSync(error);
    }
  }
}

function textOf({ bytes, start, end }: Slice): string {
  return bytes.toString("utf8", start, end);
}

/** Up to `length` bytes from `offset`; fewer if the file ends before. */
function readBytes(fd: number, offset: number, length: number): Buffer {
  if (length <= 0) return Buffer.alloc(0);
  const bytes = Buffer.allocUnsafeSlow(length);
  let done = 0;
  while (done < length) {
    const count = fs.readSync(fd, bytes, done, length - done, offset + done);
    if (count === 0) break;
    done += count;
  }
  return bytes.subarray(0, done);
}
