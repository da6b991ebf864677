// How what is shown fits a terminal: the rows of a table beside each other, or a block for each, and words broken into lines, so
// that what a person copies is whole.

/** Between two columns. */
export const gap = 2;

/** What a column would like, and how far it may give way. */
export interface Wish {
  readonly width: number;
  /** Never narrower: an id has its whole width here. */
  readonly least: number;
  /** Where it is if the row is too narrow for it: `away` is left out, before another goes `below` the row. */
  readonly otherwise: "block" | "below" | "away";
}

export type Layout =
  | {
      readonly kind: "rows";
      readonly shown: readonly number[];
      readonly widths: readonly number[];
      /** Columns that each row has on lines of its own below it. */
      readonly below: readonly number[];
    }
  | { readonly kind: "blocks" };

/** A column of words is not cut below this, or below what it needs. */
export const narrowest = 16;

/** A sentence in fewer columns than these is harder to read than a block. */
export const narrowestSentence = 24;

/**
 * Rows if they fit into `room` columns: the widest column of words gives way first, then columns that are good to
 * have are left out or go below the row, details first, from the right. What cannot be cut stays whole: if it does not fit, each row is a block.
 */
export function layoutOf(
  wishes: readonly Wish[],
  { room, of = [...wishes.keys()] }: { readonly room: number; readonly of?: readonly number[] },
): Layout {
  const shown = [...of];
  const below: number[] = [];
  const leastOf = (index: number): number => Math.min(wishes[index]?.width ?? 0, wishes[index]?.least ?? 0);
  while (total(shown.map(leastOf)) > room) {
    const lastOf = (otherwise: Wish["otherwise"]): number =>
      shown.findLastIndex((index) => wishes[index]?.otherwise === otherwise);
    const detail = lastOf("away");
    const leaving = detail < 0 ? lastOf("below") : detail;
    if (leaving < 0) return { kind: "blocks" };
    if (detail < 0) below.unshift(shown[leaving]!);
    shown.splice(leaving, 1);
  }
  const widths = shown.map((index) => wishes[index]?.width ?? 0);
  shrink(widths, { least: shown.map(leastOf), room });
  return { kind: "rows", shown, widths, below };
}

/** To one level: the widest give, and of two equal ones the one on the right. */
function shrink(widths: number[], { least, room }: { readonly least: readonly number[]; readonly room: number }): void {
  for (let excess = total(widths) - room; excess > 0; ) {
    const able = [...widths.keys()].filter((index) => (widths[index] ?? 0) > (least[index] ?? 0));
    const widest = able.reduce((found, index) => Math.max(found, widths[index] ?? 0), 0);
    const givers = able.filter((index) => widths[index] === widest);
    const next = able.reduce(
      (found, index) => (widths[index] === widest ? found : Math.max(found, widths[index] ?? 0)),
      0,
    );
    const floor = Math.max(next, ...givers.map((index) => least[index] ?? 0));
    const each = Math.max(1, Math.min(widest - floor, Math.floor(excess / givers.length)));
    for (const index of givers.reverse()) {
      if (excess <= 0) return;
      const given = Math.min(each, excess);
      widths[index] = (widths[index] ?? 0) - given;
      excess -= given;
    }
  }
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1);
}

// Words broken into lines at the width of a terminal.

export interface Wrapping {
  /** Columns; without them nothing is broken. */
  readonly width?: number | undefined;
  /** What is before each line. */
  readonly margin?: string;
}

/** Narrower than this a terminal breaks lines as well as we do. */
const narrowestLine = 20;

/**
 * A text in lines that fit the width, each behind the margin. It is broken between words alone, and a word that is
 * longer than a line stays whole: it may be an id or an address. So does a command at its end.
 */
export function wrapped(text: string, { width, margin = "" }: Wrapping): string {
  if (width === undefined || width < narrowestLine) return margin + text;
  const lines: string[] = [];
  let line = "";
  for (const word of wordsOf(text)) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && margin.length + longer.length > width) {
      lines.push(margin + line);
      line = word;
    } else line = longer;
  }
  lines.push(margin + line);
  return lines.join("\n");
}

/** Parts beside each other, each whole: what does not fit begins a line. */
export function joinedWithin(parts: readonly string[], width = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const joined = `${last} · ${part}`;
    if (last !== undefined && joined.length <= width) lines[lines.length - 1] = joined;
    else lines.push(part);
  }
  return lines;
}

/** `integ`, and behind it names of commands, ids, flags and their values, up to what ends a clause. */
const command = /integ(?: (?:'[^']*'|[\w./:<>@*+=-]*[\w/>*=-]))+/g;
const joint = "\u0000";

/** A command is one word: broken in two it could not be copied. */
function wordsOf(text: string): string[] {
  const [, prose = text, last] = /^(.*:) (integ .*)$/.exec(text) ?? [];
  const joined = prose.replaceAll(command, (found) => found.replaceAll(" ", joint));
  const words = joined.split(" ").map((word) => word.replaceAll(joint, " "));
  return last === undefined ? words : [...words, last];
}
