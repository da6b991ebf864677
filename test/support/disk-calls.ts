// Records the disk calls of a function in this process, and can make any of them fail.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { constants } from "node:os";
import { basename } from "node:path";

const names = [
  "openSync",
  "closeSync",
  "readSync",
  "writeSync",
  "fsyncSync",
  "ftruncateSync",
  "fchmodSync",
  "fstatSync",
  "lstatSync",
  "statSync",
  "renameSync",
  "linkSync",
  "unlinkSync",
  "mkdirSync",
  "readdirSync",
  "readFileSync",
  "realpathSync",
  "accessSync",
] as const;

export interface DiskCall {
  /** The function's name without `Sync`: `open`, `readFile`. */
  readonly call: string;
  /** The file's name, without the random part of a temporary name. */
  readonly file: string;
  readonly args: readonly unknown[];
}

export interface DiskWork<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly calls: readonly DiskCall[];
  readonly open: readonly string[];
}

export function diskError(code: string, call: string): Error {
  const errno = -(constants.errno as Record<string, number>)[code]!;
  return Object.assign(new Error(`${code}: failed, ${call}`), { code, errno, syscall: call });
}

type Answer = (call: DiskCall, at: number) => unknown;

/**
 * Runs `work`, and records its disk calls.
 * @param answer called before each disk call. An error that `answer` returns is thrown instead of the call (`close` runs
 * anyway); a function that it returns runs instead.
 */
export async function onDisk<T>(work: () => T | Promise<T>, answer: Answer = () => undefined): Promise<DiskWork<T>> {
  const real = { ...fs };
  // Syncs are recorded but not executed, because they are slow.
  const replaced = { ...real, fsyncSync: () => {} };
  const calls: DiskCall[] = [];
  const open = new Map<number, string>();
  const fileOf = (first: unknown): string =>
    typeof first === "number" ? (open.get(first) ?? "") : basename(String(first)).replace(/-[0-9a-f]{12,}$/, "-*");
  for (const name of names) {
    const call = name.replace("Sync", "");
    const wrapped = (...args: unknown[]): unknown => {
      const one: DiskCall = { call, file: fileOf(args[0]), args };
      const instead = answer(one, calls.push(one) - 1);
      const [fd] = args;
      if (call === "close") open.delete(fd as number);
      if (instead instanceof Error) {
        if (call === "close") real.closeSync(fd as number);
        throw instead;
      }
      const value: unknown = typeof instead === "function" ? instead(...args) : Reflect.apply(replaced[name], fs, args);
      if (call === "open") open.set(value as number, one.file);
      return value;
    };
    Object.assign(fs, { [name]: Object.assign(wrapped, real[name]) });
  }
  syncBuiltinESMExports();
  try {
    const outcome = {
      calls,
      get open() {
        return [...open.values()];
      },
    };
    try {
      return Object.assign(outcome, { value: await work(), error: undefined });
    } catch (error) {
      return Object.assign(outcome, { value: undefined, error });
    }
  } finally {
    for (const name of names) Object.assign(fs, { [name]: real[name] });
    syncBuiltinESMExports();
  }
}

export function wordsOf(calls: readonly DiskCall[], wanted: readonly string[]): string[] {
  return calls.filter(({ call }) => wanted.includes(call)).map(({ call, file }) => `${call} ${file}`);
}
