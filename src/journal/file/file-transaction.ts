// A change of many entries of a journal in files: gathered, then written under the lock that the caller holds.
import { type Entry, type Moved } from "../entry.ts";
import { brokenStep, hashOfLine, prevOf, type RecordLine, type Signed } from "../record.ts";
import type { NewRecord, Transaction } from "../store.ts";
import { Shelf, signedRecord } from "./contents.ts";
import type { Reading, RecordFile } from "./record-file.ts";

interface TransactionParts {
  readonly journal: RecordFile;
  readonly archive: RecordFile;
  readonly held: () => ReadonlySet<string>;
  readonly ofKeys: (keys: readonly string[]) => readonly Entry[];
}

/** Gathers the changes; `commit` writes them. */
export class FileTransaction implements Transaction {
  readonly #parts: TransactionParts;
  readonly #journal: Reading;
  readonly #archive: Reading;
  readonly #shelf: Shelf;
  readonly #appended: NewRecord[] = [];
  readonly #signed = new Map<string, readonly Signed[]>();
  #mark: { readonly moved: Moved | undefined } | undefined;
  #removed: ReadonlySet<string> | undefined;

  constructor(parts: TransactionParts) {
    this.#parts = parts;
    this.#journal = parts.journal.readWhole();
    this.#archive = parts.archive.readWhole();
    this.#shelf = new Shelf(this.#journal.contents, this.#archive.contents);
  }

  get moved(): Moved | undefined {
    return this.#journal.contents.header?.moved;
  }

  async mark(moved: Moved | undefined): Promise<void> {
    this.#mark = { moved };
  }

  async hashes(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    return new Map(ids.flatMap((id) => (this.#shelf.has(id) ? [[id, this.#shelf.lines(id).map(hashOfLine)]] : [])));
  }

  async ofKeys(keys: readonly string[]): Promise<readonly Entry[]> {
    return this.#parts.ofKeys(keys);
  }

  async held(): Promise<ReadonlySet<string>> {
    return this.#parts.held();
  }

  async entries(): Promise<readonly Entry[]> {
    return [...this.#shelf.candidates({ all: true })];
  }

  async append(records: readonly NewRecord[]): Promise<void> {
    this.#appended.push(...records);
  }

  async sign(id: string, records: readonly Signed[]): Promise<void> {
    this.#signed.set(id, records);
  }

  async remove(ids: ReadonlySet<string>): Promise<void> {
    this.#removed = ids;
  }

  /** The archive is changed first: an entry that is in both counts as the journal has it. */
  commit(): void {
    this.#rewrite(this.#parts.archive, this.#archive, {});
    const { moved } = this.#mark ?? { moved: this.moved };
    const { archived } = this.#journal.contents.header ?? {};
    this.#rewrite(this.#parts.journal, this.#journal, { moved, archived }, this.#mark !== undefined);
    if (this.#appended.length > 0) this.#parts.journal.append(this.#returning());
  }

  #rewrite(
    file: RecordFile,
    reading: Reading,
    header: { moved?: Moved | undefined; archived?: string | undefined },
    isForced = false,
  ): void {
    const { contents, damage, size } = reading;
    const [removed, again] = [this.#removed ?? new Set<string>(), this.#signed];
    const touches = [...removed, ...again.keys()].some((id) => contents.has(id));
    // Who removes asks for a file without damage too.
    const isMended = this.#removed !== undefined && size > 0 && (!contents.isWhole || damage.length > 0);
    if (!touches && !isMended && !isForced) return;
    function* records(): Iterable<Signed> {
      for (const id of contents.ids())
        if (!removed.has(id)) {
          const signed = again.get(id) ?? [];
          yield* [...signed, ...contents.lines(id).slice(signed.length).map(signedRecord)];
        }
    }
    const staying = [...contents.ids()].filter((id) => !removed.has(id));
    const gaps = staying.filter((id) => contents.header?.gaps.includes(id) || hasGap(contents.lines(id)));
    file.replace(reading, records(), { ...header, gaps: isMended ? gaps : contents.header?.gaps });
  }

  /** An entry that only the archive has comes back as a whole with its new records. */
  *#back(): Iterable<Signed> {
    const seen = new Set<string>();
    for (const record of this.#appended) {
      const { id } = record.entry;
      if (!seen.has(id) && !this.#journal.contents.has(id)) yield* this.#shelf.lines(id).map(signedRecord);
      seen.add(id);
      yield record;
    }
  }

  #returning(): Signed[] {
    return [...this.#back()];
  }
}

function hasGap(lines: readonly RecordLine[]): boolean {
  return brokenStep(lines.map((line) => ({ prev: prevOf(line), hash: hashOfLine(line) }))) !== undefined;
}
