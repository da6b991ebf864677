// Owns: what commands may say and ask, each in the format and on the stream it belongs to.
// Must not know: a resource by name, the API, exit codes. Source: cli.md §1 (global options), §2, §6.
import { documentText, type Format, LazyList, resourceText } from "./formats.ts";
import { fieldPaths } from "./json-text.ts";
import type { ListTarget, ListView, ListWriter, Report, ResourceView, Sink } from "./list.ts";
import { type Label, LiveLine, type Progress, silentProgress, type Timers } from "./live-line.ts";
import type { OutFile, OutFileOptions } from "./out-file.ts";
import { createQuestions, type Questions } from "./questions.ts";
import type { Terminal } from "./terminal.ts";
import { visibleLines } from "./visible-text.ts";

export type { Format } from "./formats.ts";
export type { Column, ListView, ResourceView } from "./list.ts";
export type { Progress } from "./live-line.ts";
export type { Choice } from "./pick-list.ts";

export interface OutputOptions {
  readonly terminal: Terminal;
  readonly format: Format;
  /** `--fields`, split at the commas. */
  readonly fields?: readonly string[];
  readonly quiet: boolean;
  readonly noInput: boolean;
  readonly yes: boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Those of the machine unless told otherwise. */
  readonly timers?: Timers;
  /** Ends a question that is being asked; its reason is thrown. */
  readonly interruption?: AbortSignal;
}

/**
 * All that a command may say to a person or a program, and ask. Nothing but `resource`, `document`, `list`, `text` is stdout.
 */
export interface Output extends Questions {
  readonly format: Format;
  /** `--fields`, as they were asked for. */
  readonly fields?: readonly string[];
  /** Prints one resource. @param text the API's JSON object as it came */
  resource(text: string, view: ResourceView): Promise<void>;
  /** Prints a JSON document of our own. */
  document(value: unknown): Promise<void>;
  /** Begins a list. Nothing is written before its first page or its end. @param to elsewhere than stdout */
  list(view: ListView, to?: { readonly sink?: Sink; readonly rowsBefore?: number }): ListWriter;
  /** Begins a list that receipts come before. */
  report(view: ListView): Report;
  /**
   * A file for a list. @throws Failure `usage` where it is in the way or belongs to another walk; nothing is written yet
   */
  file(path: string, options: Pick<OutFileOptions, "force" | "resume" | "identity" | "from">): Promise<OutFile>;
  /**
   * Prints text as it stands, with a new line at the end; on a terminal what is invisible in it is made visible.
   * Text of the service goes through `visibleText` first.
   */
  text(text: string): Promise<void>;
  /** What is good to know; `--quiet` silences it. */
  note(text: string): void;
  /** What must be known. */
  warn(text: string): void;
  /** What to type next; `--quiet` silences it. */
  hint(text: string): void;
  /** Says what is being waited for, after 300 ms, on a terminal only. End it with `done`. */
  progress(label: string): Progress;
  /** The same with the seconds that are left. @param ms from now */
  countdown(label: string, ms: number): Progress;
  /** Takes away what is drawn on the terminal. The last call, also after a failure. */
  close(): void;
}

const longWaitMs = 5_000;

/** Where a resource is shown, and how. */
interface Shown {
  readonly view: ResourceView;
  readonly target: ListTarget;
}
type Print = (text: string, how: { view: ResourceView; print: (shown: Shown) => Promise<void> }) => Promise<void>;

/** @throws Failure `usage` where `--fields` names nothing */
export function createOutput(options: OutputOptions): Output {
  const { terminal, format, quiet } = options;
  const live = new LiveLine(terminal, options.timers);
  const isDrawn = terminal.isTTY.stderr && !quiet && !terminal.isDumb;
  const say = (label: string, text: string): void => terminal.writeErr(message(label, text));
  const note = (text: string): void => (quiet ? undefined : say("note", text));
  const target = stdoutTarget(options, note);
  const begin = (label: Label): Progress => (isDrawn ? live.begin(label) : silentProgress);
  const show: Print = async (text, { view, print }) => {
    const secretField = holdsSecret(text, view) ? view.secretField : undefined;
    await print(secretField === undefined ? { view, target } : withSecret(secretField, { view, target }));
    if (secretField !== undefined)
      note(`${secretField} is shown this once and cannot be had again: keep it in a safe place`);
  };
  return {
    format,
    fields: options.fields,
    ...createQuestions(options, live),
    resource: (text, view) =>
      show(text, {
        view,
        print: async (shown) => terminal.writeOut(await resourceText(text, { format, ...shown })),
      }),
    report(view) {
      const list = new LazyList(view, { format, target });
      return { list, receipt: (text, of) => show(text, { view: of, print: (shown) => list.receipt(text, shown) }) };
    },
    async document(value) {
      await terminal.writeOut(await documentText(JSON.stringify(value), { format, target }));
    },
    list: (view, { sink, rowsBefore = 0 } = {}) =>
      new LazyList(view, { format, target: sink === undefined ? target : { ...fileTarget(target, sink), rowsBefore } }),
    async file(path, chosen) {
      const { OutFile } = await import("./out-file.ts");
      return new OutFile(path, { ...chosen, now: options.now });
    },
    async text(text) {
      const shown = terminal.isTTY.stdout ? text.split("\t").map(visibleLines).join("\t") : text;
      await terminal.writeOut(shown === "" || shown.endsWith("\n") ? shown : `${shown}\n`);
    },
    note,
    warn: (text) => say("warning", text),
    hint: (text) => (quiet ? undefined : say("hint", text)),
    progress: (label) => begin(() => [label]),
    countdown(label, ms) {
      const end = options.now() + ms;
      // A log and a screen reader get one line of it, where it is long enough to wonder.
      if (!isDrawn && ms >= longWaitMs) note(`${label} (in ${Math.ceil(ms / 1000)} s).`);
      return begin(() => [label, ` (${Math.max(0, Math.ceil((end - options.now()) / 1000))} s left)`]);
    },
    close: () => live.close(),
  };
}

/** Further lines stand further in, so that no line that came from elsewhere passes for one of ours. */
function message(label: string, text: string): string {
  return `${label}: ${visibleLines(text.trimEnd()).split("\n").join("\n  ")}\n`;
}

function stdoutTarget({ terminal, fields, now }: OutputOptions, note: (text: string) => void): ListTarget {
  return {
    sink: { write: (data) => terminal.writeOut(data) },
    isTerminal: terminal.isTTY.stdout,
    get width() {
      return terminal.width;
    },
    colour: terminal.colour.stdout,
    now,
    note,
    ...(fields === undefined ? {} : { fields: fieldPaths(fields) }),
  };
}

/** A file is as good as a pipe: nothing fitted, nothing coloured. */
function fileTarget(target: ListTarget, sink: Sink): ListTarget {
  return { ...target, sink, isTerminal: false, colour: 0 };
}

function holdsSecret(text: string, { secretField = "", nulls = [] }: ResourceView): boolean {
  if (secretField === "" || nulls.includes(secretField)) return false;
  const resource: Record<string, unknown> = JSON.parse(text);
  const value = Object.hasOwn(resource, secretField) ? resource[secretField] : undefined;
  return typeof value === "string" && value !== "";
}

/** A secret is there once: `--fields` or the columns of a CSV that leave it out would lose it. */
function withSecret(name: string, { view, target }: Shown): Shown {
  const { fields } = target;
  const isColumn = view.columns.some(({ path }) => path === name);
  const columns = isColumn ? view.columns : [...view.columns, { path: name, heading: name }];
  if (fields === undefined || fields.some((field) => field.name === name))
    return { view: { ...view, columns }, target };
  return { view, target: { ...target, fields: [...fields, { name, steps: [name] }] } };
}
