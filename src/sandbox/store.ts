// Owns: the state file: one consistent state for every server of every process over one folder.
// Must not know: what the state means, HTTP.
//
// The file is replaced, never changed in place, so a reader needs no lock: it compares the head of the file (revision
// and checksum) with what it has in memory. A change takes the lock, reloads, works, replaces.
import { codeOf } from "./failure-code.ts";
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { withLock } from "./lock.ts";
import type { State } from "./state.ts";

const fileName = "sandbox.json";
const headLength = `{"format":1,"sha256":"${"0".repeat(64)}","state":`.length;
const tail = "}\n";

export interface Store {
  /** The state as it is now. Read it before the next `await`; never change it. */
  current(): Promise<State>;
  /** The state as it is now where that can be told at once, else as it was last seen; after `current()` only. */
  latest(): State;
  /** Runs `work` alone on the newest state and keeps what it changed; where it throws nothing is kept. */
  change<T>(work: (state: State) => T): Promise<T>;
}

export function stateFile(stateDir: string): string {
  return `${stateDir}/${fileName}`;
}

function headOf(stateText: string): string {
  const sha256 = createHash("sha256").update(stateText).digest("hex");
  return `{"format":1,"sha256":"${sha256}","state":`;
}

function corrupt(path: string, what: string): Error {
  return Object.assign(
    new Error(`The sandbox's state file is damaged (${what}): ${path}. Start afresh with: integ sandbox reset`),
    { code: "state_damaged" },
  );
}

/** The text of the state inside a file's text. @throws Error with code `state_damaged` */
function stateTextOf(text: string, path: string): string {
  if (!/^\{"format":\d+,/.test(text)) throw corrupt(path, "it does not begin as one");
  if (!text.startsWith('{"format":1,')) throw corrupt(path, "it was written by another version");
  if (!text.endsWith(tail)) throw corrupt(path, "its end is missing");
  const stateText = text.slice(headLength, -tail.length);
  if (headOf(stateText) !== text.slice(0, headLength)) throw corrupt(path, "its checksum does not fit");
  return stateText;
}

function readHead(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const head = Buffer.alloc(headLength);
    return head.toString("latin1", 0, readSync(file, head, 0, headLength, 0));
  } finally {
    closeSync(file);
  }
}

function replace(path: string, text: string): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.new`;
  try {
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
    renameSync(temporary, path);
  } catch (error) {
    try {
      unlinkSync(temporary);
    } catch {
      // it was never made
    }
    throw error;
  }
}

class FileStore implements Store {
  readonly #path: string;
  readonly #fresh: () => State;
  #head: string | undefined;
  #text = "";
  #state: State | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(stateDir: string, fresh: () => State) {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    this.#path = stateFile(stateDir);
    this.#fresh = fresh;
  }

  async current(): Promise<State> {
    const head = readHead(this.#path);
    if (head !== undefined && head === this.#head && this.#state) return this.#state;
    if (head === undefined) return await this.change((state) => state);
    return this.#load();
  }

  latest(): State {
    const head = readHead(this.#path);
    return head === undefined || (head === this.#head && this.#state) ? this.#state! : this.#load();
  }

  change<T>(work: (state: State) => T): Promise<T> {
    const turn = this.#queue.then(() => withLock(`${this.#path}.lock`, () => this.#changeLocked(work)));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  #load(): State {
    const text = stateTextOf(readFileSync(this.#path, "utf8"), this.#path);
    const state: State = JSON.parse(text);
    this.#keep(text, state);
    return state;
  }

  #keep(text: string, state: State): void {
    this.#head = headOf(text);
    this.#text = text;
    this.#state = state;
  }

  #changeLocked<T>(work: (state: State) => T): T {
    const head = readHead(this.#path);
    if (head === undefined) this.#create();
    else if (head !== this.#head || !this.#state) this.#load();
    try {
      const result = work(this.#state!);
      const text = JSON.stringify(this.#state);
      if (text !== this.#text) {
        replace(this.#path, headOf(text) + text + tail);
        this.#keep(text, this.#state!);
      }
      return result;
    } catch (error) {
      this.#head = undefined; // what `work` may have half done is in memory only: forget it
      throw error;
    }
  }

  #create(): void {
    const state = this.#fresh();
    const text = JSON.stringify(state);
    replace(this.#path, headOf(text) + text + tail);
    this.#keep(text, state);
  }
}

class MemoryStore implements Store {
  #text: string;
  #state: State;

  constructor(state: State) {
    this.#state = state;
    this.#text = JSON.stringify(state);
  }

  current(): Promise<State> {
    return Promise.resolve(this.#state);
  }

  latest(): State {
    return this.#state;
  }

  change<T>(work: (state: State) => T): Promise<T> {
    try {
      const result = work(this.#state);
      this.#text = JSON.stringify(this.#state);
      return Promise.resolve(result);
    } catch (error) {
      const before: State = JSON.parse(this.#text);
      this.#state = before;
      return Promise.reject(error);
    }
  }
}

/** The state in `stateDir` (0600 in a folder that is made 0700), made by `fresh` where there is none. */
export function openStore(stateDir: string, fresh: () => State): Store {
  return new FileStore(stateDir, fresh);
}

/** A state that lives as long as this object. */
export function memoryStore(state: State): Store {
  return new MemoryStore(state);
}

/** Removes the state. A server that is running over it makes a new one at its next request. */
export async function removeState(stateDir: string): Promise<void> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const path = stateFile(stateDir);
  await withLock(`${path}.lock`, () => {
    for (const name of readdirSync(stateDir)) {
      if (name === fileName || (name.startsWith(`${fileName}.`) && name.endsWith(".new")))
        unlinkSync(`${stateDir}/${name}`);
    }
  });
}
