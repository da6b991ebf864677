// Lines of a table for a pipe or a file, out of the bytes of a page whose members are known.
import { ByteWriter } from "../byte-writer.ts";
import { type FieldSlot, type Layout, oncePerLayout, slotOf } from "../row-members.ts";
import type { ReadPage } from "../row-page.ts";
import {
  areOwnMembers,
  valueKinds,
  learnWidth,
  type LeftRow,
  type RowFormat,
  type RowPart,
  writeRows,
} from "../row-writer.ts";
import type { CellColumn } from "./cells.ts";
import { gap } from "./layout.ts";

const [space, quote, backslash, dash] = [0x20, 0x22, 0x5c, 0x2d];

export interface TableBytesOptions {
  readonly columns: readonly CellColumn[];
  readonly widths: readonly number[];
  /** Called for each layout of rows that is met. */
  readonly see: (layout: Layout) => void;
  /** The text of a cell that is more than printable characters. */
  readonly cellText: (page: ReadPage, row: number, column: CellColumn) => string;
  readonly measure: (text: string) => number;
  /** Columns of a UTF-16 unit that stands alone, else 0. */
  readonly characterWidth: (unit: number) => number;
}

interface Slot extends FieldSlot {
  readonly column: CellColumn;
}

export class TableBytes {
  readonly #options: TableBytesOptions;
  readonly #out = new ByteWriter();
  readonly #slotsOf = oncePerLayout((layout): readonly Slot[] => {
    const { columns, see } = this.#options;
    see(layout);
    return columns.map((column) => ({ column, ...slotOf(layout, column.field) }));
  });

  readonly #format: RowFormat = {
    parts: oncePerLayout((layout) => this.#bulkOf(this.#slotsOf(layout))),
    row: (left) => this.#row(left),
  };

  constructor(options: TableBytesOptions) {
    this.#options = options;
  }

  /** The bytes are overwritten by the next page. */
  of(page: ReadPage): Buffer {
    writeRows(page, this.#out, this.#format);
    return this.#out.take();
  }

  #row({ page, layout, first, row }: LeftRow): void {
    const out = this.#out;
    const { widths } = this.#options;
    const slots = this.#slotsOf(layout);
    for (let index = 0; index < slots.length; index += 1) {
      const width = this.#cell(page, slots[index]!, { first, row });
      if (index === widths.length - 1) continue;
      const padding = Math.max(0, widths[index]! - width) + gap;
      out.reserve(padding);
      for (let count = 0; count < padding; count += 1) out.byte(space);
    }
    out.text("\n");
  }

  /** The same for many rows by one call. */
  #bulkOf(slots: readonly Slot[]): readonly RowPart[] | undefined {
    if (!areOwnMembers(slots)) return undefined;
    const { widths } = this.#options;
    const nothing = Buffer.from("");
    const cells = slots.map(({ slot }, index): RowPart => {
      const [width, behind] = index === widths.length - 1 ? [0, 0] : [widths[index]!, gap];
      if (slot !== -1) return { before: nothing, slot, kind: valueKinds.table, width, gap: behind };
      return { before: Buffer.from("-".padEnd(width) + " ".repeat(behind)), slot: 0, kind: valueKinds.none };
    });
    return [...cells, { before: Buffer.from("\n"), slot: 0, kind: valueKinds.none }];
  }

  /** @returns its columns on a screen */
  #cell(page: ReadPage, { slot, steps, column }: Slot, { first, row }: { first: number; row: number }): number {
    const { body, members } = page;
    const out = this.#out;
    const at = first + slot * 4;
    const [start, end] = slot === -1 ? [0, 0] : [members.places[at + 2]!, members.places[at + 3]!];
    out.reserve(end - start + 1);
    // Missing, or null.
    if (slot === -1 || (steps.length === 0 && body[start] === 0x6e)) {
      out.byte(dash);
      return 1;
    }
    const isString = body[start] === quote;
    const width = steps.length === 0 && isString ? this.#widthOf(body, start + 1, end - 1) : 0;
    if (width > 0) {
      out.copy(body, start + 1, end - 1);
      return width;
    }
    const text = this.#options.cellText(page, row, column);
    out.text(text);
    return this.#options.measure(text);
  }

  /** Columns of a string that can be printed as it is; 0 if it is empty or has other characters. */
  #widthOf(body: Buffer, start: number, end: number): number {
    const { characterWidth } = this.#options;
    let width = 0;
    for (let at = start; at < end; ) {
      const byte = body[at]!;
      if (byte < 0x7f) {
        if (byte === backslash) return 0;
        width += 1;
        at += 1;
        continue;
      }
      const length = byte >= 0xf0 || byte < 0xc0 ? 0 : byte >= 0xe0 ? 3 : 2;
      if (length === 0) return 0;
      const unit =
        length === 2
          ? ((byte & 0x1f) << 6) | (body[at + 1]! & 0x3f)
          : ((byte & 0x0f) << 12) | ((body[at + 1]! & 0x3f) << 6) | (body[at + 2]! & 0x3f);
      const columns = characterWidth(unit);
      if (columns === 0) return 0;
      learnWidth(unit, columns);
      width += columns;
      at += length;
    }
    return width;
  }
}
