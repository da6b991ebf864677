// Owns: CSV as RFC 4180 has it, safe to open in a spreadsheet. Must not know: which rows, terminals' colours.
// Source: cli.md §2 (csv), RFC 4180 §2.
import { type Cell, type CellColumn, cellColumns, cellOf, type Row, rowOf, rowsOf } from "./cells.ts";
import { FieldWatch } from "./field-watch.ts";
import type { Column, ListTarget, ListView, ListWriter } from "./list.ts";
import { shortened, visibleText } from "./visible-text.ts";

/** Begins a formula in a spreadsheet, also where a field starts with a tab, a line end or a full-width sign. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
const special = /[",\r\n]/;
/** As many names of undocumented fields as are remembered, and as much of them as is told. */
const mostExtras = 1000;
const longestTelling = 400;

/**
 * One line of a CSV file, CRLF included. A text that a spreadsheet would run gets a leading `'`; numbers and nested
 * values keep their JSON text. A lone empty cell is quoted, for a reader would skip an empty line.
 */
export function csvLine(cells: readonly Cell[]): string {
  if (cells.length === 1 && (cells[0] === "" || cells[0] === null || cells[0] === undefined)) return '""\r\n';
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  const text = typeof cell !== "string" ? cell.json : formula.test(cell) ? `'${cell}` : cell;
  return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A list as CSV: the header, also of an empty list; the documented fields or those asked for; the others told once. */
export function csvList(view: ListView, target: ListTarget): ListWriter {
  const columns = cellColumns(view.columns, target.fields);
  const watch = new FieldWatch(target.fields);
  const extras = new Extras(columns);
  let rowsWritten = target.rowsBefore ?? 0;
  let header = rowsWritten === 0 ? headerLine(columns, target) : "";
  return {
    get rowsWritten() {
      return rowsWritten;
    },
    async page(page) {
      const rows = rowsOf(page);
      // The header waits for the first row: whoever goes on after no rows writes it.
      if (rows.length === 0) return;
      let text = header;
      header = "";
      for (const row of rows) {
        if (target.fields === undefined) extras.look(row);
        else watch.look(() => row.lossless());
        text += rowLine(row, { columns, target });
      }
      await target.sink.write(text);
      rowsWritten += rows.length;
    },
    async end() {
      await target.sink.write(header);
      extras.tell(target.note);
      const verdict = watch.verdict(view.singular);
      if (verdict !== undefined) target.note(verdict);
    },
    async abandon() {
      extras.tell(target.note);
    },
  };
}

/** One resource as a header and a line; without documented fields, all it has. @param text JSON object */
export function csvResource(text: string, options: { columns: readonly Column[]; target: ListTarget }): string {
  const { target } = options;
  const row = rowOf(text);
  const documented = cellColumns(options.columns, target.fields);
  const extras = new Extras(documented);
  if (target.fields === undefined) extras.look(row);
  if (documented.length > 0) extras.tell(target.note);
  const columns = documented.length > 0 ? documented : extras.names.map(wholeKey);
  return headerLine(columns, target) + rowLine(row, { columns, target });
}

/** A key that may have a dot in it. */
function wholeKey(key: string): CellColumn {
  return { path: key, heading: key, field: { name: key, steps: [key] } };
}

function headerLine(columns: readonly CellColumn[], target: ListTarget): string {
  return csvLine(columns.map(({ path }) => (target.isTerminal ? visibleText(path) : path)));
}

/** On a terminal the text is made visible first; in a file it stays what it was. */
function rowLine(row: Row, { columns, target }: { columns: readonly CellColumn[]; target: ListTarget }): string {
  return csvLine(
    columns.map(({ field }) => {
      const cell = cellOf(row, field);
      if (!target.isTerminal || cell === null || cell === undefined) return cell;
      return typeof cell === "string" ? visibleText(cell) : { json: visibleText(cell.json) };
    }),
  );
}

/** The top-level fields that rows have and no column shows. */
class Extras {
  readonly names: string[] = [];
  private readonly known: Set<string>;

  constructor(columns: readonly CellColumn[]) {
    this.known = new Set(columns.flatMap(({ field }) => [field.name, field.steps[0] ?? ""]));
  }

  look({ value }: Row): void {
    if (typeof value !== "object" || value === null) return;
    for (const key of Object.keys(value)) {
      if (this.known.has(key) || this.names.length >= mostExtras) continue;
      this.known.add(key);
      this.names.push(key);
    }
  }

  tell(note: (text: string) => void): void {
    if (this.names.length === 0) return;
    const names = shortened(this.names.map(visibleText).join(", "), longestTelling);
    note(`not in the CSV: ${names} (--fields chooses the columns)`);
  }
}
