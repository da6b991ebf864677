// Stores the journal and an archive of finished entries in files. Both files share one lock, and each entry has its own.
import { dirname } from "node:path";
import type { LockMeans, OwnedLock } from "../../disk/process-lock.ts";
import { Failure } from "../../errors.ts";
import { namesOf } from "../actor.ts";
import { journalMovedFailure } from "../admission.ts";
import { type Entry, isSettled, keyName } from "../entry.ts";
import { type EntryFilter, entryNotFound, excludesFinished } from "../lookup.ts";
import { archivable } from "../prunable.ts";
import { entryIn, type EntryRecords, type Finding, type Signed, stepIn } from "../record.ts";
import type { Condition, Hold, Holder, LookupResult, NewRecord, Store, Transaction } from "../store.ts";
import { Busy, inTurn, waitUntilFree } from "../store.ts";
import { type Contents, JournalView } from "./contents.ts";
import { FileTransaction } from "./file-transaction.ts";
import { JournalLocks, ownMeans } from "./locks.ts";
import { type Reading, RecordFile } from "./record-file.ts";
import { assertNotMounted, DiskHealth, journalFailure, prepareFolder, takenOverFailure } from "./safety.ts";

export interface FileParts {
  readonly now: () => number;
  /** Called for the first lock only, because loading kernel locks takes time. */
  readonly means?: (() => LockMeans) | undefined;
  readonly waitMs?: number | undefined;
  readonly archiveBytes?: number | undefined;
}

function hasActor({ content }: Signed, named: string): boolean {
  const { actor } = stepIn(content);
  return actor !== null && namesOf(actor).includes(named);
}

export class FileStore implements Store {
  readonly path: string;
  readonly #now: () => number;
  readonly #journal: RecordFile;
  readonly #archive: RecordFile;
  readonly #health: DiskHealth;
  readonly #locks: JournalLocks;
  readonly #archiveBytes: number;
  readonly #waitMs: number;
  readonly #inTurn = inTurn();
  #hasSwept = false;

  constructor(path: string, { now, means = ownMeans, waitMs = 10_000, archiveBytes = 1024 * 1024 }: FileParts) {
    this.path = path;
    this.#now = now;
    this.#archiveBytes = archiveBytes;
    this.#waitMs = waitMs;
    this.#health = new DiskHealth(path);
    this.#journal = new RecordFile(path, { now, health: this.#health });
    this.#archive = new RecordFile(archivePath(path), { now, health: this.#health });
    this.#locks = new JournalLocks(path, means);
  }

  /** Reads the journal before the archive: an entry that is archived between the two reads is then found twice, not missed. */
  #view(needsArchive: (journal: Contents) => boolean = () => true): JournalView {
    const journal = this.#journal.read().contents;
    return needsArchive(journal) ? new JournalView(journal, this.#archive.read().contents) : new JournalView(journal);
  }

  async *select(filter: EntryFilter): AsyncIterable<Entry> {
    const { ids = [], parent, replaces, start, archived = false, actor } = filter;
    const byId = [...ids, parent, replaces].filter((id) => id !== undefined);
    const isHere = (journal: Contents): boolean =>
      byId.every((id) => journal.has(id)) && (start === undefined || journal.ids().some((id) => id.startsWith(start)));
    const view = this.#view((journal) => archived || (!excludesFinished(filter) && !isHere(journal)));
    const hasFilteredActor = ({ id }: Entry): boolean =>
      actor === undefined || view.records(id).some((record) => hasActor(record, actor));
    for (const entry of view.candidates(filter)) if (hasFilteredActor(entry)) yield entry;
  }

  async *records(ids?: readonly string[]): AsyncIterable<EntryRecords> {
    const view = this.#view((journal) => ids === undefined || !ids.every((id) => journal.has(id)));
    for (const id of ids ?? view.ids().toReversed()) {
      const hasKnownGap = view.of(id)?.header?.gaps?.includes(id) === true;
      if (view.of(id)) yield { id, records: view.records(id), hasKnownGap };
    }
  }

  async condition(): Promise<Condition> {
    const { contents, damage, isEmptied } = this.#journal.read();
    // A process that creates the file holds the lock until it has written the first record.
    const isStillEmpty = async (): Promise<boolean> => this.#journal.read().isEmptied;
    const isEmpty = isEmptied && (await this.#underLock(isStillEmpty).catch(() => true));
    return { damagedPlaces: damage.length, isEmptied: isEmpty, moved: contents.header?.moved };
  }

  async holders(): Promise<ReadonlyMap<string, Holder>> {
    return new Map();
  }

  async look(_intent: unknown, key: string | null): Promise<LookupResult> {
    const journal = this.#readUnmoved();
    const unfinished = [...new JournalView(journal).candidates({})].map((entry) => ({ entry, holder: undefined }));
    return { unfinished, ofKey: key === null ? [] : this.#entriesWithKey(key), newest: newestIn(journal) };
  }

  #entriesWithKey(key: string): Entry[] {
    const entriesIn = (view: JournalView): Entry[] =>
      [...view.candidates({ all: true })].filter((entry) => keyName(entry) === key);
    const found = entriesIn(this.#view(() => false));
    return found.length > 0 ? found : entriesIn(this.#view());
  }

  #readUnmoved(): Contents {
    const { contents } = this.#journal.read();
    if (contents.header?.moved !== undefined) throw journalMovedFailure(this.path, contents.header.moved);
    return contents;
  }

  #underLock<T>(work: () => Promise<T>, meaning?: string, atMostMs = this.#waitMs): Promise<T> {
    return this.#inTurn(async () => {
      const waitMs = Math.min(this.#waitMs, atMostMs);
      const lock = await waitUntilFree(() => this.#locks.tryLock(), { waitMs, meaning });
      try {
        if (!this.#hasSwept) this.#locks.sweep();
        this.#hasSwept = true;
        return await work();
      } finally {
        lock.release();
      }
    });
  }

  #prepare(): void {
    this.#health.during(() => {
      prepareFolder(dirname(this.path));
      assertNotMounted(this.path);
    });
  }

  async insert(record: NewRecord, newest: string): Promise<Hold | undefined> {
    this.#prepare();
    return this.#underLock(async () => {
      if (newestIn(this.#readUnmoved()) !== newest) return undefined;
      this.#archiveNow(this.#journal.read());
      const lock = this.#locks.tryLock(record.entry.id);
      if (lock instanceof Busy) return undefined;
      try {
        this.#journal.append([record]);
      } catch (error) {
        lock.release();
        throw error;
      }
      return this.#hold(record, lock);
    });
  }

  /** Moves finished entries of a large journal to the archive, which is synced before the removal. Skips damaged files. */
  #archiveNow(reading: Reading): void {
    const { contents, torn, size, isSound } = reading;
    if (size <= this.#archiveBytes || !isSound || torn) return;
    const entries = [...new JournalView(contents).candidates({ all: true })];
    if (entries.length < contents.ids().length) return;
    const going = archivable(entries, { now: this.#now(), leased: this.#locks.leased() });
    const moving = [...going].sort();
    const archivedRecords = moving.flatMap((id) => contents.records(id));
    if (archivedRecords.reduce((sum, { content }) => sum + content.length, 0) <= this.#archiveBytes) return;
    if (!this.#archive.read().isSound) return;
    this.#archive.append(archivedRecords);
    const archived = [contents.header?.archived ?? "", ...moving].sort().at(-1);
    const staying = contents.ids().filter((id) => !going.has(id));
    const records = staying.flatMap((id) => contents.records(id));
    this.#journal.replace(reading, records, { archived, gaps: contents.header?.gaps });
  }

  async take(id: string): Promise<Hold | Busy> {
    this.#readUnmoved();
    this.#prepare();
    const lock = this.#locks.tryLock(id);
    if (lock instanceof Busy) return lock;
    try {
      // Read again under the entry's lock, because the last holder may have changed the entry.
      const journal = this.#readUnmoved();
      const isHere = journal.has(id);
      const view = this.#view(() => !isHere);
      const [newest, records] = [view.of(id)?.get(id), view.records(id)];
      const content = records.at(-1)?.content ?? "";
      const entry = newest && isSettled(newest.state) ? entryIn(content) : newest;
      if (entry === undefined) throw entryNotFound(id);
      return this.#hold({ entry, content }, lock, isHere ? [] : records);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** @param archived records that only the archive has: the next append copies them back */
  #hold({ entry, content }: Pick<Hold, "entry" | "content">, lock: OwnedLock, archived: readonly Signed[] = []): Hold {
    const meaning = "The journal still shows the entry as it was before this step.";
    let toCopy = archived;
    return {
      entry,
      content,
      append: (record) =>
        this.#underLock(async () => {
          if (!lock.isHeld()) throw takenOverFailure(entry.id, meaning);
          this.#readUnmoved();
          this.#journal.append([...toCopy, record]);
          toCopy = [];
        }, meaning),
      isHeld: () => lock.isHeld(),
      extend: async () => {},
      release: async () => lock.release(),
    };
  }

  async takeAway({ id, updated_at }: Entry): Promise<void> {
    this.#locks.takeAway(id, { now: this.#now(), touchedAt: Date.parse(updated_at) });
  }

  async exclusive<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#prepare();
    return this.#underLock(async () => {
      this.#locks.sweep();
      const tx = new FileTransaction(this.#journal, this.#archive, () => this.#locks.leased());
      const done = await work(tx);
      tx.commit();
      return done;
    });
  }

  async verify(): Promise<readonly Finding[]> {
    const { setAsideFindings, fileFindings } = await import("./verify.ts");
    const files = [this.#journal, this.#archive];
    const look = (isLocked: boolean): Finding[] =>
      files.flatMap((file) => {
        const reading = file.readWhole();
        if (isLocked) file.keepDamage(reading);
        return fileFindings(file.path, reading);
      });
    const aside = (): Finding[] => setAsideFindings(files.map(({ path }) => path));
    if (this.#journal.read().size === 0) return [...look(false), ...aside()];
    try {
      return [...(await this.#underLock(async () => look(true), undefined, 1000)), ...aside()];
    } catch (error) {
      const failure = this.failure(error, "lock the journal");
      if (!(failure instanceof Failure)) throw failure;
      const message = `it was read without its lock, and nothing was set aside: ${failure.message}`;
      return [...look(false), { severity: "warning", where: this.path, message }, ...aside()];
    }
  }

  failure(error: unknown, action: string, meaning?: string): unknown {
    return journalFailure(error, action, { path: this.path, meaning });
  }

  close(): void {
    this.#journal.close();
    this.#archive.close();
  }
}

function archivePath(journal: string): string {
  return journal.endsWith("journal.ndjson")
    ? journal.replace(/journal\.ndjson$/, "archive.ndjson")
    : `${journal}.archive`;
}

function newestIn({ newest, header }: Contents): string {
  const archived = header?.archived ?? "";
  return archived > newest ? archived : newest;
}
