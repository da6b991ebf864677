import { getSystemErrorMap } from "node:util";
import { Failure, type FailureKind } from "../errors.ts";
import type { Advice } from "../next-step.ts";

/** @returns errno name and call of a failed system call; undefined for other errors */
export function failedCall(error: unknown): { readonly code: string; readonly call: string } | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return undefined;
  const { code, syscall } = error;
  return typeof code === "string" && typeof syscall === "string"
    ? { code: nameOf(code, error), call: syscall }
    : undefined;
}

/** Node has no names for these errors of Linux. */
const linuxNames: readonly (readonly [number: number, name: string])[] = [
  [112, "EHOSTDOWN"],
  [117, "EUCLEAN"],
  [121, "EREMOTEIO"],
  [123, "ENOMEDIUM"],
  [126, "ENOKEY"],
  [127, "EKEYEXPIRED"],
  [128, "EKEYREVOKED"],
  [133, "EHWPOISON"],
];

function nameOfNumber(wanted: number): string | undefined {
  const { errno } = process.getBuiltinModule("node:os").constants;
  const found = Object.entries(errno).findLast(([, number]) => number === wanted)?.[0];
  const unnamed = process.platform === "linux" ? linuxNames : [];
  return found ?? unnamed.find(([number]) => number === wanted)?.[1];
}

/** Node reports some errors only by number, such as `EDQUOT` and `ENOLCK`. */
function nameOf(code: string, error: Error): string {
  const errno = "errno" in error ? error.errno : undefined;
  const number = /^Unknown system error -(\d+)$/.exec(code)?.[1] ?? (code === "UNKNOWN" ? -Number(errno) : undefined);
  return number === undefined ? code : (nameOfNumber(Number(number)) ?? `${unnamed} ${number}`);
}

const unnamed = "the system reports error";

export function errorCode(error: unknown): string | undefined {
  return failedCall(error)?.code;
}

export function systemError(code: string, call: string): Error {
  return Object.assign(new Error(`${code}: ${errorWords[code] ?? "failed"}, ${call}`), { code, syscall: call });
}

/** For bytes that a device did not write, or does not read back. */
export function deviceError(call: string): Error {
  return systemError("EIO", call);
}

/** Errors that another path or other permissions avoid. */
const unusablePath: ReadonlySet<string> = new Set(
  "EACCES EPERM EROFS ENOENT ENOTDIR EISDIR ELOOP EEXIST ENAMETOOLONG EINVAL ENXIO EXDEV ETXTBSY".split(" "),
);

const causes = {
  EACCES: "denied",
  EPERM: "denied",
  EROFS: "read_only",
  ENOTDIR: "not_folder",
  ENAMETOOLONG: "long_name",
  ELOOP: "link",
  ENOSPC: "full",
  EDQUOT: "quota",
  EIO: "broken",
  EPIPE: "no_reader",
  EBADF: "not_open",
} as const;

export type ErrorCause = (typeof causes)[keyof typeof causes];

const causeOfCode: ReadonlyMap<string, ErrorCause> = new Map(Object.entries(causes));

export function causeOf(error: unknown): ErrorCause | undefined {
  return causeOfCode.get(codeOf(error));
}

/**
 * Errors of native modules and streams name no call, so `failedCall` does not find their code.
 * @returns the errno name of any error; empty without a code
 */
function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? nameOf(error.code, error) : "";
}

/** Adds the call to an error of a native module. An error without a code is a bug and stays unchanged. */
export function asFailedCall(error: unknown, call: string): unknown {
  const code = codeOf(error);
  return code === "" || failedCall(error) ? error : systemError(code, call);
}

function isOneOf(...codes: readonly string[]): (error: unknown) => boolean {
  return (error) => codes.includes(codeOf(error));
}

const unsupported = ["ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

export const isMissing = isOneOf("ENOENT");
export const alreadyExists = isOneOf("EEXIST");
export const isDiskFull = isOneOf("ENOSPC", "EDQUOT");
/** The file exceeds a limit of its file system or of this process. */
export const isTooLarge = isOneOf("EFBIG");
export const isAccessDenied = isOneOf("EACCES");
/** The file system supports no hard links, or no more for this file. */
export const hasNoLinks = isOneOf("EPERM", "EMLINK", ...unsupported);
/** Some file systems cannot sync folders. */
export const hasNothingToSync = isOneOf("EINVAL", ...unsupported);
const hasNoLocks = isOneOf("ENOLCK", "EINVAL", ...unsupported);
const isLocked = isOneOf("EAGAIN", "EACCES", "EBUSY");

/** @returns undefined unless the kernel refused a lock */
export function lockAnswer(error: unknown): "taken" | "unsupported" | undefined {
  if (isLocked(error)) return "taken";
  return hasNoLocks(error) ? "unsupported" : undefined;
}

const errorWords: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "not permitted",
  EROFS: "the file system is read-only",
  ENOENT: "no such file or folder",
  ENOTDIR: "a part of the path is not a folder",
  EISDIR: "it is a folder",
  ELOOP: "it is a symbolic link",
  EEXIST: "it already exists",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "no space left on device",
  EDQUOT: "the disk quota is used up",
  EIO: "the device reports an I/O error",
  EMFILE: "too many open files",
  ENFILE: "too many open files on this machine",
  ENOLCK: "the file system has no free locks",
  ESTALE: "the file server no longer knows the file",
  EFBIG: "the file is too large",
  EBUSY: "it is in use",
  EHOSTDOWN: "the file server does not respond",
  EUCLEAN: "the file system is damaged",
  EREMOTEIO: "the device reports an I/O error",
  ENOMEDIUM: "no disk is inserted",
  ENOKEY: "the key of the encrypted file system is not available",
  EKEYEXPIRED: "the key of the encrypted file system has expired",
  EKEYREVOKED: "the key of the encrypted file system was revoked",
  EHWPOISON: "a part of the memory is damaged",
};

export function describeError(error: unknown): string {
  const code = errorCode(error);
  return code === undefined ? "an unexpected error" : (messageOfCode(code) ?? code);
}

function messageOfCode(code: string): string | undefined {
  return errorWords[code] ?? new Map(getSystemErrorMap().values()).get(code);
}

/** The system's message without the path, such as `permission denied (EACCES)`. */
export function systemWords(error: unknown): string {
  const code = errorCode(error) ?? "unknown error";
  const isNamed = error instanceof Error && error.message.startsWith(`${code}: `);
  const text = isNamed ? /: ([^,]+)/.exec(error.message)?.[1] : messageOfCode(code);
  return text === undefined ? code : `${text} (${code})`;
}

const freeSpace = "Free space on the disk, then run the command again.";

export interface FileFailureOptions {
  readonly path: string;
  readonly meaning?: string | undefined;
  /** Advice for each cause. Default: free space if the disk is full or the quota is used up. */
  readonly hints?: Readonly<Partial<Record<ErrorCause, Advice>>>;
  readonly words?: (error: unknown) => string;
}

/** @returns a Failure `usage` for an unusable path, else `failed`; if `error` is a Failure, the same Failure */
export function fileFailure(error: unknown, action: string, options: FileFailureOptions): Failure {
  if (error instanceof Failure) return error;
  const { path, meaning, hints = { full: freeSpace, quota: freeSpace }, words = describeError } = options;
  const code = errorCode(error) ?? "";
  const cause = causeOf(error);
  const kind: FailureKind = unusablePath.has(code) ? "usage" : "failed";
  return new Failure(kind, `Cannot ${action} ${path}: ${words(error)}.`, {
    meaning,
    hint: (cause && hints[cause]) ?? (kind === "usage" ? "Check the path and its permissions." : undefined),
    cause: error,
  });
}
