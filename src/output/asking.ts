// Owns: one question on a terminal, from the first line drawn to its answer, its end or its interruption.
// Must not know: what is asked, or in which form. Source: quality.md traps (clack hangs on a closed stdin; the end of input
// is not a yes).
import { Writable } from "node:stream";
import type { Key } from "node:readline";
import { Failure } from "../errors.ts";
import type { OutputStream, Terminal } from "./terminal.ts";

/** Where a question is asked, and what ends it from outside; its reason is thrown. */
export interface Asking {
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
export async function asked<T>(
  { terminal, interruption }: Asking,
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
export async function askedInOneLine({ terminal, interruption }: Asking, prompt: string): Promise<string | undefined> {
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
