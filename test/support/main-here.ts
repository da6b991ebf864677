// Runs the built program's main function in this process, with the test's words, environment and streams.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";

export interface Run {
  readonly dist: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd: string;
  /** Milliseconds after which the command is interrupted, as by two Ctrl-C. */
  readonly limitMs?: number | undefined;
  /** If set, standard output is a terminal of this width. */
  readonly columns?: number | undefined;
}

export interface RunEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Collected {
  readonly stream: Writable;
  readonly text: () => string;
}

function collect(): Collected {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      // Copies the chunk, because the program may reuse its buffer.
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString("utf8") };
}

/** Only one command may run at a time in a process. */
export async function runMain({ dist, words, env, input = "", cwd, limitMs, columns }: Run): Promise<RunEnd> {
  const file = join(dist, "main.cjs");
  const { main } = createRequire(file)(file) as typeof import("../../src/main.ts");
  const stdout = collect();
  if (columns !== undefined) Object.assign(stdout.stream, { isTTY: true, columns });
  const stderr = collect();
  const listeners = new Set<() => void>();
  const fake = {
    argv: [process.execPath, resolve(dist, "../bin/integ.js"), ...words],
    env: { ...env },
    execPath: process.execPath,
    platform: process.platform,
    stdin: Readable.from([Buffer.from(input)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    cwd: () => cwd,
    on(name: string, listener: () => void) {
      if (name === "SIGINT") listeners.add(listener);
      return fake;
    },
    off(_name: string, listener: () => void) {
      listeners.delete(listener);
      return fake;
    },
    getBuiltinModule: (name: string) => process.getBuiltinModule(name),
  };
  const interrupt = (): void => [...listeners, ...listeners].forEach((listener) => listener());
  const timer = limitMs === undefined ? undefined : setTimeout(interrupt, limitMs);
  const code = await main(fake as unknown as NodeJS.Process).finally(() => clearTimeout(timer));
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}
