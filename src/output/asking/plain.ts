// Asks questions in plain lines, for terminals that integ does not redraw.
import { StringDecoder } from "node:string_decoder";
import { wrapped } from "../formats/layout.ts";
import { isolated, visibleText } from "../visible-text.ts";
import { canceled, discardTypedAhead, type PromptContext, type Question } from "./prompts.ts";

/** A terminal in line mode sends this line if the user presses Escape, then Enter. */
const escapeLine = "\u001b";

/** @throws Failure `interrupted` for Escape or the end of input; for an abort, a failure of the abort reason's kind */
async function askLine({ terminal, interruption }: PromptContext, prompt: string): Promise<string> {
  const { createInterface } = await import("node:readline");
  const { stdin } = terminal;
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) throw canceled();
  const lines = createInterface({ input: stdin, terminal: false });
  const onAbort = (): void => lines.close();
  interruption.addEventListener("abort", onAbort, { once: true });
  writePrompt(terminal, prompt);
  const answer = await new Promise<string | undefined>((resolve) => {
    lines.once("line", resolve).once("close", () => resolve(undefined));
  });
  lines.close();
  interruption.removeEventListener("abort", onAbort);
  if (interruption.aborted) throw canceled(interruption.reason);
  if (answer === undefined || answer === escapeLine) throw canceled();
  return answer;
}

/** Wraps the prompt between words, so that the terminal does not break an id. */
function writePrompt(terminal: PromptContext["terminal"], prompt: string): void {
  const width = terminal.errWidth;
  terminal.writeErr(`${isolated(wrapped(prompt, { width: width && width - 1 }))} `);
}

/** For an invalid answer, `read` prints the reason and returns undefined. */
async function askUntil<T>(
  context: PromptContext,
  prompts: { readonly first: string; readonly again: string },
  read: (answer: string) => T | undefined,
): Promise<T> {
  for (let prompt = prompts.first; ; prompt = prompts.again) {
    const taken = read((await askLine(context, prompt)).trim());
    if (taken !== undefined) return taken;
  }
}

export async function plainYesOrNo(
  context: PromptContext,
  { question, destructive }: { readonly question: string; readonly destructive: boolean },
): Promise<boolean> {
  await discardTypedAhead(context);
  const message = visibleText(question);
  const allowed = `Type yes or no (default: ${destructive ? "no" : "yes"}):`;
  return askUntil(context, { first: `${message} ${allowed}`, again: allowed }, (answer) => {
    if (answer === "") return !destructive;
    if (/^y(es)?$/i.test(answer)) return true;
    if (/^no?$/i.test(answer)) return false;
    context.terminal.writeErr(`The answer "${visibleText(answer)}" is neither yes nor no.\n`);
    return undefined;
  });
}

/** @returns undefined if the terminal cannot hide the answer */
export async function plainText(
  context: PromptContext,
  { question, hidden = false, validate }: Question & { readonly question: string },
): Promise<string | undefined> {
  const message = visibleText(question);
  for (;;) {
    const answer = hidden
      ? await askHidden(context, `${message} (not shown while you type):`)
      : await askLine(context, asPrompt(message));
    const problem = answer === undefined ? undefined : validate?.(answer);
    if (problem === undefined) return answer;
    context.terminal.writeErr(`${visibleText(problem)}\n`);
  }
}

async function askHidden({ terminal, interruption }: PromptContext, prompt: string): Promise<string | undefined> {
  const { stdin } = terminal;
  interruption.throwIfAborted();
  if (stdin.readableEnded || stdin.destroyed) throw canceled();
  if (stdin.setRawMode === undefined) return undefined;
  try {
    stdin.setRawMode(true);
  } catch {
    return undefined;
  }
  writePrompt(terminal, prompt);
  const decoder = new StringDecoder("utf8");
  const line = new HiddenLine();
  try {
    return await new Promise<string>((resolve, reject) => {
      const onEnd = (): void => reject(canceled());
      const onAbort = (): void => reject(interruption.reason);
      const onData = (data: Buffer | string): void => {
        const end = line.take(typeof data === "string" ? data : decoder.write(data));
        if (end === "entered") resolve(line.text);
        if (end === "canceled") reject(canceled());
      };
      stdin.on("end", onEnd).on("close", onEnd).on("data", onData).resume();
      interruption.addEventListener("abort", onAbort, { once: true });
      line.stop = () => {
        stdin.off("end", onEnd).off("close", onEnd).off("data", onData).pause();
        interruption.removeEventListener("abort", onAbort);
      };
    });
  } finally {
    line.stop();
    stdin.setRawMode(false);
    terminal.writeErr("\n");
  }
}

/** Matches the escape sequences of arrow keys and pastes. */
const sequence = /\u001b(?:\[[\d;?]*[A-Za-z~]|O[A-Za-z])/g;
const [enter, newLine, interrupt, endOfInput, backspace, erase, eraseLine] = "\r\n\u0003\u0004\b\u007f\u0015";

class HiddenLine {
  #characters: string[] = [];
  stop: () => void = () => {};

  get text(): string {
    return this.#characters.join("");
  }

  take(keys: string): "entered" | "canceled" | undefined {
    for (const key of keys.replaceAll(sequence, "")) {
      if (key === enter || key === newLine) return "entered";
      if (key === interrupt || key === endOfInput || key === escapeLine) return "canceled";
      if (key === backspace || key === erase) this.#characters.pop();
      else if (key === eraseLine) this.#characters = [];
      else if (key >= " ") this.#characters.push(key);
    }
    return undefined;
  }
}

export interface PlainOption {
  readonly key: string;
  readonly value: string;
  readonly label: string;
}

export interface PlainList {
  readonly question: string;
  readonly options: readonly PlainOption[];
}

/** A list prints at most this many rows; the user finds the others by typing a part of their label. */
const maxListed = 20;

export function plainPick(context: PromptContext, list: PlainList): Promise<string> {
  printList(context, list);
  const prompt = `Type a number from 1 to ${list.options.length} (default: 1):`;
  return askUntil(context, { first: prompt, again: prompt }, (answer) => {
    const option = answer === "" ? list.options[0] : optionOf(list, answer);
    return option?.key ?? refuse(context, list, answer);
  });
}

export function plainPickSome(
  context: PromptContext,
  { chosen, ...list }: PlainList & { readonly chosen: readonly string[] },
): Promise<readonly string[]> {
  printList(context, list);
  const numbers = list.options.flatMap(({ key }, index) => (chosen.includes(key) ? [index + 1] : []));
  const defaultNote = numbers.length === 0 ? "" : ` (default: ${numbers.join(" ")})`;
  const prompt = `Type numbers from 1 to ${list.options.length} with spaces between them${defaultNote}:`;
  return askUntil(context, { first: prompt, again: prompt }, (answer) => {
    const words = answer.split(/[\s,]+/).filter((word) => word !== "");
    if (words.length === 0) {
      if (chosen.length === 0) context.terminal.writeErr("At least one is required.\n");
      return chosen.length === 0 ? undefined : chosen;
    }
    const keys = words.map((word) => optionOf(list, word)?.key);
    const unknown = keys.indexOf(undefined);
    return unknown < 0 ? keys.flatMap((key) => key ?? []) : refuse(context, list, words[unknown]!);
  });
}

function optionOf({ options }: PlainList, answer: string): PlainOption | undefined {
  const byNumber = /^\d+$/.test(answer) ? options[Number(answer) - 1] : undefined;
  return byNumber ?? options.find(({ value }) => value === answer);
}

function refuse(context: PromptContext, list: PlainList, answer: string): undefined {
  const searchText = answer.toLowerCase();
  const matches = ({ label }: PlainOption): boolean =>
    !/^\d+$/.test(answer) && label.toLowerCase().includes(searchText);
  const lines = numbered(list, context.terminal.errWidth).filter((_line, index) => matches(list.options[index]!));
  const quotedAnswer = `"${visibleText(answer)}"`;
  context.terminal.writeErr(
    lines.length === 0 ? `Invalid choice ${quotedAnswer}.\n` : `These contain ${quotedAnswer}:\n${listed(lines)}`,
  );
  return undefined;
}

function numbered({ options }: PlainList, width: number | undefined): string[] {
  const digits = String(options.length).length;
  const margin = " ".repeat(digits + 4);
  return options.map(({ label }, index) => {
    const lines = wrapped(label, { width, margin });
    const number = `  ${String(index + 1).padStart(digits)}.`;
    return lines.startsWith(margin) ? `${number} ${lines.slice(margin.length)}` : `${number}\n${lines}`;
  });
}

function listed(lines: readonly string[]): string {
  const more = lines.length - maxListed;
  const rest = more > 0 ? [`  … and ${more} more: type a part of a name to list those that have it`] : [];
  return [...lines.slice(0, maxListed), ...rest].map((line) => `${line}\n`).join("");
}

function printList({ terminal }: PromptContext, list: PlainList): void {
  const question = wrapped(asPrompt(list.question), { width: terminal.errWidth });
  terminal.writeErr(`${question}\n${listed(numbered(list, terminal.errWidth))}`);
}

function asPrompt(message: string): string {
  return /[.:?]$/.test(message) ? message : `${message}:`;
}
