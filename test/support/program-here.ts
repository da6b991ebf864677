// The built program inside this process: the same words, environment, streams and sockets, without the cost of a process
// for each command.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import type { Ended, Home, RunOptions } from "./program.ts";
import { recordSteps } from "./record-steps.ts";

const dist = resolve(import.meta.dirname, "../../dist");

interface Collected {
  readonly stream: Writable;
  readonly text: () => string;
}

function collect(): Collected {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      // The program takes what was written for its own again.
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString("utf8") };
}

let isBusy = false;

/** As `home.integ`, which decides where a command runs. */
export function integHere(home: Home, words: readonly string[], options: Options = {}): Promise<Ended> {
  return home.integ(words, options);
}

type Options = Pick<RunOptions, "env" | "input" | "cwd">;

/** Runs one command to its end in this process. @returns undefined while another one runs here */
export function runHere(home: Home, words: readonly string[], options: Options): Promise<Ended> | undefined {
  if (isBusy) return undefined;
  isBusy = true;
  return inFolder(options.cwd ?? home.folder, () => runProgram(home, words, options))
    .then((end) => {
      recordSteps(words, end);
      return end;
    })
    .finally(() => (isBusy = false));
}

/** The children of a command start in the folder of the process. */
async function inFolder<T>(folder: string, action: () => Promise<T>): Promise<T> {
  const before = process.cwd();
  process.chdir(folder);
  try {
    return await action();
  } finally {
    process.chdir(before);
  }
}

async function runProgram(home: Home, words: readonly string[], { env, input = "", cwd }: Options): Promise<Ended> {
  const { main } = createRequire(import.meta.url)(join(dist, "main.cjs")) as typeof import("../../src/main.ts");
  const stdout = collect();
  const stderr = collect();
  const { NODE_OPTIONS: _recording, ...own } = home.env;
  const fake = {
    argv: [process.execPath, resolve(dist, "../bin/integ.js"), ...words],
    env: { ...own, ...env },
    execPath: process.execPath,
    platform: process.platform,
    stdin: Readable.from([Buffer.from(input)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    cwd: () => cwd ?? home.folder,
    on: () => fake,
    off: () => fake,
    // No compile cache: it would be this process's own.
    getBuiltinModule: (name: string) => (name === "node:module" ? {} : process.getBuiltinModule(name)),
  };
  const code = await main(fake as unknown as NodeJS.Process, dist);
  return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
}
