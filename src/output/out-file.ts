// Until an `--out` file is complete, a `.resume` file beside it records the complete part, so that a later run can
// continue there. Existing files are replaced only on request.
import {
  accessSync,
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { replaceFile, type WriteOptions } from "../disk/atomic-write.ts";
import { removeFile, syncFolder, writeAll } from "../disk/write.ts";
import { isDiskFull, isMissing, isTooLarge, systemWords } from "../disk/error-words.ts";
import { isAmong } from "../disk/private-file.ts";
import { Failure } from "../errors.ts";
import type { ListEnd, Sink } from "./formats/format.ts";
import { type NextStep, type SameCommand, shell, flags } from "../next-step.ts";
import { isObject, tryParseJson } from "../json.ts";

/** Values that identify the list. A run with other values cannot continue it. */
type ListIdentity = Readonly<Record<string, string | number | boolean | null>>;

/** The complete part at the beginning of a file. */
export interface ResumePoint extends ListEnd {
  readonly rows: number;
  readonly bytes: number;
}

export interface OutFileOptions {
  readonly force: boolean;
  readonly resume: boolean;
  readonly identity: ListIdentity;
  /** integ's own files and folders, which output must not replace. */
  readonly own: readonly string[];
  /** Token of the first page, unless the list starts at the beginning. */
  readonly from?: string;
  readonly elapsed: () => number;
}

/**
 * Minimum interval between resume points: each requires a sync of the file, which is slow. After a crash, a resumed run
 * fetches the rows after the resume point again.
 */
const saveIntervalMs = 1000;

/** The constructor changes nothing on the disk. */
export class OutFile implements Sink {
  readonly path: string;
  readonly before: ResumePoint | undefined;
  readonly #options: OutFileOptions;
  #fd: number | undefined;
  #bytes: number;
  #resumePoint: ResumePoint | undefined;
  #notedAt = -Infinity;

  /**
   * @throws Failure `usage` if the file or its resume point cannot be used, belongs to another list, or exists without
   * `--force` or `--resume`
   */
  constructor(path: string, options: OutFileOptions) {
    this.path = path;
    this.#options = options;
    for (const file of [path, resumePointPath(path)])
      if (isAmong(options.own, file))
        throw new Failure("usage", `${flags.out}: integ keeps its own files in ${file}.`, {
          hint: "Name another file.",
        });
    const exists = existsAsFile(path);
    this.before = options.resume ? resumePointOf(path, { exists, identity: options.identity }) : undefined;
    this.#bytes = this.before?.bytes ?? 0;
    if (exists && !options.force && this.before === undefined) throw existsFailure(path, options.resume);
    if (!options.force && !options.resume && existsAsFile(resumePointPath(path)))
      throw existsFailure(resumePointPath(path), false);
  }

  async write(data: string | Buffer): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    this.#try("write to", () => {
      const fd = this.#open();
      writeAll(fd, bytes, this.#bytes);
      this.#bytes += bytes.length;
    });
  }

  /** Call when all rows so far are complete. Writes the resume point at most once per interval. */
  mark(at: ListEnd & { readonly rows: number }): void {
    this.#resumePoint = { ...at, bytes: this.#bytes };
    if (this.#options.elapsed() - this.#notedAt >= saveIntervalMs) this.#note();
  }

  /** @returns the file's size in bytes */
  finish(): number {
    this.#try("finish", () => {
      fsyncSync(this.#open());
      this.#close();
      removeFile(resumePointPath(this.path));
      syncFolder(dirname(this.path));
    });
    return this.#bytes;
  }

  /** Call after a failed list. With `forGood`, a later run cannot continue it. */
  abandon({ forGood = false }: { readonly forGood?: boolean } = {}): void {
    if (this.#fd === undefined) return;
    if (forGood) removeFile(resumePointPath(this.path));
    else if (this.#resumePoint !== undefined) this.#note();
    this.#close();
  }

  #open(): number {
    if (this.#fd !== undefined) return this.#fd;
    const { force, identity, from } = this.#options;
    // Written before the file is created or truncated, so that `--resume` works after a crash.
    if (this.before === undefined)
      writeResumePoint(
        this.path,
        { identity, rows: 0, bytes: 0, nextPageToken: from ?? null, hasMore: true },
        { durable: "name" },
      );
    const create = this.before === undefined ? (force ? constants.O_CREAT : constants.O_CREAT | constants.O_EXCL) : 0;
    const fd = this.#openAs(constants.O_WRONLY | constants.O_NOFOLLOW | create);
    this.#fd = fd;
    // Removes rows after the resume point, because their pages are fetched again.
    ftruncateSync(fd, this.#bytes);
    return fd;
  }

  #openAs(how: number): number {
    try {
      return openSync(this.path, how, 0o600);
    } catch (error) {
      // The file could not be opened, so there is nothing to resume.
      if (this.before === undefined) removeFile(resumePointPath(this.path));
      throw error;
    }
  }

  #note(): void {
    this.#try("record the position in", () => {
      fdatasyncSync(this.#open());
      writeResumePoint(this.path, { identity: this.#options.identity, ...this.#resumePoint! });
      this.#notedAt = this.#options.elapsed();
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
      throw new Failure("failed", `Cannot ${doing} ${this.path}: ${systemWords(error)}.`, {
        ...remedyOf(error),
        cause: error,
      });
    }
  }
}

/** @throws Failure `usage` if the path is not a file or its folder cannot be used */
function existsAsFile(path: string): boolean {
  let stats: ReturnType<typeof lstatSync>;
  try {
    stats = lstatSync(path);
  } catch (error) {
    if (isMissing(error)) {
      assertFolderWritable(dirname(path), path);
      return false;
    }
    throw new Failure("usage", `${flags.out}: ${path} cannot be used: ${systemWords(error)}.`, {
      hint: "Name another file.",
    });
  }
  if (stats.isFile()) return true;
  const what = stats.isDirectory() ? "a folder" : stats.isSymbolicLink() ? "a link" : "not a regular file";
  throw new Failure("usage", `${flags.out}: ${path} is ${what}.`, { hint: "Name a new file." });
}

function assertFolderWritable(folder: string, path: string): void {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    if (!isMissing(error))
      throw new Failure("usage", `${flags.out}: ${path} cannot be written: ${systemWords(error)}.`, {
        hint: "Name a file in a folder that you may write to.",
      });
    throw new Failure("usage", `${flags.out}: the folder ${folder} does not exist.`, {
      nextCommand: shell`mkdir -p ${folder}`,
    });
  }
}

function remedyOf(error: unknown): NextStep {
  const isSpace = isDiskFull(error) || isTooLarge(error);
  const hint = isSpace
    ? "Free space on the disk, then resume the list."
    : "Check that the file can be written, then resume the list.";
  return { hint, nextCommand: withResume };
}

const withForce: SameCommand = { add: [flags.force], without: [flags.resume] };
const withResume: SameCommand = { add: [flags.resume], without: [flags.force] };

function existsFailure(path: string, resume: boolean): Failure {
  return resume
    ? new Failure(
        "usage",
        `${flags.resume}: there is nothing to resume: ${path} exists and has no resume information.`,
        {
          meaning: "Its list is finished, or cannot be resumed, or another program wrote it. It was not changed.",
          hint: `Leave ${flags.resume} out and name a new file, or use ${flags.force} to read the list again and replace this one.`,
        },
      )
    : new Failure("usage", `${flags.out}: ${path} already exists.`, {
        hint: `Name a new file, add ${flags.force} to replace it, or add ${flags.resume} to continue an interrupted list.`,
      });
}

type IdentifiedPoint = ResumePoint & { readonly identity: ListIdentity };

export function resumePointPath(path: string): string {
  return `${path}.resume`;
}

/** @throws Failure `usage` if the file belongs to another list or is shorter than recorded, or its record is damaged */
function resumePointOf(path: string, current: { exists: boolean; identity: ListIdentity }): ResumePoint | undefined {
  const resumePoint = readResumePoint(resumePointPath(path));
  if (resumePoint === undefined || !current.exists) return undefined;
  const differs = Object.keys({ ...resumePoint.identity, ...current.identity }).filter(
    (name) => resumePoint.identity[name] !== current.identity[name],
  );
  if (differs.length > 0)
    throw new Failure(
      "usage",
      `${flags.resume}: ${path} belongs to another list (${differs.map((name) => name.replaceAll("_", " ")).join(", ")}).`,
      {
        meaning: differs
          .map(
            (name) => `${name}: ${resumePoint.identity[name] ?? "none"} then, ${current.identity[name] ?? "none"} now`,
          )
          .join("; "),
        hint: `Run the same command as then, with ${flags.resume}; or start again.`,
        nextCommand: withForce,
      },
    );
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = fstatSync(fd);
    if (size >= resumePoint.bytes) return resumePoint;
  } finally {
    closeSync(fd);
  }
  throw new Failure("usage", `${flags.resume}: ${path} is shorter than when its list stopped.`, {
    hint: `Use ${flags.force} to start again.`,
    nextCommand: withForce,
  });
}

function readResumePoint(path: string): IdentifiedPoint | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new Failure("usage", `${flags.resume}: ${path} cannot be read: ${systemWords(error)}.`);
  }
  const point = parsed(text);
  if (point) return point;
  throw new Failure("usage", `${flags.resume}: ${path} is damaged.`, {
    hint: `Use ${flags.force} to start again.`,
    nextCommand: withForce,
  });
}

function parsed(text: string): IdentifiedPoint | undefined {
  const value = tryParseJson(text);
  if (!isObject(value) || value.object !== "integ_walk") return undefined;
  const { version, identity, rows, bytes, nextPageToken, hasMore } = value;
  const isResumePoint =
    version === 1 &&
    typeof identity === "object" &&
    identity !== null &&
    isCount(rows) &&
    isCount(bytes) &&
    (nextPageToken === null || typeof nextPageToken === "string") &&
    typeof hasMore === "boolean";
  return isResumePoint ? (value as unknown as IdentifiedPoint) : undefined;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Writes atomically: after a crash, the old or the new resume point exists, and both are valid. */
function writeResumePoint(
  path: string,
  point: IdentifiedPoint,
  { durable = "content" }: Pick<WriteOptions, "durable"> = {},
): void {
  const file = resumePointPath(path);
  const text = `${JSON.stringify({ object: "integ_walk", version: 1, ...point })}\n`;
  replaceFile(file, text, { durable, temporary: `${file}.tmp` });
}
