// Owns: how rows whose shape the document does not show (§4.4) are printed: the documented fields that are there, or
// whatever fields there are.
// Must not know: which rows they are.
import type { Rows } from "../api/json/unknown-list.ts";
import type { Context } from "../context.ts";
import type { Column } from "../output/output.ts";
import { pageOf } from "../output/row-page.ts";

/** Columns are chosen from so many rows at most. */
const sample = 200;
/** More columns than this nobody reads. */
const mostColumns = 10;

/** @param view `columns`: the fields that may be expected, in the order to show them */
export async function printRows(
  context: Context,
  rows: Rows,
  view: { readonly columns: readonly Column[]; readonly singular: string; readonly plural: string },
): Promise<void> {
  const columns = columnsFor(
    rows.rows.map(({ value }) => value),
    view.columns,
  );
  const writer = context.output.list({ ...view, columns });
  await writer.page(pageOf(rows.rows.map(({ text }) => text)));
  await writer.end({ nextPageToken: null, hasMore: rows.saysMore });
  if (rows.saysMore)
    context.output.warn(
      `The answer says that there are more ${view.plural}: the document shows no way to ask for them.`,
    );
}

type Value = Readonly<Record<string, unknown>>;

/** The documented columns that any row has; where none has any, every field in the order of its first appearance. */
export function columnsFor(rows: readonly Value[], documented: readonly Column[]): Column[] {
  const seen = rows.slice(0, sample);
  const present = documented.filter(({ path }) => seen.some((row) => Object.hasOwn(row, path)));
  if (present.length > 0) return present;
  if (seen.length === 0) return [...documented];
  // A dot in a name would be read as a way into it.
  const names = [...new Set(seen.flatMap((row) => Object.keys(row)))].filter((name) => !name.includes("."));
  const plain = names.filter((name) => seen.some((row) => typeof row[name] !== "object" || row[name] === null));
  return (plain.length > 0 ? plain : names).slice(0, mostColumns).map((name) => columnOf(name, seen));
}

function columnOf(name: string, rows: readonly Value[]): Column {
  const values = rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
  const isTime = values.length > 0 && values.every((value) => typeof value === "string" && time.test(value));
  return { path: name, heading: name, ...(isTime && { kind: "time" as const }) };
}

const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;
