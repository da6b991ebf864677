import type { Key } from "node:readline";
import type { Writable } from "node:stream";
import { Failure } from "../../errors.ts";
import type { Terminal } from "../terminal.ts";
import { isolated, visibleText } from "../visible-text.ts";

export interface PromptContext {
  readonly terminal: Terminal;
  readonly interruption: AbortSignal;
}

export interface Streams {
  readonly input: Terminal["stdin"];
  readonly output: Writable;
  readonly signal: AbortSignal;
}

const escape: Key = { name: "escape", sequence: "\u001b" };

/** @param reason of an abort; if it is a `Failure`, the new failure gets its kind */
export function canceled(reason?: unknown): Failure {
  return new Failure(
    reason instanceof Failure ? reason.kind : "interrupted",
    "Canceled: the question was not answered.",
    {
      meaning: "Nothing was sent after the question.",
    },
  );
}

/** @throws Failure `interrupted` for Ctrl-C, Escape, Ctrl-D and the end of input; the abort reason of `interruption` */
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
    // Clack redraws for Escape. An abort alone would leave half a list on the screen.
    stdin.emit("keypress", escape.sequence, escape);
    setImmediate(() => {
      if (!isOver) end.abort();
    });
  };
  const { settings } = await import("@clack/prompts");
  // After a resize, Clack redraws from its first changed line, whose row may have moved. Toggling the guide changes all
  // lines.
  const onResize = (): void => {
    settings.withGuide = !settings.withGuide;
    if (!settings.withGuide) setImmediate(() => terminal.stderr.emit("resize"));
  };
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) throw canceled();
  terminal.stderr.on("resize", onResize);
  stdin.on("end", onEnd).on("close", onEnd).on("keypress", onKey);
  try {
    const signal = AbortSignal.any([end.signal, interruption]);
    const answer = await ask({ input: stdin, output: terminal.stderr, signal });
    if (typeof answer !== "symbol") return answer as Exclude<T, symbol>;
    interruption.throwIfAborted();
    throw canceled();
  } finally {
    isOver = true;
    terminal.stderr.off("resize", onResize);
    settings.withGuide = true;
    stdin.off("end", onEnd).off("close", onEnd).off("keypress", onKey);
  }
}

const typeAheadMs = 50;

/** Discards keys typed before a confirmation, so that they do not answer it. Ctrl-C among them ends the command. */
export async function discardTypedAhead({ terminal: { stdin } }: PromptContext): Promise<void> {
  if (stdin.isTTY !== true || stdin.readableEnded || stdin.destroyed) return;
  let isInterrupted = false;
  const discard = (data: Buffer | string): void => {
    if (data.toString().includes("\u0003")) isInterrupted = true;
  };
  stdin.setRawMode?.(true);
  stdin.on("data", discard).resume();
  await new Promise((resolve) => setTimeout(resolve, typeAheadMs));
  stdin.off("data", discard).pause();
  stdin.setRawMode?.(false);
  if (isInterrupted) throw canceled();
}

export interface Question {
  readonly hidden?: boolean;
  /** @returns why an answer is invalid, or undefined */
  readonly validate?: (answer: string) => string | undefined;
}

export async function askYesOrNo(
  context: PromptContext,
  { question, destructive }: { question: string; destructive: boolean },
): Promise<boolean> {
  const message = isolated(visibleText(question));
  await discardTypedAhead(context);
  const { confirm, settings } = await import("@clack/prompts");
  // Clack's vim keys would flip the answer.
  for (const letter of ["h", "j", "k", "l"]) settings.aliases.delete(letter);
  return askOnTerminal(context, (streams) => confirm({ ...streams, message, initialValue: !destructive }));
}

export async function askText(
  context: PromptContext,
  { question, ...options }: Question & { question: string },
): Promise<string> {
  const { hidden = false, validate } = options;
  const message = isolated(visibleText(question));
  const problem = (given: string | undefined): string | undefined => {
    const reason = validate?.(given ?? "");
    return reason === undefined ? undefined : visibleText(reason);
  };
  const { password, text } = await import("@clack/prompts");
  return askOnTerminal(context, (streams) => (hidden ? password : text)({ ...streams, message, validate: problem }));
}
