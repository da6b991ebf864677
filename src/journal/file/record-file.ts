// Reads a file of records incrementally, appends or replaces records durably, and copies damaged bytes.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { removeTemporaries, replaceFile } from "../../disk/atomic-write.ts";
import { isMissing } from "../../disk/error-words.ts";
import { type Appended, carefulOpen, truncateAppended, writeAll } from "../../disk/write.ts";
import { type HeaderFacts, headerLine, recordLine, type Signed, sumIn } from "../record.ts";
import { Contents } from "./contents.ts";
import { assertJournal, checkFile, type DiskHealth, otherFormat, setAside } from "./safety.ts";
import { type Damage, type FoundRecord, type LineStart, linesOf, readBytes, scanBytes } from "./scan.ts";

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = fs.constants;
const headLength = 256;
const newline = 10;

export interface Reading {
  readonly contents: Contents;
  readonly damage: readonly Damage[];
  /** An incomplete append: cut short by a crash, or still being written if the caller does not have the lock. */
  readonly torn: Damage | undefined;
  readonly size: number;
  readonly isEmptied: boolean;
  /** True if the file has neither damage nor a break in the order of its records. Allows an incomplete append at the end. */
  readonly isSound: boolean;
}

/** What the next read needs to continue after the last record, `anchor`. */
interface LastRead {
  readonly contents: Contents;
  readonly head: Buffer;
  readonly anchor: LineStart & { readonly bytes: Buffer };
  readonly file: { readonly fd: number };
}

interface FileParts {
  readonly now: () => number;
  readonly health: DiskHealth;
}

export class RecordFile {
  readonly path: string;
  readonly #parts: FileParts;
  #lastRead: LastRead | undefined;
  /** Includes files that other processes replaced, from which earlier `Contents` still read. */
  readonly #open = new Set<LastRead["file"]>();

  constructor(path: string, parts: FileParts) {
    this.path = path;
    this.#parts = parts;
  }

  read(): Reading {
    let fd: number;
    try {
      fd = fs.openSync(this.path, O_RDONLY | carefulOpen);
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#lastRead = undefined;
      return { contents: new Contents(), damage: [], torn: undefined, size: 0, isEmptied: false, isSound: true };
    }
    try {
      checkFile(fd, this.path);
      return this.#refresh(fd);
    } finally {
      this.#close(fd);
    }
  }

  #close(fd: number): void {
    if (![...this.#open].some((file) => file.fd === fd)) fs.closeSync(fd);
  }

  /** Afterwards, earlier `Contents` can no longer read their records. */
  close(): void {
    for (const file of this.#open) {
      try {
        fs.closeSync(file.fd);
      } catch {
        // A failed close loses nothing, because every write was synced.
      }
    }
    this.#open.clear();
    this.#lastRead = undefined;
  }

  readWhole(): Reading {
    this.#lastRead = undefined;
    return this.read();
  }

  #refresh(fd: number): Reading {
    const { size } = fs.fstatSync(fd);
    const head = readBytes(fd, 0, Math.min(headLength, size));
    const previous = this.#lastReadIn(fd, head);
    const from = previous?.anchor ?? { offset: 0, line: 1 };
    const file = previous?.file ?? { fd };
    const readRecord = (offset: number, length: number): Buffer => {
      if (!this.#open.has(file)) throw new Error(`${this.path} was read after it was let go of`);
      return readBytes(file.fd, offset, length);
    };
    const contents = previous?.contents ?? new Contents(readRecord);
    let isKnown = previous !== undefined;
    let last: FoundRecord | undefined;
    const damageAtEnd: Damage[] = [];
    const scan = {
      torn: undefined as Damage | undefined,
      damage: damageAtEnd,
      found: {
        push: (one: FoundRecord) => {
          if (one.record.kind === "foreign") throw otherFormat(`The journal ${this.path}`, one.record.format);
          if (!isKnown) contents.add((last = one), damageAtEnd.splice(0));
          isKnown = false;
        },
      },
    };
    let { line } = from;
    for (const { bytes, offset } of linesOf(fd, from.offset, size)) line = scanBytes(bytes, { offset, line }, scan);
    if (contents.lastSum === "" && size > 0) assertJournal(readBytes(fd, 0, size), this.path);
    const anchor = last ? { ...last, bytes: readBytes(fd, last.offset, last.length) } : previous?.anchor;
    this.#lastRead = anchor && { contents, head, anchor, file };
    if (anchor) this.#open.add(file);
    const damage = [...contents.damage, ...damageAtEnd];
    const isSound = damage.length + contents.breaks.length === 0;
    return { contents, damage, torn: scan.torn, size, isEmptied: size === 0, isSound };
  }

  /** @returns the last read if the file still has the same start and the same last record */
  #lastReadIn(fd: number, head: Buffer): LastRead | undefined {
    const last = this.#lastRead;
    if (!last || !head.subarray(0, last.head.length).equals(last.head)) return undefined;
    const { offset, bytes } = last.anchor;
    const current = readBytes(fd, offset, bytes.length + 1);
    const isEnded = current.length === bytes.length || current[bytes.length] === newline;
    return isEnded && current.subarray(0, bytes.length).equals(bytes) ? last : undefined;
  }

  /** Syncs the file and its folder; undoes a failed append if possible. The caller holds the journal's lock. */
  append(records: readonly Signed[]): void {
    const { health, now } = this.#parts;
    health.during(() => {
      let fd: number | undefined;
      let appended: Appended | undefined;
      try {
        fd = fs.openSync(this.path, O_RDWR | O_CREAT | O_APPEND | carefulOpen, 0o600);
        checkFile(fd, this.path, { repair: true });
        const reading = this.#refresh(fd);
        setAside(this.path, reading, now);
        const size = reading.torn?.offset ?? reading.size;
        if (reading.torn) fs.ftruncateSync(fd, size);
        const isEnded = size === 0 || readBytes(fd, size - 1, 1)[0] === newline;
        const start = `${isEnded ? "" : "\n"}${size === 0 ? this.#header({}) : ""}`;
        const lines = chained(records, size === 0 ? sumIn(start) : reading.contents.lastSum);
        appended = { fd, size };
        writeAll(fd, Buffer.from(`${start}${lines.join("")}`));
        fs.fsyncSync(fd);
        health.syncName(this.path, fd);
      } catch (error) {
        if (appended) truncateAppended(appended);
        throw error;
      } finally {
        if (fd !== undefined) this.#close(fd);
      }
    });
  }

  #header(facts: HeaderFacts): string {
    const file = randomBytes(9).toString("base64url");
    return headerLine({ ...facts, file, createdAt: new Date(this.#parts.now()).toISOString() });
  }

  /** Copies damaged places beside the file. They stay in the file until the journal is pruned. */
  keepDamage({ damage }: Reading): void {
    const { health, now } = this.#parts;
    health.during(() => setAside(this.path, { damage, torn: undefined }, now));
  }

  /** The caller holds the journal's lock. */
  replace(reading: Reading, records: readonly Signed[], facts: HeaderFacts): void {
    const { health, now } = this.#parts;
    health.during(() => {
      setAside(this.path, reading, now);
      removeTemporaries(this.path); // A killed process may have left them: only the lock's holder writes them.
      const header = this.#header(facts);
      const lines = [header, ...chained(records, sumIn(header))];
      replaceFile(this.path, Buffer.concat(lines.map((line) => Buffer.from(line))));
      this.close();
    });
  }
}

function chained(records: readonly Signed[], before: string): string[] {
  let after = before;
  return records.map((record) => {
    const line = recordLine(record, after);
    after = sumIn(line);
    return line;
  });
}
