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

/**
 * Yes or no. Escape, Ctrl-D and a closed input are no.
 * @param destructive no is what Enter means
 * @throws Failure `interrupted` for Ctrl-C
 */
export async function askYesOrNo(
  terminal: Terminal,
  { question, destructive }: { question: string; destructive: boolean },
): Promise<boolean> {
  const { confirm } = await import("@clack/prompts");
  const answer = await asked(terminal, (streams) =>
    confirm({ ...streams, message: visibleText(question), initialValue: !destructive }),
  );
  return answer === true;
}

/**
 * A text. @returns undefined where the person gave none: Escape, Ctrl-D or a closed input
 * @throws Failure `interrupted` for Ctrl-C
 */
export async function askText(
  terminal: Terminal,
  { question, choices, hidden = false, validate }: Question & { question: string },
): Promise<string | undefined> {
  const { password, select, text } = await import("@clack/prompts");
  const message = visibleText(question);
  const answer = await asked(terminal, (streams) => {
    if (choices !== undefined) {
      const options = choices.map((value) => ({ value, label: visibleText(value) }));
      return select({ ...streams, message, options });
    }
    const problem = (given: string | undefined): string | undefined => {
      const found = validate?.(given ?? "");
      return found === undefined ? undefined : visibleText(found);
    };
    return hidden
      ? password({ ...streams, message, validate: problem })
      : text({ ...streams, message, validate: problem });
  });
  return typeof answer === "string" ? answer : undefined;
}

interface Streams {
  readonly input: Terminal["stdin"];
  readonly output: Writable;
  readonly signal: AbortSignal;
}

/** Asks, and gives up when the input ends. The answer is a symbol where it was called off. */
async function asked<T>(terminal: Terminal, ask: (streams: Streams) => Promise<T | symbol>): Promise<T | symbol> {
  const { stdin } = terminal;
  const end = new AbortController();
  let isInterrupted = false;
  const onEnd = (): void => end.abort();
  const onKey = (_text: string | undefined, key: Key): void => {
    if (key.ctrl === true && key.name === "c") isInterrupted = true;
    if (key.ctrl === true && key.name === "d") end.abort();
  };
  if (stdin.readableEnded || stdin.destroyed) return Symbol("end of input");
  stdin.on("end", onEnd).on("close", onEnd).on("keypress", onKey);
  try {
    const answer = await ask({ input: stdin, output: outputOf(terminal), signal: end.signal });
    if (isInterrupted && typeof answer === "symbol") throw new Failure("interrupted", "interrupted at the question");
    return answer;
  } finally {
    stdin.off("end", onEnd).off("close", onEnd).off("keypress", onKey);
  }
}

const colourSequence = /\u001b\[[\d;]*m/g;

/** clack colours whatever it is told: where there is to be no colour its output loses it on the way. */
function outputOf(terminal: Terminal): Writable {
  const { stderr } = terminal;
  if (terminal.colour.stderr > 0) return stderr;
  const plain: OutputStream = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      stderr.write(chunk.toString().replace(colourSequence, ""));
      done();
    },
  });
  const { columns, rows } = stderr;
  return Object.assign(plain, { isTTY: true, columns, rows });
}
