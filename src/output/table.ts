// Owns: tables and single resources for a person: aligned, fitted to a terminal, nothing cut on a pipe.
// Must not know: which rows, the API. Source: cli.md §2 (table), quality.md Performance (100,000 rows).
import type { ChalkInstance } from "chalk";
import { type CellColumn, cellColumns, cellOf, personCell, type Row, rowOf, rowsOf } from "./cells.ts";
import { fittedWidths, gap } from "./column-widths.ts";
import { asciiWidth, type DisplayWidth, isAscii, unicodeWidth } from "./display-width.ts";
import { FieldWatch } from "./field-watch.ts";
import type { ListEnd, ListTarget, ListView, ListWriter, ResourceView } from "./list.ts";
import { relativeTime, relativeTimeWidth } from "./relative-time.ts";
import { isPlain, type RowPage } from "./row-page.ts";
import { visibleText } from "./visible-text.ts";

/** A list as a table. The first rows fix the widths; later ones are cut to them on a terminal, else stand out. */
export function tableList(view: ListView, target: ListTarget): ListWriter {
  return new TableList(view, target);
}

class TableList implements ListWriter {
  rowsWritten = 0;
  private readonly columns: readonly CellColumn[];
  private readonly watch: FieldWatch;
  private widths: readonly number[] | undefined;
  private measure = asciiWidth;
  private paint: ChalkInstance | undefined;

  constructor(
    private readonly view: ListView,
    private readonly target: ListTarget,
  ) {
    this.columns = cellColumns(view.columns, target.fields);
    this.watch = new FieldWatch(target.fields);
  }

  async page(page: RowPage): Promise<void> {
    const rows = rowsOf(page);
    if (rows.length === 0) return;
    const isPlainPage = isPlain(page);
    if (this.target.fields !== undefined) for (const row of rows) this.watch.look(() => row.lossless());
    const cells = rows.map((row) => this.cells(row, isPlainPage));
    const isAsciiText = isPlainPage || cells.every((row) => row.every(isAscii));
    if (!isAsciiText && this.measure === asciiWidth) this.measure = await unicodeWidth();
    let text = this.widths === undefined ? await this.begin(cells) : "";
    for (const row of cells) text += this.line(row);
    // One byte a character is much quicker to turn into bytes; a terminal's table may hold an ellipsis.
    const isOneByte = this.measure === asciiWidth && !this.target.isTerminal;
    await this.target.sink.write(isOneByte ? Buffer.from(text, "latin1") : text);
    this.rowsWritten += rows.length;
  }

  private cells(row: Row, isPlainPage: boolean): string[] {
    const { target, columns } = this;
    const time = (iso: string): string => (target.isTerminal ? relativeTime(iso, target.now()) : iso);
    return columns.map(({ field, kind }) => personCell(cellOf(row, field), { kind, time, isPlain: isPlainPage }));
  }

  /** Fixes the widths, and gives the heading. */
  private async begin(cells: readonly (readonly string[])[]): Promise<string> {
    const { target, columns } = this;
    const headings = columns.map(({ heading }) => visibleText(heading.toUpperCase()));
    if (!headings.every(isAscii)) this.measure = await unicodeWidth();
    this.paint = await painter(target.colour);
    const widest = columns.map((column, index) => {
      const least = target.isTerminal && column.kind === "time" ? relativeTimeWidth : 0;
      return cells.reduce(
        (width, row) => Math.max(width, this.measure.of(row[index] ?? "")),
        Math.max(least, this.measure.of(headings[index] ?? "")),
      );
    });
    const wishes = columns.map(({ kind }, index) => ({
      width: widest[index] ?? 0,
      isKept: index === 0 || kind === "status" || kind === "time",
    }));
    this.widths = target.isTerminal ? fittedWidths(wishes, target.width) : widest;
    const hidden = headings.slice(this.widths.length);
    if (hidden.length > 0) target.note(`the terminal is too narrow for: ${hidden.join(", ")} (--fields chooses)`);
    return this.line(headings, { isHeading: true });
  }

  private line(cells: readonly string[], { isHeading = false } = {}): string {
    const widths = this.widths ?? [];
    let line = "";
    for (const [index, width] of widths.entries()) {
      const cell = cells[index] ?? "";
      const text = this.target.isTerminal ? this.measure.fit(cell, width) : cell;
      const isLast = index === widths.length - 1;
      const padding = isLast ? "" : " ".repeat(Math.max(0, width - this.measure.of(text)) + gap);
      line += this.painted(text, { index, isHeading }) + padding;
    }
    return `${line}\n`;
  }

  private painted(text: string, { index, isHeading }: { index: number; isHeading: boolean }): string {
    if (this.paint === undefined) return text;
    if (isHeading) return this.paint.bold(text);
    return this.columns[index]?.kind === "status" ? paintStatus(text, this.paint) : text;
  }

  async end(_state: ListEnd): Promise<void> {
    if (this.widths === undefined) {
      if (this.target.isTerminal) this.target.note(`no ${this.view.plural}`);
      else await this.target.sink.write(await this.begin([]));
    }
    const verdict = this.watch.verdict(this.view.singular);
    if (verdict !== undefined) this.target.note(verdict);
  }

  async abandon(): Promise<void> {}
}

/**
 * One resource: a heading and a value a line, nothing ever cut; fields the document does not name come last, under
 * their wire name.
 * @param text JSON object
 */
export async function tableResource(
  text: string,
  options: { view: ResourceView; target: ListTarget },
): Promise<string> {
  const { view, target } = options;
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

function otherColumns(row: Row, { view, target }: { view: ResourceView; target: ListTarget }): CellColumn[] {
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
  green: ["active", "done", "ok"],
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
