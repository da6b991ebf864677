// Collects changes of many entries, and writes them to the files under the caller's lock.
import { Failure } from "../../errors.ts";
import { flags, shell } from "../../next-step.ts";
import { type Entry, keyName, type MoveMark } from "../entry.ts";
import { brokenStep, type EntryRecords, type HeaderFacts, type Signed } from "../record.ts";
import type { NewRecord, Transaction } from "../store.ts";
import { JournalView } from "./contents.ts";
import type { Reading, RecordFile } from "./record-file.ts";

/** A rewrite of a damaged journal would hide that records are missing. */
function damagedJournal(path: string): Failure {
  return new Failure("usage", `The journal ${path} is damaged, and is not written again.`, {
    meaning: "Nothing was changed.",
    hint: "Check it with integ journal verify; prune writes a new journal without the damage.",
    nextCommand: shell`integ journal prune ${flags.olderThan} 90d`,
  });
}

export class FileTransaction implements Transaction {
  readonly #journal: RecordFile;
  readonly #archive: RecordFile;
  readonly #read: Readonly<Record<"journal" | "archive", Reading>>;
  readonly #leased: () => ReadonlySet<string>;
  readonly #view: JournalView;
  readonly #changed = new Map<string, readonly Signed[]>();
  #entries: readonly Entry[] | undefined;
  #mark: Pick<HeaderFacts, "moved"> | undefined;
  #removed: ReadonlySet<string> | undefined;

  constructor(journal: RecordFile, archive: RecordFile, leased: () => ReadonlySet<string>) {
    this.#journal = journal;
    this.#archive = archive;
    this.#read = { journal: journal.readWhole(), archive: archive.readWhole() };
    this.#leased = leased;
    this.#view = new JournalView(this.#read.journal.contents, this.#read.archive.contents);
  }

  get moved(): MoveMark | undefined {
    return this.#read.journal.contents.header?.moved;
  }

  async mark(moved: MoveMark | undefined): Promise<void> {
    this.#mark = { moved };
  }

  #recordsOf(id: string): readonly Signed[] {
    return this.#changed.get(id) ?? this.#view.records(id);
  }

  async records(ids: readonly string[]): Promise<readonly EntryRecords[]> {
    return ids.map((id) => ({ id, records: this.#recordsOf(id) }));
  }

  async ofKeys(keys: readonly string[]): Promise<readonly Entry[]> {
    const wanted: ReadonlySet<string | null> = new Set(keys);
    return (await this.entries()).filter((entry) => wanted.has(keyName(entry)));
  }

  async leased(): Promise<ReadonlySet<string>> {
    return this.#leased();
  }

  async entries(): Promise<readonly Entry[]> {
    return (this.#entries ??= [...this.#view.candidates({ all: true })]);
  }

  async append(records: readonly NewRecord[]): Promise<void> {
    for (const { entry, content, mac } of records)
      this.#changed.set(entry.id, [...this.#recordsOf(entry.id), { content, mac }]);
  }

  async sign(id: string, records: readonly Signed[]): Promise<void> {
    this.#changed.set(id, [...records, ...this.#recordsOf(id).slice(records.length)]);
  }

  async remove(ids: ReadonlySet<string>): Promise<void> {
    this.#removed = ids;
  }

  /** Writes the archive first: after a crash, an entry may be in both files, and the journal's copy counts. */
  commit(): void {
    const { journal, archive } = this.#read;
    const isChanged = this.#mark !== undefined || this.#changed.size > 0;
    if (isChanged && !(journal.isSound && archive.isSound)) throw damagedJournal(this.#journal.path);
    this.#rewrite(this.#archive, archive, {});
    const { moved, archived } = journal.contents.header ?? {};
    this.#rewrite(this.#journal, journal, { moved, archived, ...this.#mark }, isChanged);
  }

  #rewrite(file: RecordFile, reading: Reading, facts: HeaderFacts, takesChanges = false): void {
    const { contents, size, isSound } = reading;
    const ids = [...new Set([...contents.ids(), ...(takesChanges ? this.#changed.keys() : [])])];
    const staying = ids.filter((id) => this.#removed?.has(id) !== true);
    const isAffected = staying.length < ids.length || ids.some((id) => this.#changed.has(id));
    const dropsDamage = this.#removed !== undefined && size > 0 && !isSound;
    if (!isAffected && !dropsDamage && !takesChanges) return;
    const recordsOf = (id: string): readonly Signed[] => this.#changed.get(id) ?? contents.records(id);
    const gaps = contents.header?.gaps ?? [];
    const hasGap = (id: string): boolean => gaps.includes(id) || brokenStep(recordsOf(id)) >= 0;
    file.replace(reading, staying.flatMap(recordsOf), { ...facts, gaps: dropsDamage ? staying.filter(hasGap) : gaps });
  }
}
