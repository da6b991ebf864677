// Rows as bytes of the response they came in, put one after the other without reading or copying them.
import { isAscii } from "node:buffer";
import { compactJson } from "./json-text.ts";

/**
 * Rows where they are in the body of a response (UTF-8).
 * `spans` holds a pair for each row: its first byte, and the byte after its last. Writers may overwrite the bytes
 * between two rows.
 */
export interface RowPage {
  readonly body: Buffer;
  readonly spans: Uint32Array;
  /** Known: rows are compact and nothing but one comma is between two. Absent if no one looked. */
  readonly isTight?: boolean;
  /** Where the members of each row stand, if that is known: the page is tight then. */
  readonly members?: RowMembers | undefined;
  /** Overwrites the byte behind each row but the last, quicker than a loop. @returns false if it did nothing */
  readonly separate?: ((byte: number) => boolean) | undefined;
}

/** Where the members of each row are in the page's body. */
export interface RowMembers {
  /**
   * For each row the number of its first member and of the one after its last. The first has its highest bit set if the names
   * differ from those of the row before.
   */
  readonly ranges: Uint32Array;
  /** For each member both ends of its name, without the quotes, and of its value: four offsets in bytes. */
  readonly places: Uint32Array;
}

/** A page whose rows are compact and whose members are known. */
export type ReadPage = RowPage & { readonly members: RowMembers };

export function hasMembers(page: RowPage): page is ReadPage {
  return page.members !== undefined;
}

/** A page of rows that came from elsewhere than one response. @param rows JSON texts, one a row */
export function pageOf(rows: readonly string[]): RowPage {
  const spans = new Uint32Array(rows.length * 2);
  let end = 0;
  for (const [index, row] of rows.entries()) {
    spans[index * 2] = end;
    end += Buffer.byteLength(row);
    spans[index * 2 + 1] = end;
    end += 1;
  }
  return { body: Buffer.from(rows.join(",")), spans };
}

export function rowCount(page: RowPage): number {
  return page.spans.length / 2;
}

/** The JSON text of one row. */
export function rowText(page: RowPage, row: number): string {
  return page.body.toString("utf8", page.spans[row * 2], page.spans[row * 2 + 1]);
}

/** The JSON texts of all rows, in order. */
export function rowTexts(page: RowPage): string[] {
  return Array.from({ length: rowCount(page) }, (_, row) => rowText(page, row));
}

/** True if nothing but one comma is between a row and the next. */
export function isAdjacent(page: RowPage): boolean {
  const { body, spans } = page;
  if (page.isTight) return true;
  for (let next = 2; next < spans.length; next += 2) {
    const end = spans[next - 1] ?? 0;
    if (spans[next] !== end + 1 || body[end] !== comma) return false;
  }
  return true;
}

/**
 * All rows, compact, with `separator` after each but the last; the bytes are the page's own if they can be.
 * The page is used up.
 * @param separator one ASCII character
 */
export function joinedRows(page: RowPage, separator: "," | "\n"): Buffer {
  const { body, spans } = page;
  if (!isAdjacent(page)) return copiedRows(page, separator);
  if (!page.isTight && !isCompact(page, { from: 0, to: rowCount(page) })) {
    return Buffer.from(rowTexts(page).map(compactJson).join(separator));
  }
  if (separator === "\n" && page.separate?.(newLine) !== true)
    for (let end = 1; end < spans.length - 1; end += 2) body[spans[end] ?? 0] = newLine;
  return body.subarray(spans[0], spans.at(-1));
}

/**
 * All rows, compact, a new line after each. The last one goes where the array's `]` stood, so that a page is one write
 * without a copy. The page is used up.
 */
export function rowLines(page: RowPage): Buffer {
  const { body, spans } = page;
  const rows = joinedRows(page, "\n");
  const first = spans[0] ?? 0;
  const after = spans.at(-1) ?? 0;
  // Small buffers share their memory: only the place in it says whether these are the page's own bytes.
  const isOwn = rows.buffer === body.buffer && rows.byteOffset === body.byteOffset + first;
  if (!isOwn || after >= body.length) return Buffer.concat([rows, Buffer.from("\n")]);
  body[after] = newLine;
  return body.subarray(first, after + 1);
}

/**
 * True if every string in the page is certainly printable ASCII: no other byte and no escape is in its body.
 * What is printed of such a page needs no sanitiser and no measuring.
 */
export function isPlain({ body }: RowPage): boolean {
  return isAscii(body) && !body.includes(backslash) && !body.includes(del);
}

function copiedRows(page: RowPage, separator: string): Buffer {
  const pieces: Buffer[] = [];
  const between = Buffer.from(separator);
  for (let row = 0; row < rowCount(page); row += 1) {
    if (row > 0) pieces.push(between);
    const isAsItShould = isCompact(page, { from: row, to: row + 1 });
    const [start, end] = [page.spans[row * 2], page.spans[row * 2 + 1]];
    pieces.push(isAsItShould ? page.body.subarray(start, end) : Buffer.from(compactJson(rowText(page, row))));
  }
  return Buffer.concat(pieces);
}

/**
 * True if rows have no white space outside of strings. It looks only at the white space there is: a tab or new line
 * cannot be inside a string, and a space between two characters of which neither is a quote, a bracket, a comma or
 * a colon cannot be outside of one. Only if that leaves a doubt the row is read up to there.
 * @param rows a range of rows with nothing but commas between them
 */
export function isCompact(page: RowPage, rows: { from: number; to: number }): boolean {
  const { body, spans } = page;
  const last = spans[rows.to * 2 - 1] ?? 0;
  let row = rows.from;
  let at = spans[row * 2] ?? 0;
  for (const control of [newLine, 13, 9]) {
    const found = body.indexOf(control, at);
    if (found !== -1 && found < last) return false;
  }
  for (at = body.indexOf(space, at); at !== -1 && at < last; at = body.indexOf(space, at + 1)) {
    if (structural[body[at - 1] ?? 0] !== 1 && structural[body[at + 1] ?? 0] !== 1) continue;
    while ((spans[row * 2 + 1] ?? last) <= at) row += 1;
    if (!isInString(body, spans[row * 2] ?? 0, at)) return false;
  }
  return true;
}

/** Whether a byte of a JSON text is inside of a string. */
function isInString(body: Buffer, start: number, at: number): boolean {
  let inside = false;
  for (let index = start; index < at; index += 1) {
    if (body[index] === quote) inside = !inside;
    else if (inside && body[index] === backslash) index += 1;
  }
  return inside;
}

const newLine = 10;
const space = 32;
const quote = 34;
const comma = 44;
const backslash = 92;
const del = 127;
const structural = new Uint8Array(256);
for (const character of Buffer.from('{}[],:" ')) structural[character] = 1;

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
