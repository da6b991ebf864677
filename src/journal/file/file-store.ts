// The journal in two files: what is unfinished or may be live, and beside it the archive of what is over. Each change is made under
// the journal's lock, each entry changed under a lock of its own.
import { dirname } from "node:path";
import type { OwnedLock } from "../../disk/process-lock.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";
import { isActor } from "../actor.ts";
import { movedAway } from "../admission.ts";
import { type Entry, isSettled, type Moved } from "../entry.ts";
import type { Condition, Holder } from "../journal.ts";
import { type EntryFilter, entryNotFound, isOfUnsettled } from "../lookup.ts";
import { archivable } from "../prunable.ts";
import {
  contentOf,
  entryIn,
  type EntryRecords,
  type Finding,
  hashOfLine,
  type RecordLine,
  type Signed,
  stepIn,
} from "../record.ts";
import {
  type Action,
  Busy,
  type Hold,
  type Looked,
  type NewRecord,
  type Store,
  type Transaction,
  type TransactionOptions,
  untilFree,
} from "../store.ts";
import { type Contents, Shelf, signedRecord } from "./contents.ts";
import { FileTransaction } from "./file-transaction.ts";
import { JournalLocks, type LockParts, realLocks } from "./locks.ts";
import { type Reading, RecordFile } from "./record-file.ts";
import { assertNotMounted, DiskHealth, journalFailure, prepareFolder, takenAway } from "./safety.ts";

export interface FileParts {
  /** milliseconds since 1970 */
  readonly now: () => number;
  readonly locks?: LockParts | undefined;
  /** How long a running holder of the journal's lock is waited for. */
  readonly waitMs?: number | undefined;
  /** Entries move to the archive once there are more bytes of them than that. */
  readonly archiveBytes?: number | undefined;
}

interface LockOptions {
  /** What it means that the lock was not free in time. */
  readonly meaning?: string;
  readonly atMostMs?: number;
}

const isBy = (line: RecordLine, named: string): boolean => {
  const { actor } = stepIn(contentOf(line));
  return actor !== null && isActor(actor, named);
};
const lengthOf = ({ content: { start, end } }: RecordLine): number => end - start;

/** See `Store`. */
export class FileStore implements Store {
  readonly path: string;
  readonly isShared = false;
  readonly #now: () => number;
  readonly #journal: RecordFile;
  readonly #archive: RecordFile;
  readonly #health: DiskHealth;
  readonly #locks: JournalLocks;
  readonly #archiveBytes: number;
  readonly #waitMs: number;
  #turn: Promise<unknown> = Promise.resolve();
  #swept = false;

  constructor(path: string, { now, locks = realLocks, waitMs = 10_000, archiveBytes = 1024 * 1024 }: FileParts) {
    this.path = path;
    this.#now = now;
    this.#archiveBytes = archiveBytes;
    this.#waitMs = waitMs;
    this.#health = new DiskHealth(path);
    this.#journal = new RecordFile(path, { now, health: this.#health });
    this.#archive = new RecordFile(archivePath(path), { now, health: this.#health, isArchive: true });
    this.#locks = new JournalLocks(path, locks);
  }

  #read(): Contents {
    return this.#journal.read().contents;
  }

  /** The journal is read first: what moves meanwhile is in both. */
  #withArchive(): Shelf {
    const journal = this.#read();
    return new Shelf(journal, this.#archive.read().contents);
  }

  /** The archive too, if the journal does not have an entry that is named. */
  #shelfOf(ids: readonly (string | undefined)[], isAll = false): Shelf {
    const journal = this.#read();
    const isHere = !isAll && ids.every((id) => id === undefined || journal.has(id));
    return isHere ? new Shelf(journal) : new Shelf(journal, this.#archive.read().contents);
  }

  async *select(filter: EntryFilter): AsyncIterable<Entry> {
    const { ids = [], parent, replaces, archived = false, actor } = filter;
    const named = isOfUnsettled(filter) ? [] : [...ids, parent, replaces];
    const shelf = this.#shelfOf(named, archived);
    for (const entry of shelf.candidates(filter))
      if (actor === undefined || shelf.lines(entry.id).some((line) => isBy(line, actor))) yield entry;
  }

  async count(): Promise<number> {
    return this.#withArchive().ids().length;
  }

  async beginning(start: string): Promise<readonly Entry[]> {
    if (start === "") return [];
    const fitting = (shelf: Shelf): Entry[] =>
      shelf.ids().flatMap((id) => (id.startsWith(start) ? (shelf.get(id) ?? []) : []));
    const here = fitting(new Shelf(this.#read()));
    return here.length > 0 ? here : fitting(this.#withArchive());
  }

  async recordsOf(ids: readonly string[]): Promise<readonly EntryRecords[]> {
    const shelf = this.#shelfOf(ids);
    return ids.flatMap((id) => (shelf.has(id) ? [{ id, records: shelf.lines(id).map(signedRecord) }] : []));
  }

  async *all(): AsyncIterable<EntryRecords> {
    const journal = this.#read();
    const archive = this.#archive.read().contents;
    const shelf = new Shelf(journal, archive);
    const gaps = new Set([journal, archive].flatMap(({ header }) => header?.gaps ?? []));
    for (const id of shelf.ids().toReversed())
      yield { id, records: shelf.lines(id).map(signedRecord), hasKnownGap: gaps.has(id) };
  }

  async condition(): Promise<Condition> {
    const { contents, damage, isEmptied } = this.#journal.read();
    // Another process that has just made the file writes its first record under the lock.
    const isStill = async (): Promise<boolean> => this.#journal.read().isEmptied;
    const isLeft = isEmptied && (await this.#underLock(isStill).catch(() => true));
    return { damagedPlaces: contents.damage.length + damage.length, isEmptied: isLeft };
  }

  async movedTo(): Promise<Moved | undefined> {
    return this.#read().header?.moved;
  }

  async holders(): Promise<ReadonlyMap<string, Holder>> {
    return new Map();
  }

  async look(_intent: unknown, key: string | undefined): Promise<Looked> {
    const journal = this.#read();
    this.#assertHere(journal);
    const unfinished = [...new Shelf(journal).candidates({})].map((entry) => ({ entry, holder: undefined }));
    const archived = journal.header?.archived ?? "";
    const newest = [journal.newest ?? "", archived].sort().at(-1) || undefined;
    return { unfinished, ofKey: key === undefined ? [] : this.#ofKeys([key]), newest };
  }

  #ofKeys(keys: readonly string[]): Entry[] {
    const fitting = (shelf: Shelf): Entry[] =>
      [...shelf.candidates({ all: true })].filter(({ idempotency_key: key }) => key !== null && keys.includes(key));
    const here = fitting(new Shelf(this.#read()));
    return keys.length === 1 && here.length > 0 ? here : fitting(this.#withArchive());
  }

  /** @throws Failure `usage` if the entries were moved elsewhere */
  #assertHere({ header }: Contents): void {
    if (header?.moved !== undefined) throw movedAway(this.path, header.moved);
  }

  /** Does the work while this process alone may change the files, and of this process that work alone. */
  async #underLock<T>(work: () => Promise<T>, { meaning, atMostMs = this.#waitMs }: LockOptions = {}): Promise<T> {
    const before = this.#turn;
    let end = (): void => {};
    this.#turn = new Promise<void>((resolve) => (end = resolve));
    try {
      await before;
      const waitMs = Math.min(this.#waitMs, atMostMs);
      const lock = await untilFree(() => this.#locks.tryFile(), { waitMs, meaning });
      try {
        return await work();
      } finally {
        lock.release();
      }
    } finally {
      end();
    }
  }

  #prepare(): void {
    this.#health.during(() => {
      prepareFolder(dirname(this.path));
      assertNotMounted(this.path);
    });
  }

  async admitting<T>(work: () => Promise<T | Busy>): Promise<T | Busy> {
    this.#prepare();
    return this.#underLock(async () => {
      if (!this.#swept) this.#locks.sweep();
      this.#swept = true;
      const reading = this.#journal.read();
      this.#assertHere(reading.contents);
      this.#archiveNow(reading);
      return work();
    });
  }

  /** Moves what is over to the archive, if that is much: appended there and synced, then left out here. A damaged file stays. */
  #archiveNow(reading: Reading): void {
    const { contents, damage, torn, size } = reading;
    if (size <= this.#archiveBytes || !contents.isWhole || damage.length > 0 || torn) return;
    const entries = [...new Shelf(contents).candidates({ all: true })];
    if (entries.length < contents.count) return;
    const going = archivable(entries, { now: this.#now(), leased: this.#locks.leased() });
    const moving = entries
      .map(({ id }) => id)
      .filter((id) => going.has(id))
      .toReversed();
    const bytes = moving.flatMap((id) => contents.lines(id)).reduce((sum, line) => sum + lengthOf(line), 0);
    if (bytes <= this.#archiveBytes) return;
    const archive = this.#archive.read();
    if (!archive.contents.isWhole || archive.damage.length > 0) return;
    this.#archive.append(moving.flatMap((id) => contents.lines(id).map(signedRecord)));
    const archived = [contents.header?.archived ?? "", ...moving].sort().at(-1);
    this.#journal.replace(reading, staying(contents, going), { archived, gaps: contents.header?.gaps });
  }

  async insert(record: NewRecord): Promise<Hold | Busy> {
    const lock = this.#locks.tryEntry(record.entry.id);
    if (lock instanceof Busy) return lock;
    try {
      this.#journal.append([record]);
    } catch (error) {
      lock.release();
      throw error;
    }
    return this.#hold(record, lock);
  }

  async take(id: string): Promise<Hold | Busy> {
    this.#assertHere(this.#read());
    if (!this.#shelfOf([id]).has(id)) throw entryNotFound(id);
    const lock = this.#locks.tryEntry(id);
    if (lock instanceof Busy) return lock;
    try {
      // Only now: its last holder may have changed it.
      const journal = this.#read();
      this.#assertHere(journal);
      const shelf = this.#shelfOf([id]);
      const [there, last] = [shelf.get(id), shelf.lines(id).at(-1)];
      if (there === undefined || last === undefined) throw entryNotFound(id);
      const entry = entryIn(contentOf(last)) === undefined && isSettled(last.state) ? undefined : there;
      if (entry === undefined) throw notAnEntry(id);
      const archived = journal.has(id) ? [] : shelf.lines(id).map(signedRecord);
      return this.#hold({ entry, hash: hashOfLine(last) }, lock, archived);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** @param archived its records, if only the archive has it: they come back with its next one */
  #hold({ entry, hash }: Pick<Hold, "entry" | "hash">, lock: OwnedLock, archived: readonly Signed[] = []): Hold {
    const meaning = "The journal still shows the entry as it was before this step.";
    let before = archived;
    return {
      entry,
      hash,
      append: (record) =>
        this.#underLock(
          async () => {
            if (!lock.isHeld()) throw takenAway(entry.id, meaning);
            this.#assertHere(this.#read());
            this.#journal.append([...before, record]);
            before = [];
          },
          { meaning },
        ),
      isHeld: () => lock.isHeld(),
      extend: async () => {},
      release: async () => lock.release(),
    };
  }

  async takeAway({ id, updated_at }: Entry): Promise<void> {
    this.#locks.takeAway(id, { now: this.#now(), touchedAt: Date.parse(updated_at) });
  }

  async transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    { isTrial = false, isOfExisting = false }: TransactionOptions = {},
  ): Promise<T> {
    const parts = {
      journal: this.#journal,
      archive: this.#archive,
      held: () => this.#locks.leased(),
      ofKeys: (keys: readonly string[]) => this.#ofKeys(keys),
    };
    if (isOfExisting && this.#journal.read().size + this.#archive.read().size === 0)
      return work(new FileTransaction({ ...parts, held: () => new Set() }));
    this.#prepare();
    return this.#underLock(async () => {
      if (!isTrial) this.#locks.sweep();
      const tx = new FileTransaction(parts);
      const done = await work(tx);
      tx.commit();
      return done;
    });
  }

  async verify(): Promise<readonly Finding[]> {
    const { fileFindings, folderFindings } = await import("./verify.ts");
    const look = async (): Promise<Finding[]> =>
      [this.#journal, this.#archive].flatMap((file) => {
        const reading = file.readWhole();
        return [...fileFindings(file.path, reading), ...(this.#setAside(file, reading) ?? [])];
      });
    let found: Finding[];
    if (this.#journal.read().size === 0) found = await look();
    else
      try {
        found = await this.#underLock(look, { atMostMs: 1000 });
      } catch (error) {
        const failure = this.failure(error, "lock the journal");
        if (!(failure instanceof Failure)) throw failure;
        const message = `it was read without its lock: ${failure.message}`;
        found = [...(await look()), { severity: "warning", where: this.path, message }];
      }
    return [...found, ...folderFindings([this.path, this.#archive.path])];
  }

  #setAside(file: RecordFile, reading: Reading): Finding[] | undefined {
    try {
      file.setAside(reading);
      return undefined;
    } catch (error) {
      const failure = this.failure(error, "lock the journal");
      if (!(failure instanceof Failure)) throw failure;
      return [{ severity: "warning", where: file.path, message: `damage was not set aside: ${failure.message}` }];
    }
  }

  failure(error: unknown, action: Action, meaning?: string): unknown {
    return journalFailure(error, action, { path: this.path, meaning });
  }

  close(): void {}
}

/** Beside the journal, named after it: `archive.ndjson`. */
export function archivePath(journal: string): string {
  return journal.endsWith("journal.ndjson")
    ? journal.replace(/journal\.ndjson$/, "archive.ndjson")
    : `${journal}.archive`;
}

function notAnEntry(id: string): Failure {
  return new Failure("usage", `The newest record of journal entry ${id} is not one that integ writes.`, {
    meaning: "Nothing was sent and nothing changed.",
    nextCommand: shell`integ journal verify`,
    entry: id,
  });
}

function* staying(contents: Contents, going: ReadonlySet<string>): Iterable<Signed> {
  for (const id of contents.ids()) if (!going.has(id)) for (const line of contents.lines(id)) yield signedRecord(line);
}
