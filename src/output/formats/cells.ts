import { Failure } from "../../errors.ts";
import { type FieldPath, valueAt } from "../fields.ts";
import { type JsonTree, parseJson, printNode, stringOf, textOf } from "../json-text.ts";
import { type RowPage, isAdjacent, pageOf, rowCount, rowText, rowTexts } from "../row-page.ts";
import { visibleText } from "../visible-text.ts";
import type { Column } from "./format.ts";

/**
 * A value as a cell takes it: a string is text; null is `null`; undefined is a field that is not there. Anything else
 * keeps the text it came with.
 */
export type Cell = string | null | undefined | Verbatim;

/** A number, `true`, `false`, or an array or object as compact JSON. */
interface Verbatim {
  readonly json: string;
  /** For an array of plain values, these as texts. */
  readonly items?: readonly string[];
}

/** A row, parsed the quick way, and the lossless way when something asks for it. */
export class Row {
  #tree: JsonTree | undefined;

  readonly value: unknown;
  readonly #place: { readonly page: RowPage; readonly row: number };

  constructor(value: unknown, place: { readonly page: RowPage; readonly row: number }) {
    this.value = value;
    this.#place = place;
  }

  lossless(): JsonTree {
    this.#tree ??= parseJson(rowText(this.#place.page, this.#place.row));
    return this.#tree;
  }
}

/** All rows of a page. @throws Failure `unreachable` if a row is not JSON */
export function rowsOf(page: RowPage): Row[] {
  const { body, spans } = page;
  if (spans.length === 0) return [];
  const all = isAdjacent(page) ? body.toString("utf8", spans[0], spans.at(-1)) : rowTexts(page).join(",");
  const values = parsed(`[${all}]`);
  if (values.length !== rowCount(page)) throw new Failure("unreachable", "the rows of a page are invalid");
  return values.map((value, row) => new Row(value, { page, row }));
}

/** The top-level keys of a page's rows, in the order in which they are first met. */
export function keysOf(page: RowPage): string[] {
  return [...new Set(rowsOf(page).flatMap(({ value }) => (isObject(value) ? Object.keys(value) : [])))];
}

/** One row out of its own text. */
export function rowOf(text: string): Row {
  const page = pageOf([text]);
  return new Row(parsed(`[${text}]`)[0], { page, row: 0 });
}

function parsed(text: string): unknown[] {
  try {
    const rows: unknown[] = JSON.parse(text);
    return rows;
  } catch (error) {
    throw new Failure("unreachable", "the response is not valid JSON", { cause: error });
  }
}

/** The value of a field. Strings, null and what is not there are read quickly; the rest without loss. */
export function cellOf(row: Row, path: FieldPath): Cell {
  const { value } = row;
  if (path.steps.length === 1 && isObject(value)) {
    const quick = value[path.name];
    // An inherited member is never a string or null.
    if (typeof quick === "string" || quick === null) return quick;
    if (!Object.hasOwn(value, path.name)) return undefined;
  }
  const tree = row.lossless();
  const node = valueAt(tree.root, path);
  if (node === undefined) return undefined;
  if (node.kind === "string") return stringOf(tree, node);
  const json = printNode(tree, node, { indent: 0, level: 0 });
  if (node.kind !== "array") return json === "null" ? null : { json };
  const isPlain = node.items.every((item) => item.kind !== "array" && item.kind !== "object");
  if (!isPlain) return { json };
  return {
    json,
    items: node.items.map((item) => (item.kind === "string" ? stringOf(tree, item) : textOf(tree, item))),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
    const documented = columns.find((column) => column.path === field.name);
    return withKind({ ...(documented ?? { path: field.name, heading: field.name }), field });
  });
}

/** How a person reads a cell: visible on one line, `-` if there is nothing, `""` for an empty text. */
export function personCell(
  cell: Cell,
  shown: { readonly kind: Column["kind"]; readonly time: (iso: string) => string; readonly isPlain: boolean },
): string {
  if (typeof cell === "string") {
    if (cell === "") return '""';
    const text = shown.kind === "time" ? shown.time(cell) : cell;
    return shown.isPlain ? text : visibleText(text);
  }
  if (cell === null || cell === undefined) return "-";
  if (cell.items?.length === 0) return "-";
  return visibleText(cell.items?.join(", ") ?? cell.json);
}
