// Owns: questions to a person on a real terminal, on standard error: yes or no, a choice, a text, a hidden text.
// Must not know: what is asked, whether asking is allowed. Source: cli.md §1 (`--yes`, `--no-input`), quality.md traps
// (clack hangs on a closed stdin; the end of input is not a yes).
import { Writable } from "node:stream";
import type { Key } from "node:readline";
import { Failure } from "../errors.ts";
import type { OutputStream, Terminal } from "./terminal.ts";
import { visibleText } from "./visible-text.ts";

export interface Question {
  /** One of these, as typed. */
  readonly choices?: readonly string[];
  /** What is typed is not shown. */
  readonly hidden?: boolean;
  /** Says what is wrong with an answer, or undefined. */
  readonly validate?: (answer: string) => string | undefined;
}

/** Where a question is asked, and what ends it from outside; its reason is thrown. */
export interface Asking {
  readonly terminal: Terminal;
  readonly interruption: AbortSignal;
}

/**
 * Yes or no. Escape, Ctrl-D and a closed input are no.
 * @param destructive no is what Enter means
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
 */
export async function askYesOrNo(
  asking: Asking,
  { question, destructive }: { question: string; destructive: boolean },
): Promise<boolean> {
  const message = visibleText(question);
  if (asking.terminal.isDumb) {
    const answer = await askedInOneLine(asking, `${message} (${destructive ? "y/N" : "Y/n"})`);
    return answer === undefined ? false : answer === "" ? !destructive : /^y(es)?$/i.test(answer);
  }
  const { confirm } = await import("@clack/prompts");
  const answer = await asked(asking, (streams) => confirm({ ...streams, message, initialValue: !destructive }));
  return answer === true;
}

/**
 * A text. @returns undefined where the person gave none: Escape, Ctrl-D or a closed input; and for a hidden text on a
 * terminal that cannot hide it
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
 */
export async function askText(
  asking: Asking,
  { question, ...options }: Question & { question: string },
): Promise<string | undefined> {
  const { choices, hidden = false, validate } = options;
  const message = visibleText(question);
  const problem = (given: string | undefined): string | undefined => {
    const found = validate?.(given ?? "");
    return found === undefined ? undefined : visibleText(found);
  };
  if (asking.terminal.isDumb) return hidden ? undefined : plainText(asking, { message, choices, problem });
  const { password, select, text } = await import("@clack/prompts");
  const answer = await asked(asking, (streams) => {
    if (choices === undefined) return (hidden ? password : text)({ ...streams, message, validate: problem });
    return select({ ...streams, message, options: choices.map((value) => ({ value, label: visibleText(value) })) });
  });
  return typeof answer === "string" ? answer : undefined;
}

interface Streams {
  readonly input: Terminal["stdin"];
  readonly output: Writable;
  readonly signal: AbortSignal;
}

/** Asks, and gives up when the input ends. The answer is a symbol where it was called off. */
async function asked<T>(
  { terminal, interruption }: Asking,
  ask: (streams: Streams) => Promise<T | symbol>,
): Promise<T | symbol> {
  const { stdin } = terminal;
  const end = new AbortController();
  let isInterrupted = false;
  const onEnd = (): void => end.abort();
  const onKey = (_text: string | undefined, key: Key): void => {
    if (key.ctrl === true && key.name === "c") isInterrupted = true;
    if (key.ctrl === true && key.name === "d") end.abort();
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

/** The same questions where no cursor can be moved: asked in a line, and again where the answer is not right. */
async function plainText(
  asking: Asking,
  options: {
    message: string;
    choices: readonly string[] | undefined;
    problem: (given: string) => string | undefined;
  },
): Promise<string | undefined> {
  const { message, choices, problem } = options;
  const offer = choices === undefined ? message : `${message} (${choices.map(visibleText).join(", ")})`;
  for (;;) {
    const answer = await askedInOneLine(asking, offer);
    if (answer === undefined) return undefined;
    const isWrong = choices !== undefined && !choices.includes(answer);
    const found = isWrong ? "one of these, as it is written" : problem(answer);
    if (found === undefined) return answer;
    asking.terminal.writeErr(`${found}\n`);
  }
}

async function askedInOneLine({ terminal, interruption }: Asking, prompt: string): Promise<string | undefined> {
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
