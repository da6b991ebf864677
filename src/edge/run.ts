// One command line from words to exit code: read it, run it, say what went wrong.
import { chooseGlobals, guessFormat, type Format } from "../commands/options/global.ts";
import type { Context } from "../context.ts";
import { isDiskFull } from "../disk/error-words.ts";
import { exitCodes, Failure } from "../errors.ts";
import type { FailureStyle } from "../output/failure.ts";
import { BrokenPipe, Terminal } from "../output/terminal.ts";
import { knownWords, type Typed } from "../program.ts";
import { readCommandLine } from "./command-line.ts";
import { buildContext } from "./build-context.ts";
import { listenForInterruption } from "./interruption.ts";
import { shell } from "../next-step.ts";

export interface CommandLine {
  readonly words: readonly string[];
  readonly version: string;
  /** Columns for help screens. */
  readonly width: number;
}

/** @returns the exit code */
export async function runCommandLine(process: NodeJS.Process, line: CommandLine): Promise<number> {
  const { words, version, width } = line;
  const format = guessFormat(words, process.env);
  const terminal = terminalOf(process, words);
  try {
    const typed = await readCommandLine(words, { width, version });
    if ("help" in typed) {
      if (typed.toStderr && (format === "json" || format === "ndjson")) throw noCommand(words);
      return await showHelp(terminal, typed);
    }
    const chosen = chooseGlobals(typed.globals, process.env);
    const globals = typed.verb.neverAsks ? { ...chosen, noInput: true } : chosen;
    let tellWait = (): void => {};
    const interruption = listenForInterruption(process, () => tellWait());
    const { context, close } = await buildContext(process, terminal, { globals, interruption, version });
    tellWait = () =>
      context.output.note("Finishing the current step, a few seconds at most; press Ctrl-C again to exit immediately.");
    try {
      await typed.verb.run(context, { args: await wholeArguments(context, typed), options: typed.options });
      context.output.assertFields();
      return 0;
    } catch (error) {
      return await tell(terminal, asSignalled(error, interruption.clock.interruption), {
        format: globals.format,
        typed: words,
      });
    } finally {
      await close();
      interruption.release();
    }
  } catch (error) {
    return await tell(terminal, error, { format, typed: words });
  }
}

function terminalOf(process: NodeJS.Process, words: readonly string[]): Terminal {
  return new Terminal({
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    noColor: words.includes("--no-color"),
  });
}

async function showHelp(terminal: Terminal, help: { help: string; toStderr: boolean }): Promise<number> {
  const text = `${help.help.trimEnd()}\n`;
  if (help.toStderr) terminal.writeErr(text);
  else await terminal.writeOut(text);
  return help.toStderr ? exitCodes.usage : 0;
}

/** A program that asked for JSON gets its error as JSON, not a screen of help. */
function noCommand(words: readonly string[]): Failure {
  const known = knownWords(words);
  const message = known.length === 0 ? "No command was given." : `${known.join(" ")} needs one of its commands.`;
  const nextCommand = known.length === 0 ? shell`integ --help` : shell`integ help ${known}`;
  return new Failure("usage", message, { nextCommand });
}

/** What was left out is asked for where someone can be asked and something is known. */
async function wholeArguments(context: Context, { verb, args, options, missing }: Typed): Promise<unknown[]> {
  if (missing === undefined) return args;
  const picked = context.output.interactive ? await verb.asks?.(context, options) : undefined;
  if (picked === undefined) throw missing;
  return [picked];
}

/** A program that was cut off knows that it was, and not by which signal: the exit code is that of the signal. */
function asSignalled(error: unknown, { aborted, reason }: AbortSignal): unknown {
  const isCutOff = error instanceof Failure && error.kind === "interrupted";
  if (!isCutOff || !aborted || !(reason instanceof Failure)) return error;
  return new Failure(reason.kind, error.message, error.details);
}

/** Says what went wrong, on stderr, in the form that was asked for. */
async function tell(
  terminal: Terminal,
  error: unknown,
  about: { readonly format: Format; readonly typed: readonly string[] },
): Promise<number> {
  // A reader that had enough is not a failure: what it took was whole.
  if (error instanceof BrokenPipe) return 0;
  const known = error instanceof Failure ? error : failureOfSystem(error);
  const exitCode = known?.exitCode ?? exitCodes.failed;
  terminal.close();
  terminal.freshErrLine();
  terminal.writeErr(
    await render(error, { known, ...about, colour: terminal.colour.stderr, width: terminal.errWidth, exitCode }),
  );
  return exitCode;
}

async function render(
  error: unknown,
  { known, ...style }: FailureStyle & { readonly known: Failure | undefined },
): Promise<string> {
  try {
    const { renderBug, renderFailure } = await import("../output/failure.ts");
    return known ? renderFailure(known, style) : renderBug(error, style);
  } catch {
    // Too many open files, or a disk that fails: even the words cannot be loaded.
    return `Error: ${error instanceof Error ? error.message : String(error)}\n`;
  }
}

/** A call that the operating system refused where no one expected it, such as loading a part of this program. */
function failureOfSystem(error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("syscall" in error)) return undefined;
  return new Failure("failed", `The operating system refused a call: ${error.message}.`, {
    meaning: "Every change that was started is in the journal.",
    ...(isDiskFull(error)
      ? { hint: "Free space on the disk, then run the command again." }
      : { nextCommand: "path" in error ? shell`integ doctor` : shell`integ journal list` }),
    cause: error,
  });
}
