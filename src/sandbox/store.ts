// The state file: a line with the whole state, then a line for each change since. A change takes the lock, reads what others
// added, works, and appends what it did; once that is longer than the state the file is written again. A reader needs no lock:
// it reads what was added since it last looked. Each line has a checksum that the one before goes into.
import { hash } from "node:crypto";
import * as fs from "node:fs";
import { replaceFile } from "../disk/atomic-write.ts";
import { writeAll } from "../disk/write.ts";
import { errorCode } from "../disk/error-words.ts";
import { makeFolders } from "../disk/private-file.ts";
import { waitForLock } from "../disk/process-lock.ts";
import { completed } from "./seed.ts";
import { factsOf, regions, setFacts, type State, stateOf, type StateRecord, tableNames } from "./state.ts";
import type { RowChange, Table } from "./table.ts";

const fileName = "sandbox.json";
/** The file, and what killed writers left of it. */
const stateFiles = /^sandbox\.json(?:\.new-[0-9a-f]+|\.[0-9a-f]+\.new)?$/;
const headLength = `{"format":2,"sha256":"${"0".repeat(64)}","state":`.length;
const tail = "}\n";
/** Changes are kept as they are until they are longer than this, and than the state. */
const leastToCompact = 1024 * 1024;
const newline = 10;

function stateFile(stateDir: string): string {
  return `${stateDir}/${fileName}`;
}

function digest(text: string): string {
  return hash("sha256", text, "hex");
}

/** The first line. Format 1, of earlier versions, has nothing behind it. */
function headOf(stateText: string, format = 2): string {
  return `{"format":${format},"sha256":"${digest(stateText)}","state":`;
}

function corrupt(path: string, what: string): Error {
  return Object.assign(
    new Error(`The sandbox's state file is damaged (${what}): ${path}. Start again with: integ sandbox reset`),
    { code: "state_damaged" },
  );
}

/** The text of the state in the first line. @throws Error with code `state_damaged` */
function stateTextOf(text: string, path: string): string {
  if (!/^\{"format":\d+,/.test(text)) throw corrupt(path, "it does not start like a state file");
  const format = text.startsWith('{"format":1,') ? 1 : 2;
  if (!text.startsWith(`{"format":${format},`)) throw corrupt(path, "it was written by another version");
  if (!text.endsWith(tail)) throw corrupt(path, "its end is missing");
  const stateText = text.slice(headLength, -tail.length);
  if (headOf(stateText, format) !== text.slice(0, headLength)) throw corrupt(path, "its checksum does not match");
  return stateText;
}

/** What one change did. */
interface Change {
  /** The facts of which there is one, if they changed. */
  readonly facts?: string;
  readonly rows: readonly (readonly [region: string, table: string, changes: readonly RowChange<object>[]])[];
}

const sumLength = 64;

/** @param before checksum of the line before */
function changeLine(change: Change, before: string): { readonly line: string; readonly sum: string } {
  const text = JSON.stringify(change);
  const sum = digest(before + text);
  return { line: `${sum} ${text}\n`, sum };
}

/** @throws Error with code `state_damaged` */
function changeIn(line: string, { before, path }: { readonly before: string; readonly path: string }): Change {
  const text = line.slice(sumLength + 1);
  if (digest(before + text) !== line.slice(0, sumLength))
    throw corrupt(path, "the checksum of a change does not match");
  return JSON.parse(text) as Change;
}

function tablesOf(state: State): { region: (typeof regions)[number]; name: string; table: Table<object> }[] {
  return regions.flatMap((region) =>
    tableNames.map((name) => ({ region, name, table: state[region][name] as unknown as Table<object> })),
  );
}

/** @throws Error `state_folder` */
function refuseFolder(path: string): void {
  if (fs.statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw Object.assign(new Error(`${path} is a folder: the sandbox keeps its state in a file of that name.`), {
      code: "state_folder",
      path,
    });
}

/** The file as it is, if there is one: what changes with every change of it. */
function statOf(path: string): fs.BigIntStats | undefined {
  const stat = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stat?.isDirectory()) refuseFolder(path);
  return stat;
}

/**
 * Runs `work` while no other process changes the state. `work` is synchronous: the lock is held for its time only.
 * @throws Error naming a running process that keeps the lock for longer than ten seconds
 */
async function whileLocked<T>(path: string, work: () => T): Promise<T> {
  const lockPath = `${path}.lock`;
  const lock = await waitForLock(lockPath, {
    whenHeld: (owner) => {
      const who = owner === undefined ? "another process" : `process ${owner.pid}`;
      return new Error(`The sandbox's state is held by ${who} and was not released in time (${lockPath}).`);
    },
  });
  try {
    return work();
  } finally {
    lock.release();
  }
}

/** What was read of the file. */
interface Known {
  readonly state: State;
  readonly inode: bigint;
  readonly modified: bigint;
  /** Where its last whole line ends. */
  readonly end: number;
  readonly size: number;
  /** Checksum of that line. */
  readonly sum: string;
  /** Where its first line ends. */
  readonly stateEnd: number;
  /** An earlier version wrote it: it is written again with the next change. */
  readonly isOld: boolean;
}

interface Waiting {
  readonly work: () => void;
  readonly fail: (error: unknown) => void;
}

/** So many changes are made while the lock is held; then others have their turn. */
const mostAtOnce = 64;

/** One consistent state for every server of every process over one folder (0600 in a folder that is made 0700). */
export class Store {
  readonly #path: string;
  readonly #fresh: () => StateRecord;
  #known: Known | undefined;
  readonly #waiting: Waiting[] = [];
  #isWorking = false;

  /** @param fresh makes the state if there is none */
  constructor(stateDir: string, fresh: () => StateRecord) {
    makeFolders(stateDir, { synced: false });
    this.#path = stateFile(stateDir);
    this.#fresh = fresh;
  }

  /** The state as it is now. Read it before the next `await`; never change it. */
  async current(): Promise<State> {
    return this.#refreshed() ?? (await this.change((state) => state));
  }

  /** The state as it is now if that is known immediately, else as it was last seen; after `current()` only. */
  latest(): State {
    return this.#refreshed() ?? this.#known!.state;
  }

  /** Runs `work` alone on the newest state and keeps what it changed; if it throws nothing is kept. */
  change<T>(work: (state: State) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work: () => resolve(this.#changeLocked(work)), fail: reject });
      if (!this.#isWorking) void this.#workOff();
    });
  }

  async #workOff(): Promise<void> {
    this.#isWorking = true;
    while (this.#waiting.length > 0) {
      let turn: Waiting[] = [];
      try {
        await whileLocked(this.#path, () => {
          turn = this.#waiting.splice(0, mostAtOnce);
          for (const one of turn) attempt(one);
        });
      } catch (error) {
        for (const one of turn.length > 0 ? turn : this.#waiting.splice(0)) one.fail(error);
      }
    }
    this.#isWorking = false;
  }

  /** The state as it is in the file; nothing if there is none. */
  #refreshed(): State | undefined {
    const stat = statOf(this.#path);
    if (stat === undefined) return undefined;
    const known = this.#known;
    const isSame = known?.inode === stat.ino;
    if (isSame && known.size === Number(stat.size) && known.modified === stat.mtimeNs) return known.state;
    const more = isSame && Number(stat.size) > known.end ? this.#readOn(known, stat) : undefined;
    return more ?? this.#load(stat);
  }

  #load(stat: fs.BigIntStats): State {
    const bytes = fs.readFileSync(this.#path);
    const cut = bytes.indexOf(newline) + 1;
    const end = cut === 0 ? bytes.length : cut;
    const text = stateTextOf(bytes.toString("utf8", 0, end), this.#path);
    const record = JSON.parse(text) as StateRecord;
    const whole = completed(record);
    const isFirstFormat = bytes.toString("latin1", 0, 12) === '{"format":1,';
    const state = stateOf(whole);
    this.#known = {
      state,
      inode: stat.ino,
      modified: stat.mtimeNs,
      end,
      size: end,
      stateEnd: end,
      sum: digest(text),
      isOld: isFirstFormat || whole !== record,
    };
    if (isFirstFormat && bytes.length > end) throw corrupt(this.#path, "something stands behind its end");
    return this.#take(this.#known, { bytes: bytes.subarray(end), stat });
  }

  /** What was added since; nothing if the file is another one after all. */
  #readOn(known: Known, stat: fs.BigIntStats): State | undefined {
    const bytes = Buffer.alloc(Number(stat.size) - known.end);
    const fd = fs.openSync(this.#path, "r");
    try {
      const got = fs.readSync(fd, bytes, 0, bytes.length, known.end);
      return this.#take(known, { bytes: bytes.subarray(0, got), stat });
    } catch (error) {
      if (errorCode(error) !== "state_damaged") throw error;
      return undefined;
    } finally {
      fs.closeSync(fd);
    }
  }

  /** Applies changes of others; one that is not whole is being appended, or never was. */
  #take(known: Known, { bytes, stat }: { readonly bytes: Buffer; readonly stat: fs.BigIntStats }): State {
    let { sum, end } = known;
    for (let start = 0; ; ) {
      const cut = bytes.indexOf(newline, start);
      if (cut < 0) break;
      const line = bytes.toString("utf8", start, cut);
      this.#apply(known.state, changeIn(line, { before: sum, path: this.#path }));
      sum = line.slice(0, sumLength);
      end += cut + 1 - start;
      start = cut + 1;
    }
    this.#known = { ...known, sum, end, size: Number(stat.size), modified: stat.mtimeNs };
    return known.state;
  }

  #apply(state: State, { facts, rows }: Change): void {
    if (facts !== undefined) setFacts(state, facts);
    for (const { region, name, table } of tablesOf(state)) {
      const changes = rows.find((one) => one[0] === region && one[1] === name);
      if (changes) table.apply(changes[2]);
    }
  }

  #changeLocked<T>(work: (state: State) => T): T {
    const state = this.#refreshed() ?? this.#create();
    const tables = tablesOf(state);
    for (const { table } of tables) table.begin();
    const before = factsOf(state);
    try {
      const result = work(state);
      const facts = factsOf(state);
      const rows = tables.flatMap(({ region, name, table }) => {
        const changes = table.changes();
        return changes.length === 0 ? [] : [[region, name, changes] as const];
      });
      if (rows.length > 0 || facts !== before) this.#append({ ...(facts === before ? {} : { facts }), rows });
      for (const { table } of tables) table.begin();
      return result;
    } catch (error) {
      for (const { table } of tables) table.undo();
      if (factsOf(state) !== before) setFacts(state, before);
      throw error;
    }
  }

  #append(change: Change): void {
    const known = this.#known!;
    if (known.isOld || known.end - known.stateEnd > Math.max(leastToCompact, known.stateEnd))
      return this.#write(known.state);
    const { line, sum } = changeLine(change, known.sum);
    const fd = fs.openSync(this.#path, "r+");
    try {
      // What a killed writer left behind the last whole line.
      if (known.size > known.end) fs.ftruncateSync(fd, known.end);
      const bytes = Buffer.from(line);
      try {
        writeAll(fd, bytes, known.end);
      } catch (error) {
        fs.ftruncateSync(fd, known.end);
        throw error;
      }
      const stat = fs.fstatSync(fd, { bigint: true });
      const end = known.end + bytes.length;
      this.#known = { ...known, sum, end, size: end, modified: stat.mtimeNs };
    } finally {
      fs.closeSync(fd);
    }
  }

  #create(): State {
    const state = stateOf(this.#fresh());
    this.#write(state);
    return state;
  }

  /** The file is whole at every moment; what a power cut takes back is a sandbox's. */
  #write(state: State): void {
    const text = JSON.stringify(state);
    const bytes = Buffer.from(headOf(text) + text + tail);
    replaceFile(this.#path, bytes, { durable: "none" });
    const stat = fs.statSync(this.#path, { bigint: true });
    const [end, sum] = [bytes.length, digest(text)];
    const { ino: inode, mtimeNs: modified } = stat;
    this.#known = { state, inode, modified, end, size: end, stateEnd: end, sum, isOld: false };
  }
}

function attempt({ work, fail }: Waiting): void {
  try {
    work();
  } catch (error) {
    fail(error);
  }
}

/** Removes the state. A server that is running over it makes a new one at its next request. */
export async function removeState(stateDir: string): Promise<void> {
  makeFolders(stateDir, { synced: false });
  const path = stateFile(stateDir);
  refuseFolder(path);
  await whileLocked(path, () => {
    for (const name of fs.readdirSync(stateDir)) if (stateFiles.test(name)) fs.unlinkSync(`${stateDir}/${name}`);
  });
}
