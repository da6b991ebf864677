import type { ChalkInstance } from "chalk";
import { ChosenFields } from "../fields.ts";
import { relativeTime, relativeTimeWidth } from "../relative-time.ts";
import { type RowPage, isPlain } from "../row-page.ts";
import { type DisplayWidth, asciiWidth, isAscii, unicodeWidth, visibleText } from "../visible-text.ts";
import { type CellColumn, cellColumns, cellOf, personCell, type Row, rowOf, rowsOf } from "./cells.ts";
import type { Formatter, ListTarget, ListView, PageWriter, ShownResource } from "./format.ts";

/** Tables and single resources for a person: aligned, fitted to a terminal, nothing cut on a pipe. */
export const table: Formatter = { resource: tableResource, list: (view, target) => new TableList(view, target) };

/** The first rows fix the widths; later ones are cut to them on a terminal, else stand out. */
class TableList implements PageWriter {
  readonly #columns: readonly CellColumn[];
  readonly #chosen: ChosenFields;
  #widths: readonly number[] | undefined;
  #measure = asciiWidth;
  #paint: ChalkInstance | undefined;

  readonly #view: ListView;
  readonly #target: ListTarget;

  constructor(view: ListView, target: ListTarget) {
    this.#view = view;
    this.#target = target;
    this.#columns = cellColumns(view.columns, target.fields);
    this.#chosen = new ChosenFields(target.fields);
  }

  async page(page: RowPage): Promise<void> {
    const rows = rowsOf(page);
    if (rows.length === 0) return;
    const isPlainPage = isPlain(page);
    if (this.#target.fields !== undefined) for (const row of rows) this.#chosen.see(() => row.lossless());
    const cells = rows.map((row) => this.#cells(row, isPlainPage));
    const isAsciiText = isPlainPage || cells.every((row) => row.every(isAscii));
    if (!isAsciiText && this.#measure === asciiWidth) this.#measure = await unicodeWidth();
    let text = this.#widths === undefined ? await this.#begin(cells) : "";
    for (const row of cells) text += this.#line(row);
    // One byte a character is much quicker to turn into bytes; a terminal's table may hold an ellipsis.
    const isOneByte = this.#measure === asciiWidth && !this.#target.isTerminal;
    await this.#target.sink.write(isOneByte ? Buffer.from(text, "latin1") : text);
  }

  #cells(row: Row, isPlainPage: boolean): string[] {
    const target = this.#target;
    const columns = this.#columns;
    const time = (iso: string): string => (target.isTerminal ? relativeTime(iso, target.now()) : iso);
    return columns.map(({ field, kind }) => personCell(cellOf(row, field), { kind, time, isPlain: isPlainPage }));
  }

  /** Fixes the widths, and gives the heading. */
  async #begin(cells: readonly (readonly string[])[]): Promise<string> {
    const target = this.#target;
    const columns = this.#columns;
    const headings = columns.map(({ heading }) => visibleText(heading.toUpperCase()));
    if (!headings.every(isAscii)) this.#measure = await unicodeWidth();
    this.#paint = await painter(target.colour);
    const widest = columns.map((column, index) => {
      const least = target.isTerminal && column.kind === "time" ? relativeTimeWidth : 0;
      return cells.reduce(
        (width, row) => Math.max(width, this.#measure.of(row[index] ?? "")),
        Math.max(least, this.#measure.of(headings[index] ?? "")),
      );
    });
    const wishes = columns.map(({ kind }, index) => ({
      width: widest[index] ?? 0,
      isKept: index === 0 || kind === "status" || kind === "time",
    }));
    this.#widths = target.isTerminal ? fittedWidths(wishes, target.width) : widest;
    const hidden = headings.slice(this.#widths.length);
    if (hidden.length > 0)
      target.note(`hidden columns (the terminal is too narrow): ${hidden.join(", ")} (--fields chooses)`);
    return this.#line(headings, { isHeading: true });
  }

  #line(cells: readonly string[], { isHeading = false } = {}): string {
    const widths = this.#widths ?? [];
    let line = "";
    for (const [index, width] of widths.entries()) {
      const cell = cells[index] ?? "";
      const text = this.#target.isTerminal ? this.#measure.fit(cell, width) : cell;
      const isLast = index === widths.length - 1;
      const padding = isLast ? "" : " ".repeat(Math.max(0, width - this.#measure.of(text)) + gap);
      line += this.#painted(text, { index, isHeading }) + padding;
    }
    return `${line}\n`;
  }

  #painted(text: string, { index, isHeading }: { index: number; isHeading: boolean }): string {
    if (this.#paint === undefined) return text;
    if (isHeading) return this.#paint.bold(text);
    return this.#columns[index]?.kind === "status" ? paintStatus(text, this.#paint) : text;
  }

  async end(): Promise<void> {
    if (this.#widths === undefined && !this.#target.isTerminal) await this.#target.sink.write(await this.#begin([]));
    this.#chosen.tellMissing(this.#view.singular, this.#target.tellMissing);
  }
}

/**
 * One resource: a heading and a value a line, nothing ever cut; fields the document does not name come last, under
 * their wire name.
 * @param text JSON object
 */
async function tableResource(text: string, { view, target }: ShownResource): Promise<string> {
  const row = rowOf(text);
  const columns = [...cellColumns(view.columns, target.fields), ...otherColumns(row, { view, target })];
  const paint = await painter(target.colour);
  const headings = columns.map(({ heading }) => visibleText(heading));
  const measure: DisplayWidth = headings.every(isAscii) ? asciiWidth : await unicodeWidth();
  const width = Math.max(0, ...headings.map((heading) => measure.of(heading)));
  const time = (iso: string): string => {
    const relative = relativeTime(iso, target.now());
    return target.isTerminal && relative !== iso ? `${relative} (${iso})` : iso;
  };
  const lines = columns.map(({ field, kind }, index) => {
    const heading = headings[index] ?? "";
    const value = personCell(cellOf(row, field), { kind, time, isPlain: false });
    const shown = paint !== undefined && kind === "status" ? paintStatus(value, paint) : value;
    return (paint?.bold(heading) ?? heading) + " ".repeat(width - measure.of(heading) + gap) + shown;
  });
  if (view.title !== undefined && target.isTerminal) lines.unshift(visibleText(view.title));
  return `${lines.join("\n")}\n`;
}

function otherColumns(row: Row, { view, target }: ShownResource): CellColumn[] {
  if (target.fields !== undefined || typeof row.value !== "object" || row.value === null) return [];
  return Object.keys(row.value)
    .filter((key) => !view.columns.some(({ path }) => path === key || path.startsWith(`${key}.`)))
    .map((key) => ({ path: key, heading: key, field: { name: key, steps: [key] } }));
}

async function painter(level: 0 | 1 | 2 | 3): Promise<ChalkInstance | undefined> {
  if (level === 0) return undefined;
  const { Chalk } = await import("chalk");
  return new Chalk({ level });
}

const colours = {
  green: ["active", "done", "ok", "waiting"],
  yellow: ["pending", "open", "unknown", "warning"],
  red: ["revoked", "disabled", "expired", "refused", "problem", "secret_lost", "undelivered", "unusable"],
} as const;

/** The word says it all; the colour only helps to find it. */
function paintStatus(status: string, paint: ChalkInstance): string {
  const word = status.trimEnd();
  for (const colour of ["green", "yellow", "red"] as const) {
    if (colours[colour].some((known) => known === word)) return paint[colour](status);
  }
  return status;
}

/** Between two columns. */
export const gap = 2;
/** A column is not cut below this, or below what it needs. */
const narrowest = 8;

/** What a column would like, and how it may be cut. */
export interface Wish {
  readonly width: number;
  /** Cut only when no other column can give any more: what a person copies, or what is short anyway. */
  readonly isKept: boolean;
}

/**
 * Widths that fit into `room` columns of a terminal: the widest column gives first. Where not even the narrowest widths
 * fit, columns are left out from the right; the first one always stays.
 * @returns a width for each column that is shown
 */
export function fittedWidths(wishes: readonly Wish[], room: number): number[] {
  const least = wishes.map(({ width }) => Math.min(width, narrowest));
  let shown = wishes.length;
  while (shown > 1 && total(least.slice(0, shown)) > room) shown -= 1;
  const widths = wishes.slice(0, shown).map(({ width }) => Math.min(width, room));
  for (const isKept of [false, true]) {
    const givers = [...widths.keys()].filter((index) => wishes[index]?.isKept === isKept);
    shrink(widths, { givers, least, room });
  }
  if (total(widths) > room) widths[0] = Math.max(1, room);
  return widths;
}

function shrink(widths: number[], options: { givers: number[]; least: readonly number[]; room: number }): void {
  const { givers, least, room } = options;
  for (let excess = total(widths) - room; excess > 0; excess -= 1) {
    const able = givers.filter((index) => (widths[index] ?? 0) > (least[index] ?? 0));
    const widest = able.sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0];
    if (widest === undefined) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1);
}
