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

/** What clack is handed. */
export interface Streams {
  readonly input: Terminal["stdin"];
  readonly output: Writable;
  readonly signal: AbortSignal;
}

const escape: Key = { name: "escape", sequence: "\u001b" };

/**
 * Asks, and gives up when the input ends. @returns a symbol where it was called off: Escape, Ctrl-D or a closed input
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
 */
export async function askOnTerminal<T>(
  { terminal, interruption }: PromptContext,
  ask: (streams: Streams) => Promise<T | symbol>,
): Promise<T | symbol> {
  const { stdin } = terminal;
  const end = new AbortController();
  let isInterrupted = false;
  let isOver = false;
  const onEnd = (): void => end.abort();
  const onKey = (_text: string | undefined, key: Key): void => {
    if (key.ctrl === true && key.name === "c") isInterrupted = true;
    if (key.ctrl !== true || key.name !== "d") return;
    // At once, before a key typed after it is heard; as Escape, which draws its end where an abort leaves half a list.
    stdin.emit("keypress", escape.sequence, escape);
    setImmediate(() => {
      if (!isOver) end.abort();
    });
  };
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) return Symbol("end of input");
  stdin.on("end", onEnd).on("close", onEnd).on("keypress", onKey);
  try {
    const signal = AbortSignal.any([end.signal, interruption]);
    const answer = await ask({ input: stdin, output: outputOf(terminal), signal });
    if (typeof answer === "symbol") interruption.throwIfAborted();
    if (isInterrupted && typeof answer === "symbol") throw new Failure("interrupted", "interrupted at the question");
    return answer;
  } finally {
    isOver = true;
    stdin.off("end", onEnd).off("close", onEnd).off("keypress", onKey);
  }
}

const colourSequence = /\u001b\[[\d;]*m/g;

/**
 * clack colours whatever it is told: where there is to be no colour its output loses it on the way. And it takes a
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

/** A question and a line typed. @returns undefined at the end of the input */
export async function askInOneLine(
  { terminal, interruption }: PromptContext,
  prompt: string,
): Promise<string | undefined> {
  const { createInterface } = await import("node:readline");
  const { stdin } = terminal;
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) return undefined;
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
  return answer;
}

export interface Question {
  /** What is typed is not shown. */
  readonly hidden?: boolean;
  /** Says what is wrong with an answer, or undefined. */
  readonly validate?: (answer: string) => string | undefined;
}

/**
 * Yes or no. Escape, Ctrl-D and a closed input are no.
 * @param destructive no is what Enter means
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
 */
export async function askYesOrNo(
  context: PromptContext,
  { question, destructive }: { question: string; destructive: boolean },
): Promise<boolean> {
  const message = visibleText(question);
  if (context.terminal.isDumb) {
    const answer = await askInOneLine(context, `${message} (${destructive ? "y/N" : "Y/n"})`);
    return answer === undefined ? false : answer === "" ? !destructive : /^y(es)?$/i.test(answer);
  }
  const { confirm } = await import("@clack/prompts");
  const answer = await askOnTerminal(context, (streams) =>
    confirm({ ...streams, message, initialValue: !destructive }),
  );
  return answer === true;
}

/**
 * A text. @returns undefined where the person gave none: Escape, Ctrl-D or a closed input; and for a hidden text on a
 * terminal that cannot hide it
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
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
  const answer = await askOnTerminal(context, (streams) =>
    (hidden ? password : text)({ ...streams, message, validate: problem }),
  );
  return typeof answer === "string" ? answer : undefined;
}

/** The same question where no cursor can be moved: asked in a line, and again where the answer is not right. */
async function plainText(
  context: PromptContext,
  { message, problem }: { message: string; problem: (given: string) => string | undefined },
): Promise<string | undefined> {
  for (;;) {
    const answer = await askInOneLine(context, message);
    if (answer === undefined) return undefined;
    const found = problem(answer);
    if (found === undefined) return answer;
    context.terminal.writeErr(`${found}\n`);
  }
}
