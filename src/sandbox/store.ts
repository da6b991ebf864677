// Keeps the state in a JSON file with a checksum. Changes replace the file under a lock; readers need no lock.
import { hash } from "node:crypto";
import * as fs from "node:fs";
import { replaceFile } from "../disk/atomic-write.ts";
import { isMissing } from "../disk/error-words.ts";
import { makeFolders } from "../disk/private-file.ts";
import { waitForLock } from "../disk/process-lock.ts";
import type { State } from "./state.ts";

const fileName = "sandbox.json";
/** A process that is killed during a change may leave this file behind. */
const temporaryName = "sandbox.json.new";
const tail = "}\n";

function headOf(stateText: string): string {
  return `{"format":1,"sha256":"${hash("sha256", stateText, "hex")}","state":`;
}

const headLength = headOf("").length;

function fileTextOf(state: State): string {
  const text = JSON.stringify(state);
  return headOf(text) + text + tail;
}

function corrupt(path: string, what: string): Error {
  return Object.assign(
    new Error(`The sandbox's state file is damaged (${what}): ${path}. Start again with: integ sandbox reset`),
    { code: "state_damaged" },
  );
}

function stateIn(text: string, path: string): State {
  if (!/^\{"format":\d+,/.test(text)) throw corrupt(path, "it does not start like a state file");
  if (!text.startsWith('{"format":1,')) throw corrupt(path, "it was written by another version");
  if (!text.endsWith(tail)) throw corrupt(path, "its end is missing");
  const stateText = text.slice(headLength, -tail.length);
  if (headOf(stateText) !== text.slice(0, headLength)) throw corrupt(path, "its checksum does not match");
  return JSON.parse(stateText) as State;
}

function refuseFolder(path: string): void {
  if (fs.statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw Object.assign(new Error(`${path} is a folder: the sandbox keeps its state in a file of that name.`), {
      code: "state_folder",
      path,
    });
}

async function withLock<T>(path: string, work: () => T): Promise<T> {
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

export class Store {
  readonly #path: string;
  readonly #createState: () => State;
  #cached: { readonly text: string; readonly state: State } | undefined;
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(stateDir: string, createState: () => State) {
    makeFolders(stateDir, { synced: false });
    this.#path = `${stateDir}/${fileName}`;
    this.#createState = createState;
  }

  /** Callers must read the state before their next `await`, and must not change it. */
  async current(): Promise<State> {
    return this.#read() ?? (await this.change((state) => state));
  }

  /** Requires an earlier call of `current`. Returns the last known state if the file was removed. */
  latest(): State {
    return this.#read() ?? this.#cached!.state;
  }

  /** Stores the changes of `work`, unless it throws. */
  change<T>(work: (state: State) => T): Promise<T> {
    const change = this.#lastChange.then(() => withLock(this.#path, () => this.#changeLocked(work)));
    this.#lastChange = change.catch(() => {});
    return change;
  }

  #changeLocked<T>(work: (state: State) => T): T {
    const before = this.#read() && this.#cached!.text;
    const state = before === undefined ? this.#createState() : stateIn(before, this.#path);
    const result = work(state);
    const text = fileTextOf(state);
    // Not synced: a power cut may lose changes or damage the file.
    if (text !== before)
      replaceFile(this.#path, text, { durable: "none", temporary: this.#path.replace(fileName, temporaryName) });
    this.#cached = { text, state };
    return result;
  }

  #read(): State | undefined {
    let text: string;
    try {
      text = fs.readFileSync(this.#path, "utf8");
    } catch (error) {
      if (isMissing(error)) return undefined;
      refuseFolder(this.#path);
      throw error;
    }
    if (text !== this.#cached?.text) this.#cached = { text, state: stateIn(text, this.#path) };
    return this.#cached.state;
  }
}

/** A running server creates a new state at the next request. */
export async function removeState(stateDir: string): Promise<void> {
  makeFolders(stateDir, { synced: false });
  const path = `${stateDir}/${fileName}`;
  refuseFolder(path);
  await withLock(path, () => {
    for (const name of [fileName, temporaryName]) fs.rmSync(`${stateDir}/${name}`, { force: true });
  });
}
