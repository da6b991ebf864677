import type { JsonText } from "../../api/json/json-text.ts";
import type { FieldPath } from "../fields.ts";
import type { RowPage } from "../row-page.ts";
import { visibleText } from "../visible-text.ts";
import type { Column } from "./format.ts";

/** Undefined is a missing field. Values other than strings and null keep their JSON text. */
export type Cell = string | null | undefined | JsonText;

export function cellOf(value: JsonText | undefined): Cell {
  if (value?.isString) return value.string;
  return value?.isNull ? null : value;
}

export function keysOf(page: RowPage): string[] {
  return [...new Set(page.flatMap((row) => (row.isObject ? row.parts().names : [])))];
}

export interface CellColumn extends Column {
  readonly field: FieldPath;
}

export function keyColumn(key: string): CellColumn {
  return { path: key, heading: key, field: { name: key, steps: [key] } };
}

const idName = /(?:^|[._])ids?$|Ids?$/;

/** Fields with these names have values from a small set. */
const wordName = /(?:^|[._])(?:type|kind|state|status|operation|role|object)$|(?:Type|Kind|State|Status|Role)$/;

function withKind(column: CellColumn): CellColumn {
  if (column.kind !== undefined) return column;
  if (idName.test(column.path)) return { ...column, kind: "id" };
  return wordName.test(column.path) ? { ...column, kind: "word" } : column;
}

export function cellColumns(columns: readonly Column[], fields: readonly FieldPath[] | undefined): CellColumn[] {
  if (fields === undefined) {
    return columns.map((column) => {
      const { path, isKey = false } = column;
      return withKind({ ...column, field: { name: path, steps: isKey ? [path] : path.split(".") } });
    });
  }
  return fields.map((field) => {
    const documented = columns.find((column) => column.path === field.steps.join("."));
    // Programs expect the requested name as the column's name.
    return { ...withKind({ ...(documented ?? { path: field.name, heading: field.name }), field }), path: field.name };
  });
}

/** Shows `active` after its expiry as `expired`. Only tables use this: other formats keep the service's status. */
export function statusCell(
  value: JsonText | undefined,
  { column, row, nowMs }: { readonly column: CellColumn; readonly row: JsonText; readonly nowMs: number },
): Cell {
  const cell = cellOf(value);
  if (column.expiry === undefined || cell !== "active") return cell;
  const end = cellOf(row.parts().get(column.expiry));
  return typeof end === "string" && Date.parse(end) <= nowMs ? "expired" : cell;
}

export function personCell(
  cell: Cell,
  shown: { readonly kind: Column["kind"]; readonly time: (iso: string) => string },
): string {
  if (cell === null || cell === undefined) return "-";
  if (typeof cell !== "string") return visibleText(listed(cell));
  if (cell === "") return '""';
  return visibleText(shown.kind === "time" ? shown.time(cell) : cell);
}

function listed(value: JsonText): string {
  const items = value.items();
  if (!value.isArray || items.some((item) => item.isArray || item.isObject)) return value.compact();
  return items.length === 0 ? "-" : items.map((item) => (item.isString ? item.string : item.text)).join(", ");
}
