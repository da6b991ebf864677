import type { Ora } from "ora";
import type { LiveText, Terminal } from "./terminal.ts";
import { asciiWidth, roughWidth, visibleText } from "./visible-text.ts";

export interface Progress {
  update(label: string): void;
  /** Ends the operation and erases the line. Safe to repeat. */
  done(): void;
}

/** A narrow terminal cuts only `text`, and replaces `end` by `shortEnd`. */
export type Label = () => readonly [text: string, end?: string, shortEnd?: string];

const drawAfterMs = 300;
/** Interval of checks for a new label. Only changes are drawn, because a screen reader would read each frame. */
const refreshMs = 200;

/** Several operations can run at the same time; the line shows the latest. */
export class LiveLine implements LiveText {
  readonly #labels: Array<{ label: Label; readonly lines?: () => readonly string[] }> = [];
  #timer: NodeJS.Timeout | undefined;
  #spinner: Ora | undefined;
  #drawn: string | undefined;
  /** The operation that started when no other was running; kept until all operations have ended. */
  #first: object | undefined;

  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Each frame calls `label`. `lines` are rows below the label, which stay while a later operation has the label. */
  begin(label: Label, lines?: () => readonly string[]): Progress {
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

  /** Erases the line and forgets all operations, at the command's end or before a question. */
  close(): void {
    this.#labels.length = 0;
    this.#stop();
  }

  #wait(first: object): void {
    this.#terminal.live = this;
    this.#first = first;
    // The timers do not keep the process running: a forgotten spinner must not hang a finished command.
    this.#timer = setTimeout(() => void this.#show(first), drawAfterMs).unref();
  }

  /** The operation `first` may have ended while the spinner was loading. */
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
    // A terminal that does not know its width reports 0, and the spinner would count lines forever.
    const columns = this.#terminal.stderr.columns ?? 0;
    if (this.#spinner === undefined || label === undefined || this.#terminal.midLine || columns <= 0) return;
    const [text, longEnd = "", shortEnd = longEnd] = label;
    const end = text.length + longEnd.length + 4 <= columns ? longEnd : shortEnd;
    const first = asciiWidth.fit(visibleText(text), Math.max(1, columns - 4 - end.length)) + end;
    const lines = this.#labels.findLast((item) => item.lines !== undefined)?.lines?.() ?? [];
    const whole = [first, ...lines.map((line) => asciiWidth.fit(line, Math.max(1, columns - 1)))].join("\n");
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

// Concurrent work on several items is a table drawn in place at a terminal. Elsewhere, each change of state is a
// complete line, for logs and screen readers.

/**
 * Call `set` when an item starts or continues, `end` when it ends, and `done` in a `finally`: `done` erases the rows
 * before the command prints its result. Questions, notes and waits can appear while the table is drawn.
 */
export interface LiveTable {
  set(item: string, state: string): void;
  end(item: string, state: string): void;
  done(): void;
}

/** Not `waiting`, which is the state of a rotation in its overlap. */
const notStarted = "not started";
/** Screen lines that the table leaves free. */
const linesKept = 6;
const mostRows = 20;

class DrawnTable implements LiveTable {
  readonly #states: Map<string, { readonly state: string; readonly isOver: boolean }>;
  readonly #title: string;
  readonly #progress: Progress;

  /** `rows` returns the current rows of the terminal, `time` the elapsed time in words. */
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
    this.#states = new Map(items.map((item) => [item, { state: notStarted, isOver: false }]));
    const room = (): number => Math.max(1, Math.min(mostRows, rows() - linesKept));
    this.#progress = live.begin(
      () => [this.#summary(), time()],
      () => this.#lines(room()),
    );
  }

  set(item: string, state: string): void {
    this.#states.set(item, { state, isOver: false });
  }

  end(item: string, state: string): void {
    this.#states.set(item, { state, isOver: true });
  }

  done(): void {
    this.#progress.done();
  }

  #summary(): string {
    const all = [...this.#states.values()];
    return `${this.#title}: ${all.filter(({ isOver }) => isOver).length} of ${all.length} finished`;
  }

  /**
   * Running items come first, then finished items, latest first, then items that have not started. Items without space
   * are only counted.
   */
  #lines(room: number): string[] {
    const all = [...this.#states].map(([item, { state, isOver }]) => ({ item: visibleText(item), state, isOver }));
    const running = all.filter(({ isOver, state }) => !isOver && state !== notStarted);
    const finished = all.filter(({ isOver }) => isOver).reverse();
    const shown = [...running, ...finished, ...all.filter(({ isOver, state }) => !isOver && state === notStarted)];
    const width = shown.slice(0, room).reduce((widest, { item }) => Math.max(widest, roughWidth(item)), 0);
    const padded = (item: string): string => item + " ".repeat(width - roughWidth(item));
    const lines = shown.slice(0, room).map(({ item, state }) => `  ${padded(item)}  ${visibleText(state)}`);
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
  /** Milliseconds since a fixed moment of this process. */
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
const lineEveryMs = 10_000;
/** Longer waits also show the time when they end. */
const clockFromMs = 10_000;

const silent: Progress = { update: () => {}, done: () => {} };

export function createProgress(options: ProgressOptions): Progresses {
  const { terminal, live, isDrawn, elapsed, now, note } = options;
  const begin = (label: Label): Progress => live.begin(label);
  if (isDrawn)
    return {
      progress: (label) => drawn(begin, { label, elapsed }),
      countdown: (label, ms) => begin(countdownLabel(label, { ms, elapsed, until: untilClock(ms, now()) })),
      liveTable(title, items) {
        const began = elapsed();
        const time = (): string => secondsSince(began, elapsed());
        return new DrawnTable(live, { title, items, rows: () => terminal.stderr.rows ?? 24, time });
      },
    };
  const isInteractive = terminal.isTTY.stderr;
  /** A running wait has printed its own line, so other progress prints nothing until the wait ends. */
  const waits = new Set<object>();
  return {
    progress(label) {
      if (options.quiet) return silent;
      if (!isInteractive) return logged(note, elapsed);
      return printed(note, { label, since: localClock(now()), isSilent: () => waits.size > 0 });
    },
    countdown(label, ms) {
      if (ms < (isInteractive ? printAfterMs : logAfterMs)) return silent;
      note(`${label} (in ${Math.ceil(ms / 1000)} s${untilClock(ms, now())}).`);
      const wait: Progress = { update: () => {}, done: () => void waits.delete(wait) };
      waits.add(wait);
      return wait;
    },
    liveTable: (_title, items) => new PlainTable(items.length > 1 ? note : () => {}),
  };
}

/** Returns a time in this machine's time zone, such as `09:28:31`. */
function localClock(ms: number): string {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

function untilClock(ms: number, nowMs: number): string {
  return ms >= clockFromMs ? `, until ${localClock(nowMs + ms)}` : "";
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

/** The seconds count from the last change of the label. */
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
      if (elapsed() - printedAt < lineEveryMs) return;
      printedAt = elapsed();
      note(`${label}.`);
    },
    done: () => {},
  };
}

interface PrintedProgress {
  readonly label: string;
  /** Start time, such as `09:28:31`. */
  readonly since: string;
  /** True while a wait prints its own line. */
  readonly isSilent: () => boolean;
}

/** For screen readers and narrow terminals: prints each new label, or that the work continues. */
function printed(note: (text: string) => void, { label, since, isSilent }: PrintedProgress): Progress {
  let [text, lastText] = [label, label];
  const speak = (): void => {
    if (isSilent()) return;
    note(text === lastText ? `Still waiting since ${since}: ${text}.` : `${text}.`);
    lastText = text;
  };
  let timer = setTimeout(() => {
    speak();
    timer = setInterval(speak, lineEveryMs).unref();
  }, printAfterMs).unref();
  return { update: (other) => void (text = other), done: () => clearTimeout(timer) };
}
