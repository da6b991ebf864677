import type { Key } from "node:readline";
import { Writable } from "node:stream";
import { Failure } from "../../errors.ts";
import type { OutputStream, Terminal } from "../terminal.ts";
import { visibleText } from "../visible-text.ts";

/** Where a question is askOnTerminal, and what ends it from outside; its reason is thrown. */
export interface PromptContext {
  readonly terminal: Terminal;
  readonly interruption: AbortSignal;
}

/** What clack is given. */
export interface Streams {
  readonly input: Terminal["stdin"];
  readonly output: Writable;
  readonly signal: AbortSignal;
}

const escape: Key = { name: "escape", sequence: "\u001b" };

/** A question was called off: nothing of what it was about is done. */
function cancelled(): Failure {
  return new Failure("interrupted", "Cancelled: the question was not answered.");
}

/**
 * Asks, and gives up when the input ends.
 * @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and a closed input, and the reason for the interruption
 */
export async function askOnTerminal<T>(
  { terminal, interruption }: PromptContext,
  ask: (streams: Streams) => Promise<T>,
): Promise<Exclude<T, symbol>> {
  const { stdin } = terminal;
  const end = new AbortController();
  let isOver = false;
  const onEnd = (): void => end.abort();
  const onKey = (_text: string | undefined, key: Key): void => {
    if (key.ctrl !== true || key.name !== "d") return;
    // Immediately, before a key typed after it is heard; as Escape, which draws its end where an abort leaves half a list.
    stdin.emit("keypress", escape.sequence, escape);
    setImmediate(() => {
      if (!isOver) end.abort();
    });
  };
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) throw cancelled();
  stdin.on("end", onEnd).on("close", onEnd).on("keypress", onKey);
  try {
    const signal = AbortSignal.any([end.signal, interruption]);
    const answer = await ask({ input: stdin, output: outputOf(terminal), signal });
    if (typeof answer !== "symbol") return answer as Exclude<T, symbol>;
    interruption.throwIfAborted();
    throw cancelled();
  } finally {
    isOver = true;
    stdin.off("end", onEnd).off("close", onEnd).off("keypress", onKey);
  }
}

const colourSequence = /\u001b\[[\d;]*m/g;

/**
 * clack colours whatever it gets: if there is to be no colour its output loses it on the way. And it takes a
 * terminal that does not know its width, which says 0, for one that is 0 wide.
 */
function outputOf(terminal: Terminal): Writable {
  const { stderr } = terminal;
  const isColoured = terminal.colour.stderr > 0;
  if (isColoured && (stderr.columns ?? 0) > 0) return stderr;
  const plain: OutputStream = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      stderr.write(isColoured ? chunk : chunk.toString().replace(colourSequence, ""));
      done();
    },
  });
  return Object.assign(plain, { isTTY: true, columns: stderr.columns || 80, rows: stderr.rows || 24 });
}

/**
 * A question and a line typed.
 * @throws Failure `interrupted` at the end of the input, and the reason for the interruption
 */
export async function askInOneLine({ terminal, interruption }: PromptContext, prompt: string): Promise<string> {
  const { createInterface } = await import("node:readline");
  const { stdin } = terminal;
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) throw cancelled();
  const lines = createInterface({ input: stdin, terminal: false });
  const onAbort = (): void => lines.close();
  interruption.addEventListener("abort", onAbort, { once: true });
  terminal.writeErr(`${prompt} `);
  const answer = await new Promise<string | undefined>((resolve) => {
    lines.once("line", resolve).once("close", () => resolve(undefined));
  });
  lines.close();
  interruption.removeEventListener("abort", onAbort);
  interruption.throwIfAborted();
  if (answer === undefined) throw cancelled();
  return answer;
}

/** For this long, keys that were typed before a question are discarded, before it is shown. */
const typedAheadMs = 50;

/** Keys that were typed before a confirmation could be read do not answer it; Ctrl-C among them ends the command. */
async function discardTypedAhead({ terminal: { stdin } }: PromptContext): Promise<void> {
  if (stdin.isTTY !== true || stdin.readableEnded || stdin.destroyed) return;
  let isInterrupted = false;
  const discard = (data: Buffer | string): void => {
    if (data.toString().includes("\u0003")) isInterrupted = true;
  };
  stdin.setRawMode?.(true);
  stdin.on("data", discard).resume();
  await new Promise((resolve) => setTimeout(resolve, typedAheadMs));
  stdin.off("data", discard).pause();
  stdin.setRawMode?.(false);
  if (isInterrupted) throw cancelled();
}

export interface Question {
  /** What is typed is not shown. */
  readonly hidden?: boolean;
  /** Says what is wrong with an answer, or undefined. */
  readonly validate?: (answer: string) => string | undefined;
}

/**
 * Yes or no; only a key that was typed after the question was shown is an answer.
 * @param destructive no is what Enter means
 * @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and a closed input, and the reason for the interruption
 */
export async function askYesOrNo(
  context: PromptContext,
  { question, destructive }: { question: string; destructive: boolean },
): Promise<boolean> {
  const message = visibleText(question);
  await discardTypedAhead(context);
  if (context.terminal.isDumb) {
    const answer = await askInOneLine(context, `${message} (${destructive ? "y/N" : "Y/n"})`);
    return answer === "" ? !destructive : /^y(es)?$/i.test(answer);
  }
  const { confirm, settings } = await import("@clack/prompts");
  // Letters of vim would flip the answer.
  for (const letter of ["h", "j", "k", "l"]) settings.aliases.delete(letter);
  return askOnTerminal(context, (streams) => confirm({ ...streams, message, initialValue: !destructive }));
}

/**
 * A text.
 * @returns undefined for a hidden text on a terminal that cannot hide it
 * @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and a closed input, and the reason for the interruption
 */
export async function askText(
  context: PromptContext,
  { question, ...options }: Question & { question: string },
): Promise<string | undefined> {
  const { hidden = false, validate } = options;
  const message = visibleText(question);
  const problem = (given: string | undefined): string | undefined => {
    const found = validate?.(given ?? "");
    return found === undefined ? undefined : visibleText(found);
  };
  if (context.terminal.isDumb) return hidden ? undefined : plainText(context, { message, problem });
  const { password, text } = await import("@clack/prompts");
  return askOnTerminal(context, (streams) => (hidden ? password : text)({ ...streams, message, validate: problem }));
}

/** The same question if no cursor can be moved: asked in a line, and again if the answer is not right. */
async function plainText(
  context: PromptContext,
  { message, problem }: { message: string; problem: (given: string) => string | undefined },
): Promise<string> {
  for (;;) {
    const answer = await askInOneLine(context, message);
    const found = problem(answer);
    if (found === undefined) return answer;
    context.terminal.writeErr(`${found}\n`);
  }
}
