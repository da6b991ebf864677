// Owns: CSV as RFC 4180 has it, safe to open in a spreadsheet. Must not know: which rows, terminals' colours.
// Source: cli.md §2 (csv), RFC 4180 §2.
import { type Cell, type CellColumn, cellColumns, cellOf, type Row, rowOf, rowsOf } from "./cells.ts";
import { FieldWatch } from "./field-watch.ts";
import type { Column, ListTarget, ListView, ListWriter } from "./list.ts";
import { shortened, visibleText } from "./visible-text.ts";

/** Begins a formula in a spreadsheet, also where a field starts with a tab, a line end or a full-width sign. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
const special = /[",\r\n]/;

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
  const extras = new Set<string>();
  let hasHeader = false;
  let rowsWritten = 0;
  const header = (): string => {
    const line = hasHeader ? "" : headerLine(columns, target);
    hasHeader = true;
    return line;
  };
  return {
    get rowsWritten() {
      return rowsWritten;
    },
    async page(page) {
      const rows = rowsOf(page);
      for (const row of rows) {
        watch.look(() => row.lossless());
        if (target.fields === undefined) collectExtras(row, { columns, extras });
      }
      await target.sink.write(header() + rows.map((row) => rowLine(row, { columns, target })).join(""));
      rowsWritten += rows.length;
    },
    async end() {
      await target.sink.write(header());
      tellExtras(extras, target);
      const verdict = watch.verdict(view.singular);
      if (verdict !== undefined) target.note(verdict);
    },
    async abandon() {
      tellExtras(extras, target);
    },
  };
}

/** One resource as a header and a line; without documented fields, all it has. @param text JSON object */
export function csvResource(text: string, options: { columns: readonly Column[]; target: ListTarget }): string {
  const { target } = options;
  const row = rowOf(text);
  const extras = new Set<string>();
  const documented = cellColumns(options.columns, target.fields);
  if (target.fields === undefined) collectExtras(row, { columns: documented, extras });
  const columns = documented.length > 0 ? documented : [...extras].map(wholeKey);
  if (documented.length > 0) tellExtras(extras, target);
  return headerLine(columns, target) + rowLine(row, { columns, target });
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

/** A key that may have a dot in it. */
function wholeKey(key: string): CellColumn {
  return { path: key, heading: key, field: { name: key, steps: [key] } };
}

function collectExtras(row: Row, { columns, extras }: { columns: readonly CellColumn[]; extras: Set<string> }): void {
  if (typeof row.value !== "object" || row.value === null || extras.size > 1000) return;
  for (const key of Object.keys(row.value)) {
    if (!columns.some(({ field }) => field.steps[0] === key || field.name === key)) extras.add(key);
  }
}

function tellExtras(extras: Set<string>, target: ListTarget): void {
  if (extras.size === 0) return;
  const names = shortened([...extras].map(visibleText).join(", "), 400);
  target.note(`not in the CSV: ${names} (--fields chooses the columns)`);
  extras.clear();
}
