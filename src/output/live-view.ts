import type { Ora } from "ora";
import type { LiveText, Terminal } from "./terminal.ts";
import { roughFit, roughWidth, visibleText } from "./visible-text.ts";

export interface Progress {
  update(label: string): void;
  /** Ends the operation. Safe to repeat. */
  done(): void;
}

/** A narrow terminal cuts only `text`, and replaces `end` by `shortEnd`. */
export type Label = () => readonly [text: string, end?: string, shortEnd?: string];

const drawDelayMs = 300;
/** Interval of checks for a new label. Only changes are drawn, because a screen reader would read each frame. */
const refreshMs = 200;

/** Shows the latest of the running operations. */
export class LiveLine implements LiveText {
  readonly #labels: Array<{ label: Label; readonly lines?: (columns: number) => readonly string[] }> = [];
  #timer: NodeJS.Timeout | undefined;
  #spinner: Ora | undefined;
  #drawn: string | undefined;
  /** The operation for which the spinner was started; kept until all operations have ended. */
  #first: object | undefined;

  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Each frame calls `label`. `lines` are rows below it, which stay visible below the label of a later operation. */
  begin(label: Label, lines?: (columns: number) => readonly string[]): Progress {
    const item = { label, lines };
    this.#labels.push(item);
    if (this.#labels.length === 1) this.#wait(item);
    return {
      update: (text) => {
        item.label = () => [text];
      },
      done: () => {
        const index = this.#labels.indexOf(item);
        if (index !== -1) this.#labels.splice(index, 1);
        if (this.#labels.length === 0) this.#stop();
      },
    };
  }

  clear(): void {
    this.#drawn = undefined;
    this.#spinner?.clear();
  }

  close(): void {
    this.#labels.length = 0;
    this.#stop();
  }

  #wait(first: object): void {
    this.#terminal.live = this;
    this.#first = first;
    // The timer must not keep a finished command running.
    this.#timer = setTimeout(() => void this.#show(first), drawDelayMs).unref();
  }

  /** All operations may have ended while the spinner was loading. */
  async #show(first: object): Promise<void> {
    const { default: ora } = await import("ora");
    if (this.#first !== first) return;
    const terminal = this.#terminal;
    this.#spinner = ora({
      stream: terminal.stderr,
      discardStdin: false, // Discarding input would put the terminal into raw mode.
      hideCursor: false, // A hidden cursor would need signal handlers to show it again.
      isEnabled: true,
      color: terminal.color.stderr === 0 ? (false as const) : "cyan",
    });
    clearTimeout(this.#timer);
    this.#timer = setInterval(() => this.#draw(), refreshMs).unref();
    this.#draw();
  }

  #draw(): void {
    const label = this.#labels.at(-1)?.label();
    // With a width of 0 (unknown), the spinner would count lines forever.
    const columns = this.#terminal.stderr.columns ?? 0;
    if (this.#spinner === undefined || label === undefined || this.#terminal.midLine || columns <= 0) return;
    const [text, longEnd = "", shortEnd = longEnd] = label;
    const end = text.length + longEnd.length + 4 <= columns ? longEnd : shortEnd;
    const first = roughFit(visibleText(text), Math.max(1, columns - 4 - end.length)) + end;
    const lines = this.#labels.findLast((item) => item.lines !== undefined)?.lines?.(columns) ?? [];
    const whole = [first, ...lines.map((line) => roughFit(line, Math.max(1, columns - 1)))].join("\n");
    if (whole === this.#drawn) return;
    this.#drawn = whole;
    this.#spinner.text = whole;
    this.#spinner.render();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#first = undefined;
    this.clear();
    this.#spinner = undefined;
    this.#terminal.live = undefined;
  }
}

// Concurrent work on several items is a table that is drawn in place, or one line for each change of state in logs and for
// screen readers.

/**
 * Call `set` when an item starts or continues, `end` when it ends, and `done` in a `finally`: `done` erases the rows
 * before the command prints its result.
 */
export interface LiveTable {
  set(item: string, state: string): void;
  end(item: string, state: string): void;
  done(): void;
}

/** The word `waiting` would be wrong: it is the state of a rotation in its overlap. */
const notStarted = "not started";
const freeLines = 6;
const maxRows = 20;

class DrawnTable implements LiveTable {
  readonly #states: Map<string, { readonly state: string; readonly isDone: boolean }>;
  readonly #title: string;
  readonly #progress: Progress;

  constructor(
    live: LiveLine,
    {
      title,
      items,
      rows,
      time,
    }: {
      readonly title: string;
      readonly items: readonly string[];
      readonly rows: () => number;
      readonly time: () => string;
    },
  ) {
    this.#title = title;
    this.#states = new Map(items.map((item) => [item, { state: notStarted, isDone: false }]));
    const room = (): number => Math.max(1, Math.min(maxRows, rows() - freeLines));
    this.#progress = live.begin(
      () => [this.#summary(), time()],
      (columns) => this.#lines(room(), columns),
    );
  }

  set(item: string, state: string): void {
    this.#states.set(item, { state, isDone: false });
  }

  end(item: string, state: string): void {
    this.#states.set(item, { state, isDone: true });
  }

  done(): void {
    this.#progress.done();
  }

  #summary(): string {
    const all = [...this.#states.values()];
    return `${this.#title}: ${all.filter(({ isDone }) => isDone).length} of ${all.length} finished`;
  }

  #lines(room: number, columns: number): string[] {
    const all = [...this.#states].map(([item, { state, isDone }]) => ({ item: visibleText(item), state, isDone }));
    const running = all.filter(({ isDone, state }) => !isDone && state !== notStarted);
    const finished = all.filter(({ isDone }) => isDone).reverse();
    const shown = [...running, ...finished, ...all.filter(({ isDone, state }) => !isDone && state === notStarted)];
    const rows = shown.slice(0, room);
    const widest = (texts: readonly string[]): number => Math.max(0, ...texts.map(roughWidth));
    const free = columns - 5 - widest(rows.map(({ state }) => state));
    const width = Math.min(widest(rows.map(({ item }) => item)), Math.max(10, free));
    const padded = (item: string): string => item + " ".repeat(width - roughWidth(item));
    const lines = rows.map(({ item, state }) => `  ${padded(roughFit(item, width))}  ${visibleText(state)}`);
    return shown.length > room ? [...lines, `  … and ${shown.length - room} more`] : lines;
  }
}

class PlainTable implements LiveTable {
  readonly #states = new Map<string, string>();
  readonly #say: (line: string) => void;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  set(item: string, state: string): void {
    if (this.#states.get(item) === state) return;
    this.#states.set(item, state);
    this.#say(`${item}: ${state}`);
  }

  end(item: string, state: string): void {
    this.set(item, state);
  }

  done(): void {}
}

// Progress of long work is drawn in place at a terminal, otherwise printed as lines, less often in a log.

interface ProgressOptions {
  readonly terminal: Terminal;
  readonly quiet: boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since a fixed moment. */
  readonly elapsed: () => number;
  readonly live: LiveLine;
  readonly isDrawn: boolean;
  readonly note: (text: string) => void;
}

interface Progresses {
  progress(label: string): Progress;
  countdown(label: string, ms: number): Progress;
  liveTable(title: string, items: readonly string[]): LiveTable;
}

/** Shorter operations and waits are not printed. The second limit is for waits in a log. */
const [printAfterMs, logAfterMs] = [2_000, 5_000];
const lineIntervalMs = 10_000;
/** Longer waits show when they end. */
const clockFromMs = 10_000;

const silent: Progress = { update: () => {}, done: () => {} };

export function createProgress(options: ProgressOptions): Progresses {
  const { terminal, live, isDrawn, elapsed, now, note } = options;
  const begin = (label: Label): Progress => live.begin(label);
  if (isDrawn)
    return {
      progress: (label) => drawn(begin, { label, elapsed }),
      countdown: (label, ms) => begin(countdownLabel(label, { ms, elapsed, until: clockAfter("until", ms, now()) })),
      liveTable(title, items) {
        const began = elapsed();
        const time = (): string => secondsSince(began, elapsed());
        return new DrawnTable(live, { title, items, rows: () => terminal.stderr.rows ?? 24, time });
      },
    };
  const isInteractive = terminal.isTTY.stderr;
  /** A running wait has already printed its line, so other progress prints nothing until the wait ends. */
  const waits = new Set<object>();
  return {
    progress(label) {
      if (options.quiet) return silent;
      if (!isInteractive) return logged(note, elapsed);
      return printed(note, { label, since: localClock(now()), isSilent: () => waits.size > 0 });
    },
    countdown(label, ms) {
      if (ms < (isInteractive ? printAfterMs : logAfterMs)) return silent;
      note(`${label} (in ${Math.ceil(ms / 1000)} s${clockAfter("at", ms, now())}).`);
      const wait: Progress = { update: () => {}, done: () => void waits.delete(wait) };
      waits.add(wait);
      return wait;
    },
    liveTable: (_title, items) => new PlainTable(items.length > 1 ? note : () => {}),
  };
}

/** In this machine's time zone, such as `09:28:31`. */
function localClock(ms: number): string {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

function clockAfter(word: "at" | "until", ms: number, nowMs: number): string {
  return ms >= clockFromMs ? `, ${word} ${localClock(nowMs + ms)}` : "";
}

function countdownLabel(
  label: string,
  { ms, elapsed, until }: { readonly ms: number; readonly elapsed: () => number; readonly until: string },
): Label {
  const end = elapsed() + ms;
  return () => {
    const left = `${Math.max(0, Math.ceil((end - elapsed()) / 1000))} s left`;
    return [label, ` (${left}${until})`, ` (${left})`];
  };
}

function drawn(
  begin: (label: Label) => Progress,
  { label, elapsed }: { readonly label: string; readonly elapsed: () => number },
): Progress {
  let [text, since] = [label, elapsed()];
  const { done } = begin(() => [text, secondsSince(since, elapsed())]);
  return { update: (other) => void ([text, since] = [other, elapsed()]), done };
}

function secondsSince(began: number, now: number): string {
  return now - began < printAfterMs ? "" : ` · ${Math.floor((now - began) / 1000)} s`;
}

function logged(note: (text: string) => void, elapsed: () => number): Progress {
  let printedAt = elapsed();
  return {
    update(label) {
      if (elapsed() - printedAt < lineIntervalMs) return;
      printedAt = elapsed();
      note(`${label}.`);
    },
    done: () => {},
  };
}

interface PrintedProgress {
  readonly label: string;
  readonly since: string;
  readonly isSilent: () => boolean;
}

/** For screen readers and narrow terminals: prints at intervals the new label, or that the work continues. */
function printed(note: (text: string) => void, { label, since, isSilent }: PrintedProgress): Progress {
  let [text, lastText] = [label, label];
  const printStatus = (): void => {
    if (isSilent()) return;
    note(text === lastText ? `Still waiting since ${since}: ${text}.` : `${text}.`);
    lastText = text;
  };
  let timer = setTimeout(() => {
    printStatus();
    timer = setInterval(printStatus, lineIntervalMs).unref();
  }, printAfterMs).unref();
  return { update: (other) => void (text = other), done: () => clearTimeout(timer) };
}
