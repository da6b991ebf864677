// What is said of work that takes a while: drawn in place on a terminal, in lines where someone may listen to the screen, and
// now and then in a log.
import { DrawnTable, type Label, type LiveLine, type LiveTable, PlainTable, type Progress } from "./live-view.ts";
import { localClock } from "./relative-time.ts";
import type { Terminal } from "./terminal.ts";

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
