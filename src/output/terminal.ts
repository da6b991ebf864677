import { fstatSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { isatty } from "node:tty";
import { errorCode, systemWords } from "../disk/error-words.ts";
import { writeAll } from "../disk/write.ts";
import { Failure, reasonOf } from "../errors.ts";
import type { Pager } from "./pager.ts";
import { visibleText } from "./visible-text.ts";

export type InputStream = Readable & {
  readonly isTTY?: boolean;
  readonly fd?: number;
  setRawMode?: (isRaw: boolean) => unknown;
};

export type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly fd?: number;
};

export interface TerminalFacts {
  /** May be a getter, called on first use. */
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True for `--no-color`, or if an agent reads the output. */
  readonly noColor?: boolean;
}

/** The program that reads stdout has closed it. `edge/run.ts` treats this as success. */
export class BrokenPipe extends Error {
  override readonly name = "BrokenPipe";

  constructor(cause?: unknown) {
    super("the program reading standard output has exited", { cause });
  }
}

/** Text on the terminal's last lines, which is erased before other output. */
export interface LiveText {
  /** Erases the text, which may be drawn again. */
  clear(): void;
  /** Erases the text for good. */
  close(): void;
}

/** integ does not redraw a narrower terminal, nor one that reports 0 because its width is unknown. */
const narrowest = 50;
const maxRepeated = 1024 * 1024;

export class Terminal {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTTY: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  readonly color: { readonly stdout: ColorLevel; readonly stderr: ColorLevel };
  /** Text for the end of stderr: after the report of a failure, except in JSON formats. */
  ending = "";
  live: LiveText | undefined;
  /** True while stdout's last line on the terminal is incomplete: drawing would garble it. */
  midLine = false;
  readonly #files: { readonly stdout: number | undefined; readonly stderr: number | undefined };
  readonly #facts: TerminalFacts;
  #stdin: InputStream | undefined;
  #outError: unknown;
  /** True if the next output starts the pager. */
  #isPaged = false;
  #pager: Pager | undefined;
  /** Output to stderr while the pager has the screen. */
  #delayed = "";
  /** Copy of the pager's input, up to a limit, to print if the pager fails. */
  #paged = "";
  #isErrMidLine = false;

  constructor(facts: TerminalFacts) {
    const { stdout, stderr, env, noColor = false } = facts;
    this.#facts = facts;
    this.stdout = stdout;
    this.stderr = stderr;
    this.env = env;
    this.isTTY = {
      // Opening stdin is slow, so it is opened only on use.
      get stdin() {
        return facts.stdin.isTTY === true;
      },
      stdout: stdout.isTTY === true,
      stderr: stderr.isTTY === true,
    };
    this.color = {
      stdout: colorLevel({ env, isTerminal: this.isTTY.stdout, noColor }),
      stderr: colorLevel({ env, isTerminal: this.isTTY.stderr, noColor }),
    };
    this.#files = { stdout: openFile(stdout), stderr: openFile(stderr) };
    // An EPIPE between two writes would crash the process.
    stdout.on("error", (error) => {
      this.#outError ??= error;
    });
    stderr.on("error", () => {});
  }

  get stdin(): InputStream {
    return (this.#stdin ??= guarded(this.#facts.stdin));
  }

  get width(): number {
    const columns = this.stdout.columns ?? this.stderr.columns ?? 0;
    return columns > 0 ? columns : 80;
  }

  /** Columns of stderr's terminal; undefined prevents wrapping. */
  get errWidth(): number | undefined {
    return this.isTTY.stderr && (this.stderr.columns ?? 0) > 0 ? this.stderr.columns : undefined;
  }

  /**
   * True if integ prints lines instead of redrawing stderr: the terminal cannot move its cursor, is too narrow, or has
   * no colors, which suggests a screen reader.
   */
  get isPlain(): boolean {
    const { columns = narrowest } = this.stderr;
    return this.env.TERM === "dumb" || this.color.stderr === 0 || columns < narrowest;
  }

  get isPiped(): boolean {
    return this.#files.stdout === undefined && !this.isTTY.stdout;
  }

  /**
   * Resolves when the system has accepted the data.
   * @throws BrokenPipe if the reader of stdout has closed it
   * @throws Failure `failed` for a full disk or another error
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
        // No live text may be drawn over the pager.
        this.midLine = true;
        if (this.#paged.length < maxRepeated) this.#paged += data.toString();
        await this.#pager.write(data).catch(async (error: unknown) => {
          if (await this.#endPager()) throw error;
        });
      } else if (this.#files.stdout === undefined) await writeToStream(this.stdout, data);
      else writeFully(this.#files.stdout, data);
    } catch (error) {
      this.#outError ??= error;
      throw writeFailure(error);
    }
  }

  writeErr(text: string): void {
    if (text === "") return;
    if (this.#pager !== undefined) {
      this.#delayed += text;
      return;
    }
    this.live?.clear();
    this.#isErrMidLine = !text.endsWith("\n");
    try {
      if (this.#files.stderr === undefined) this.stderr.write(text);
      else writeFully(this.#files.stderr, text);
    } catch {
      // No stream is left to report the error.
    }
  }

  /** Starts a new line if the last output, such as a question or a user's command's, ended within a line. */
  startErrLine(): void {
    if (this.#isErrMidLine) this.writeErr("\n");
  }

  /** At a terminal, sends the following output through the environment's pager. */
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

  async leavePager(): Promise<void> {
    const pager = this.#pager;
    if (pager === undefined) return;
    this.live?.close();
    await this.#endPager();
    this.writeErr(this.#delayed);
  }

  /** Prints the output again if the pager failed. @returns true if the user left it */
  async #endPager(): Promise<boolean> {
    const isRead = (await this.#pager?.close()) ?? true;
    this.#pager = undefined;
    if (isRead) return true;
    const isWhole = this.#paged.length < maxRepeated;
    const instead = isWhole ? "the output is printed without it" : "choose another one with INTEG_PAGER";
    this.writeErr(`Note: The pager failed: ${instead}.\n`);
    if (isWhole) await this.writeOut(this.#paged).catch(() => {});
    return false;
  }

  end(): void {
    this.writeErr(this.ending);
    this.ending = "";
  }

  close(): void {
    this.live?.close();
  }
}

/** On a closed terminal, setting the mode throws, which would crash readline. */
function guarded(stdin: InputStream): InputStream {
  const { fd, setRawMode } = stdin;
  if (fd !== undefined && setRawMode !== undefined)
    stdin.setRawMode = (isRaw) => (isatty(fd) ? setRawMode.call(stdin, isRaw) : stdin);
  return stdin;
}

/** Node ignores short writes, so a nearly full disk would cut the output. */
function writeFully(fd: number, data: string | Buffer): void {
  writeAll(fd, typeof data === "string" ? Buffer.from(data) : data);
}

/** A file's or device's descriptor, to which Node writes synchronously. */
function openFile(stream: OutputStream): number | undefined {
  if (typeof stream.fd !== "number" || stream.isTTY === true) return undefined;
  try {
    const stat = fstatSync(stream.fd);
    return stat.isFile() || stat.isCharacterDevice() ? stream.fd : undefined;
  } catch {
    return undefined;
  }
}

/** Waits until the data is accepted, so that it does not fill the memory. */
function writeToStream(stream: OutputStream, data: string | Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()));
  });
}

const closedCodes: ReadonlySet<unknown> = new Set(["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED"]);

function writeFailure(error: unknown): Error {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (closedCodes.has(code)) return new BrokenPipe(error);
  const why = errorCode(error) === undefined ? reasonOf(error) : systemWords(error);
  return new Failure("failed", `Cannot write to standard output: ${why}.`, {
    ...(code === "ENOSPC" && {
      meaning: "The output is incomplete.",
      hint: "Free space on the disk, then run the command again.",
    }),
    cause: error,
  });
}

/** The levels mean no color, 16 colors, 256 colors and true color. */
export type ColorLevel = 0 | 1 | 2 | 3;

export interface ColorFacts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
  readonly noColor: boolean;
}

/**
 * Decided by the first of: `--no-color`, a nonempty `NO_COLOR` (no-color.org), `FORCE_COLOR` (0 to 3, `true`, `false`;
 * empty means 1), `CLICOLOR_FORCE`, `CLICOLOR=0`, not a terminal, `TERM=dumb`, the abilities in `COLORTERM` and `TERM`.
 */
export function colorLevel({ env, isTerminal, noColor }: ColorFacts): ColorLevel {
  if (noColor || isSet(env.NO_COLOR)) return 0;
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

function forcedLevel(value: string): ColorLevel {
  if (value === "0" || value === "false") return 0;
  return value === "2" ? 2 : value === "3" ? 3 : 1;
}
