// Pairs of whole numbers (below 2^53), sorted, in pages of one size: one of a million is found by reading a few pages.

export const rowsOfPage = 255;
/** Rows, and their digest if the page is in a file, bytes. */
export const pageBytes = 4096;

// The files that pages are in, beside the journal.

export const formatOfIndex = 3;

/** The file of the list. @param journal its path */
export function listPath(journal: string): string {
  return `${journal}.index`;
}

export function segmentPath(journal: string, tag: string): string {
  return `${listPath(journal)}-${tag}`;
}

/** Pages are wherever they are: in memory, or in a file that is read a page at a time. */
export interface Rows {
  readonly count: number;
  /** Keys and values in turn; the last page may have space behind its rows. */
  page(number: number): Float64Array;
}

export function pagesOf(count: number): number {
  return Math.ceil(count / rowsOfPage);
}

/** Stands at a row, or behind the last (or before the first) if `isAt` is false. */
export class Cursor {
  readonly #rows: Rows;
  #at: number;
  #page: Float64Array = new Float64Array(0);
  #number = -1;

  constructor(rows: Rows, at: number) {
    this.#rows = rows;
    this.#at = at;
  }

  get isAt(): boolean {
    return this.#at >= 0 && this.#at < this.#rows.count;
  }

  get key(): number {
    return this.#cell(0);
  }

  get value(): number {
    return this.#cell(1);
  }

  move(by: 1 | -1): void {
    this.#at += by;
  }

  #cell(column: 0 | 1): number {
    const number = Math.floor(this.#at / rowsOfPage);
    if (number !== this.#number) {
      this.#page = this.#rows.page(number);
      this.#number = number;
    }
    return this.#page[2 * (this.#at - number * rowsOfPage) + column] ?? Number.NaN;
  }
}

/** The first row whose key is not below the wanted one: its number, or the count of all if there is none. */
function firstFrom(rows: Rows, wanted: number): number {
  let low = 0;
  let high = pagesOf(rows.count);
  // Of the pages that begin below it the last one has the place, or the end of that one is it.
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows.page(middle)[0] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  const page = rows.page(low - 1);
  const start = (low - 1) * rowsOfPage;
  const end = Math.min(rowsOfPage, rows.count - start);
  let at = 0;
  for (let rest = end; at < rest; ) {
    const middle = (at + rest) >>> 1;
    if ((page[2 * middle] ?? 0) < wanted) at = middle + 1;
    else rest = middle;
  }
  return start + at;
}

/** At the first row whose key is not below that one. */
export function cursorFrom(rows: Rows, key: number): Cursor {
  return new Cursor(rows, firstFrom(rows, key));
}

export function cursorAtEnd(rows: Rows): Cursor {
  return new Cursor(rows, rows.count - 1);
}

/** The values of a key, in their order. */
export function valuesOf(rows: Rows, key: number): number[] {
  const values: number[] = [];
  for (const cursor = cursorFrom(rows, key); cursor.isAt && cursor.key === key; cursor.move(1))
    values.push(cursor.value);
  return values;
}

/** Each different row of several, in order. */
export function merge(parts: readonly Rows[], take: (key: number, value: number) => void): void {
  const heap = new Heap(parts.map((rows) => new Cursor(rows, 0)).filter(({ isAt }) => isAt));
  let [lastKey, lastValue] = [Number.NaN, Number.NaN];
  for (let first = heap.first; first !== undefined; first = heap.first) {
    const { key, value } = first;
    if (key !== lastKey || value !== lastValue) take(key, value);
    [lastKey, lastValue] = [key, value];
    first.move(1);
    heap.settle();
  }
}

/** Cursors with the lowest row first: a binary heap, since a long journal has hundreds of parts. */
class Heap {
  readonly #cursors: Cursor[];

  constructor(cursors: Cursor[]) {
    this.#cursors = cursors;
    for (let at = cursors.length >> 1; at >= 0; at -= 1) this.#sink(at);
  }

  get first(): Cursor | undefined {
    return this.#cursors[0];
  }

  /** Called when the first cursor was moved. */
  settle(): void {
    const cursors = this.#cursors;
    if (cursors[0]?.isAt === false) {
      const last = cursors.pop();
      if (last !== undefined && cursors.length > 0) cursors[0] = last;
    }
    this.#sink(0);
  }

  #sink(from: number): void {
    const cursors = this.#cursors;
    for (let at = from; ; ) {
      let lowest = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < cursors.length && isBelow(cursors[child]!, cursors[lowest]!)) lowest = child;
      if (lowest === at) return;
      [cursors[at], cursors[lowest]] = [cursors[lowest]!, cursors[at]!];
      at = lowest;
    }
  }
}

function isBelow(one: Cursor, other: Cursor): boolean {
  return one.key < other.key || (one.key === other.key && one.value < other.value);
}

/** Rows as one thread hands them to another: keys and values in turn, sorted. */
export type Cells = Float64Array<ArrayBuffer>;

export function rowsIn(cells: Cells): Rows {
  const page = 2 * rowsOfPage;
  return { count: cells.length / 2, page: (number) => cells.subarray(number * page, (number + 1) * page) };
}

/** Of an entry with more records behind a piece: a long journal has thousands of tables with no more rows. */
const fewRows = 16;

/** Rows in memory, to be filled in any order before the first of them is read. */
export class Table implements Rows {
  /** Keys and values in turn. */
  #cells = new Float64Array(2 * fewRows);
  #filled = 0;
  #pages: Float64Array[] | undefined;
  #count = 0;

  add(key: number, value: number): void {
    if (this.#filled === this.#cells.length) {
      const larger = new Float64Array(2 * this.#cells.length);
      larger.set(this.#cells);
      this.#cells = larger;
    }
    this.#cells[this.#filled++] = key;
    this.#cells[this.#filled++] = value;
  }

  get count(): number {
    this.#sort();
    return this.#count;
  }

  page(number: number): Float64Array {
    return this.#sort()[number] ?? new Float64Array(0);
  }

  cells(): Cells {
    const pages = this.#sort();
    const cells = new Float64Array(2 * this.#count);
    for (const [number, page] of pages.entries()) {
      const at = 2 * rowsOfPage * number;
      cells.set(page.subarray(0, Math.min(page.length, cells.length - at)), at);
    }
    return cells;
  }

  #sort(): Float64Array[] {
    if (this.#pages) return this.#pages;
    const cells = this.#cells;
    const rows = this.#filled / 2;
    const pages: Float64Array[] = [];
    let page = new Float64Array(0);
    let [lastKey, lastValue] = [Number.NaN, Number.NaN];
    const order = isSorted(cells, rows) ? undefined : sortedOrder(cells, rows);
    for (let index = 0; index < rows; index += 1) {
      const row = order?.[index] ?? index;
      const [key, value] = [cells[2 * row]!, cells[2 * row + 1]!];
      if (key === lastKey && value === lastValue) continue;
      const at = this.#count % rowsOfPage;
      if (at === 0) pages.push((page = new Float64Array(2 * Math.min(rowsOfPage, rows - index))));
      page[2 * at] = lastKey = key;
      page[2 * at + 1] = lastValue = value;
      this.#count += 1;
    }
    this.#cells = new Float64Array(0);
    this.#pages = pages;
    return pages;
  }
}

/** Mostly rows were added in order, and sorting takes many times as long as looking. */
function isSorted(cells: Float64Array, rows: number): boolean {
  for (let row = 1; row < rows; row += 1) if (compareRows(cells, row - 1, row) > 0) return false;
  return true;
}

function sortedOrder(cells: Float64Array, rows: number): Uint32Array {
  return Uint32Array.from({ length: rows }, (_, row) => row).sort((one, other) => compareRows(cells, one, other));
}

function compareRows(cells: Float64Array, one: number, other: number): number {
  return cells[2 * one]! - cells[2 * other]! || cells[2 * one + 1]! - cells[2 * other + 1]!;
}
