// The built program inside this process, for tables of many commands: the same words, environment and streams, without
// the cost of a process each. What a process of its own is needed for (signals, exits, terminals) is tested with Home.
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { binary, type Ended, type Home, root, type RunOptions } from "./program.ts";

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

/** Runs one command to its end, as `home.integ` does; one at a time. */
export async function integHere(
  home: Home,
  words: readonly string[],
  { env, input = "" }: Pick<RunOptions, "env" | "input"> = {},
): Promise<Ended> {
  if (binary) return home.integ(words, { env, input });
  const dist = join(root, "dist");
  const { main } = createRequire(import.meta.url)(join(dist, "main.cjs")) as typeof import("../../src/main.ts");
  const stdout = collect();
  const stderr = collect();
  const { NODE_OPTIONS: _recording, ...own } = home.env;
  const fake = {
    argv: [process.execPath, join(root, "bin", "integ.js"), ...words],
    env: { ...own, ...env },
    execPath: process.execPath,
    platform: process.platform,
    stdin: Readable.from([Buffer.from(input)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    cwd: () => home.folder,
    on: () => fake,
    off: () => fake,
    // No compile cache: it would be this process's own.
    getBuiltinModule: (name: string) => (name === "node:module" ? {} : process.getBuiltinModule(name)),
  };
  // The children of a command start in the folder of the process.
  const before = process.cwd();
  process.chdir(home.folder);
  try {
    const code = await main(fake as unknown as NodeJS.Process, dist);
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    process.chdir(before);
  }
}
