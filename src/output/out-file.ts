// Owns: a file that a list is written to (`--out`): never over another one unasked, and with the place beside it up to
// which it is whole, so that a later run goes on there. Must not know: which list it is, the API. Source: cli.md §6.
import {
  accessSync,
  closeSync,
  constants,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../errors.ts";
import type { ListEnd, Sink } from "./list.ts";
import { codeOf, notePlace, type Place, placeIn, placePath, removeIfThere, type WalkIdentity } from "./walk-place.ts";

export interface OutFileOptions {
  readonly force: boolean;
  /** Go on where an earlier run stopped, where there was one. */
  readonly resume: boolean;
  readonly identity: WalkIdentity;
  /** The page token that the walk begins with, where it does not begin at the first page. */
  readonly from?: string;
  readonly now: () => number;
}

/**
 * The place is written down at most so often: what is noted must be on the disk before, and a sync a page would take
 * longer than the page. After a crash the rows since then are cut off and asked for again.
 */
const noteEveryMs = 1000;

/** A list's file. Nothing is created, cut or overwritten before there is something to write. */
export class OutFile implements Sink {
  readonly path: string;
  /** Where an earlier run came to. */
  readonly before: Place | undefined;
  readonly #options: OutFileOptions;
  #fd: number | undefined;
  #bytes: number;
  #place: Place | undefined;
  #notedAt = -Infinity;

  /** @throws Failure `usage` where the file is in the way, is no file, or belongs to another walk */
  constructor(path: string, options: OutFileOptions) {
    this.path = path;
    this.#options = options;
    const exists = lookAt(path);
    this.before = options.resume ? placeIn(path, { exists, identity: options.identity }) : undefined;
    this.#bytes = this.before?.bytes ?? 0;
    if (exists && !options.force && this.before === undefined) throw inTheWay(path, options.resume);
  }

  async write(data: string | Buffer): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    this.#try("write to", () => {
      const fd = this.#open();
      for (let done = 0; done < bytes.length; )
        done += writeSync(fd, bytes, done, bytes.length - done, this.#bytes + done);
      this.#bytes += bytes.length;
    });
  }

  /** The rows so far are whole: a later run may go on here. */
  mark(at: ListEnd & { readonly rows: number }): void {
    this.#place = { ...at, bytes: this.#bytes };
    if (this.#options.now() - this.#notedAt >= noteEveryMs) this.#note();
  }

  /** The list is whole: synced, and nothing to go on from any more. */
  finish(): void {
    this.#try("finish", () => {
      fsyncSync(this.#open());
      this.#close();
      removeIfThere(placePath(this.path));
    });
  }

  /**
   * The walk broke: what is whole stays, and where it ends is noted.
   * @param options `forGood`: nothing can go on from there, so that no later run tries
   */
  abandon({ forGood = false }: { readonly forGood?: boolean } = {}): void {
    if (this.#fd === undefined) return;
    if (forGood) removeIfThere(placePath(this.path));
    else if (this.#place !== undefined) this.#note();
    this.#close();
  }

  #open(): number {
    if (this.#fd !== undefined) return this.#fd;
    const { force, identity, from } = this.#options;
    // Before the file is there or cut: whenever the process ends from now on, --resume knows what to do with it.
    if (this.before === undefined)
      notePlace(this.path, { identity, rows: 0, bytes: 0, nextPageToken: from ?? null, hasMore: true });
    const create = this.before === undefined ? (force ? constants.O_CREAT : constants.O_CREAT | constants.O_EXCL) : 0;
    const fd = this.#openAs(constants.O_WRONLY | constants.O_NOFOLLOW | create);
    this.#fd = fd;
    // What stands behind the noted place is the beginning of a page that was not whole.
    ftruncateSync(fd, this.#bytes);
    return fd;
  }

  #openAs(how: number): number {
    try {
      return openSync(this.path, how, 0o600);
    } catch (error) {
      // Whatever is in the way now is not ours to go on with.
      if (this.before === undefined) removeIfThere(placePath(this.path));
      throw error;
    }
  }

  #note(): void {
    this.#try("note the place in", () => {
      fdatasyncSync(this.#open());
      notePlace(this.path, { identity: this.#options.identity, ...this.#place! });
      this.#notedAt = this.#options.now();
    });
  }

  #close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #try(doing: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw new Failure("failed", `Cannot ${doing} ${this.path} (${codeOf(error)}).`, {
        hint: remedyOf(codeOf(error)),
        cause: error,
      });
    }
  }
}

/** @returns whether there is a file; throws where something else is in the way */
function lookAt(path: string): boolean {
  let stats: ReturnType<typeof lstatSync>;
  try {
    stats = lstatSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return absentIn(dirname(path), path);
    throw new Failure("usage", `--out: ${path} cannot be used (${codeOf(error)}).`, { hint: "Name another file." });
  }
  if (stats.isFile()) return true;
  const what = stats.isDirectory() ? "a folder" : stats.isSymbolicLink() ? "a link" : "no regular file";
  throw new Failure("usage", `--out: ${path} is ${what}.`, { hint: "Name a new file." });
}

/** Before a row is asked for: a folder that is not there, or may not be written to, is no place for a new file. */
function absentIn(folder: string, path: string): false {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return false;
  } catch (error) {
    if (codeOf(error) !== "ENOENT")
      throw new Failure("usage", `--out: ${path} cannot be written (${codeOf(error)}).`, {
        hint: "Name a file in a folder that you may write to.",
      });
    throw new Failure("usage", `--out: the folder ${folder} does not exist.`, { hint: `mkdir -p '${folder}'` });
  }
}

function remedyOf(code: string): string {
  return code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG"
    ? "Make room, then the same command with --resume."
    : "See that the file can be written to, then the same command with --resume.";
}

function inTheWay(path: string, resume: boolean): Failure {
  return resume
    ? new Failure("usage", `--resume: ${path} is there, and nothing says where its walk stopped.`, {
        meaning: "It is whole, or its walk could not go on, or something else wrote it.",
        hint: "--force writes it anew.",
      })
    : new Failure("usage", `--out: ${path} is there already.`, {
        hint: "Name a new file, or add --force to replace it, or --resume to go on with a walk that broke.",
      });
}
