// A journal of a few entries with the ids and states that a test wants, as a file, as records and as an index.
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { newEntry } from "../../../../../src/journal/admission.ts";
import type { Entry } from "../../../../../src/journal/entry.ts";
import { Fold } from "../../../../../src/journal/fold.ts";
import { JournalIndex } from "../../../../../src/journal/file/index/journal-index.ts";
import type { Rows } from "../../../../../src/journal/file/index/rows.ts";
import { scanBytes } from "../../../../../src/journal/file/scan.ts";
import { idOf } from "../../../../../src/journal/lookup.ts";
import { headerLine, recordContent, seal, sumIn } from "../../../../../src/journal/record.ts";
import { ada, folder, intent } from "../../intent.ts";

export const atOf = (number: number): string => new Date(Date.UTC(2026, 8, 1) + number * 1000).toISOString();

export function entryOf(number: number, changes: Partial<Entry> = {}): Entry {
  const made = { id: idOf(number), key: `key-${number}`, at: atOf(number) };
  return { ...newEntry(intent({ fingerprint: `request ${number}` }), made), ...changes };
}

/** Record `sequence` of an entry: the first is open, the others are done. */
export type Step = readonly [number: number, sequence: number, changes?: Partial<Entry>];

export class SmallJournal {
  readonly path = join(folder(), "journal.ndjson");
  readonly fd: number;
  #lines = [headerLine({ file: "small", createdAt: atOf(0) })];

  constructor() {
    writeFileSync(this.path, this.bytes);
    this.fd = openSync(this.path, "r+");
    onTestFinished(() => closeSync(this.fd));
  }

  get bytes(): Buffer {
    return Buffer.from(this.#lines.join(""));
  }

  get end(): number {
    return this.bytes.length;
  }

  get nextLine(): number {
    return this.#lines.length + 1;
  }

  /** Adds records to the file. @returns their bytes, and where they begin */
  add(...steps: readonly Step[]): { readonly bytes: Buffer; readonly offset: number; readonly line: number } {
    const [offset, line] = [this.end, this.nextLine];
    for (const [number, sequence, changes] of steps) {
      const state = sequence === 1 ? "open" : "done";
      const entry = entryOf(number, { sequence, state, ...changes });
      this.#lines.push(seal(recordContent(entry, { by: ada }), sumIn(this.#lines.at(-1)!)));
    }
    return { bytes: this.#kept().subarray(offset), offset, line };
  }

  /** Adds a line as it is. */
  addLine(line: string): void {
    this.#lines.push(line);
    this.#kept();
  }

  #kept(): Buffer {
    const { bytes } = this;
    writeFileSync(this.path, bytes);
    return bytes;
  }

  read(): Buffer {
    return readFileSync(this.path);
  }

  fold(): Fold {
    const fold = new Fold();
    fold.add(scanBytes(this.bytes, { offset: 0, line: 1 }));
    return fold;
  }

  /** Of all that is in the file by now. */
  index(): JournalIndex {
    return JournalIndex.of(this.fold(), { fd: this.fd, end: this.end });
  }

  /** The same, behind an index of what was there before. */
  indexBehind(before: JournalIndex, added: ReturnType<SmallJournal["add"]>): JournalIndex {
    const fold = new Fold(before);
    fold.add(scanBytes(added.bytes, added));
    return JournalIndex.of(fold, { fd: this.fd, end: this.end }, before);
  }
}

export const idsOf = (...numbers: readonly number[]): string[] => numbers.map(idOf);

/** As many as there are, or so many that there is no end. */
export function someOf<T>(all: Iterable<T>, most = 100): T[] {
  const some: T[] = [];
  for (const one of all) if (some.push(one) === most) break;
  return some;
}

/** Rows that may be looked at so often: what looks at them without end is stopped. */
export function counted(rows: Rows, most = 2000): Rows & { readonly pages: number[] } {
  const pages: number[] = [];
  let looks = 0;
  const look = (): void => {
    looks += 1;
    if (looks > most) throw new Error("rows are looked at without end");
  };
  return {
    pages,
    get count() {
      look();
      return rows.count;
    },
    page(number) {
      look();
      pages.push(number);
      return rows.page(number);
    },
  };
}
