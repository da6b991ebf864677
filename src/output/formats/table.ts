import { flags } from "../../next-step.ts";
import type { ChalkInstance } from "chalk";
import { JsonText, type Parts } from "../../api/json/json-text.ts";
import { ChosenFields, type FieldPath, valuesAt } from "../fields.ts";
import { relativeTime, relativeTimeWidth } from "../relative-time.ts";
import type { RowPage } from "../row-page.ts";
import { type DisplayWidth, asciiWidth, isAscii, isolated, roughWidth, visibleText } from "../visible-text.ts";
import { type CellColumn, cellColumns, type Cell, keyColumn, personCell, statusCell } from "./cells.ts";
import {
  gap,
  joinedWithin,
  type Layout,
  layoutOf,
  narrowest,
  narrowestSentence,
  type WidthRange,
  wrapped,
} from "./layout.ts";
import type { Formatter, ListTarget, ListView, PageWriter, ResourceView, ShownResource } from "./format.ts";

/** Values are cut only in lists at a terminal. */
export const table: Formatter = { resource: tableResource, list: (view, target) => new TableList(view, target) };

const unicodeWidth = async (): Promise<DisplayWidth> => (await import("../unicode-width.ts")).unicodeWidth();

const below = { command: "Next:", advice: "Fix:" } as const;

/**
 * The first page sets the column widths. At a terminal, wider cells of later pages are cut or wrapped, except ids,
 * words and statuses.
 */
class TableList implements PageWriter {
  readonly #columns: readonly CellColumn[];
  readonly #below: readonly CellColumn[];
  readonly #fields: readonly FieldPath[];
  readonly #all: readonly CellColumn[];
  readonly #chosen: ChosenFields;
  #layout: Layout | undefined;
  #before: Parts | undefined;
  #headings: readonly string[] = [];
  #measure = asciiWidth;
  #paint: ChalkInstance | undefined;
  #hasBlocks = false;
  #hidden: string | undefined;

  readonly #view: ListView;
  readonly #target: ListTarget;

  constructor(view: ListView, target: ListTarget) {
    this.#view = view;
    this.#target = target;
    const isShown = ({ isHidden }: CellColumn): boolean =>
      !target.isTerminal || !isHidden || target.fields !== undefined;
    const columns = cellColumns(view.columns, target.fields).filter(isShown);
    const isBelow = ({ kind }: CellColumn): boolean => target.isTerminal && kind !== undefined && kind in below;
    this.#below = columns.some((column) => !isBelow(column)) ? columns.filter(isBelow) : [];
    this.#columns = columns.filter((column) => !this.#below.includes(column));
    this.#all = [...this.#columns, ...this.#below];
    this.#fields = this.#all.map(({ field }) => field);
    this.#chosen = new ChosenFields(target.fields);
  }

  async page(page: RowPage): Promise<void> {
    if (page.length === 0) return;
    if (this.#target.fields !== undefined) for (const row of page) this.#chosen.see(row);
    const rows = page.map((row) => this.#cells(row));
    if (this.#measure === asciiWidth && !page.every(({ source }) => source.isPlain))
      if (!rows.every((cells) => cells.every(isAscii))) this.#measure = await unicodeWidth();
    let text = this.#layout === undefined ? await this.#begin(rows) : "";
    const steps = this.#below.length === 0 ? [] : rows.map((cells) => this.#steps(cells.slice(this.#columns.length)));
    for (const [index, cells] of rows.entries())
      text += this.#shown(cells) + (steps[index] === steps[index + 1] ? "" : (steps[index] ?? ""));
    await this.#target.sink.write(text);
  }

  #cells(row: JsonText): string[] {
    const target = this.#target;
    const time = (iso: string): string => (target.hasRelativeTimes ? relativeTime(iso, target.now()) : iso);
    const { nowMs = target.now() } = this.#view;
    const values = valuesAt((this.#before = row.parts(this.#before)), this.#fields);
    return this.#all.map((column, index) => {
      const cell = statusCell(values[index], { column, row, nowMs });
      if (cell === null && column.none !== undefined && target.isTerminal) return column.none;
      return personCell(cell, { kind: column.kind, time });
    });
  }

  /** Sentences wrap, but a command stays on one line, so that users can copy it. */
  #steps(cells: readonly string[]): string {
    let text = "";
    for (const [index, { kind }] of this.#below.entries()) {
      const cell = cells[index] ?? "-";
      if (cell === "-") continue;
      // Some columns contain either a command or a sentence. Only a sentence starts with a capital letter.
      const isSentence = kind === "advice" || /^[A-Z]/.test(cell);
      const label = isSentence ? below.advice : below.command;
      const width = isSentence ? this.#target.width : undefined;
      text += `${wrapped(`${label} ${cell}`, { width, margin: "  " }).replace(label, this.#paint?.bold(label) ?? label)}\n`;
    }
    return text;
  }

  async #begin(cells: readonly (readonly string[])[]): Promise<string> {
    const target = this.#target;
    const columns = this.#columns;
    const headings = columns.map(({ heading }) => visibleText(heading.toUpperCase()));
    if (!headings.every(isAscii)) this.#measure = await unicodeWidth();
    this.#paint = await painter(target.color);
    const widest = columns.map((column, index) => {
      const least = target.hasRelativeTimes && column.kind === "time" ? relativeTimeWidth : 0;
      return cells.reduce(
        (width, row) => Math.max(width, this.#measure.of(row[index] ?? "")),
        Math.max(least, this.#measure.of(headings[index] ?? "")),
      );
    });
    const nonRedundant = [...columns.keys()].filter((index) => !this.#isRedundant(index, cells));
    this.#layout = target.isTerminal
      ? layoutOf(widthRangesOf(columns, widest), { room: target.width, of: nonRedundant })
      : { kind: "rows", shown: [...columns.keys()], widths: widest, below: [] };
    this.#headings = headings;
    const layout = this.#layout;
    const isShown = (index: number): boolean =>
      layout.kind === "blocks" || [...layout.shown, ...layout.below].includes(index);
    const hidden = (layout.kind === "blocks" ? [] : columns).flatMap(({ field }, index) => {
      const [value = "-"] = cells.map((row) => row[index]);
      const name = visibleText(field.name);
      if (!nonRedundant.includes(index))
        return value === "-" ? [] : [{ name, words: `${name} (${value} in every row)` }];
      return isShown(index) || cells.every((row) => row[index] === "-") ? [] : [{ name, words: `${name} (no space)` }];
    });
    if (hidden.length > 0) {
      const choice = [flags.fields, [columns[0]!.field.name, ...hidden.map(({ name }) => name)].join(",")].join(" ");
      this.#hidden = `Hidden columns: ${hidden.map(({ words }) => words).join(", ")}. To see them: ${visibleText(choice)}`;
    }
    return layout.kind === "blocks" ? "" : this.#line(headings, { layout, isHeading: true });
  }

  /**
   * Without `--fields`, a terminal omits a column of a complete list, except the first, if its cells are all empty, or
   * are equal and neither needed nor ids nor sentences.
   */
  #isRedundant(index: number, cells: readonly (readonly string[])[]): boolean {
    const { target, view } = { target: this.#target, view: this.#view };
    if (!target.isTerminal || target.fields !== undefined || !view.isWhole || index === 0) return false;
    const [first] = cells.map((row) => row[index]);
    const { kind, isNeeded = false } = this.#columns[index]!;
    const isSame = !isNeeded && kind !== "id" && kind !== "sentence" && cells.length > 1;
    return (first === "-" || isSame) && cells.every((row) => row[index] === first);
  }

  #shown(cells: readonly string[]): string {
    const layout = this.#layout;
    if (layout?.kind !== "rows") return this.#block(cells);
    return this.#line(cells, { layout, isHeading: false }) + this.#rest(cells, layout.below);
  }

  /** Of the values that the layout moves below the row, only names that people chose are cut. */
  #rest(cells: readonly string[], below: readonly number[]): string {
    const nonempty = below.filter((index) => cells[index] !== "-");
    if (nonempty.length === 0) return "";
    const named = nonempty.map((index) => {
      const { heading, path } = this.#columns[index]!;
      const text = visibleText(cells[index] ?? "");
      const cell = isName(path) ? this.#measure.fit(text, this.#target.width - gap - heading.length - 1) : text;
      return `${heading === "expires" && cell.endsWith(" ago") ? "expired" : heading} ${cell}`;
    });
    const { width } = this.#target;
    return joinedWithin(named, width - 2)
      .map((line) => `${isolated(wrapped(line, { width, margin: "  " }))}\n`)
      .join("");
  }

  #line(
    cells: readonly string[],
    { layout, isHeading }: { readonly layout: Extract<Layout, { kind: "rows" }>; readonly isHeading: boolean },
  ): string {
    if (!this.#target.isTerminal) return this.#aligned(cells, { layout, isHeading });
    const parts = layout.widths.map((width, at) => {
      const index = layout.shown[at] ?? 0;
      return this.#partsOf(cells[index] ?? "", { index, width });
    });
    const height = parts.reduce((most, { length }) => Math.max(most, length), 1);
    let text = "";
    for (let row = 0; row < height; row += 1) {
      const last = parts.findLastIndex((lines) => row < lines.length);
      const line = parts.slice(0, last + 1).map((lines) => lines[row] ?? "");
      text += this.#aligned(line, { layout, isHeading });
    }
    return text;
  }

  #aligned(
    cells: readonly string[],
    { layout, isHeading }: { readonly layout: Extract<Layout, { kind: "rows" }>; readonly isHeading: boolean },
  ): string {
    let text = "";
    for (const [at, cell] of cells.entries()) {
      text += this.#painted(cell, { index: layout.shown[at] ?? 0, isHeading });
      if (at < cells.length - 1)
        text += " ".repeat(Math.max(0, (layout.widths[at] ?? 0) - this.#measure.of(cell)) + gap);
    }
    return `${text}\n`;
  }

  #partsOf(cell: string, { index, width }: { readonly index: number; readonly width: number }): readonly string[] {
    const kind = this.#columns[index]?.kind;
    if (isWhole(kind)) return [cell];
    if (kind !== "sentence" || this.#measure.of(cell) <= width) return [this.#measure.fit(cell, width)];
    return wrapped(cell, { width }).split("\n");
  }

  #block(cells: readonly string[]): string {
    const headings = this.#headings;
    const indent = headings.reduce((width, heading) => Math.max(width, this.#measure.of(heading)), 0) + gap;
    let text = this.#hasBlocks ? "\n" : "";
    this.#hasBlocks = true;
    for (const [index, whole] of cells.slice(0, this.#columns.length).entries()) {
      const heading = headings[index] ?? "";
      const { kind, path } = this.#columns[index]!;
      const isCut = kind === undefined && isName(path);
      const cell = isCut ? this.#measure.fit(whole, Math.max(narrowest, this.#target.width - indent)) : whole;
      if (cell === "-") continue;
      const label = this.#painted(heading, { index, isHeading: true });
      const value = this.#painted(cell, { index, isHeading: false });
      const fits = indent + this.#measure.of(cell) <= this.#target.width;
      const lines = fits
        ? " ".repeat(indent - this.#measure.of(heading)) + value
        : `\n${kind === "id" ? this.#lineBelow(value, cell) : isolated(wrapped(cell, { width: this.#target.width, margin: "  " }))}`;
      text += `${label}${lines}\n`;
    }
    return text;
  }

  #lineBelow(value: string, cell: string): string {
    return (this.#measure.of(cell) + gap > this.#target.width ? "" : " ".repeat(gap)) + value;
  }

  #painted(text: string, { index, isHeading }: { index: number; isHeading: boolean }): string {
    const shown = isolated(text, this.#target.isTerminal);
    if (this.#paint === undefined) return shown;
    if (isHeading) return this.#paint.bold(shown);
    return this.#columns[index]?.kind === "status" ? paintStatus(text, this.#paint) : shown;
  }

  async end(): Promise<void> {
    if (this.#layout === undefined && !this.#target.isTerminal) await this.#target.sink.write(await this.#begin([]));
    if (this.#hidden !== undefined) this.#target.note(this.#hidden);
    this.#chosen.reportMissing(this.#view.singular, this.#target.reportMissing);
  }
}

/**
 * Text and sentences shrink first. If that is not enough, details are omitted, and other columns move below the row, as
 * do ids that are details. The first column, sentences, words, statuses and other ids stay in the row.
 */
function widthRangesOf(columns: readonly CellColumn[], widths: readonly number[]): WidthRange[] {
  return columns.map(({ kind, isDetail = false }, index) => {
    const width = widths[index] ?? 0;
    const isMovable = isDetail && kind === "id";
    const isNeeded = index === 0 || (isWhole(kind) && !isMovable) || kind === "sentence";
    const least = kind === "sentence" ? narrowestSentence : narrowest;
    const otherwise = isNeeded ? "block" : isDetail && !isMovable ? "away" : "below";
    return { width, least: isWhole(kind) || kind === "time" ? width : least, otherwise };
  });
}

/** Names may be cut: people choose them, so they may be long, and an id identifies the row. */
function isName(path: string): boolean {
  return /(?:^|_)name$/.test(path);
}

/** True for kinds that are never cut: users copy ids, and words may begin alike. */
function isWhole(kind: CellColumn["kind"]): boolean {
  return kind === "id" || kind === "word" || kind === "status";
}

/** A missing secret has no line. Undocumented fields follow under their own names. */
async function tableResource(text: string, { view, target }: ShownResource): Promise<string> {
  const row = JsonText.of(text);
  const parts = row.parts();
  const { nowMs = target.now() } = view;
  const cell = (column: CellColumn): Cell => statusCell(valuesAt(parts, [column.field])[0], { column, row, nowMs });
  const isShown = (column: CellColumn): boolean =>
    target.fields !== undefined ||
    !(view.omitsEmpty || column.field.name === view.secretField) ||
    (cell(column) ?? "") !== "";
  const others = row.isObject && target.fields === undefined ? otherColumns(parts.names, view, target) : [];
  const columns = [...cellColumns(view.columns, target.fields), ...others].filter(isShown);
  const paint = await painter(target.color);
  const headings = columns.map(({ heading }) => visibleText(heading));
  const measure: DisplayWidth = headings.every(isAscii) ? asciiWidth : await unicodeWidth();
  const width = Math.max(0, ...headings.map((heading) => measure.of(heading)));
  const time = (iso: string): string => {
    const relative = relativeTime(iso, target.now());
    return target.hasRelativeTimes && relative !== iso ? `${relative} (${iso})` : iso;
  };
  const lines = columns.map((column, index) => {
    const heading = headings[index] ?? "";
    const found = cell(column);
    const none = found === null && target.isTerminal ? column.none : undefined;
    const value = isolated(none ?? personCell(found, { kind: column.kind, time }), target.isTerminal);
    const shown = paint !== undefined && column.kind === "status" ? paintStatus(value, paint) : value;
    const shownHeading = paint?.bold(heading) ?? heading;
    const room = target.width - width - gap;
    if (!target.isTerminal || roughWidth(value) <= room)
      return shownHeading + " ".repeat(width - measure.of(heading) + gap) + shown;
    const isToCopy = column.kind === "id" || column.kind === "command" || column.field.name === view.secretField;
    const margin = roughWidth(value) + gap > target.width ? "" : " ".repeat(gap);
    return `${shownHeading}\n${isToCopy ? margin + value : wrapped(value, { width: target.width, margin: " ".repeat(gap) })}`;
  });
  if (view.title !== undefined && target.isTerminal) lines.unshift(visibleText(view.title));
  return `${lines.join("\n")}\n`;
}

function otherColumns(
  keys: readonly string[],
  { columns }: ResourceView,
  { isTerminal }: Pick<ListTarget, "isTerminal">,
): CellColumn[] {
  return keys
    .filter((key) => !(isTerminal && key === "object"))
    .filter((key) => !columns.some(({ path }) => path === key || path.startsWith(`${key}.`)))
    .map(keyColumn);
}

export async function painter(level: 0 | 1 | 2 | 3): Promise<ChalkInstance | undefined> {
  if (level === 0) return undefined;
  const { Chalk } = await import("chalk");
  return new Chalk({ level });
}

const colors = {
  green: ["active", "done", "ok", "waiting"],
  yellow: ["medium", "pending", "open", "unknown", "warning"],
  red: [
    "high",
    "drift",
    "revoked",
    "disabled",
    "expired",
    "refused",
    "problem",
    "secret_lost",
    "undelivered",
    "unusable",
  ],
} as const;

function paintStatus(status: string, paint: ChalkInstance): string {
  const word = status.trimEnd();
  for (const color of ["green", "yellow", "red"] as const) {
    if (colors[color].some((known) => known === word)) return paint[color](status);
  }
  return status;
}
