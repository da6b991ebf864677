import { flags } from "../../next-step.ts";
import { JsonText, type Parts } from "../../api/json/json-text.ts";
import { ChosenFields, type FieldPath, valuesAt } from "../fields.ts";
import { shortened, visibleText } from "../visible-text.ts";
import { type Cell, type CellColumn, cellColumns, cellOf, keyColumn } from "./cells.ts";
import type { Formatter, ListTarget, ListView, PageWriter } from "./format.ts";

/** A spreadsheet runs text that starts like this as a formula; signs may be full-width. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/;
const special = /[",\r\n]/;
/** Fast path: matches cells that need neither a `'` nor quotation marks. */
const plain = /^[\w][^",\r\n]*$/;
/** Limits of the note about undocumented fields: names kept in memory, and length of the text. */
const maxExtraFields = 1000;
const maxNoteLength = 400;

interface LineStyle {
  /** True if the text must not get a leading `'`. */
  readonly isExact?: boolean;
  readonly isTerminal?: boolean;
}

/**
 * Ends with CRLF. Text that a spreadsheet would run gets a leading `'`; numbers and nested values keep their JSON text.
 * A single empty cell is quoted, because readers skip empty lines.
 */
export function csvLine(cells: readonly Cell[], style: LineStyle = {}): string {
  if (cells.length === 1 && (cells[0] === "" || cells[0] === null || cells[0] === undefined)) return '""\r\n';
  return `${cells.map((cell) => csvCell(cell, style)).join(",")}\r\n`;
}

function csvCell(cell: Cell, { isExact = false, isTerminal = false }: LineStyle): string {
  if (cell === null || cell === undefined) return "";
  const raw = typeof cell === "string" ? cell : cell.compact();
  const shown = isTerminal ? visibleText(raw) : raw;
  if (plain.test(shown)) return shown;
  const text = typeof cell === "string" && !isExact && formula.test(shown) ? `'${shown}` : shown;
  return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv: Formatter = {
  resource(text, { view, target }) {
    const row = JsonText.of(text).parts();
    const documented = cellColumns(view.columns, target.fields);
    const extras = new ExtraFields(documented);
    if (target.fields === undefined) extras.collect(row.names);
    if (documented.length > 0) extras.reportTo(target.note);
    const columns = documented.length > 0 ? documented : extras.names.map(keyColumn);
    // A `'` would make a one-time secret invalid.
    const isExact = view.secretField !== undefined;
    const { isTerminal } = target;
    const cells = valuesAt(row, fieldsOf(columns)).map(cellOf);
    return headerLine(columns, target) + csvLine(cells, { isExact, isTerminal });
  },
  list: csvList,
};

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
      // An empty page writes no header: a run that resumes after zero rows writes the header itself.
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
      extras.reportTo(target.note);
      chosen.reportMissing(view.singular, target.reportMissing);
    },
    async abandon() {
      extras.reportTo(target.note);
    },
  };
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
      if (this.#known.has(key) || this.names.length >= maxExtraFields) continue;
      // A copy of the name: the original string would keep its page in memory.
      const name = Buffer.from(key).toString();
      this.#known.add(name);
      this.names.push(name);
    }
  }

  reportTo(note: (text: string) => void): void {
    if (this.names.length === 0) return;
    const names = shortened(this.names.map(visibleText).join(", "), maxNoteLength);
    note(`Not in the CSV: ${names}. Choose columns with ${flags.fields}.`);
  }
}
