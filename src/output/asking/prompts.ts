import type { Key } from "node:readline";
import type { Writable } from "node:stream";
import { Failure } from "../../errors.ts";
import type { Terminal } from "../terminal.ts";
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
export function cancelled(): Failure {
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
    const answer = await ask({ input: stdin, output: terminal.stderr, signal });
    if (typeof answer !== "symbol") return answer as Exclude<T, symbol>;
    interruption.throwIfAborted();
    throw cancelled();
  } finally {
    isOver = true;
    stdin.off("end", onEnd).off("close", onEnd).off("keypress", onKey);
  }
}

/** For this long, keys that were typed before a question are discarded, before it is shown. */
const typedAheadMs = 50;

/** Keys that were typed before a confirmation could be read do not answer it; Ctrl-C among them ends the command. */
export async function discardTypedAhead({ terminal: { stdin } }: PromptContext): Promise<void> {
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
  const { confirm, settings } = await import("@clack/prompts");
  // Letters of vim would flip the answer.
  for (const letter of ["h", "j", "k", "l"]) settings.aliases.delete(letter);
  return askOnTerminal(context, (streams) => confirm({ ...streams, message, initialValue: !destructive }));
}

/**
 * A text.
 * @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and a closed input, and the reason for the interruption
 */
export async function askText(
  context: PromptContext,
  { question, ...options }: Question & { question: string },
): Promise<string> {
  const { hidden = false, validate } = options;
  const message = visibleText(question);
  const problem = (given: string | undefined): string | undefined => {
    const found = validate?.(given ?? "");
    return found === undefined ? undefined : visibleText(found);
  };
  const { password, text } = await import("@clack/prompts");
  return askOnTerminal(context, (streams) => (hidden ? password : text)({ ...streams, message, validate: problem }));
}
