import { JsonText, type Parts } from "../api/json/json-text.ts";

/** Rows that are printed together. */
export type RowPage = readonly JsonText[];

/** A page of rows from several sources. @param rows JSON texts, one per row */
export function pageOf(rows: readonly string[]): RowPage {
  return JsonText.of(`[${rows.join(",")}]`).items();
}

/**
 * Joins compact rows with the separator, and adds the end. Rows of one response are not copied: the bytes between them
 * are overwritten, so the page must not be used again.
 * @param separator one ASCII character
 * @param end like the separator, or empty
 */
export function joinedRows(page: RowPage, separator: "," | "\n", end: "" | "\n" = ""): string | Buffer {
  const [first, last] = [page[0], page.at(-1)];
  if (first === undefined || last === undefined) return "";
  const { bytes } = first.source;
  const until = last.end + end.length;
  if (!isAdjacent(page) || until > bytes.length) return page.map((row) => row.compact()).join(separator) + end;
  const between = separator.charCodeAt(0);
  for (const row of page) if (row !== last) bytes[row.end] = between;
  if (end !== "") bytes[last.end] = end.charCodeAt(0);
  return bytes.subarray(first.start, until);
}

/** True for compact rows of one body with one byte between them. */
function isAdjacent(page: RowPage): boolean {
  return page.every((row, index) => {
    const before = page[index - 1];
    return row.isCompact && (before === undefined || (row.source === before.source && row.start === before.end + 1));
  });
}

/** Drops rows with a repeated id. */
export class UniqueRows {
  readonly #seen = new Set<unknown>();
  #before: Parts | undefined;

  /** The page without repeated rows. Rows without an id are kept. */
  of(page: RowPage): RowPage {
    return page.filter((row) => {
      const id = (this.#before = row.parts(this.#before)).get("id");
      // §2.2: an id is a string. A number may have lost digits, so it cannot be compared.
      if (!id?.isString) return true;
      const { size } = this.#seen;
      return this.#seen.add(id.value).size > size;
    });
  }
}

/** Number of rows per page. A table takes its column widths from the first page. */
const [firstPage, laterPages] = [5000, 500];

/** Splits items into pages, with one page in memory at a time; at least one page. */
export async function* inPages<T>(all: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T[]> {
  let [page, most]: [T[], number] = [[], firstPage];
  for await (const one of all) {
    if (page.push(one) < most) continue;
    yield page;
    [page, most] = [[], laterPages];
  }
  if (page.length > 0 || most === firstPage) yield page;
}
