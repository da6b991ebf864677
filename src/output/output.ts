// Only `resource`, `document`, `list`, `report`, `page` and `text` write to stdout; notes, warnings, progress and
// questions go to stderr. Each format's module is loaded on first use.
import type { Asking, QuestionOptions, Questions } from "./asking/questions.ts";
import { JsonText } from "../api/json/json-text.ts";
import { asColumns, assertKnown, ChosenFields, fieldPaths } from "./fields.ts";
import type {
  Format,
  Column,
  Formatter,
  ListEnd,
  ListTarget,
  ListView,
  ListWriter,
  PageWriter,
  Report,
  ResourceView,
  ShownResource,
  Sink,
} from "./formats/format.ts";
import { createProgress, LiveLine, type LiveTable, type Progress } from "./live-view.ts";
import type { OutFile, OutFileOptions } from "./out-file.ts";
import { relativeTime, timeAhead } from "./relative-time.ts";
import { inPages, pageOf, type RowPage } from "./row-page.ts";
import { asciiWidth, type DisplayWidth, isolated, visibleLines, visibleText } from "./visible-text.ts";
import { wrapped } from "./formats/layout.ts";
import { flags, type NextCommand } from "../next-step.ts";

/** `  <mark> <lead>` in the margin, then the text with a hanging indent. */
export interface PageLine {
  readonly mark?: string;
  readonly tone?: "green" | "yellow" | "red" | undefined;
  readonly lead?: string;
  readonly text: string;
  readonly margin: number;
  /** True if the line must not wrap, because it is laid out already or is a command. */
  readonly isWhole?: boolean;
}

interface PageScreen {
  /** Columns; undefined if stdout is not a terminal. */
  readonly width: number | undefined;
  readonly measure: DisplayWidth;
  /** True for `TERM=dumb`, a terminal that cannot move its cursor. */
  readonly isPlain: boolean;
  /** @param nowMs the service's time, milliseconds since 1970 */
  readonly time: (iso: string, nowMs: number) => string;
}

export interface OutputOptions extends QuestionOptions {
  readonly format: Format;
  readonly typedFormat?: Format;
  /** Value of `--fields`, split at commas. */
  readonly fields?: readonly string[];
  readonly quiet: boolean;
  /** Default: relative at a terminal, else ISO 8601. */
  readonly times?: "iso" | "relative" | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly version: string;
  /** Milliseconds since a fixed moment. */
  readonly elapsed: () => number;
}

export interface Output extends Questions {
  readonly format: Format;
  /** Format from a command-line option; undefined for a format from the environment or the default. */
  readonly typedFormat?: Format;
  readonly fields?: readonly string[];
  readonly hasRelativeTimes: boolean;
  /** @returns a text such as `in 36 hours (23 Nov 09:28)`, or `at <iso>` without relative times */
  when(iso: string): string;
  /** True if a person reads the result as a table whose columns integ chose. */
  readonly isTable: boolean;
  /** Loads the format's module before a change, so that the result can be shown even if no file can be opened later. */
  load(): Promise<void>;
  /** @param text the API's JSON object */
  resource(text: string, view: ResourceView): Promise<void>;
  /** Prints a JSON document of integ; with the format `table`, as YAML. */
  document(value: unknown, how?: { readonly isRead?: boolean }): Promise<void>;
  /** Writes nothing before the first page or the end. @param to a file instead of stdout */
  list(view: ListView, to?: { readonly sink: Sink; readonly rowsBefore: number; readonly format: Format }): ListWriter;
  /**
   * Adds a list to the job summary of GitHub Actions; elsewhere, has no effect. A failed write causes only a warning.
   * `rows` are JSON objects.
   */
  summary(title: string, view: ListView, rows: readonly string[]): Promise<void>;
  report(view: ListView): Report;
  /** Checks a list's file without writing. @throws Failure as the constructor of `OutFile` */
  file(path: string, options: Omit<OutFileOptions, "elapsed">): Promise<OutFile>;
  /** Writes a file that only the user can read. It gets its name once it is complete and synced. */
  newFile(path: string, pieces: AsyncIterable<string> | Iterable<string>): Promise<void>;
  /** Replaces a file atomically; other users may read it. @throws Failure if the write fails; the old file stays */
  replacedFile(path: string, text: string): Promise<void>;
  /**
   * Escapes at a terminal, but keeps tabs and line breaks, so the service's text must first pass through `visibleText`.
   */
  text(text: string): Promise<void>;
  /** Wraps the lines at the terminal's width, with hanging indents. */
  page(lines: (screen: PageScreen) => readonly PageLine[]): Promise<void>;
  /** Omitted with `--quiet`. */
  note(text: string): void;
  /** A text about several changes, for the command's end. Omitted with `--quiet`. */
  ending(text: string): void;
  /** Printed even with `--quiet`. */
  warn(text: string): void;
  /** A line of a requested log on stderr, without a label. */
  log(line: string): void;
  next(command: NextCommand): void;
  /**
   * Shows current work: drawn after 300 ms, else printed after 2 s; a log gets new labels at most every 10 s. Call
   * `done` at the end.
   */
  progress(label: string): Progress;
  countdown(label: string, ms: number): Progress;
  liveTable(title: string, items: readonly string[]): LiveTable;
  /** Call this last, also after a failure: it erases the live text. */
  close(): void;
}

const formatters: Readonly<Record<Format, () => Promise<Formatter>>> = {
  table: async () => (await import("./formats/table.ts")).table,
  json: async () => (await import("./formats/json.ts")).json,
  ndjson: async () => (await import("./formats/json.ts")).ndjson,
  csv: async () => (await import("./formats/csv.ts")).csv,
  yaml: async () => (await import("./formats/yaml.ts")).yaml,
  markdown: async () => (await import("./formats/markdown.ts")).markdown,
  html: async () => (await import("./formats/html.ts")).html,
  sarif: async () => (await import("./formats/sarif.ts")).sarif,
  openmetrics: async () => (await import("./formats/openmetrics.ts")).openmetrics,
};

function questionsOf(options: QuestionOptions, live: LiveLine): Questions {
  const { terminal, noInput, yes } = options;
  const { CI } = terminal.env;
  const isCi = CI !== undefined && CI !== "" && CI !== "0" && CI !== "false";
  const interactive = !noInput && !isCi && terminal.isTTY.stderr && terminal.isTTY.stdin;
  const asking = async (): Promise<Asking> =>
    (await import("./asking/questions.ts")).createQuestions({ ...options, interactive }, live);
  const answered: string[] = [];
  const agreed: string[] = [];
  /** An option precedes each of its values; an argument such as `<id>` is only its value. */
  const remember = <T extends string | readonly string[]>(flag: string | undefined, answer: T): T => {
    const option = flag?.startsWith("-") ? flag.split(" ").slice(0, 1) : [];
    if (flag !== undefined) for (const value of [answer].flat()) answered.push(...option, value);
    return answer;
  };
  return {
    interactive,
    isScreen: terminal.isTTY.stdout,
    answered,
    agreed,
    async confirm(question, how) {
      if (yes) return true;
      const isYes = await (await asking()).confirm(question, how);
      if (isYes && how?.isPersonal !== true) agreed[0] = flags.yes;
      return isYes;
    },
    async ask(question, how) {
      const answer = await (await asking()).ask(question, how);
      if (!how?.hidden) return remember(how?.flag, answer);
      // The option for a hidden answer reads the secret from standard input.
      answered.push(...(how.flag?.split(" ").slice(0, 1) ?? []));
      return answer;
    },
    pick: async (question, how) =>
      remember(how.isFirst ? undefined : how.flag, await (await asking()).pick(question, how)),
    pickSome: async (question, how) => remember(how.flag, await (await asking()).pickSome(question, how)),
  };
}

/** @throws Failure `usage` for invalid `--fields` */
export function createOutput(options: OutputOptions): Output {
  const { terminal, quiet } = options;
  const live = new LiveLine(terminal);
  // If stdout is a pipe, the next program may write to the same terminal.
  const isDrawn = terminal.isTTY.stderr && !quiet && !terminal.isPlain && !terminal.isPiped;
  const tell = (text: string): void => terminal.writeErr(isolated(text, terminal.isTTY.stderr));
  const say = (label: string, text: string): void => tell(message(label, { text, width: terminal.errWidth }));
  const note = (text: string): void => (quiet ? undefined : say("Note", text));
  const warn = (text: string): void => say("Warning", text);
  const hasRelativeTimes = options.times === undefined ? terminal.isTTY.stdout : options.times === "relative";
  return {
    format: options.format,
    typedFormat: options.typedFormat,
    fields: options.fields,
    hasRelativeTimes,
    when: (iso) => (hasRelativeTimes ? timeAhead(iso, options.now()) : `at ${iso}`),
    isTable: terminal.isTTY.stdout && options.format === "table" && options.fields === undefined,
    load: async () => void (await formatters[options.format]()),
    ...questionsOf(options, live),
    ...createPrinting(options, { note, warn }),
    note,
    ending(text) {
      if (quiet) return;
      terminal.ending = isolated(
        `${wrapped(visibleText(text), { width: terminal.errWidth })}\n`,
        terminal.isTTY.stderr,
      );
      // In these formats, the error must be the last line, so the ending is written before it.
      if (options.format === "json" || options.format === "ndjson") terminal.end();
    },
    warn,
    log: (line) => terminal.writeErr(`${visibleLines(line)}\n`),
    next: (command) => (quiet ? undefined : say("Next", visibleText(command))),
    ...createProgress({ ...options, live, isDrawn, note }),
    close: () => live.close(),
  };
}

function createPrinting(
  options: OutputOptions,
  { note, warn }: Pick<Output, "note" | "warn">,
): Pick<
  Output,
  "resource" | "document" | "list" | "summary" | "report" | "file" | "text" | "page" | "newFile" | "replacedFile"
> {
  const { terminal, format } = options;
  const noted = new Set<string>();
  const noteOnce = (text: string): void => void (noted.has(text) || (noted.add(text), note(text)));
  const target = stdoutTarget(options, { note: noteOnce, reportMissing: warn });
  const show = async (
    { text, view }: { text: string; view: ResourceView },
    print: (text: string, shown: ShownResource) => Promise<void>,
  ): Promise<void> => {
    const secretField = holdsSecret(text, view) ? view.secretField : undefined;
    const plain = { view, target: targetOf(target, view.columns) };
    const shown = secretField === undefined ? plain : withSecret(secretField, plain);
    const { fields } = plain.target;
    const chosen = new ChosenFields(fields);
    const root = JsonText.of(text);
    chosen.see(root);
    if (view.isRead) assertKnown(fields, { rows: rowsOf(root), documented: view.columns });
    await print(view.nulls?.length ? root.withNulls(view.nulls) : text, shown);
    chosen.reportMissing(undefined, target.reportMissing);
    if (secretField !== undefined) note(`${secretField} is shown only this once: store it in a safe place.`);
  };
  return {
    resource: (text, view) =>
      show({ text, view }, async (blanked, shown) => {
        const { resource } = await formatters[format]();
        await terminal.writeOut(await resource(blanked, shown));
      }),
    document: (value, how) => printDocument(JSON.stringify(value), { format, target, terminal, ...how }),
    list: (view, to) =>
      to
        ? new LazyList(view, { format: to.format, target: fileTarget(target, to), isRead: true })
        : new LazyList(view, { format, target, reportEmpty: note, isRead: true }),
    summary: summaryOf(terminal, { target, warn }),
    report(view) {
      const list = new LazyList(view, { format, target, reportEmpty: note });
      return { list, receipt: (text, of) => show({ text, view: of }, list.receipt.bind(list)) };
    },
    async file(path, chosen) {
      const { OutFile } = await import("./out-file.ts");
      return new OutFile(path, { ...chosen, elapsed: options.elapsed });
    },
    newFile: async (path, pieces) => (await import("../disk/atomic-write.ts")).createWhole(path, pieces),
    replacedFile,
    async text(text) {
      const shown = terminal.isTTY.stdout ? text.split("\t").map(visibleLines).join("\t") : text;
      await terminal.writeOut(shown === "" || shown.endsWith("\n") ? shown : `${shown}\n`);
    },
    page: (lines) => printPage(options, lines),
  };
}

async function replacedFile(path: string, text: string): Promise<void> {
  const { replaceFile } = await import("../disk/atomic-write.ts");
  try {
    replaceFile(path, text, { forAll: true });
  } catch (error) {
    throw (await import("../disk/error-words.ts")).fileFailure(error, "write", { path });
  }
}

function summaryOf(
  { env }: OutputOptions["terminal"],
  { target, warn }: { readonly target: ListTarget; readonly warn: Output["warn"] },
): Output["summary"] {
  return async (title, view, rows) => {
    if (env.GITHUB_ACTIONS !== "true" || !env.GITHUB_STEP_SUMMARY) return;
    let text = `### ${title}\n\n`;
    const sink = { write: async (data: string | Buffer) => void (text += data.toString()) };
    const { list } = await formatters.markdown();
    const writer = list(view, { ...target, fields: undefined, sink });
    await writer.page(rows.map((row) => JsonText.of(row)));
    await writer.end({ nextPageToken: null, hasMore: false });
    try {
      const { appendFileSync, closeSync, constants, openSync } = await import("node:fs");
      const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants;
      // A pipe without a reader would block.
      const fd = openSync(env.GITHUB_STEP_SUMMARY, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK);
      appendFileSync(fd, `${text}\n`);
      closeSync(fd);
    } catch (error) {
      warn(`The summary of this step was not written: ${(error as Error).message}.`);
    }
  };
}

async function printPage({ terminal, times }: OutputOptions, lines: Parameters<Output["page"]>[0]): Promise<void> {
  const { painter } = await import("./formats/table.ts");
  const paint = await painter(terminal.color.stdout);
  const width = terminal.isTTY.stdout ? terminal.width : undefined;
  const measure = width === undefined ? asciiWidth : await (await import("./unicode-width.ts")).unicodeWidth();
  const isPlain = terminal.env.TERM === "dumb";
  const time = times === "iso" ? (iso: string) => iso : relativeTime;
  for (const { mark, tone, lead: name = "", text, margin, isWhole } of lines({ width, measure, isPlain, time })) {
    const lead = measure.fit(visibleText(name), (width ?? Number.POSITIVE_INFINITY) - 4);
    const broken = wrapped(visibleText(text), {
      width: isWhole ? undefined : width,
      margin: " ".repeat(margin),
      cutsNames: true,
    });
    if (mark === undefined) {
      await terminal.writeOut(isolated(`${broken.trimEnd()}\n`, terminal.isTTY.stdout));
      continue;
    }
    const shown = tone === undefined || paint === undefined ? mark : paint[tone](mark);
    const leadWidth = measure.of(lead);
    const before = `  ${shown} ${lead}${" ".repeat(Math.max(0, margin - 4 - leadWidth))}`;
    const isBeside = leadWidth <= margin - 4 && broken.startsWith(" ".repeat(margin));
    const line = isBeside ? `${before}${broken.slice(margin)}` : `${before.trimEnd()}\n${broken}`;
    await terminal.writeOut(isolated(`${line}\n`, terminal.isTTY.stdout));
  }
}

interface DocumentOptions extends Pick<OutputOptions, "format" | "terminal"> {
  readonly target: ListTarget;
  readonly isRead?: boolean;
}

async function printDocument(text: string, { format, target, terminal, isRead }: DocumentOptions): Promise<void> {
  if (format !== "json" || target.isTerminal || target.fields !== undefined) {
    const { resource } = await formatters[format === "table" ? "yaml" : format]();
    const chosen = new ChosenFields(target.fields);
    const root = JsonText.of(text);
    chosen.see(root);
    if (isRead) assertKnown(target.fields, { rows: rowsOf(root), documented: [] });
    await terminal.writeOut(await resource(text, { view: { columns: [] }, target }));
    return chosen.reportMissing(undefined, target.reportMissing);
  }
  await terminal.writeOut(`${text}\n`);
}

interface ListOptions {
  readonly format: Format;
  readonly target: ListTarget;
  /** True if an unknown field of `--fields` prevents the output. */
  readonly isRead?: boolean;
  /** Absent for a file, whose size the command reports. */
  readonly reportEmpty?: (text: string) => void;
}

/** Loads the format at the first write. Without documented columns, tables and CSV use the keys of the first page. */
class LazyList implements ListWriter {
  rowsWritten: number;
  readonly #view: ListView;
  readonly #options: ListOptions;
  #writer: PageWriter | undefined;
  #receipts = 0;
  #isChecked: boolean;

  constructor(view: ListView, options: ListOptions) {
    this.#view = view;
    this.#options = { ...options, target: targetOf(options.target, documentedIn(view)) };
    this.rowsWritten = options.target.rowsBefore ?? 0;
    this.#isChecked = !options.isRead || this.rowsWritten > 0;
  }

  async receipt(text: string, { view, target }: ShownResource): Promise<void> {
    const { resource, receipt = resource } = await formatters[this.#options.format]();
    const receiptsBefore = this.#receipts++;
    await target.sink.write(await receipt(text, { view, target: { ...target, receiptsBefore } }));
  }

  async page(page: RowPage): Promise<void> {
    if (page.length > 0) this.#assertFields(page);
    else if (!this.#isChecked) return;
    if (this.#writer === undefined && this.#hasNoColumns()) {
      if (page.length === 0) return;
      const { keysOf } = await import("./formats/cells.ts");
      const columns = keysOf(page).map((key) => ({ path: key, heading: key, isKey: true, isDetail: true }));
      this.#writer = await this.#begin({ ...this.#view, columns });
    }
    this.#writer ??= await this.#begin(this.#view);
    await this.#writer.page(page);
    this.rowsWritten += page.length;
  }

  /** Refuses unknown `--fields` before anything is printed: at the first page with rows, or at the end. */
  #assertFields(page: RowPage): void {
    if (this.#isChecked) return;
    const { singular } = this.#view;
    assertKnown(this.#options.target.fields, { rows: page, documented: documentedIn(this.#view), singular });
    this.#isChecked = true;
  }

  async end(state: ListEnd): Promise<void> {
    this.#assertFields([]);
    if (this.#writer === undefined && !this.#hasNoColumns()) this.#writer = await this.#begin(this.#view);
    await this.#writer?.end(state);
    if (this.rowsWritten === 0) this.#options.reportEmpty?.(this.#view.empty ?? `No ${this.#view.plural}.`);
  }

  async whole(rows: readonly (object | string)[]): Promise<void> {
    for await (const page of inPages(rows))
      await this.page(pageOf(page.map((row) => (typeof row === "string" ? row : JSON.stringify(row)))));
    await this.end({ nextPageToken: null, hasMore: false });
  }

  async abandon(): Promise<void> {
    await this.#writer?.abandon?.();
  }

  async #begin(view: ListView): Promise<PageWriter> {
    const { format, target } = this.#options;
    return (await formatters[format]()).list(view, { ...target, receiptsBefore: this.#receipts });
  }

  #hasNoColumns(): boolean {
    const { format, target } = this.#options;
    return this.#view.columns.length === 0 && target.fields === undefined && (format === "csv" || format === "table");
  }
}

/** Indents further lines, so that untrusted lines cannot imitate integ's own lines. */
function message(
  label: string,
  { text, width }: { readonly text: string; readonly width: number | undefined },
): string {
  const [first = "", ...more] = visibleLines(text.trimEnd()).split("\n");
  const lines = [wrapped(`${label}: ${first}`, { width, margin: "  ", cutsNames: label === "Note" }).trimStart()];
  return `${[...lines, ...more.map((line) => wrapped(line, { width, margin: "  " }))].join("\n")}\n`;
}

function stdoutTarget(
  { terminal, fields, now, times, version }: OutputOptions,
  reports: Pick<ListTarget, "note" | "reportMissing">,
): ListTarget {
  return {
    sink: { write: (data) => terminal.writeOut(data) },
    isTerminal: terminal.isTTY.stdout,
    hasRelativeTimes: times === undefined ? terminal.isTTY.stdout : times === "relative",
    get width() {
      return terminal.width;
    },
    color: terminal.color.stdout,
    now,
    version,
    ...reports,
    fields: fields && fieldPaths(fields),
  };
}

function documentedIn({ columns, extraColumns = [] }: ListView): readonly Column[] {
  return [...columns, ...extraColumns];
}

function rowsOf(root: JsonText): readonly JsonText[] {
  return root.isArray ? root.items() : [root];
}

function targetOf(target: ListTarget, columns: readonly Column[]): ListTarget {
  return target.fields === undefined ? target : { ...target, fields: asColumns(target.fields, columns) };
}

function fileTarget(target: ListTarget, to: Pick<ListTarget, "sink" | "rowsBefore">): ListTarget {
  return { ...target, sink: to.sink, rowsBefore: to.rowsBefore, isTerminal: false, hasRelativeTimes: false, color: 0 };
}

function holdsSecret(text: string, { secretField = "", nulls = [] }: ResourceView): boolean {
  if (secretField === "" || nulls.includes(secretField)) return false;
  const resource: Record<string, unknown> = JSON.parse(text);
  const value = Object.hasOwn(resource, secretField) ? resource[secretField] : undefined;
  return typeof value === "string" && value !== "";
}

/** A secret is shown only once, so `--fields` and CSV always include it. */
function withSecret(name: string, { view, target }: ShownResource): ShownResource {
  const { fields } = target;
  const isColumn = view.columns.some(({ path }) => path === name);
  const columns = isColumn ? view.columns : [...view.columns, { path: name, heading: name }];
  if (fields === undefined || fields.some((field) => field.name === name))
    return { view: { ...view, columns }, target };
  return { view, target: { ...target, fields: [...fields, { name, steps: [name] }] } };
}
