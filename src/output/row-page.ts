// Rows that are printed together.
import { JsonText, type Parts } from "../api/json/json-text.ts";

/** Rows of a list, as many as come together. */
export type RowPage = readonly JsonText[];

/** A page of rows that came from elsewhere than one response. @param rows JSON texts, one a row */
export function pageOf(rows: readonly string[]): RowPage {
  return rows.map((row) => JsonText.of(row));
}

/**
 * All rows, compact, with the separator between them and the end behind the last. Rows of one response are not copied: the
 * bytes between them are overwritten, so that the page is used up.
 * @param separator one ASCII character
 * @param end as the separator, or nothing
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

/** Rows of one body that are compact, with one byte between each and the next. */
function isAdjacent(page: RowPage): boolean {
  return page.every((row, index) => {
    const before = page[index - 1];
    return row.isCompact && (before === undefined || (row.source === before.source && row.start === before.end + 1));
  });
}

/** Leaves out rows whose id was there before. */
export class UniqueRows {
  readonly #seen = new Set<unknown>();
  #before: Parts | undefined;

  /** The page without repeated rows. A row without an id is no one's repeat. */
  of(page: RowPage): RowPage {
    return page.filter((row) => {
      const id = (this.#before = row.parts(this.#before)).get("id");
      // §2.2: an id is a string. A number may have lost digits on the way here, and is no one's repeat.
      if (!id?.isString) return true;
      const { size } = this.#seen;
      return this.#seen.add(id.value).size > size;
    });
  }
}

/** Enough for a table to fit what most lists have: it is as wide as its first page asks for. */
const [firstPage, laterPages] = [5000, 500];

/** Any number of things by the page, of which no more than one is in memory; a page at least. */
export async function* inPages<T>(all: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T[]> {
  let [page, most]: [T[], number] = [[], firstPage];
  for await (const one of all) {
    if (page.push(one) < most) continue;
    yield page;
    [page, most] = [[], laterPages];
  }
  if (page.length > 0 || most === firstPage) yield page;
}
