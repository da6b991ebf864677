// Fits tables and texts to a terminal. Values that users copy stay whole.
import { isAscii, roughFit, roughWidth } from "../visible-text.ts";

export const gap = 2;

export interface WidthRange {
  readonly width: number;
  /** The least width; equal to `width` for ids, words, statuses and times. */
  readonly least: number;
  /**
   * If the columns do not fit, `away` columns are omitted, then `below` columns move below the row; else each row is a
   * block.
   */
  readonly otherwise: "block" | "below" | "away";
}

export type Layout =
  | {
      readonly kind: "rows";
      readonly shown: readonly number[];
      readonly widths: readonly number[];
      readonly below: readonly number[];
    }
  | { readonly kind: "blocks" };

/** A text column with longer texts has at least this width. */
export const narrowest = 16;

/** A narrower sentence is harder to read than a block. */
export const narrowestSentence = 24;

/**
 * Columns shrink to their least width. If that is not enough, optional columns are omitted or moved, from the right. If
 * the rest does not fit into `room`, each row becomes a block.
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

/** Of equally wide columns, shrinks the rightmost first. */
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

export interface Wrapping {
  /** Width in columns; undefined prevents wrapping. */
  readonly width?: number | undefined;
  readonly margin?: string;
  /** Cut wide names: see `shortName`. */
  readonly cutsNames?: boolean;
}

/** Below this width, the terminal wraps the text itself. */
const narrowestLine = 20;

/** A wider word is a name if it has no digit or is not ASCII, and is not a path. */
const widestWord = 32;

function shortName(word: string, room: number): string {
  const isPath = /[/\\=\s]|[.:][\p{L}\p{N}]/u.test(word);
  if (roughWidth(word) <= Math.max(room, widestWord) || isPath || (isAscii(word) && /\d/.test(word))) return word;
  const [end = ""] = /[.,:;)"]*$/.exec(word) ?? [];
  return roughFit(word.slice(0, word.length - end.length), room - end.length) + end;
}

/** Breaks the text between words. Commands stay whole. An id gets no margin if it fits only without one. */
export function wrapped(text: string, { width, margin = "", cutsNames = false }: Wrapping): string {
  if (width === undefined || width < narrowestLine) return margin + text;
  const lines: string[] = [];
  const fitsAlone = (one: string): boolean => margin.length + one.length > width && one.length <= width;
  const placed = (one: string): string => (fitsAlone(one) && /^[\w-]+\W?$/.test(one) ? one : margin + one);
  let line = "";
  for (const whole of wordsOf(text)) {
    const word = cutsNames ? shortName(whole, width - margin.length) : whole;
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && margin.length + roughWidth(longer) > width) {
      lines.push(placed(line));
      line = word;
    } else line = longer;
  }
  lines.push(placed(line));
  return lines.join("\n");
}

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

const value = String.raw`(?:'[^']*'(?:\\''[^']*')*|[\w./:<>@*+=-]*[\w/>*=-])`;

/** Nouns, and verbs without a noun. A test compares them with the command tree. */
export const firstWords =
  "adopt|api|apply|cohorts|commands|completion|doctor|entities|help|journal|keys|oauth-clients|people|plan|policy|profiles|report|sandbox|schema|spec|status";
const integ = String.raw`integ (?:--|(?:${firstWords})(?![\w-]))`;

/**
 * Matches a command in a sentence: a program, up to three plain words, then flags with their values, and words with a
 * digit or sign. A later plain word belongs to the sentence. Also matches an option with its value.
 */
const command = new RegExp(
  String.raw`\b(?:(?=${integ})integ|gh|kubectl|vault)(?: (?!-)${value}){0,3}(?: (?:--?[a-z][\w-]*(?:[ =](?!-)${value})?|(?=\S*[\d_/<>'=@-]|\S+\.\w)${value}))*|(?<![\w-])--[a-z][\w-]* (?=\S*[\d_/,<])${value}`,
  "g",
);
const lastCommand = new RegExp(String.raw`^${integ}[^,]*[^,.]$`);
const separator = "\u0000";

/** Keeps a command in one piece for copying. */
function wordsOf(text: string): string[] {
  const end = text.lastIndexOf(": integ ") + 1;
  const last = end > 0 && lastCommand.test(text.slice(end + 1)) ? text.slice(end + 1) : undefined;
  const prose = last === undefined ? text : text.slice(0, end);
  const joined = prose.replaceAll(command, (found) => found.replaceAll(" ", separator));
  const words = joined.split(" ").map((word) => word.replaceAll(separator, " "));
  return last === undefined ? words : [...words, last];
}
