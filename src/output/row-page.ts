import { JsonText, type Parts } from "../api/json/json-text.ts";

export type RowPage = readonly JsonText[];

/** @param rows JSON texts */
export function pageOf(rows: readonly string[]): RowPage {
  return JsonText.of(`[${rows.join(",")}]`).items();
}

/**
 * Joins adjacent rows of one response without a copy: overwrites the bytes between them, so the page must not be used
 * again.
 * @param end follows the last row
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

function isAdjacent(page: RowPage): boolean {
  return page.every((row, index) => {
    const before = page[index - 1];
    return row.isCompact && (before === undefined || (row.source === before.source && row.start === before.end + 1));
  });
}

export class UniqueRows {
  readonly #seen = new Set<unknown>();
  #before: Parts | undefined;

  of(page: RowPage): RowPage {
    return page.filter((row) => {
      const id = (this.#before = row.parts(this.#before)).get("id");
      // Ids are strings (§2.2); a number may have lost digits.
      if (!id?.isString) return true;
      const { size } = this.#seen;
      return this.#seen.add(id.value).size > size;
    });
  }
}

/** The first page is larger, because it sets a table's column widths. */
const [firstPage, laterPages] = [5000, 500];

/** Keeps one page in memory. Without items, yields one empty page. */
export async function* inPages<T>(all: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T[]> {
  let [page, most]: [T[], number] = [[], firstPage];
  for await (const one of all) {
    if (page.push(one) < most) continue;
    yield page;
    [page, most] = [[], laterPages];
  }
  if (page.length > 0 || most === firstPage) yield page;
}
