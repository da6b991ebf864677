// The journal's file: opened with care, read on from what is known, appended to so that it lasts; bad bytes are set aside.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { removeTemporaries, replaceFile } from "../../disk/atomic-write.ts";
import { type Appended, careful, cutBack, writeAll } from "../../disk/write.ts";
import { isMissing } from "../../disk/error-words.ts";
import { Fold } from "../fold.ts";
import { movedAway } from "../admission.ts";
import { headerLine, isMoved, type KeptPart, type Moved, movedToIn, seal, sumIn } from "../record.ts";
import type { Pause, Slowly } from "../journal.ts";
import type { MergeOptions } from "../merge.ts";
import type { Beginning, FileParts, Known, OpenFile, Reading, Written } from "./reading.ts";
import { anchorAt, type Damage, drained, drainedSlowly, readBytes, readPieces, readSome } from "./scan.ts";
import { IndexFiles } from "./index/index-files.ts";
import { type IndexedPart, indexBehind, JournalIndex, takeFacts, type Watcher } from "./index/journal-index.ts";
import { assertCurrent, assertOurs, checkFile, DiskHealth, longBytes, prepareFolder, SetAside } from "./safety.ts";

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = fs.constants;
const headLength = 256;
const newline = 10;
/** An address has its place in the first line of a file. */
const longestHead = 4096;
/** So much is read faster than it is looked up: a journal, or the end of one, that is no longer needs no index. */
const readAtOnce = 64 * 1024;

export class JournalFile {
  readonly path: string;
  /** The file as its lock has it open, set while that is held: it is not opened again. */
  locked: number | undefined;
  readonly #now: () => number;
  readonly #summarize: FileParts["summarize"];
  readonly #slowly: Slowly;
  #known: Known | undefined;
  #longRead: Promise<Reading> | undefined;
  readonly #health: DiskHealth;
  readonly #aside: SetAside;
  readonly #index: IndexFiles;
  /** The first bytes of the file when it was read last. */
  #head = "";
  /** How far the index on disk reaches. */
  #indexed = 0;
  /** Open for good: an index looks up records in them. */
  readonly #kept = new Set<number>();
  /** Set while the file is read without its index. */
  #isWhole = false;
  /** Set while appends are to be synced together. */
  #unsynced: Appended[] | undefined;

  constructor(path: string, { now, summarize, slowly = (work) => work() }: FileParts) {
    this.path = path;
    this.#now = now;
    this.#summarize = summarize;
    this.#slowly = slowly;
    this.#health = new DiskHealth(path);
    this.#aside = new SetAside(path, now);
    this.#index = new IndexFiles(path);
  }

  /** Long enough was read that the next reader should find an index of it: `keepIndex`, by who has the journal's lock. */
  get lacksIndex(): boolean {
    return this.#unindexed > longBytes;
  }

  /** How much of what is known no sound index on disk covers. */
  get #unindexed(): number {
    if (this.#known === undefined) return 0;
    const { anchor, fold } = this.#known;
    return anchor.offset - (fold.earlier instanceof JournalIndex && fold.earlier.isMended ? 0 : this.#indexed);
  }

  /** Writes the index of all that is there, if that can be. */
  keepIndex(): void {
    this.#withOpen((fd) => {
      this.#refresh(fd);
      this.#keepIndex(fd);
    });
  }

  /** Reads what is new; a missing file is an empty journal. Changes nothing. */
  read(): Reading {
    return this.#withOpen((fd) => this.#refresh(fd)) ?? this.#missing();
  }

  #missing(): Reading {
    this.#known = undefined;
    return { fold: new Fold(), damage: [], torn: undefined, size: 0, isEmptied: false };
  }

  /** The same; a first time that takes long is done slowly, once for all that ask meanwhile. */
  async readFirst(): Promise<Reading> {
    const fd = this.#known || this.#longRead ? undefined : this.#open();
    if (fd === undefined) return this.#longRead ?? this.read();
    try {
      checkFile(fd, this.path);
      const pieces = this.#refreshing(this.#opened(fd));
      const begun = readSome(pieces);
      if (begun.done) return begun.value;
      return await (this.#longRead = this.#slowly((pause) => drainedSlowly(pieces, pause, begun)));
    } finally {
      this.#longRead = undefined;
      this.#close(fd);
    }
  }

  /** Of the file, which is not read; 0 if there is none. */
  size(): number {
    return this.#withOpen((fd) => fs.fstatSync(fd).size) ?? 0;
  }

  /** @returns undefined if there is no file */
  #withOpen<T>(work: (fd: number) => T, { isAnyones = false } = {}): T | undefined {
    const fd = this.#open();
    if (fd === undefined) return undefined;
    try {
      if (!isAnyones) checkFile(fd, this.path);
      return work(fd);
    } finally {
      this.#close(fd);
    }
  }

  #open(): number | undefined {
    try {
      return this.#lockedShort ?? fs.openSync(this.path, O_RDONLY | careful);
    } catch (error) {
      if (!isMissing(error)) throw error;
      return undefined;
    }
  }

  /** A long file is opened each time: its index keeps it open, and with it the lock would be kept. */
  get #lockedShort(): number | undefined {
    return this.locked !== undefined && fs.fstatSync(this.locked).size <= readAtOnce ? this.locked : undefined;
  }

  #opened(fd: number): OpenFile {
    const { size } = fs.fstatSync(fd);
    const open = { fd, head: readBytes(fd, 0, Math.min(headLength, size)), size };
    this.#head = open.head.toString("latin1");
    return open;
  }

  /** Reads every byte, whatever an index says. */
  readWhole(): Reading {
    this.#known = undefined;
    this.#isWhole = true;
    try {
      return this.read();
    } finally {
      this.#isWhole = false;
    }
  }

  /** The same, shown to a watcher; no entry is found by name afterwards. @param pause asked now and then while a long file is read */
  async watchWhole(watcher: Watcher, pause?: Pause): Promise<Reading> {
    const fd = this.#open();
    if (fd === undefined) return this.#missing();
    try {
      checkFile(fd, this.path);
      const pieces = this.#pieces(this.#opened(fd), { fold: new Fold() }, watcher);
      return (await drainedSlowly(pieces, pause)) ?? this.#missing();
    } finally {
      this.#known = undefined;
      this.#close(fd);
    }
  }

  #refresh(fd: number): Reading {
    return drained(this.#refreshing(this.#opened(fd)));
  }

  *#refreshing(open: OpenFile): Generator<number, Reading> {
    for (const from of [() => this.#knownIn(open), () => this.#indexedIn(open)]) {
      const beginning = from();
      const reading = beginning && (yield* this.#pieces(open, beginning));
      if (reading) return reading;
    }
    this.#known = undefined;
    this.#indexed = 0;
    return (yield* this.#pieces(open, { fold: new Fold() })) ?? this.#missing();
  }

  /** What was read, if the file is the one that was and the last record read is still there. */
  #knownIn(open: OpenFile): Known | undefined {
    const known = this.#known;
    if (!known || !open.head.subarray(0, known.head.length).equals(known.head)) return undefined;
    const { offset, bytes } = known.anchor;
    return readBytes(open.fd, offset, bytes.length).equals(bytes) ? known : undefined;
  }

  /** The same by the index, if there is one and it fits. */
  #indexedIn(open: OpenFile): Beginning | undefined {
    if (this.#isWhole || open.size <= readAtOnce) return undefined;
    const loaded = this.#index.load(open);
    if (loaded === undefined) return undefined;
    this.#kept.add(open.fd);
    this.#indexed = loaded.anchor.offset;
    return { fold: new Fold(loaded.index), anchor: { ...loaded.anchor, isChained: true } };
  }

  /** Yields behind each piece how much of the file was read. @returns nothing if the last record known is another now */
  *#pieces(
    open: OpenFile,
    { fold: first, anchor: before }: Beginning,
    watcher?: Watcher,
  ): Generator<number, Reading | undefined> {
    const { fd, head, size } = open;
    let [fold, anchor, torn] = [first, before, undefined as Damage | undefined];
    // Damage behind the last sound record is read again next time, so it is not the fold's yet.
    let behind: readonly Damage[] = [];
    let isKnown = before !== undefined;
    const options = { size, isVerified: watcher !== undefined, summarize: this.#summarize };
    for (const next of readPieces(fd, before ?? { offset: 0, line: 1 }, options)) {
      const taken = isKnown || behind.length > 0 ? undefined : takeFacts(fold, next, { fd, watcher });
      if (taken) {
        ({ fold, anchor } = taken);
        yield next.start.offset / size;
        continue;
      }
      const piece = next.scan();
      if (isKnown && piece.found[0]?.text.end !== before?.bytes.length) return undefined;
      const found = isKnown ? piece.found.slice(1) : piece.found;
      isKnown = false;
      const last = found.at(-1);
      const damage = [...behind, ...piece.damage];
      const reach = last?.offset ?? 0;
      fold.add({ found, damage: damage.filter(({ offset }) => offset < reach) });
      behind = damage.filter(({ offset }) => offset >= reach);
      torn = piece.torn;
      if (last) anchor = anchorAt(last);
      if (!fold.isJournal && size > 0) assertOurs(piece.bytes, this.path);
      watcher?.add(piece, fold);
      if (!piece.isLast) fold = this.#foldBehind(fold, { fd, end: piece.end });
      yield piece.end / size;
    }
    this.#known = anchor && { fold, head, anchor };
    return { fold, damage: behind, torn, size, isEmptied: size === 0 };
  }

  /** A fold for what comes after that one: a long file is never in memory as a whole. */
  #foldBehind(fold: Fold, part: IndexedPart): Fold {
    const index = indexBehind(fold, part);
    if (index === undefined) return fold;
    this.#kept.add(part.fd);
    return new Fold(index);
  }

  /**
   * Brings the index up to what is known, once that has grown by so much that reading it takes time. It only saves time:
   * that it cannot be written changes nothing. The caller holds the journal's lock.
   */
  #keepIndex(fd: number): void {
    const known = this.#known;
    if (!known?.anchor.isChained || this.#unindexed <= readAtOnce || known.fold.isNewer) return;
    this.#indexed = known.anchor.offset; // whatever the outcome, not again for a while
    const index = this.#index.keep(known, fd);
    if (index === undefined) return;
    this.#kept.add(fd);
    this.#known = { ...known, fold: new Fold(index) };
  }

  /**
   * Makes the journal's folder if it is missing, and refuses one that is not safe. Reads what is there: a long journal
   * without its index takes time, and others wait for the process that has its lock.
   */
  async prepare(): Promise<void> {
    this.#health.assertGood();
    try {
      prepareFolder(dirname(this.path));
      await this.readFirst();
    } catch (error) {
      throw this.#health.noted(error);
    }
  }

  /**
   * Appends records, synced with the folder's entry, or changes nothing. The caller holds the journal's lock.
   * @param make gives their contents, from what is in the file now
   * @param options.isMove what was moved elsewhere comes back
   * @throws Failure, or the error of the file call.
   */
  append(make: (fold: Fold) => readonly string[], { isMove = false }: MergeOptions = {}): void {
    this.#health.assertGood();
    const appended = this.#appended(make, { isMove });
    if (this.#unsynced) this.#unsynced.push(appended);
    else this.#sync([appended]);
  }

  /** Does work that is given the number of its appends so far, and then syncs these together. @throws if that fails: they are taken back */
  inOneSync(work: (count: () => number) => void): void {
    const unsynced: Appended[] = (this.#unsynced = []);
    try {
      work(() => unsynced.length);
    } finally {
      this.#unsynced = undefined;
      this.#sync(unsynced);
    }
  }

  #appended(make: (fold: Fold) => readonly string[], options: MergeOptions): Appended {
    let fd: number | undefined;
    let appended: Appended | undefined;
    try {
      fd = this.#lockedShort ?? fs.openSync(this.path, O_RDWR | O_CREAT | O_APPEND | careful, 0o600);
      checkFile(fd, this.path, { repair: true });
      const { size, fold } = this.#readyToAppend(fd, options);
      const ended = size === 0 || readBytes(fd, size - 1, 1)[0] === newline;
      const start = `${ended ? "" : "\n"}${size === 0 ? this.#header() : ""}`;
      let after = size === 0 ? sumIn(start) : fold.lastSum;
      const lines = make(fold).map((content) => {
        const line = seal(content, after);
        after = sumIn(line);
        return line;
      });
      appended = { fd, size };
      writeAll(fd, Buffer.from(`${start}${lines.join("")}`));
      return appended;
    } catch (error) {
      if (appended) cutBack(appended);
      if (fd !== undefined) this.#close(fd);
      throw this.#health.noted(error);
    }
  }

  /** Of several appends the last one has all of them in its file. */
  #sync(appended: readonly Appended[]): void {
    const [first, last] = [appended[0], appended.at(-1)];
    if (first === undefined || last === undefined) return;
    const [{ size }, { fd }] = [first, last];
    let isSynced = false;
    try {
      fs.fsyncSync(fd);
      this.#health.syncName(fd);
      isSynced = true;
      this.#keepIndex(fd);
    } catch (error) {
      if (!isSynced) cutBack({ fd, size });
      throw this.#health.noted(error);
    } finally {
      for (const one of appended) this.#close(one.fd);
    }
  }

  #close(fd: number): void {
    if (fd !== this.locked && !this.#kept.has(fd)) fs.closeSync(fd);
  }

  /** Sets aside what is damaged or torn. @returns what stays, and its size */
  #readyToAppend(fd: number, { isMove }: MergeOptions): { size: number; fold: Fold } {
    const reading = this.#refresh(fd);
    assertCurrent(reading.fold, this.path);
    if (isMove !== true) this.assertHere();
    this.#aside.keepDamage([...reading.fold.damage, ...reading.damage]);
    const { fold, torn } = reading;
    if (!torn) return { size: reading.size, fold };
    this.#aside.keepTorn(torn);
    fs.ftruncateSync(fd, torn.offset);
    return { size: torn.offset, fold };
  }

  #header(kept?: KeptPart, moved?: Moved): string {
    const file = randomBytes(9).toString("base64url");
    return headerLine({ file, createdAt: new Date(this.#now()).toISOString(), kept, moved });
  }

  /** @throws Failure `usage` if the entries were moved elsewhere, as the beginning of the file said when it was read */
  assertHere(): void {
    const moved = isMoved(this.#head) ? this.movedTo() : undefined;
    if (moved !== undefined) throw movedAway(this.path, moved);
  }

  /** Where the entries of the file are now, if that is not here. */
  movedTo(): Moved | undefined {
    return this.#withOpen((fd) => movedToIn(readBytes(fd, 0, longestHead).toString("utf8")), { isAnyones: true });
  }

  /** Copies damaged places beside the journal, each once; they stay in the file too until it is pruned. */
  setAside(reading: Reading): void {
    this.#health.during(() => this.#aside.keepDamage([...reading.fold.damage, ...reading.damage]));
  }

  /**
   * Writes the journal again with the records of each entry that stays: aside, synced, renamed. Damaged bytes are set
   * aside first. The caller holds the journal's lock.
   * @param written the lines that stay, behind that header
   */
  replace(reading: Reading, written: Written, moved?: Moved): void {
    this.#health.during(() => {
      assertCurrent(reading.fold, this.path);
      this.#aside.keepDamage([...reading.fold.damage, ...reading.damage]);
      if (reading.torn) this.#aside.keepTorn(reading.torn);
      removeTemporaries(this.path); // of one that was killed here: no one else writes one under this lock
      const lines = written((kept) => this.#header(kept, moved));
      replaceFile(this.path, lines);
      this.#index.remove();
    });
  }
}
