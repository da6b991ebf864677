// Rows of millions of records in memory, in about half of what they take as pairs: a key once for all rows that have it, and
// values counted from the lowest.
import { type Cells, type Rows, rowsIn, rowsOfPage } from "./rows.ts";

const slabLength = 128 * 1024;
const span = 2 ** 32;

/** Keeps what threads passed on side by side: thousands of arrays apart from each other would take twice the memory. */
export class RowStore {
  #slab = new Float64Array(0);
  #used = 0;

  keep(cells: Cells): Rows {
    const { keys, low, high } = extentOf(cells);
    const count = cells.length / 2;
    const length = keys + Math.ceil((keys + count) / 2);
    if (length < cells.length && high - low < span) return new PackedRows(this.#room(length), { cells, keys, low });
    const kept = this.#room(cells.length);
    kept.set(cells);
    return rowsIn(kept);
  }

  #room(length: number): Cells {
    if (length > this.#slab.length - this.#used) {
      this.#slab = new Float64Array(Math.max(slabLength, length));
      this.#used = 0;
    }
    this.#used += length;
    return this.#slab.subarray(this.#used - length, this.#used);
  }
}

/** How many different keys there are, and the lowest and the highest value. */
function extentOf(cells: Cells): { keys: number; low: number; high: number } {
  let [keys, low, high] = [0, Number.POSITIVE_INFINITY, 0];
  for (let at = 0; at < cells.length; at += 2) {
    const value = cells[at + 1]!;
    if (at === 0 || cells[at] !== cells[at - 2]) keys += 1;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { keys, low, high };
}

class PackedRows implements Rows {
  readonly count: number;
  /** The different keys; behind them, half as long each, the row that each key begins at and the values of all rows. */
  readonly #room: Cells;
  readonly #keys: number;
  readonly #low: number;

  constructor(
    room: Cells,
    { cells, keys, low }: { readonly cells: Cells; readonly keys: number; readonly low: number },
  ) {
    this.count = cells.length / 2;
    this.#room = room;
    this.#keys = keys;
    this.#low = low;
    const { starts, values } = this.#parts();
    let key = -1;
    for (let row = 0; row < this.count; row += 1) {
      if (row === 0 || cells[2 * row] !== cells[2 * row - 2]) {
        key += 1;
        room[key] = cells[2 * row]!;
        starts[key] = row;
      }
      values[row] = cells[2 * row + 1]! - low;
    }
  }

  #parts(): { readonly starts: Uint32Array; readonly values: Uint32Array } {
    const { buffer, byteOffset } = this.#room;
    const behind = byteOffset + 8 * this.#keys;
    return {
      starts: new Uint32Array(buffer, behind, this.#keys),
      values: new Uint32Array(buffer, behind + 4 * this.#keys, this.count),
    };
  }

  page(number: number): Float64Array {
    const { starts, values } = this.#parts();
    const first = number * rowsOfPage;
    const end = Math.min(first + rowsOfPage, this.count);
    const page = new Float64Array(2 * Math.max(0, end - first));
    let key = lastUpTo(starts, first);
    for (let row = first; row < end; row += 1) {
      if (key + 1 < starts.length && starts[key + 1] === row) key += 1;
      page[2 * (row - first)] = this.#room[key]!;
      page[2 * (row - first) + 1] = values[row]! + this.#low;
    }
    return page;
  }
}

/** Where the last number stands that is not above that one. */
function lastUpTo(numbers: Uint32Array, wanted: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
