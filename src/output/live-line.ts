// Owns: the one line on a terminal that says what is being waited for: a spinner after 300 ms, a counter, a countdown.
// Must not know: why somebody waits. It is never on a pipe. Source: cli.md §2 (progress), quality.md (ora).
import type { Ora } from "ora";
import { asciiWidth } from "./display-width.ts";
import type { LiveText, Terminal } from "./terminal.ts";
import { visibleText } from "./visible-text.ts";

/** Something that takes a while. */
export interface Progress {
  /** Says something else from now on. */
  update(label: string): void;
  /** It is over; the line is wiped. Safe to repeat. */
  done(): void;
}

/** What is said, and what follows it even where the terminal is too narrow for all of it. */
export type Label = () => readonly [text: string, end?: string];

/** Nothing is shown of what takes less. */
const patienceMs = 300;
const frameMs = 80;

/** Calls back later. Neither keeps the process alive: a forgotten spinner must not hang a command that is done. */
export interface Timers {
  /** Once. @returns what calls it off */
  after(ms: number, call: () => void): () => void;
  /** Again and again. @returns what ends it */
  every(ms: number, call: () => void): () => void;
}

const realTimers: Timers = {
  after(ms, call) {
    const timer = setTimeout(call, ms).unref();
    return () => clearTimeout(timer);
  },
  every(ms, call) {
    const timer = setInterval(call, ms).unref();
    return () => clearInterval(timer);
  },
};

/** Where nothing may be shown. */
export const silentProgress: Progress = { update: () => {}, done: () => {} };

/** Of several things under way the last one begun is shown. */
export class LiveLine implements LiveText {
  private readonly labels: Array<{ label: Label }> = [];
  private stopTimer = (): void => {};
  private spinner: Ora | undefined;
  /** What began when nothing was under way, until nothing is again. */
  private first: object | undefined;

  constructor(
    private readonly terminal: Terminal,
    private readonly timers: Timers = realTimers,
  ) {}

  /** @param label asked for at every frame */
  begin(label: Label): Progress {
    const item = { label };
    this.labels.push(item);
    if (this.labels.length === 1) this.wait(item);
    return {
      update: (text) => {
        item.label = () => [text];
      },
      done: () => {
        const index = this.labels.indexOf(item);
        if (index !== -1) this.labels.splice(index, 1);
        if (this.labels.length === 0) this.stop();
      },
    };
  }

  clear(): void {
    this.spinner?.clear();
  }

  /** Wipes the line, and nothing begun so far is shown again: the command is over, or a question is asked. */
  close(): void {
    this.labels.length = 0;
    this.stop();
  }

  private wait(first: object): void {
    this.terminal.live = this;
    this.first = first;
    this.stopTimer = this.timers.after(patienceMs, () => void this.show(first));
  }

  /** @param first what has taken that long; while the spinner was loaded it may have ended, and something else begun */
  private async show(first: object): Promise<void> {
    const { default: ora } = await import("ora");
    if (this.first !== first) return;
    const { terminal } = this;
    this.spinner = ora({
      stream: terminal.stderr,
      discardStdin: false, // it would take the terminal into raw mode
      hideCursor: false, // it would catch signals to show the cursor again
      isEnabled: true,
      color: terminal.colour.stderr === 0 ? (false as const) : "cyan",
    });
    this.stopTimer();
    this.stopTimer = this.timers.every(frameMs, () => this.draw());
    this.draw();
  }

  private draw(): void {
    const label = this.labels.at(-1)?.label();
    // A terminal that does not know its width says 0, and the spinner would count lines without end.
    const columns = this.terminal.stderr.columns ?? 0;
    if (this.spinner === undefined || label === undefined || this.terminal.midLine || columns <= 0) return;
    const [text, end = ""] = label;
    this.spinner.text = asciiWidth.fit(visibleText(text), Math.max(1, columns - 4 - end.length)) + end;
    this.spinner.render();
  }

  private stop(): void {
    this.stopTimer();
    this.first = undefined;
    this.spinner?.clear();
    this.spinner = undefined;
    this.terminal.live = undefined;
  }
}
