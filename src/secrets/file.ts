// `--secret-file`: a private file that gets its name only when it is complete and synced.
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
import { causeOf, describeError, fileFailure, alreadyExists, systemError } from "../disk/error-words.ts";
import { isAmong, openPrivateFile } from "../disk/private-file.ts";
import { syncFolder } from "../disk/write.ts";
import type { SecretDigests } from "../journal/keys.ts";
import {
  type ContentConsent,
  type Delivery,
  type Found,
  hasContentId,
  contentId,
  type MayReplace,
  type OneTimeSecret,
  type RecordOf,
  type RememberedDestination,
  type SingleDestinationPlace,
  type SingleRecord,
  withoutLastNewline,
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
  foundAt,
  overwriteFound,
} from "./delivered-secret.ts";
import type { MachineId } from "../disk/machine-id.ts";
import { isComplete, parseSecret, renderSecret } from "./secret-format.ts";
import { type NextStep, shell, flags } from "../next-step.ts";

export interface FileTarget extends ContentConsent, Pick<RecordOf<"file">, "path" | "as"> {
  readonly mayBeOwn?: boolean | undefined;
}

const otherFileStep: NextStep = { hint: `Name another file with ${flags.secretFile}.` };

function refuse(path: string, why: string, step: NextStep = otherFileStep): Failure {
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

/** In a sticky folder (/tmp), only root and the owners of the file and the folder may replace the file. */
function mayReplace(file: Stats, folder: Stats): boolean {
  const me = process.getuid?.() ?? 0;
  return me === 0 || (folder.mode & 0o1000) === 0 || file.uid === me || folder.uid === me;
}

/** @throws Failure `usage` for an unsuitable target, or one that cannot be inspected */
function checkTarget(target: FileTarget, own: readonly string[]): void {
  try {
    inspectTarget(target, own);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw refuse(target.path, describeError(error));
  }
}

function inspectTarget({ path, force, consent, mayBeOwn }: FileTarget, own: readonly string[]): void {
  if (basename(path) === "") throw refuse(path, "it names no file");
  if (basename(path) === "-")
    throw refuse(path, 'other programs mean standard output by "-"', {
      hint: `Leave ${flags.secretFile} out to print the secret, or name a file.`,
    });
  if (isAmong(own, path)) throw refuse(path, "integ keeps its own files there");
  const folder = checkFolder(path);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (found.isSymbolicLink()) throw refuse(path, "it is a symbolic link, and a secret is never written through one");
  if (found.isDirectory()) throw refuse(path, "it is a folder");
  if (!found.isFile()) throw refuse(path, "it is not a plain file");
  if (force !== true && mayBeOwn !== true && consent === undefined) throw fileExistsFailure(path);
  if (!mayReplace(found, folder)) throw refuse(path, "the file belongs to another user");
}

export function fileExistsFailure(path: string): Failure {
  return refuse(path, "the file already exists", {
    hint: `Name another file, or add ${flags.force} to replace this one.`,
    nextCommand: { add: [flags.force] },
  });
}

export interface FileTools {
  readonly own?: readonly string[];
  readonly digests: SecretDigests;
  readonly machine: MachineId;
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
  #cleanupError: Error | undefined;
  #isConsented = false;

  constructor(target: FileTarget, tools: FileTools) {
    this.#target = target;
    this.#tools = tools;
    const { path, as, consent } = target;
    this.record = { kind: "file", path, as, consent };
  }

  async check(): Promise<RecordOf<"file">> {
    checkTarget(this.#target, this.#tools.own ?? []);
    const { digests, machine } = this.#tools;
    const { path, force } = this.#target;
    // `--force` covers only the content at the first check.
    if (force === true && !this.#isConsented)
      this.record = { ...this.record, consent: contentId(foundAt(path), digests) ?? this.record.consent };
    this.#isConsented = true;
    this.record = { ...this.record, machine: machine.find() };
    return this.record;
  }

  async prepare(work: string, { may }: { readonly may?: MayReplace } = {}): Promise<RecordOf<"file">> {
    await this.check();
    await may?.(this.record, foundAt(this.#target.path));
    const path = reservedName(this.#target.path, work);
    if (this.#reserve?.path !== path || !isSameFile(path, this.#reserve.identity)) {
      await this.release();
      this.#reserve = await this.#makeReserve(path);
    }
    this.record = { ...this.record, machine: this.#tools.machine.make(), ...this.#reserve.identity, reserved: path };
    return this.record;
  }

  async #makeReserve(path: string): Promise<Reserve> {
    try {
      const fd = await reserveFile(path, (content, isCut) => {
        if (!isComplete(content, this.#target.as, isCut)) return;
        throw new Failure("failed", `${path} contains the secret of an earlier run.`, {
          meaning: "It is complete and never got its name; recovery renames it.",
          nextCommand: shell`integ journal recover`,
        });
      });
      return { fd, path, identity: identityOf(fd) };
    } catch (error) {
      throw reservationFailure(fileFailure(error, "reserve space for the secret in", { path }));
    }
  }

  async deliver(secret: OneTimeSecret, { origin, record, may }: Delivery<SingleRecord>): Promise<void> {
    if (this.#reserve === undefined) throw new Error("No space could be reserved for it there.");
    const { fd, path: reserved } = this.#reserve;
    const { path, as } = this.#target;
    const text = renderSecret(secret, as, origin);
    this.record = { ...this.record, proof: this.#tools.digests.of(withoutLastNewline(text)) };
    await record(this.record);
    try {
      fillReserve(fd, text);
      // The new length must be on disk before the name.
      fsyncSync(fd);
      if (!isSameFile(reserved, identityOf(fd))) throw systemError("ENOENT", "lstat");
      await overwriteFound(path, {
        look: async () => foundAt(path),
        may: (found) => may(this.record, found),
        write: async (found) => {
          const cleanupError = await tryPutInPlace(reserved, path, found);
          if (cleanupError !== false) this.#cleanupError = cleanupError;
          return cleanupError !== false;
        },
      });
    } catch (error) {
      if (error instanceof Failure && error.kind === "conflict") throw error;
      const { message, details } = fileFailure(error, "write the secret to", { path });
      throw new Failure("undelivered", message, { ...details, cause: error });
    }
    closeSync(fd);
    this.#reserve = undefined;
  }

  async release(): Promise<void> {
    const reserve = this.#reserve;
    if (reserve === undefined) {
      const cleanupError = this.#cleanupError;
      this.#cleanupError = undefined;
      if (cleanupError) throw cleanupError;
      return;
    }
    this.#reserve = undefined;
    try {
      discardReserve(reserve, this.#target.path);
    } finally {
      closeSync(reserve.fd);
    }
  }
}

/** Overwrites and removes the reserve, each even if the other fails: either alone hides the secret. */
function discardReserve(reserve: Reserve, finished: string): void {
  const failed: unknown[] = [];
  const attempt = (step: () => void): void => {
    try {
      step();
    } catch (error) {
      failed.push(error);
    }
  };
  // If only the folder's sync failed, the reserve already has the final name and must not be wiped.
  attempt(() => (isSameFile(finished, reserve.identity) ? undefined : wipe(reserve.fd)));
  attempt(() => {
    if (!isSameFile(reserve.path, reserve.identity)) return;
    unlinkSync(reserve.path);
    syncFolder(dirname(reserve.path));
  });
  if (failed.length > 0) throw fileFailure(failed[0], "give back", { path: reserve.path });
}

function reservationFailure({ kind, message, details }: Failure): Failure {
  const { meaning = "The request was not sent.", hint, nextCommand } = details;
  return new Failure(kind, message, {
    ...details,
    meaning,
    hint: hint ?? (nextCommand ? undefined : `Free space there, or name another file with ${flags.secretFile}.`),
  });
}

export function fileDestination(target: FileTarget, cwd: string, tools: FileTools): SingleDestinationPlace {
  return new FileDestination({ ...target, path: resolve(cwd, target.path) }, tools);
}

/** @returns false if another process has created a file of this name, else the result of `putInPlace` */
async function tryPutInPlace(reserved: string, path: string, found: Found): Promise<Error | undefined | false> {
  try {
    return await putInPlace(reserved, path, found);
  } catch (error) {
    if (found.is === "absent" && alreadyExists(error)) return false;
    throw error;
  }
}

interface Remembered {
  readonly record: RecordOf<"file">;
  readonly digests: SecretDigests;
}

function hasDelivered(path: string, { record, digests }: Remembered): boolean {
  return record.proof !== undefined && hasContentId(foundAt(path), record.proof, digests);
}

function completeName(remembered: Remembered): boolean {
  const { path, reserved } = remembered.record;
  if (!hasDelivered(path, remembered)) return false;
  try {
    // The process that named the file may have crashed before it synced the folder.
    syncFolder(dirname(path));
    if (reserved !== undefined && hasDelivered(reserved, remembered)) unlinkSync(reserved);
  } catch (error) {
    throw fileFailure(error, "finish the delivery to", { path });
  }
  return true;
}

/** Compares the content too, because a restored disk changes a file's identity. */
function openReserved(remembered: Remembered): number | undefined {
  const { reserved, inode } = remembered.record;
  if (reserved === undefined || inode === undefined) return undefined;
  if (!isSameFile(reserved, remembered.record) && !hasDelivered(reserved, remembered)) return undefined;
  return openPrivateFile(reserved, constants.O_RDWR);
}

async function completeFile(remembered: Remembered, may: MayReplace): Promise<boolean> {
  const { record } = remembered;
  const { path, reserved } = record;
  let fd: number | undefined;
  try {
    fd = openReserved(remembered);
    if (fd === undefined || reserved === undefined || !hasDelivered(reserved, remembered)) return false;
    const length = Buffer.byteLength(contentOf(fd));
    if (fstatSync(fd).size !== length) ftruncateSync(fd, length);
    fsyncSync(fd);
    await overwriteFound(path, {
      look: async () => foundAt(path),
      may: (found) => may(record, found),
      write: async (found) => (await tryPutInPlace(reserved, path, found)) !== false,
    });
    return true;
  } catch (error) {
    const { kind, message } = fileFailure(error, "give the secret its name", { path });
    throw new Failure(kind, message, {
      meaning: `The complete secret is in ${reserved}. Move ${path} away, then recover again.`,
      nextCommand: shell`integ journal recover`,
      cause: error,
    });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function removeReserve(remembered: Remembered, entry: string, isKept: boolean): void {
  const { record } = remembered;
  const own = reservedName(record.path, entry);
  // A record may name another file: a replacement's names the reserve of what it replaces, and an edited one names any.
  if (record.reserved !== own) return removeUnnamed(own);
  const fd = openReserved(remembered) ?? openOwn(own);
  if (fd === undefined) return;
  try {
    const isSecondName = hasDelivered(record.path, remembered);
    if (!isSecondName && isComplete(contentOf(fd), record.as, isCut(fd))) {
      if (!isKept) return;
      wipe(fd);
    }
    unlinkSync(own);
  } finally {
    closeSync(fd);
  }
}

/** Opens a reserve by its name, because a restored disk changes its identity. Errors do not matter in a cleanup. */
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

function reread({ record, digests }: Remembered): string | undefined {
  const found = foundAt(record.path);
  return found.is === "text" && hasContentId(found, record.proof, digests)
    ? parseSecret(found.text, record.as)
    : undefined;
}

export function rememberedFile(record: RecordOf<"file">, digests: SecretDigests): RememberedDestination {
  const remembered = { record, digests };
  return {
    completeDelivery: async (may) => completeName(remembered) || completeFile(remembered, may),
    removeReserve: (entry, { isKept = false } = {}) => removeReserve(remembered, entry, isKept),
    reread: async () => reread(remembered),
  };
}
