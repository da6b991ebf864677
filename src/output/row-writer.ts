// Rows written by WebAssembly out of pages whose members are known: row-writer.wat, compiled into row-writer-code.ts. What a row has that
// is more than copying is left to its format, and every row on a processor that cannot run the code.
import type { ByteWriter } from "./byte-writer.ts";
import { code } from "./row-writer-code.ts";
import { eachRun, type FieldSlot, type Layout } from "./row-members.ts";
import type { ReadPage } from "./row-page.ts";

/** How a value is written, as the code numbers it: not at all, as it is, or as a cell of CSV, a value of YAML, a cell of a table. */
export const valueKinds = { none: 0, json: 1, csv: 2, yaml: 3, table: 4 } as const;

/** A part of a row. */
export interface RowPart {
  /** What is before the value. */
  readonly before: Uint8Array;
  /** The number of the member in its row. */
  readonly slot: number;
  readonly kind: (typeof valueKinds)[keyof typeof valueKinds];
  /** Of a table: the columns that the value is filled up to, and how many are behind it. */
  readonly width?: number;
  readonly gap?: number;
}

interface Code {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly end: { readonly value: number };
  rows(...numbers: number[]): number;
}

/** As far as it is used here: neither the language's types nor Node's name it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** Where things lie in the memory: widths of characters, parts, their texts; then what differs from page to page. */
const partsAt = 65_536;
const partNumbers = 6;
const mostPartBytes = 65_536;
const pageAt = partsAt + mostPartBytes;
/** What is read or overwritten in one step. */
const margin = 16;
const memoryPage = 65_536;
/** Longer pages are rare, and their memory would stay taken. */
const mostBytes = 8 * 1024 * 1024;
/** After so many rows in turn that were left to the format, the others of their kind are too. */
const mostRefused = 8;

/** Made with the first page; null if the processor lacks what it needs. */
let made: Code | null | undefined;

function make(): Code | null {
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(code, "base64"))).exports as Code;
  } catch {
    return null;
  }
}

/** A row that was left to its format. */
export interface LeftRow {
  readonly page: ReadPage;
  readonly layout: Layout;
  /** The place of its first member in `places`. */
  readonly first: number;
  readonly row: number;
}

/** What a format says of the rows that it writes. */
export interface RowFormat {
  /** The parts of a row, each of a member of its own; nothing if the code cannot write such rows. The same object for the same layout. */
  readonly parts: (layout: Layout) => readonly RowPart[] | undefined;
  /** Writes a row to the same place. */
  readonly row: (row: LeftRow) => void;
}

/** Whether each is a member of the row itself, and no two are the same, or is none. */
export function areOwnMembers(slots: readonly FieldSlot[]): boolean {
  const found = slots.filter(({ slot }) => slot !== -1).map(({ slot }) => slot);
  return new Set(found).size === found.length && slots.every(({ steps }) => steps.length === 0);
}

/** Writes all rows of a page. */
export function writeRows(page: ReadPage, out: ByteWriter, { parts, row }: RowFormat): void {
  const { ranges } = page.members;
  let loaded: LoadedPage | undefined;
  eachRun(page, (layout, from, to) => {
    const leave = (left: number): void => row({ page, layout, first: (ranges[left * 2]! & 0x7fffffff) * 4, row: left });
    const ofRow = parts(layout);
    const placed = ofRow && place(ofRow);
    let at = from;
    if (placed !== undefined && (loaded ??= load(page)) !== undefined)
      for (let refused = 0; at < to && refused < mostRefused; ) {
        const reached = writeUntilRefused(loaded, { placed, from: at, to, out });
        refused = reached === at ? refused + 1 : 0;
        at = reached;
        if (at < to) leave(at++);
      }
    for (; at < to; at += 1) leave(at);
  });
}

/** Takes note of how many columns a character of a table has: the code does not know them. @param unit of UTF-16 */
export function learnWidth(unit: number, columns: number): void {
  if (made) new Uint8Array(made.memory.buffer, 0, 65_536)[unit] = columns;
}

interface LoadedPage {
  readonly ranges: number;
  readonly places: number;
  readonly body: number;
  readonly bodyLength: number;
  /** Behind all of it. */
  readonly end: number;
}

/** Copies a page to where the code reads it. */
function load({ body, members: { ranges, places } }: ReadPage): LoadedPage | undefined {
  if (body.length > mostBytes) return undefined;
  if (made === undefined) made = make();
  if (made === null) return undefined;
  const placesAt = pageAt + ranges.byteLength;
  const bodyAt = placesAt + places.byteLength;
  const end = bodyAt + body.length + margin;
  enlarge(made, end);
  const { buffer } = made.memory;
  new Uint32Array(buffer, pageAt, ranges.length).set(ranges);
  new Uint32Array(buffer, placesAt, places.length).set(places);
  new Uint8Array(buffer, bodyAt, body.length).set(body);
  return { ranges: pageAt, places: placesAt, body: bodyAt, bodyLength: body.length, end };
}

function enlarge({ memory }: Code, bytes: number): void {
  const missing = bytes - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / memoryPage));
}

interface PlacedParts {
  readonly parts: readonly RowPart[];
  /** The most that a row has beyond its values, bytes. */
  readonly most: number;
}

let lastPlaced: PlacedParts | undefined;

/** Puts the parts where the code reads them. */
function place(parts: readonly RowPart[]): PlacedParts | undefined {
  if (lastPlaced?.parts === parts) return lastPlaced;
  if (made === undefined) made = make();
  const texts = Buffer.concat(parts.map(({ before }) => before));
  const textsAt = partsAt + parts.length * partNumbers * 4;
  if (!made || textsAt + texts.length + margin > pageAt) return undefined;
  enlarge(made, pageAt);
  const numbers = new Uint32Array(made.memory.buffer, partsAt, parts.length * partNumbers);
  let at = textsAt;
  let most = texts.length;
  for (const [index, { before, slot, kind, width = 0, gap = 0 }] of parts.entries()) {
    numbers.set([at, before.length, slot, kind, width, gap], index * partNumbers);
    at += before.length;
    // A table has one byte for null's four.
    most += width + gap;
  }
  new Uint8Array(made.memory.buffer).set(texts, textsAt);
  lastPlaced = { parts, most };
  return lastPlaced;
}

/** @returns the first row that was not written */
function writeUntilRefused(
  page: LoadedPage,
  { placed, from, to, out }: { placed: PlacedParts; from: number; to: number; out: ByteWriter },
): number {
  const { rows, memory, end } = made!;
  // Each value is written once at the most.
  enlarge(made!, page.end + page.bodyLength + (to - from) * placed.most + margin);
  const { body, ranges, places } = page;
  const reached = rows(partsAt, placed.parts.length, body, ranges, places, from, to, page.end, 0);
  out.append(new Uint8Array(memory.buffer, page.end, end.value - page.end));
  return reached;
}
