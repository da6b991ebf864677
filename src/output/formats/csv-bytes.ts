// Cells of a CSV file as bytes out of a page whose members are known. Anything else goes through csvCell.
import { ByteWriter } from "../byte-writer.ts";
import { type Layout, oncePerLayout, slotOf, textBelow } from "../row-members.ts";
import type { ReadPage } from "../row-page.ts";
import { areOwnMembers, valueKinds, type RowFormat, type RowPart, writeRows } from "../row-writer.ts";
import type { Cell, CellColumn } from "./cells.ts";

const [quote, comma, backslash] = [0x22, 0x2c, 0x5c];
/** How a text begins that a spreadsheet might run: `=+-@`, and the first byte of their full-width forms. */
const suspect = new Uint8Array(256);
for (const byte of [0x3d, 0x2b, 0x2d, 0x40, 0xef]) suspect[byte] = 1;

/** What is not in a cell as it is in JSON. */
const stops = new Uint8Array(256);
for (const byte of [comma, backslash]) stops[byte] = 1;

function hasBackslash(body: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (body[at] === backslash) return true;
  return false;
}

export interface CsvBytesOptions {
  readonly columns: readonly CellColumn[];
  readonly cellText: (cell: Cell) => string;
  /** Called for each layout of rows that is met. */
  readonly see: (layout: Layout) => void;
  /** Called for a column that a row has a value for, if its layout alone does not say so. */
  readonly found: (column: CellColumn) => void;
}

interface Slot {
  readonly slot: number;
  readonly steps: readonly string[];
  readonly column: CellColumn;
}

export class CsvBytes {
  readonly #options: CsvBytesOptions;
  readonly #out = new ByteWriter();
  readonly #slotsOf = oncePerLayout((layout): readonly Slot[] => {
    const { columns, see } = this.#options;
    see(layout);
    return columns.map((column) => ({ column, ...slotOf(layout, column.field) }));
  });
  readonly #format: RowFormat = {
    parts: oncePerLayout((layout) => bulkOf(this.#slotsOf(layout))),
    row: ({ page, layout, first }) => this.#line(page, this.#slotsOf(layout), first),
  };

  constructor(options: CsvBytesOptions) {
    this.#options = options;
  }

  /** @param head what is before the lines. The bytes are overwritten by the next page. */
  of(page: ReadPage, head: string): Buffer {
    this.#out.text(head);
    writeRows(page, this.#out, this.#format);
    return this.#out.take();
  }

  #line({ body, members: { places } }: ReadPage, slots: readonly Slot[], first: number): void {
    const out = this.#out;
    const begin = out.length;
    for (let index = 0; index < slots.length; index += 1) {
      const { slot, steps, column } = slots[index]!;
      const at = first + slot * 4;
      const [start, end] = slot === -1 ? [0, 0] : [places[at + 2]!, places[at + 3]!];
      out.reserve(2 * (end - start) + 8);
      if (index > 0) out.byte(comma);
      if (slot === -1) continue;
      if (steps.length === 0) this.#cell(body, start, end);
      else this.#cellBelow(body.toString("utf8", start, end), { steps, column });
    }
    out.reserve(4);
    // A reader would skip an empty line.
    if (slots.length === 1 && out.length === begin) out.text('""');
    out.byte(0x0d);
    out.byte(0x0a);
  }

  #cell(body: Buffer, start: number, end: number): void {
    const out = this.#out;
    const byte = body[start]!;
    if (byte === quote) return this.#string(body, start, end);
    // null
    if (byte === 0x6e) return;
    if (byte === 0x7b || byte === 0x5b) out.text(this.#options.cellText({ json: body.toString("utf8", start, end) }));
    else out.copy(body, start, end);
  }

  #string(body: Buffer, start: number, end: number): void {
    const out = this.#out;
    const before = out.length;
    const isSuspect = suspect[body[start + 1]!] === 1;
    const reached = isSuspect ? start : out.copyUntil(body, { start: start + 1, end: end - 1, stops });
    if (reached === end - 1) return;
    out.cut(before);
    // The quotes of JSON are those of CSV, if nothing between them is one.
    if (!isSuspect && !hasBackslash(body, reached, end)) out.copy(body, start, end);
    else out.text(this.#options.cellText(String(JSON.parse(body.toString("utf8", start, end)))));
  }

  #cellBelow(value: string, { steps, column }: Pick<Slot, "steps" | "column">): void {
    const text = textBelow(value, steps);
    if (text === undefined) return;
    this.#options.found(column);
    const isText = text.startsWith('"');
    if (text !== "null") this.#out.text(this.#options.cellText(isText ? String(JSON.parse(text)) : { json: text }));
  }
}

/** The same for many lines by one call. A line of one column may be empty, which is written in another way. */
function bulkOf(slots: readonly Slot[]): readonly RowPart[] | undefined {
  if (slots.length < 2 || !areOwnMembers(slots)) return undefined;
  const cells = slots.map(
    ({ slot }, index): RowPart => ({
      before: Buffer.from(index === 0 ? "" : ","),
      slot: Math.max(slot, 0),
      kind: slot === -1 ? valueKinds.none : valueKinds.csv,
    }),
  );
  return [...cells, { before: Buffer.from("\r\n"), slot: 0, kind: valueKinds.none }];
}
