// Fits tables and texts to a terminal: rows or blocks, and wrapped lines. Values that users copy stay whole.
import { roughWidth } from "../visible-text.ts";

/** Columns between two table columns. */
export const gap = 2;

/** A column's preferred width and how it may shrink. */
export interface WidthRange {
  readonly width: number;
  /** Minimum width: for an id its whole width. */
  readonly least: number;
  /** If a row does not fit: `away` columns are omitted, then `below` columns move below it, else it becomes a `block`. */
  readonly otherwise: "block" | "below" | "away";
}

export type Layout =
  | {
      readonly kind: "rows";
      readonly shown: readonly number[];
      readonly widths: readonly number[];
      /** Columns on separate lines below each row. */
      readonly below: readonly number[];
    }
  | { readonly kind: "blocks" };

/** Minimum width of a text column, unless it needs less. */
export const narrowest = 16;

/** Minimum width of a sentence: narrower sentences are harder to read than a block. */
export const narrowestSentence = 24;

/**
 * Chooses the layout of a table: rows if they fit into `room`. First the widest text columns shrink, then optional columns are omitted or move
 * below the row, details first, from the right. Uncuttable columns stay whole: if they do not fit, each row becomes a
 * block.
 */
export function layoutOf(
  ranges: readonly WidthRange[],
  { room, of = [...ranges.keys()] }: { readonly room: number; readonly of?: readonly number[] },
): Layout {
  const shown = [...of];
  const below: number[] = [];
  const leastOf = (index: number): number => Math.min(ranges[index]?.width ?? 0, ranges[index]?.least ?? 0);
  while (total(shown.map(leastOf)) > room) {
    const lastOf = (otherwise: WidthRange["otherwise"]): number =>
      shown.findLastIndex((index) => ranges[index]?.otherwise === otherwise);
    const detail = lastOf("away");
    const leaving = detail < 0 ? lastOf("below") : detail;
    if (leaving < 0) return { kind: "blocks" };
    if (detail < 0) below.unshift(shown[leaving]!);
    shown.splice(leaving, 1);
  }
  const widths = shown.map((index) => ranges[index]?.width ?? 0);
  shrink(widths, { least: shown.map(leastOf), room });
  return { kind: "rows", shown, widths, below };
}

/** Takes the excess width from the widest columns; among equally wide columns the rightmost shrinks first. */
function shrink(widths: number[], { least, room }: { readonly least: readonly number[]; readonly room: number }): void {
  for (let excess = total(widths) - room; excess > 0; ) {
    const shrinkable = [...widths.keys()].filter((index) => (widths[index] ?? 0) > (least[index] ?? 0));
    const widest = shrinkable.reduce((found, index) => Math.max(found, widths[index] ?? 0), 0);
    const widestColumns = shrinkable.filter((index) => widths[index] === widest);
    const next = shrinkable.reduce(
      (found, index) => (widths[index] === widest ? found : Math.max(found, widths[index] ?? 0)),
      0,
    );
    const floor = Math.max(next, ...widestColumns.map((index) => least[index] ?? 0));
    const each = Math.max(1, Math.min(widest - floor, Math.floor(excess / widestColumns.length)));
    for (const index of widestColumns.reverse()) {
      if (excess <= 0) return;
      const taken = Math.min(each, excess);
      widths[index] = (widths[index] ?? 0) - taken;
      excess -= taken;
    }
  }
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1);
}

// Wrapping at the terminal's width.

export interface Wrapping {
  /** Columns; undefined disables wrapping. */
  readonly width?: number | undefined;
  /** Printed before each line. */
  readonly margin?: string;
}

/** Minimum width for wrapping. A narrower terminal wraps the text itself. */
const narrowestLine = 20;

/** Wraps a text between words, each line behind the margin. Long words and a command at the end stay whole. */
export function wrapped(text: string, { width, margin = "" }: Wrapping): string {
  if (width === undefined || width < narrowestLine) return margin + text;
  const lines: string[] = [];
  let line = "";
  for (const word of wordsOf(text)) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && margin.length + roughWidth(longer) > width) {
      lines.push(margin + line);
      line = word;
    } else line = longer;
  }
  lines.push(margin + line);
  return lines.join("\n");
}

/** Joins the parts into lines within the width, without breaking a part. */
export function joinedWithin(parts: readonly string[], width = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const joined = `${last} · ${part}`;
    if (last !== undefined && roughWidth(joined) <= width) lines[lines.length - 1] = joined;
    else lines.push(part);
  }
  return lines;
}

/** `integ` and the command words, ids, flags and values after it, to the end of the clause. */
const command = /integ(?: (?:'[^']*'|[\w./:<>@*+=-]*[\w/>*=-]))+/g;
const joint = "\u0000";

/** Splits a text into words. A command is one word, because users could not copy a broken command. */
function wordsOf(text: string): string[] {
  const [, prose = text, last] = /^(.*:) (integ .*)$/.exec(text) ?? [];
  const joined = prose.replaceAll(command, (found) => found.replaceAll(" ", joint));
  const words = joined.split(" ").map((word) => word.replaceAll(joint, " "));
  return last === undefined ? words : [...words, last];
}
