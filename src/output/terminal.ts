import { fstatSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { errorCode, systemWords } from "../disk/error-words.ts";
import { writeAll } from "../disk/write.ts";
import { Failure } from "../errors.ts";
import type { Pager } from "./pager.ts";
import { visibleText } from "./visible-text.ts";

/** An input stream as Node hands it out. */
export type InputStream = Readable & { readonly isTTY?: boolean; setRawMode?: (isRaw: boolean) => unknown };

/** An output stream as Node hands it out: `fd` where it stands for an open file. */
export type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly fd?: number;
};

export interface TerminalFacts {
  /** May be a getter: it is read when standard input is asked for, not before. */
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--no-color` was typed, or an agent reads the output. */
  readonly noColor?: boolean;
}

/** The reader of standard output no longer exists. Success for a list that someone stopped reading; main decides. */
export class BrokenPipe extends Error {
  override readonly name = "BrokenPipe";

  constructor(cause?: unknown) {
    super("the program reading standard output has exited", { cause });
  }
}

/** Something drawn on the last line of the terminal, which must be wiped before anything else is written. */
export interface LiveText {
  /** Wipes it; it may be drawn again. */
  clear(): void;
  /** Wipes it for good. */
  close(): void;
}

/** Columns of a terminal on which something can be redrawn in place; one that does not know its width says 0. */
const narrowest = 50;

export class Terminal {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTTY: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  readonly colour: { readonly stdout: ColourLevel; readonly stderr: ColourLevel };
  /** What is or will be drawn, if anything. */
  live: LiveText | undefined;
  /** True while the last thing on a terminal's stdout was no whole line: nothing may be drawn there. */
  midLine = false;
  readonly #files: { readonly stdout: number | undefined; readonly stderr: number | undefined };
  readonly #facts: TerminalFacts;
  #outError: unknown;
  /** A pager is started when there is something to show. */
  #isPaged = false;
  #pager: Pager | undefined;
  /** What standard error got while the pager had the screen. */
  #held = "";
  #isErrMidLine = false;

  constructor(facts: TerminalFacts) {
    const { stdout, stderr, env, noColor: noColour = false } = facts;
    this.#facts = facts;
    this.stdout = stdout;
    this.stderr = stderr;
    this.env = env;
    this.isTTY = {
      // Opened by being looked at, which costs a quarter of a bare start: only if someone asks.
      get stdin() {
        return facts.stdin.isTTY === true;
      },
      stdout: stdout.isTTY === true,
      stderr: stderr.isTTY === true,
    };
    this.colour = {
      stdout: colourLevel({ env, isTerminal: this.isTTY.stdout, noColour }),
      stderr: colourLevel({ env, isTerminal: this.isTTY.stderr, noColour }),
    };
    this.#files = { stdout: openFile(stdout), stderr: openFile(stderr) };
    // Without a listener an EPIPE between two writes would end the process with a stack.
    stdout.on("error", (error) => {
      this.#outError ??= error;
    });
    stderr.on("error", () => {});
  }

  get stdin(): InputStream {
    return this.#facts.stdin;
  }

  /** Columns of the terminal standard output is, at this moment; 80 if no one says. */
  get width(): number {
    const columns = this.stdout.columns ?? this.stderr.columns ?? 0;
    return columns > 0 ? columns : 80;
  }

  /** Columns of the terminal standard error is, at this moment; nothing if it is not a terminal: then lines are not wrapped. */
  get errWidth(): number | undefined {
    return this.isTTY.stderr && (this.stderr.columns ?? 0) > 0 ? this.stderr.columns : undefined;
  }

  /**
   * Nothing is redrawn on the terminal of standard error: it cannot move its cursor, someone may listen to it, which no colour
   * is a sign of, or it is too narrow. Lines are printed instead.
   */
  get isPlain(): boolean {
    const { columns = narrowest } = this.stderr;
    return this.env.TERM === "dumb" || this.colour.stderr === 0 || columns < narrowest;
  }

  /** True if standard output goes to another program. */
  get isPiped(): boolean {
    return this.#files.stdout === undefined && !this.isTTY.stdout;
  }

  /**
   * Writes all of the data to standard output and resolves when the system has taken it.
   * @throws BrokenPipe if the reader no longer exists
   * @throws Failure `failed` for a full disk or any other error
   */
  async writeOut(data: string | Buffer): Promise<void> {
    if (data.length === 0) return;
    if (this.#isPaged) await this.#startPager();
    if (this.isTTY.stdout) {
      this.live?.clear();
      this.midLine = data.at(-1) !== "\n" && data.at(-1) !== 10;
    }
    try {
      if (this.#outError !== undefined) throw this.#outError;
      if (this.#pager !== undefined) {
        // Nothing is drawn over what the pager shows.
        this.midLine = true;
        await this.#pager.write(data);
      } else if (this.#files.stdout === undefined) await throughStream(this.stdout, data);
      else wholeFile(this.#files.stdout, data);
    } catch (error) {
      this.#outError ??= error;
      throw writeFailure(error);
    }
  }

  /** Writes to standard error. A standard error that takes nothing is not a reason to fail: no one would read it. */
  writeErr(text: string): void {
    if (text === "") return;
    if (this.#pager !== undefined) {
      this.#held += text;
      return;
    }
    this.live?.clear();
    this.#isErrMidLine = !text.endsWith("\n");
    try {
      if (this.#files.stderr === undefined) this.stderr.write(text);
      else wholeFile(this.#files.stderr, text);
    } catch {
      // No one would read it.
    }
  }

  /** Begins a line of its own on standard error: what a person's own command has written may end without one. */
  freshErrLine(): void {
    if (this.#isErrMidLine) this.writeErr("\n");
  }

  /** From now on a terminal's output goes through the pager that the environment names, if any. */
  page(): void {
    this.#isPaged = this.isTTY.stdout && this.isTTY.stderr;
  }

  async #startPager(): Promise<void> {
    this.#isPaged = false;
    const { isInstalled, pagerOf, startPager } = await import("./pager.ts");
    const command = pagerOf(this.env);
    if (command === undefined) return;
    if (isInstalled(command, this.env)) this.#pager = startPager(command, this.env);
    else
      this.writeErr(`Note: The pager "${visibleText(command)}" is not installed: the output is printed without it.\n`);
  }

  /** Waits until the person has left the pager; what was said meanwhile is printed then. */
  async leavePager(): Promise<void> {
    const pager = this.#pager;
    if (pager === undefined) return;
    this.live?.close();
    await pager.close();
    this.#pager = undefined;
    this.writeErr(this.#held);
  }

  /** Takes away what is drawn, for good: the command is over, however it ended. */
  close(): void {
    this.live?.close();
  }
}

/** Node writes to a file once and does not look how much was taken: a nearly full disk would cut the output. */
function wholeFile(fd: number, data: string | Buffer): void {
  writeAll(fd, typeof data === "string" ? Buffer.from(data) : data);
}

/** The descriptor of a stream that stands for a file or a device, which Node writes to synchronously. */
function openFile(stream: OutputStream): number | undefined {
  if (typeof stream.fd !== "number" || stream.isTTY === true) return undefined;
  try {
    const stat = fstatSync(stream.fd);
    return stat.isFile() || stat.isCharacterDevice() ? stream.fd : undefined;
  } catch {
    return undefined;
  }
}

/** The callback comes when the system has taken the data: that is the back-pressure. */
function throughStream(stream: OutputStream, data: string | Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()));
  });
}

const gone: ReadonlySet<unknown> = new Set(["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED"]);

function writeFailure(error: unknown): Error {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (gone.has(code)) return new BrokenPipe(error);
  const said = error instanceof Error ? error.message : String(error);
  const why = errorCode(error) === undefined ? said : systemWords(error);
  return new Failure("failed", `Cannot write to standard output: ${why}.`, {
    ...(code === "ENOSPC" && {
      meaning: "The output is incomplete.",
      hint: "Free space on the disk, then run the command again.",
    }),
    cause: error,
  });
}

/** 0 none, 1 the sixteen colours, 2 256 colours, 3 true colour. */
export type ColourLevel = 0 | 1 | 2 | 3;

export interface ColourFacts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
  /** `--no-color` was typed. */
  readonly noColour: boolean;
}

/**
 * The colour level of one stream. In this order: `--no-color`, `NO_COLOR` (not empty, no-color.org), `FORCE_COLOR`
 * (0 to 3, `true`, `false`, empty is 1), `CLICOLOR_FORCE`, `CLICOLOR=0`, no terminal, `TERM=dumb`, what `COLORTERM`
 * and `TERM` say the terminal can do.
 */
export function colourLevel({ env, isTerminal, noColour }: ColourFacts): ColourLevel {
  if (noColour || isSet(env.NO_COLOR)) return 0;
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forcedLevel(forced);
  if (isSet(env.CLICOLOR_FORCE) && env.CLICOLOR_FORCE !== "0") return 1;
  if (env.CLICOLOR === "0" || !isTerminal || env.TERM === "dumb") return 0;
  if (env.COLORTERM === "truecolor" || env.COLORTERM === "24bit") return 3;
  return /256(color)?$/.test(env.TERM ?? "") ? 2 : 1;
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}

function forcedLevel(value: string): ColourLevel {
  if (value === "0" || value === "false") return 0;
  return value === "2" ? 2 : value === "3" ? 3 : 1;
}
