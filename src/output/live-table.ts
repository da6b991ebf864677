// Work on several items at the same time: a row for each with its state, drawn in place on a terminal; elsewhere a plain line for each
// change of a state, so that a log and a screen reader lose nothing.
import type { LiveLine, Progress } from "./live-line.ts";
import { visibleText } from "./visible-text.ts";

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

/** What is not started. */
const waiting = "waiting";
/** Lines that are left to the rest of the screen. */
const linesKept = 6;
const mostRows = 20;

export class DrawnTable implements LiveTable {
  readonly #states: Map<string, { readonly state: string; readonly isOver: boolean }>;
  readonly #title: string;
  readonly #progress: Progress;

  /** @param rows of the terminal, at this moment */
  constructor(
    live: LiveLine,
    { title, items, rows }: { readonly title: string; readonly items: readonly string[]; readonly rows: () => number },
  ) {
    this.#title = title;
    this.#states = new Map(items.map((item) => [item, { state: waiting, isOver: false }]));
    const room = (): number => Math.max(1, Math.min(mostRows, rows() - linesKept));
    this.#progress = live.begin(
      () => [this.#summary()],
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
    const under = all.filter(({ isOver, state }) => !isOver && state !== waiting);
    const over = all.filter(({ isOver }) => isOver).reverse();
    const shown = [...under, ...over, ...all.filter(({ isOver, state }) => !isOver && state === waiting)];
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
