// A change of many entries of a journal in files: gathered, then written under the lock that the caller holds.
import { type Entry, keyName, type Moved } from "../entry.ts";
import { brokenStep, type EntryRecords, type HeaderFacts, type Signed } from "../record.ts";
import type { NewRecord, Transaction } from "../store.ts";
import { Shelf } from "./contents.ts";
import type { Reading, RecordFile } from "./record-file.ts";

/** Gathers the changes; `commit` writes them. */
export class FileTransaction implements Transaction {
  readonly #files: Readonly<Record<"journal" | "archive", { readonly file: RecordFile; readonly reading: Reading }>>;
  readonly #leased: () => ReadonlySet<string>;
  readonly #shelf: Shelf;
  readonly #appended: NewRecord[] = [];
  readonly #signed = new Map<string, readonly Signed[]>();
  #entries: readonly Entry[] | undefined;
  #mark: Pick<HeaderFacts, "moved"> | undefined;
  #removed: ReadonlySet<string> | undefined;

  constructor(journal: RecordFile, archive: RecordFile, leased: () => ReadonlySet<string>) {
    this.#files = {
      journal: { file: journal, reading: journal.readWhole() },
      archive: { file: archive, reading: archive.readWhole() },
    };
    this.#leased = leased;
    this.#shelf = new Shelf(this.#files.journal.reading.contents, this.#files.archive.reading.contents);
  }

  get moved(): Moved | undefined {
    return this.#files.journal.reading.contents.header?.moved;
  }

  async mark(moved: Moved | undefined): Promise<void> {
    this.#mark = { moved };
  }

  async records(ids: readonly string[]): Promise<readonly EntryRecords[]> {
    return ids.flatMap((id) => (this.#shelf.of(id) ? [{ id, records: this.#shelf.records(id) }] : []));
  }

  async ofKeys(keys: readonly string[]): Promise<readonly Entry[]> {
    const wanted: ReadonlySet<string | null> = new Set(keys);
    return (await this.entries()).filter((entry) => wanted.has(keyName(entry)));
  }

  async held(): Promise<ReadonlySet<string>> {
    return this.#leased();
  }

  async entries(): Promise<readonly Entry[]> {
    return (this.#entries ??= [...this.#shelf.candidates({ all: true })]);
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
    const { journal, archive } = this.#files;
    this.#rewrite(archive, {});
    const { header } = journal.reading.contents;
    const facts = { moved: header?.moved, archived: header?.archived, ...this.#mark };
    this.#rewrite(journal, facts, this.#mark !== undefined);
    if (this.#appended.length > 0) journal.file.append([...this.#returning()]);
  }

  #rewrite({ file, reading }: { file: RecordFile; reading: Reading }, facts: HeaderFacts, isForced = false): void {
    const { contents, damage, size } = reading;
    const [removed, again] = [this.#removed ?? new Set<string>(), this.#signed];
    const touches = [...removed, ...again.keys()].some((id) => contents.has(id));
    // Who removes asks for a file without damage too.
    const isMended = this.#removed !== undefined && size > 0 && (!contents.isWhole || damage.length > 0);
    if (!touches && !isMended && !isForced) return;
    const staying = contents.ids().filter((id) => !removed.has(id));
    function* records(): Iterable<Signed> {
      for (const id of staying) {
        const signed = again.get(id) ?? [];
        yield* [...signed, ...contents.records(id).slice(signed.length)];
      }
    }
    const known = contents.header?.gaps ?? [];
    const hasGap = (id: string): boolean => known.includes(id) || brokenStep(contents.records(id)) !== undefined;
    file.replace(reading, records(), { ...facts, gaps: isMended ? staying.filter(hasGap) : known });
  }

  /** An entry that only the archive has comes back as a whole with its new records. */
  *#returning(): Iterable<Signed> {
    const seen = new Set<string>();
    for (const record of this.#appended) {
      const { id } = record.entry;
      if (!seen.has(id) && !this.#files.journal.reading.contents.has(id)) yield* this.#shelf.records(id);
      seen.add(id);
      yield record;
    }
  }
}
