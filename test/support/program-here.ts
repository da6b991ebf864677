// Runs commands of the built program in this process, each with its own arguments, environment and streams.
import { resolve } from "node:path";
import { probingOnce } from "./absent-keychain.ts";
import { checkOutput } from "./check-output.ts";
import { runMain } from "./main-here.ts";
import type { Ended, Home, RunOptions } from "./program.ts";
import { recordSteps } from "./record-steps.ts";

const dist = resolve(import.meta.dirname, "../../dist");

let isBusy = false;

/** Like `home.integ`, with only the options that commands in this process support. */
export function integHere(home: Home, words: readonly string[], options: Options = {}): Promise<Ended> {
  return home.integ(words, options);
}

interface Options extends Pick<RunOptions, "env" | "input" | "cwd" | "columns"> {
  /** Milliseconds after which the command is interrupted, as by two Ctrl-C. */
  readonly limitMs?: number;
}

/** @returns undefined if another command is running in this process */
export function runHere(home: Home, words: readonly string[], options: Options): Promise<Ended> | undefined {
  if (isBusy) return undefined;
  isBusy = true;
  return inFolder(options.cwd ?? home.folder, () => probingOnce(() => runProgram(home, words, options)))
    .then((end) => {
      recordSteps(words, end);
      checkOutput(words, { ...home.env, ...options.env }, end);
      return end;
    })
    .finally(() => (isBusy = false));
}

/** Changes the current folder, because a command's children start in it. */
async function inFolder<T>(folder: string, action: () => Promise<T>): Promise<T> {
  const before = process.cwd();
  process.chdir(folder);
  try {
    return await action();
  } finally {
    process.chdir(before);
  }
}

async function runProgram(home: Home, words: readonly string[], options: Options): Promise<Ended> {
  const { env, input, cwd, limitMs, columns } = options;
  const { NODE_OPTIONS: _recording, ...own } = home.env;
  const run = { dist, words, env: { ...own, ...env }, cwd: cwd ?? home.folder, limitMs, columns };
  return { ...(await runMain(input === undefined ? run : { ...run, input })), signal: null };
}
