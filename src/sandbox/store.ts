// The state file is replaced, never changed in place, so a reader needs no lock: it compares the head of the file
// (checksum) with what it has in memory. A change takes the lock, reloads, works, replaces.
import { createHash } from "node:crypto";
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync, unlinkSync } from "node:fs";
import { replaceFile } from "../disk/atomic-write.ts";
import { errorCode } from "../disk/error-words.ts";
import { makeFolders } from "../disk/folders.ts";
import { waitForLock } from "../disk/process-lock.ts";
import { completed } from "./seed.ts";
import type { State } from "./state.ts";

const fileName = "sandbox.json";
/** The file, and what killed writers left of it. */
const stateFiles = /^sandbox\.json(?:\.new-[0-9a-f]+|\.[0-9a-f]+\.new)?$/;
const headLength = `{"format":1,"sha256":"${"0".repeat(64)}","state":`.length;
const tail = "}\n";

function stateFile(stateDir: string): string {
  return `${stateDir}/${fileName}`;
}

function headOf(stateText: string): string {
  const sha256 = createHash("sha256").update(stateText).digest("hex");
  return `{"format":1,"sha256":"${sha256}","state":`;
}

function corrupt(path: string, what: string): Error {
  return Object.assign(
    new Error(`The sandbox's state file is damaged (${what}): ${path}. Start again with: integ sandbox reset`),
    { code: "state_damaged" },
  );
}

/** The text of the state inside a file's text. @throws Error with code `state_damaged` */
function stateTextOf(text: string, path: string): string {
  if (!/^\{"format":\d+,/.test(text)) throw corrupt(path, "it does not start like a state file");
  if (!text.startsWith('{"format":1,')) throw corrupt(path, "it was written by another version");
  if (!text.endsWith(tail)) throw corrupt(path, "its end is missing");
  const stateText = text.slice(headLength, -tail.length);
  if (headOf(stateText) !== text.slice(0, headLength)) throw corrupt(path, "its checksum does not match");
  return stateText;
}

/** @throws Error `state_folder` */
function refuseFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw Object.assign(new Error(`${path} is a folder: the sandbox keeps its state in a file of that name.`), {
      code: "state_folder",
      path,
    });
}

function readHead(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const head = Buffer.alloc(headLength);
    return head.toString("latin1", 0, readSync(file, head, 0, headLength, 0));
  } catch (error) {
    refuseFolder(path);
    throw error;
  } finally {
    closeSync(file);
  }
}

/** The file is whole at every moment; what a power cut takes back is a sandbox's. */
function replace(path: string, text: string): void {
  replaceFile(path, text, { durable: "none" });
}

/**
 * Runs `work` while no other process changes the state. `work` is synchronous: the lock is held for its time only.
 * @throws Error naming a living process that keeps the lock for longer than ten seconds
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

/** One consistent state for every server of every process over one folder (0600 in a folder that is made 0700). */
export class Store {
  readonly #path: string;
  readonly #fresh: () => State;
  #head: string | undefined;
  #text = "";
  #state: State | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  /** @param fresh makes the state if there is none */
  constructor(stateDir: string, fresh: () => State) {
    makeFolders(stateDir, { synced: false });
    this.#path = stateFile(stateDir);
    this.#fresh = fresh;
  }

  /** The state as it is now. Read it before the next `await`; never change it. */
  async current(): Promise<State> {
    const head = readHead(this.#path);
    if (head !== undefined && head === this.#head && this.#state) return this.#state;
    if (head === undefined) return await this.change((state) => state);
    return this.#load();
  }

  /** The state as it is now if that can be told immediately, else as it was last seen; after `current()` only. */
  latest(): State {
    const head = readHead(this.#path);
    return head === undefined || (head === this.#head && this.#state) ? this.#state! : this.#load();
  }

  /** Runs `work` alone on the newest state and keeps what it changed; if it throws nothing is kept. */
  change<T>(work: (state: State) => T): Promise<T> {
    const turn = this.#queue.then(() => whileLocked(this.#path, () => this.#changeLocked(work)));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  #load(): State {
    const text = stateTextOf(readFileSync(this.#path, "utf8"), this.#path);
    const state = completed(JSON.parse(text) as State);
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

/** Removes the state. A server that is running over it makes a new one at its next request. */
export async function removeState(stateDir: string): Promise<void> {
  makeFolders(stateDir, { synced: false });
  const path = stateFile(stateDir);
  refuseFolder(path);
  await whileLocked(path, () => {
    for (const name of readdirSync(stateDir)) if (stateFiles.test(name)) unlinkSync(`${stateDir}/${name}`);
  });
}
