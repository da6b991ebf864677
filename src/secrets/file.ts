// `--secret-file`: a new file, its owner's alone, that appears under its name only whole and synced.
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  type Stats,
  statSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { Failure } from "../errors.ts";
import { causeOf, describeError, fileFailure, systemError } from "../disk/error-words.ts";
import { isAmong, openPrivateFile } from "../disk/private-file.ts";
import { syncFolder } from "../disk/write.ts";
import type {
  Delivery,
  OneTimeSecret,
  ProofKeys,
  RecordOf,
  RememberedDestination,
  SingleDestinationPlace,
  SingleRecord,
} from "./destination.ts";
import {
  contentOf,
  type FileIdentity,
  fillReserve,
  identityOf,
  isCut,
  isSameFile,
  putInPlace,
  reserveFile,
  wipe,
  reservedName,
  holdsDelivered,
  proofOf,
} from "./delivered-secret.ts";
import { isWhole, parseSecret, renderSecret } from "./secret-format.ts";
import { type NextStep, shell, flags } from "../next-step.ts";

/** `path` is absolute once it is a destination; `force` lets it replace a plain file of that name. */
export type FileTarget = Pick<RecordOf<"file">, "path" | "as" | "force">;

const anotherFile: NextStep = { hint: `Name another file with ${flags.secretFile}.` };

function refuse(path: string, why: string, step: NextStep = anotherFile): Failure {
  return new Failure("usage", `The secret cannot go to ${path}: ${why}.`, step);
}

function checkFolder(path: string): Stats {
  const folder = dirname(path);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined)
    throw refuse(path, `the folder ${folder} does not exist`, { nextCommand: shell`mkdir -p ${folder}` });
  if (!stats.isDirectory()) throw refuse(path, `${folder} is not a folder`);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const why = causeOf(error) === "read_only" ? "read-only" : "not writable for you";
    throw refuse(path, `the folder ${folder} is ${why}`);
  }
  return stats;
}

/** In a folder with the sticky bit (/tmp) only its owner may replace a file. */
function mayReplace(file: Stats, folder: Stats): boolean {
  const me = process.getuid?.() ?? 0;
  return me === 0 || (folder.mode & 0o1000) === 0 || file.uid === me || folder.uid === me;
}

/** What cannot be checked cannot be written either. */
function checkTarget(target: FileTarget, own: readonly string[]): void {
  try {
    lookAtTarget(target, own);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw refuse(target.path, describeError(error));
  }
}

function lookAtTarget({ path, force }: FileTarget, own: readonly string[]): void {
  if (basename(path) === "") throw refuse(path, "it names no file");
  if (isAmong(own, path)) throw refuse(path, "integ keeps its own files there");
  const folder = checkFolder(path);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (found.isSymbolicLink()) throw refuse(path, "it is a symbolic link, and a secret is never written through one");
  if (found.isDirectory()) throw refuse(path, "it is a folder");
  if (!found.isFile()) throw refuse(path, "it is not a plain file");
  if (!force)
    throw refuse(path, "the file already exists", {
      hint: `Name another file, or add ${flags.force} to replace this one.`,
      nextCommand: { add: [flags.force] },
    });
  if (!mayReplace(found, folder)) throw refuse(path, "the file belongs to another user");
}

export interface FileTools {
  /** Files and folders of the program itself, which a secret must never replace. */
  readonly own?: readonly string[];
  /** For the digest by which a later process recognizes the delivered file. */
  readonly keys?: ProofKeys;
}

interface Reserve {
  readonly fd: number;
  readonly path: string;
  readonly identity: FileIdentity;
}

class FileDestination implements SingleDestinationPlace {
  readonly isStdout = false;
  readonly #target: FileTarget;
  readonly #tools: FileTools;
  #reserve: Reserve | undefined;
  record: RecordOf<"file">;
  /** What a finished delivery left undone behind it. */
  #untidy: Error | undefined;

  constructor(target: FileTarget, tools: FileTools) {
    this.#target = target;
    this.#tools = tools;
    this.record = { kind: "file", ...target };
  }

  async check(): Promise<RecordOf<"file">> {
    checkTarget(this.#target, this.#tools.own ?? []);
    return this.record;
  }

  async prepare(work: string): Promise<RecordOf<"file">> {
    checkTarget(this.#target, this.#tools.own ?? []);
    const path = reservedName(this.#target.path, work);
    if (this.#reserve?.path !== path || !isSameFile(path, this.#reserve.identity)) {
      await this.release();
      this.#reserve = await this.#makeReserve(path);
    }
    await this.#tools.keys?.make(work);
    this.record = { kind: "file", ...this.#target, ...this.#reserve.identity, reserved: path };
    return this.record;
  }

  async #makeReserve(path: string): Promise<Reserve> {
    try {
      const fd = await reserveFile(path, (content, isCut) => {
        if (!isWhole(content, this.#target.as, isCut)) return;
        throw new Failure("failed", `${path} contains the secret of an earlier run.`, {
          meaning: "It is complete and never got its name; recovery renames it.",
          nextCommand: shell`integ journal recover`,
        });
      });
      return { fd, path, identity: identityOf(fd) };
    } catch (error) {
      throw withoutSpace(fileFailure(error, "reserve space for the secret in", { path }));
    }
  }

  async deliver(secret: OneTimeSecret, { origin, record }: Delivery<SingleRecord>): Promise<void> {
    if (this.#reserve === undefined) throw new Error("No space could be reserved for it there.");
    const { fd, path } = this.#reserve;
    const text = renderSecret(secret, this.#target.as, origin);
    const { keys } = this.#tools;
    if (keys !== undefined) {
      this.record = { ...this.record, proof: await proofOf(text, { entry: origin.entry, keys }) };
      await record(this.record);
    }
    try {
      fillReserve(fd, text);
      // With its name it has its length, too.
      fsyncSync(fd);
      if (!isSameFile(path, identityOf(fd))) throw systemError("ENOENT", "lstat");
      this.#untidy = await putInPlace(path, this.#target);
    } catch (error) {
      const { message } = fileFailure(error, "write the secret to", { path: this.#target.path });
      throw new Failure("undelivered", message, { cause: error });
    }
    closeSync(fd);
    this.#reserve = undefined;
  }

  async release(): Promise<void> {
    const reserve = this.#reserve;
    if (reserve === undefined) {
      const untidy = this.#untidy;
      this.#untidy = undefined;
      if (untidy) throw untidy;
      return;
    }
    this.#reserve = undefined;
    try {
      clearAway(reserve, this.#target.path);
    } finally {
      closeSync(reserve.fd);
    }
  }
}

/**
 * Blanks a reserve and takes its name away. One of the two puts a secret out of reach, so both are tried; that either
 * failed is reported anyway: the disk is not what it was.
 */
function clearAway(reserve: Reserve, finished: string): void {
  const failed: unknown[] = [];
  const attempt = (step: () => void): void => {
    try {
      step();
    } catch (error) {
      failed.push(error);
    }
  };
  // After a delivery that failed at its very end (the folder's sync) the finished file is this one: it stays whole.
  attempt(() => (isSameFile(finished, reserve.identity) ? undefined : wipe(reserve.fd)));
  attempt(() => {
    if (!isSameFile(reserve.path, reserve.identity)) return;
    unlinkSync(reserve.path);
    syncFolder(dirname(reserve.path));
  });
  if (failed.length > 0) throw fileFailure(failed[0], "give back", { path: reserve.path });
}

/** Space is made before each request: if there is none, that request stays here. What says its own way out has no space in mind. */
function withoutSpace({ kind, message, details }: Failure): Failure {
  const { meaning = "The request was not sent.", hint, nextCommand } = details;
  return new Failure(kind, message, {
    ...details,
    meaning,
    hint: hint ?? (nextCommand ? undefined : `Free space there, or name another file with ${flags.secretFile}.`),
  });
}

/**
 * A file as the place for a secret.
 * @param cwd makes a relative path mean the same to a later process
 */
export function fileDestination(target: FileTarget, cwd: string, tools: FileTools = {}): SingleDestinationPlace {
  return new FileDestination({ ...target, path: resolve(cwd, target.path) }, tools);
}

interface Remembered {
  readonly record: RecordOf<"file">;
  readonly keys: ProofKeys | undefined;
}

/** Whether the file has its name: synced now, and the reserved name taken away. */
function completeName({ record, keys }: Remembered): boolean {
  const { path, reserved } = record;
  if (!holdsDelivered(path, record, keys)) return false;
  try {
    // The crash may have come between the name and its sync.
    syncFolder(dirname(path));
    if (reserved !== undefined && holdsDelivered(reserved, record, keys)) unlinkSync(reserved);
  } catch (error) {
    throw fileFailure(error, "finish the delivery to", { path });
  }
  return true;
}

/** The reserved file, opened, if it is still the remembered one: by its identity, or by what it holds. */
function openReserved({ record, keys }: Remembered): number | undefined {
  const { reserved, inode } = record;
  if (reserved === undefined || inode === undefined) return undefined;
  if (!isSameFile(reserved, record) && !holdsDelivered(reserved, record, keys)) return undefined;
  return openPrivateFile(reserved, constants.O_RDWR);
}

/** Puts a secret that was written whole under its name. False if the reserve is missing, empty or cut. */
async function completeFile(remembered: Remembered): Promise<boolean> {
  const { record, keys } = remembered;
  let fd: number | undefined;
  try {
    fd = openReserved(remembered);
    if (fd === undefined || record.reserved === undefined) return false;
    const content = contentOf(fd);
    if (!isWholeIn(fd, content, remembered) || !holdsDelivered(record.reserved, record, keys)) return false;
    const length = Buffer.byteLength(content);
    if (fstatSync(fd).size !== length) ftruncateSync(fd, length);
    fsyncSync(fd);
    await putInPlace(record.reserved, record);
    return true;
  } catch (error) {
    const { kind, message } = fileFailure(error, "give the secret its name", { path: record.path });
    throw new Failure(kind, message, {
      meaning: `The complete secret is in ${record.reserved}. Move what is in its way, then recover again.`,
      nextCommand: shell`integ journal recover`,
      cause: error,
    });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** What was delivered is whole; without a digest of it the text itself has to show it. */
function isWholeIn(fd: number, content: string, { record, keys }: Remembered): boolean {
  const isKnown = record.proof !== undefined && keys?.find(record.proof.entry) !== undefined;
  return isKnown || isWhole(content, record.as, isCut(fd));
}

function removeReserve(remembered: Remembered, entry: string, isKept: boolean): void {
  const { record, keys } = remembered;
  const own = reservedName(record.path, entry);
  // A replacement is admitted beside the reserve of what it replaces, and its record may name only that one.
  if (record.reserved !== own) removeUnnamed(own);
  if (record.reserved === undefined) return;
  const fd = openReserved(remembered) ?? openOwn(record.reserved);
  if (fd === undefined) return;
  try {
    const isSecondName = holdsDelivered(record.path, record, keys);
    if (!isSecondName && isWhole(contentOf(fd), record.as, isCut(fd))) {
      if (!isKept) return;
      wipe(fd);
    }
    unlinkSync(record.reserved);
  } finally {
    closeSync(fd);
  }
}

/**
 * A reserve on a disk that was restored is another file under its entry's name. It is only tidied up: a place that cannot be
 * looked at any more is not a reason to stop.
 */
function openOwn(path: string): number | undefined {
  try {
    return openPrivateFile(path, constants.O_RDWR);
  } catch {
    return undefined;
  }
}

function removeUnnamed(path: string): void {
  const fd = openOwn(path);
  if (fd === undefined) return;
  try {
    if (fstatSync(fd).nlink === 1 && contentOf(fd) === "") unlinkSync(path);
  } finally {
    closeSync(fd);
  }
}

/** The secret, if the remembered file still holds what was delivered. */
function reread({ record, keys }: Remembered): string | undefined {
  if (!holdsDelivered(record.path, record, keys)) return undefined;
  const fd = openPrivateFile(record.path);
  try {
    const text = contentOf(fd);
    return isWhole(text, record.as, true) ? parseSecret(text, record.as) : undefined;
  } finally {
    closeSync(fd);
  }
}

/**
 * A file that a journal entry remembers. A crash may have come after its reserve was made and before the journal named
 * it: then the reserve is found by its name, and is removed if it is empty.
 */
export function rememberedFile(record: RecordOf<"file">, keys?: ProofKeys): RememberedDestination {
  const remembered = { record, keys };
  return {
    completeDelivery: async () => completeName(remembered) || completeFile(remembered),
    removeReserve: (entry, { isKept = false } = {}) => removeReserve(remembered, entry, isKept),
    reread: async () => reread(remembered),
  };
}
