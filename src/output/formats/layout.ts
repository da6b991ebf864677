// How what is shown fits a terminal: the rows of a table beside each other, or a block for each, and words broken into lines, so
// that what a person copies is whole.

/** Between two columns. */
export const gap = 2;

/** What a column would like, and how far it may give way. */
export interface Wish {
  readonly width: number;
  /** Never narrower: an id has its whole width here. */
  readonly least: number;
  /** It is left out rather than a row is broken into lines. */
  readonly mayHide: boolean;
}

export type Layout =
  | { readonly kind: "rows"; readonly shown: readonly number[]; readonly widths: readonly number[] }
  | { readonly kind: "blocks" };

/** A column of words is not cut below this, or below what it needs. */
export const narrowest = 8;

/** A sentence in fewer columns than these is harder to read than a block. */
export const narrowestSentence = 24;

/**
 * Rows where they fit into `room` columns: the widest column of words gives way first, then columns that are good to
 * have are left out from the right. What cannot be cut stays whole: where it does not fit, each row is a block.
 */
export function layoutOf(wishes: readonly Wish[], room: number): Layout {
  const shown = [...wishes.keys()];
  const leastOf = (index: number): number => Math.min(wishes[index]?.width ?? 0, wishes[index]?.least ?? 0);
  while (total(shown.map(leastOf)) > room) {
    const hidden = shown.findLastIndex((index) => wishes[index]?.mayHide === true);
    if (hidden < 0) return { kind: "blocks" };
    shown.splice(hidden, 1);
  }
  const widths = shown.map((index) => wishes[index]?.width ?? 0);
  shrink(widths, { least: shown.map(leastOf), room });
  return { kind: "rows", shown, widths };
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
