import { PassThrough, Writable } from "node:stream";
import { vi } from "vitest";
import type { Format } from "../../../src/output/formats/format.ts";
import { type Output, createOutput } from "../../../src/output/output.ts";
import { Terminal } from "../../../src/output/terminal.ts";

export const now = Date.parse("2026-11-21T12:00:00.000Z");

export class KeptStream extends Writable {
  readonly chunks: Buffer[] = [];
  fails: Error | undefined;

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.fails === undefined) this.chunks.push(Buffer.from(chunk));
    // Calls back later, as a slow pipe does.
    setImmediate(() => done(this.fails));
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }
}

export class TerminalStream extends KeptStream {
  readonly isTTY = true;
  columns = 80;
  rows = 24;

  cursorTo(column: number): boolean {
    return this.write(`\u001b[${column + 1}G`);
  }

  moveCursor(_dx: number, dy: number): boolean {
    return dy < 0 ? this.write(`\u001b[${-dy}A`) : true;
  }

  clearLine(): boolean {
    return this.write("\u001b[0K");
  }
}

class TerminalInput extends PassThrough {
  readonly isTTY = true;
  isRaw = false;

  setRawMode(mode: boolean): this {
    this.isRaw = mode;
    return this;
  }
}

export interface Stage {
  readonly terminal: Terminal;
  readonly output: Output;
  readonly stdin: PassThrough;
  readonly stdout: KeptStream;
  readonly stderr: KeptStream;
}

export interface StageOptions {
  readonly tty?: boolean;
  readonly format?: Format;
  readonly typedFormat?: Format;
  readonly fields?: readonly string[];
  readonly quiet?: boolean;
  readonly noInput?: boolean;
  readonly yes?: boolean;
  readonly columns?: number;
  readonly env?: Record<string, string>;
  readonly interruption?: AbortSignal;
  readonly clock?: HandClock;
}

/** A stopped clock, which runs due timers when it is advanced. `vi.useRealTimers` ends it. */
export class HandClock {
  constructor() {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"], now });
  }

  get now(): number {
    return Date.now();
  }

  pass(ms: number): void {
    vi.advanceTimersByTime(ms);
  }
}

export function stage(options: StageOptions = {}): Stage {
  const { tty = false, format = "table", columns = 80 } = options;
  const stdin = tty ? new TerminalInput() : new PassThrough();
  const stdout = tty ? Object.assign(new TerminalStream(), { columns }) : new KeptStream();
  const stderr = tty ? Object.assign(new TerminalStream(), { columns }) : new KeptStream();
  const terminal = new Terminal({ stdin, stdout, stderr, env: { TERM: "xterm", NO_COLOR: "1", ...options.env } });
  const { quiet = false, noInput = false, yes = false, clock } = options;
  const output = createOutput({
    ...options,
    version: "1.0.0",
    terminal,
    format,
    quiet,
    noInput,
    yes,
    now: () => clock?.now ?? now,
    elapsed: () => clock?.now ?? now,
  });
  return { terminal, output, stdin, stdout, stderr };
}
