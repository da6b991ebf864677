import type { Ora } from "ora";
import type { LiveText, Terminal } from "./terminal.ts";
import { asciiWidth, visibleText } from "./visible-text.ts";

/** Something that takes a while. */
export interface Progress {
  /** Says something else from now on. */
  update(label: string): void;
  /** The work is over; the line is wiped. Safe to repeat. */
  done(): void;
}

/** What is said, what follows it even if the terminal is too narrow for all of it, and a short form of that. */
export type Label = () => readonly [text: string, end?: string, shortEnd?: string];

/** Nothing is shown of what takes less. */
const patienceMs = 300;
/** How often what is said is looked at. It is drawn again only when it has changed: a screen reader would read each frame. */
const lookMs = 200;

/** Of several things under way the last one started is shown. */
export class LiveLine implements LiveText {
  readonly #labels: Array<{ label: Label; readonly lines?: () => readonly string[] }> = [];
  #timer: NodeJS.Timeout | undefined;
  #spinner: Ora | undefined;
  /** What is on the screen now, if anything. */
  #drawn: string | undefined;
  /** What began when nothing was under way, until nothing is again. */
  #first: object | undefined;

  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /**
   * @param label asked for at every frame
   * @param lines what is below it, shown too while something that began later has the first line
   */
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

  /** Wipes the line, and nothing started so far is shown again: the command is over, or a question is asked. */
  close(): void {
    this.#labels.length = 0;
    this.#stop();
  }

  #wait(first: object): void {
    this.#terminal.live = this;
    this.#first = first;
    // Neither timer keeps the process running: a forgotten spinner must not hang a command that is done.
    this.#timer = setTimeout(() => void this.#show(first), patienceMs).unref();
  }

  /** @param first what has taken that long; while the spinner was loaded it may have ended, and something else started */
  async #show(first: object): Promise<void> {
    const { default: ora } = await import("ora");
    if (this.#first !== first) return;
    const terminal = this.#terminal;
    this.#spinner = ora({
      stream: terminal.stderr,
      discardStdin: false, // it would put the terminal into raw mode
      hideCursor: false, // it would catch signals to show the cursor again
      isEnabled: true,
      color: terminal.colour.stderr === 0 ? (false as const) : "cyan",
    });
    clearTimeout(this.#timer);
    this.#timer = setInterval(() => this.#draw(), lookMs).unref();
    this.#draw();
  }

  #draw(): void {
    const label = this.#labels.at(-1)?.label();
    // A terminal that does not know its width says 0, and the spinner would count lines without end.
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

// Work on several items at the same time: a row for each with its state, drawn in place on a terminal; elsewhere a plain line for each
// change of a state, so that a log and a screen reader miss nothing.

/**
 * What `output.liveTable(title, items)` gives. Call `set` when an item begins or continues something, `end` when it is over, in
 * any order and from work that runs side by side, and `done` in a `finally`: the rows are wiped, and the command prints
 * its result. Questions, notes and waits in between are shown as always.
 *
 *     const table = output.liveTable("Recovering", ids);
 *     try {
 *       table.set(id, "recovering");
 *       table.end(id, "done");
 *     } finally {
 *       table.done();
 *     }
 */
export interface LiveTable {
  /** What an item does now, in a word or a few. */
  set(item: string, state: string): void;
  /** How an item ended. */
  end(item: string, state: string): void;
  /** All is over. Safe to repeat. */
  done(): void;
}

/** Not a state of the journal: there a change that is waiting is done but for the old credential. */
const notStarted = "not started";
/** Lines that are left to the rest of the screen. */
const linesKept = 6;
const mostRows = 20;

export class DrawnTable implements LiveTable {
  readonly #states: Map<string, { readonly state: string; readonly isOver: boolean }>;
  readonly #title: string;
  readonly #progress: Progress;

  /** @param rows of the terminal, at this moment @param time how long it has taken, in words */
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

  /** What is under way first, then what is over, the last of it first, then what waits; the rest as a number. */
  #lines(room: number): string[] {
    const all = [...this.#states].map(([item, { state, isOver }]) => ({ item: visibleText(item), state, isOver }));
    const under = all.filter(({ isOver, state }) => !isOver && state !== notStarted);
    const over = all.filter(({ isOver }) => isOver).reverse();
    const shown = [...under, ...over, ...all.filter(({ isOver, state }) => !isOver && state === notStarted)];
    const width = shown.slice(0, room).reduce((widest, { item }) => Math.max(widest, item.length), 0);
    const lines = shown.slice(0, room).map(({ item, state }) => `  ${item.padEnd(width)}  ${visibleText(state)}`);
    return shown.length > room ? [...lines, `  … and ${shown.length - room} more`] : lines;
  }
}

/** A line for each change. */
export class PlainTable implements LiveTable {
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

// What is said of work that takes a while: drawn in place on a terminal, in lines if someone may listen to the screen, and now
// and then in a log.

interface ProgressOptions {
  readonly terminal: Terminal;
  readonly quiet: boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since some moment of this process. */
  readonly elapsed: () => number;
  readonly live: LiveLine;
  /** Lines can be redrawn, and may be. */
  readonly isDrawn: boolean;
  readonly note: (text: string) => void;
}

interface Progresses {
  progress(label: string): Progress;
  countdown(label: string, ms: number): Progress;
  liveTable(title: string, items: readonly string[]): LiveTable;
}

/** After so long someone at a terminal wonders, and the reader of a log. */
const [wonderMs, longWaitMs] = [2_000, 5_000];
/** How often a line is printed for something that takes long. */
const lineEveryMs = 10_000;
/** From so long on a wait says its end by the clock too. */
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
  const isListenedTo = terminal.isTTY.stderr;
  /** Waits that had a line of their own. */
  const waits = new Set<object>();
  return {
    progress(label) {
      if (options.quiet) return silent;
      if (!isListenedTo) return logged(note, elapsed);
      return spoken(note, { label, since: localClock(now()), isSilent: () => waits.size > 0 });
    },
    countdown(label, ms) {
      if (ms < (isListenedTo ? wonderMs : longWaitMs)) return silent;
      note(`${label} (in ${Math.ceil(ms / 1000)} s${untilClock(ms, now())}).`);
      const wait: Progress = { update: () => {}, done: () => void waits.delete(wait) };
      waits.add(wait);
      return wait;
    },
    liveTable: (_title, items) => new PlainTable(items.length > 1 ? note : () => {}),
  };
}

/** A time of today as the clock on the wall shows it, in this machine's own zone: `09:28:31`. */
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

/** With the seconds since something new was said. */
function drawn(
  begin: (label: Label) => Progress,
  { label, elapsed }: { readonly label: string; readonly elapsed: () => number },
): Progress {
  let [text, since] = [label, elapsed()];
  const { done } = begin(() => [text, secondsSince(since, elapsed())]);
  return { update: (other) => void ([text, since] = [other, elapsed()]), done };
}

function secondsSince(began: number, now: number): string {
  return now - began < wonderMs ? "" : ` · ${Math.floor((now - began) / 1000)} s`;
}

/** In a log: a line now and then if there is something new. */
function logged(note: (text: string) => void, elapsed: () => number): Progress {
  let said = elapsed();
  return {
    update(label) {
      if (elapsed() - said < lineEveryMs) return;
      said = elapsed();
      note(`${label}.`);
    },
    done: () => {},
  };
}

interface Spoken {
  readonly label: string;
  /** When it began, by the clock on the wall. */
  readonly since: string;
  /** Something else says what is waited for. */
  readonly isSilent: () => boolean;
}

/** For a screen reader and a narrow terminal: a line of what is new, or that it still continues. */
function spoken(note: (text: string) => void, { label, since, isSilent }: Spoken): Progress {
  let [text, said] = [label, label];
  const speak = (): void => {
    if (isSilent()) return;
    note(text === said ? `Still waiting since ${since}: ${text}.` : `${text}.`);
    said = text;
  };
  // Neither timer keeps the process running.
  let timer = setTimeout(() => {
    speak();
    timer = setInterval(speak, lineEveryMs).unref();
  }, wonderMs).unref();
  return { update: (other) => void (text = other), done: () => clearTimeout(timer) };
}
