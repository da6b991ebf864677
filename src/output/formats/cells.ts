import type { JsonText } from "../../api/json/json-text.ts";
import type { FieldPath } from "../fields.ts";
import type { RowPage } from "../row-page.ts";
import { visibleText } from "../visible-text.ts";
import type { Column } from "./format.ts";

/**
 * A value as a cell takes it: a string is text; null is `null`; undefined is a field that is not there. Anything else
 * keeps the text it came with.
 */
export type Cell = string | null | undefined | JsonText;

export function cellOf(value: JsonText | undefined): Cell {
  if (value?.isString) return value.string;
  return value?.isNull ? null : value;
}

/** The top-level keys of a page's rows, in the order in which they are first met. */
export function keysOf(page: RowPage): string[] {
  return [...new Set(page.flatMap((row) => (row.isObject ? row.parts().names : [])))];
}

/** A column, ready to be read: the path split, the heading for those who asked for fields by name. */
export interface CellColumn extends Column {
  readonly field: FieldPath;
}

/** A member that holds an id, as the API and the journal name them. */
const idName = /(?:^|[._])ids?$|Ids?$/;

/** A member that holds one of a few words. */
const wordName = /(?:^|[._])(?:type|kind|state|status|operation|role|object)$|(?:Type|Kind|State|Status|Role)$/;

/** Kinds that show themselves by the name of the field. */
function withKind(column: CellColumn): CellColumn {
  if (column.kind !== undefined) return column;
  if (idName.test(column.path)) return { ...column, kind: "id" };
  return wordName.test(column.path) ? { ...column, kind: "word" } : column;
}

/** The columns to show: the documented ones, or the fields asked for, with the heading and kind of the documented. */
export function cellColumns(columns: readonly Column[], fields: readonly FieldPath[] | undefined): CellColumn[] {
  if (fields === undefined) {
    return columns.map((column) => {
      const { path, isKey = false } = column;
      return withKind({ ...column, field: { name: path, steps: isKey ? [path] : path.split(".") } });
    });
  }
  return fields.map((field) => {
    const documented = columns.find((column) => column.path === field.steps.join("."));
    // A program finds a field under the name that it asked for.
    return { ...withKind({ ...(documented ?? { path: field.name, heading: field.name }), field }), path: field.name };
  });
}

/** The cell of a column; a status that says `active` after its expiry is `expired`. JSON and CSV keep the service's own word. */
export function statusCell(
  value: JsonText | undefined,
  { column, row, nowMs }: { readonly column: CellColumn; readonly row: JsonText; readonly nowMs: number },
): Cell {
  const cell = cellOf(value);
  if (column.expiry === undefined || cell !== "active") return cell;
  const end = cellOf(row.parts().get(column.expiry));
  return typeof end === "string" && Date.parse(end) <= nowMs ? "expired" : cell;
}

/** How a person reads a cell: visible on one line, `-` if there is nothing, `""` for an empty text. */
export function personCell(
  cell: Cell,
  shown: { readonly kind: Column["kind"]; readonly time: (iso: string) => string },
): string {
  if (cell === null || cell === undefined) return "-";
  if (typeof cell !== "string") return visibleText(listed(cell));
  if (cell === "") return '""';
  return visibleText(shown.kind === "time" ? shown.time(cell) : cell);
}

/** Plain values of an array beside each other; any other value as compact JSON. */
function listed(value: JsonText): string {
  const items = value.items();
  if (!value.isArray || items.some((item) => item.isArray || item.isObject)) return value.compact();
  return items.length === 0 ? "-" : items.map((item) => (item.isString ? item.string : item.text)).join(", ");
}
