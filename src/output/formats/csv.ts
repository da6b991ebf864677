import { flags } from "../../next-step.ts";
import { ChosenFields } from "../fields.ts";
import { shortened, visibleText } from "../visible-text.ts";
import { hasMembers, type RowPage, rowCount } from "../row-page.ts";
import { type Cell, type CellColumn, cellColumns, cellOf, type Row, rowOf, rowsOf } from "./cells.ts";
import { CsvBytes } from "./csv-bytes.ts";
import type { Formatter, ListTarget, ListView, PageWriter } from "./format.ts";

/** Begins a formula in a spreadsheet, also if a field starts with a tab, a line end or a full-width sign. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
const special = /[",\r\n]/;
/** Limits of the names of undocumented fields: how many are remembered, how long a note of them is. */
const mostExtras = 1000;
const longestNote = 400;

/**
 * One line of a CSV file, CRLF included. A text that a spreadsheet would run gets a leading `'`; numbers and nested
 * values keep their JSON text. With `isExact` a text is never changed. A lone empty cell is quoted, for a reader would skip an empty line.
 */
export function csvLine(cells: readonly Cell[], { isExact = false }: { readonly isExact?: boolean } = {}): string {
  if (cells.length === 1 && (cells[0] === "" || cells[0] === null || cells[0] === undefined)) return '""\r\n';
  return `${cells.map((cell) => csvCell(cell, isExact)).join(",")}\r\n`;
}

function csvCell(cell: Cell, isExact: boolean): string {
  if (cell === null || cell === undefined) return "";
  const text = typeof cell !== "string" ? cell.json : formula.test(cell) && !isExact ? `'${cell}` : cell;
  return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** RFC 4180, safe to open in a spreadsheet. */
export const csv: Formatter = {
  /** A header and a line; without documented fields, all the resource has. */
  resource(text, { view, target }) {
    const row = rowOf(text);
    const documented = cellColumns(view.columns, target.fields);
    const extras = new ExtraFields(documented);
    if (target.fields === undefined) extras.collect(row);
    if (documented.length > 0) extras.noteThem(target.note);
    const columns = documented.length > 0 ? documented : extras.names.map(wholeKey);
    // A receipt holds a one-time secret: one character more, and it opens nothing.
    const isExact = view.secretField !== undefined;
    return headerLine(columns, target) + rowLine(row, { columns, target, isExact });
  },
  list: csvList,
};

/** A list as CSV: the header, also of an empty list; the documented fields or those asked for; the others named once in a note. */
function csvList(view: ListView, target: ListTarget): PageWriter {
  const columns = cellColumns(view.columns, target.fields);
  const chosen = new ChosenFields(target.fields);
  const extras = new ExtraFields(columns);
  let header = target.rowsBefore ? "" : headerLine(columns, target);
  const bytes = new CsvBytes({
    columns,
    cellText: (cell) => csvCell(cell, false),
    see(layout) {
      if (target.fields === undefined) extras.add(layout.names);
      else for (const { field } of columns) if (layout.slotOf(field.name) !== -1) chosen.found(field);
    },
    found: ({ field }) => chosen.found(field),
  });
  const lines = (page: RowPage): string => {
    let text = header;
    for (const row of rowsOf(page)) {
      if (target.fields === undefined) extras.collect(row);
      else chosen.see(() => row.lossless());
      text += rowLine(row, { columns, target });
    }
    return text;
  };
  return {
    async page(page) {
      // The header waits for the first row: a run that continues after zero rows writes it.
      if (rowCount(page) === 0) return;
      if (hasMembers(page) && !target.isTerminal) {
        chosen.count(rowCount(page));
        await target.sink.write(bytes.of(page, header));
      } else await target.sink.write(lines(page));
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
  return csvLine(columns.map(({ path }) => (target.isTerminal ? visibleText(path) : path)));
}

/** On a terminal the text is made visible first; in a file it stays what it was. */
function rowLine(
  row: Row,
  { columns, target, isExact }: { columns: readonly CellColumn[]; target: ListTarget; isExact?: boolean },
): string {
  const cells = columns.map(({ field }) => {
    const cell = cellOf(row, field);
    if (!target.isTerminal || cell === null || cell === undefined) return cell;
    return typeof cell === "string" ? visibleText(cell) : { json: visibleText(cell.json) };
  });
  return csvLine(cells, { isExact });
}

/** The top-level fields that rows have and no column shows. */
class ExtraFields {
  readonly names: string[] = [];
  readonly #known: Set<string>;

  constructor(columns: readonly CellColumn[]) {
    this.#known = new Set(columns.flatMap(({ field }) => [field.name, field.steps[0] ?? ""]));
  }

  collect({ value }: Row): void {
    if (typeof value === "object" && value !== null) this.add(Object.keys(value));
  }

  add(names: readonly string[]): void {
    for (const key of names) {
      if (this.#known.has(key) || this.names.length >= mostExtras) continue;
      this.#known.add(key);
      this.names.push(key);
    }
  }

  noteThem(note: (text: string) => void): void {
    if (this.names.length === 0) return;
    const names = shortened(this.names.map(visibleText).join(", "), longestNote);
    note(`Not in the CSV: ${names}. Choose columns with ${flags.fields}.`);
  }
}
