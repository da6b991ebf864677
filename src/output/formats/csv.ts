import { flags } from "../../next-step.ts";
import { JsonText, type Parts } from "../../api/json/json-text.ts";
import { ChosenFields, type FieldPath, valuesAt } from "../fields.ts";
import { shortened, visibleText } from "../visible-text.ts";
import { type Cell, type CellColumn, cellColumns, cellOf } from "./cells.ts";
import type { Formatter, ListTarget, ListView, PageWriter } from "./format.ts";

/** Begins a formula in a spreadsheet, also if a field starts with a tab, a line end or a full-width sign. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
const special = /[",\r\n]/;
/** Neither: most cells. */
const plain = /^[\w][^",\r\n]*$/;
/** Limits of the names of undocumented fields: how many are remembered, how long a note of them is. */
const mostExtras = 1000;
const longestNote = 400;

/** How the texts of a line are written. */
interface LineStyle {
  /** A text is never changed. */
  readonly isExact?: boolean;
  /** What is invisible is spelt out. */
  readonly isTerminal?: boolean;
}

/**
 * One line of a CSV file, CRLF included. A text that a spreadsheet would run gets a leading `'`; numbers and nested
 * values keep their JSON text. A lone empty cell is quoted, for a reader would skip an empty line.
 */
export function csvLine(cells: readonly Cell[], style: LineStyle = {}): string {
  if (cells.length === 1 && (cells[0] === "" || cells[0] === null || cells[0] === undefined)) return '""\r\n';
  return `${cells.map((cell) => csvCell(cell, style)).join(",")}\r\n`;
}

function csvCell(cell: Cell, { isExact = false, isTerminal = false }: LineStyle): string {
  if (cell === null || cell === undefined) return "";
  const came = typeof cell === "string" ? cell : cell.compact();
  const shown = isTerminal ? visibleText(came) : came;
  if (plain.test(shown)) return shown;
  const text = typeof cell === "string" && !isExact && formula.test(shown) ? `'${shown}` : shown;
  return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** RFC 4180, safe to open in a spreadsheet. */
export const csv: Formatter = {
  /** A header and a line; without documented fields, all the resource has. */
  resource(text, { view, target }) {
    const row = JsonText.of(text).parts();
    const documented = cellColumns(view.columns, target.fields);
    const extras = new ExtraFields(documented);
    if (target.fields === undefined) extras.collect(row.names);
    if (documented.length > 0) extras.noteThem(target.note);
    const columns = documented.length > 0 ? documented : extras.names.map(wholeKey);
    // A receipt holds a one-time secret: one character more, and it opens nothing.
    const isExact = view.secretField !== undefined;
    const { isTerminal } = target;
    const cells = valuesAt(row, fieldsOf(columns)).map(cellOf);
    return headerLine(columns, target) + csvLine(cells, { isExact, isTerminal });
  },
  list: csvList,
};

/** A list as CSV: the header, also of an empty list; the documented fields or those asked for; the others named once in a note. */
function csvList(view: ListView, target: ListTarget): PageWriter {
  const columns = cellColumns(view.columns, target.fields);
  const chosen = new ChosenFields(target.fields);
  const extras = new ExtraFields(columns);
  let header = target.rowsBefore ? "" : headerLine(columns, target);
  const documented = fieldsOf(columns);
  let parts: Parts | undefined;
  const valuesOf = (row: JsonText): readonly (JsonText | undefined)[] => {
    if (target.fields !== undefined) return chosen.valuesOf(row);
    parts = row.parts(parts);
    if (row.isObject) extras.collect(parts.names);
    return valuesAt(parts, documented);
  };
  return {
    async page(page) {
      // The header waits for the first row: a run that continues after zero rows writes it.
      if (page.length === 0) return;
      let text = header;
      for (const row of page) {
        text += csvLine(valuesOf(row).map(cellOf), { isTerminal: target.isTerminal });
      }
      await target.sink.write(text);
      header = "";
    },
    async end() {
      await target.sink.write(header);
      extras.noteThem(target.note);
      chosen.tellMissing(view.singular, target.tellMissing);
    },
    async abandon() {
      extras.noteThem(target.note);
    },
  };
}

/** A key that may have a dot in it. */
function wholeKey(key: string): CellColumn {
  return { path: key, heading: key, field: { name: key, steps: [key] } };
}

function headerLine(columns: readonly CellColumn[], target: ListTarget): string {
  return csvLine(
    columns.map(({ path }) => path),
    { isTerminal: target.isTerminal },
  );
}

function fieldsOf(columns: readonly CellColumn[]): FieldPath[] {
  return columns.map(({ field }) => field);
}

/** The top-level fields that rows have and no column shows. */
class ExtraFields {
  readonly names: string[] = [];
  readonly #known: Set<string>;
  #before: readonly string[] | undefined;

  constructor(columns: readonly CellColumn[]) {
    this.#known = new Set(columns.flatMap(({ field }) => [field.name, field.steps[0] ?? ""]));
  }

  collect(names: readonly string[]): void {
    if (names === this.#before) return;
    this.#before = names;
    for (const key of names) {
      if (this.#known.has(key) || this.names.length >= mostExtras) continue;
      // A copy: the key itself would keep its page in memory.
      const name = Buffer.from(key).toString();
      this.#known.add(name);
      this.names.push(name);
    }
  }

  noteThem(note: (text: string) => void): void {
    if (this.names.length === 0) return;
    const names = shortened(this.names.map(visibleText).join(", "), longestNote);
    note(`Not in the CSV: ${names}. Choose columns with ${flags.fields}.`);
  }
}
