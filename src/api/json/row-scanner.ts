// The rows of a long page in its usual form, found by WebAssembly: row-scanner.wat, compiled into row-scanner-code.ts. What it
// refuses, and every page on a processor that cannot run it, json-scanner.ts reads: the one takes nothing that the other does not.
import { code } from "./row-scanner-code.ts";

/** Where each member of each row is in the body of its page. */
export interface Members {
  /**
   * For each row the number of its first member and of the one after its last. The first has its highest bit set if the names
   * differ from those of the row before.
   */
  readonly ranges: Uint32Array;
  /** For each member both ends of its name, without the quotes, and of its value: four offsets in bytes. */
  readonly places: Uint32Array;
}

/** Overwrites the byte behind each row but the last. @returns false, and nothing is done, once another page was scanned */
export type Separate = (byte: number) => boolean;

interface FoundRows {
  /** Overwritten when the next page is scanned, as the members are. */
  readonly spans: Uint32Array;
  readonly count: number;
  readonly members: Members;
  /** If the body stands where the code can write. */
  readonly separate: Separate | undefined;
  /** The index after the closing bracket. */
  readonly end: number;
}

const mostRows = 4096;
const mostMembers = 65_536;
/** A shorter body is read before the code would be compiled, a longer one would take memory that stays taken. */
const [leastBytes, mostBytes] = [32 * 1024, 8 * 1024 * 1024];
/** What is read in one step: a zero in it, behind the body, ends every string and every number. */
const margin = 32;
/** Where things lie in the memory: spans, ranges, members, a body that was received elsewhere, places to receive others in. */
const rangesAt = mostRows * 8;
const placesAt = rangesAt + mostRows * 8;
const bodyAt = placesAt + mostMembers * 16;
const receivedAt = bodyAt + mostBytes + margin;
const receivedBytes = 2 * 1024 * 1024;
const memoryPage = 65_536;
/** It never grows, since that would take away what is received in it; what is not used of it takes none of the system's. */
const memoryPages = Math.ceil((receivedAt + 2 * (receivedBytes + margin)) / memoryPage);

/** As far as it is used here: neither the language's types nor Node's name it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

interface Code {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly rowCount: { readonly value: number };
  readonly memberCount: { readonly value: number };
  rows(
    ...at: [at: number, body: number, spans: number, rows: number, ranges: number, places: number, members: number]
  ): number;
  separate(spans: number, count: number, body: number, byte: number): void;
}

interface Scanner extends Code {
  /** All of the memory. */
  readonly bytes: Buffer;
  /** Where bodies may be received, as long as no one does. */
  readonly places: Buffer[];
}

/** Made with the first long page; null if the processor lacks what it needs. */
let scanner: Scanner | null | undefined;
/** How many pages were scanned. */
let scans = 0;

function made(): Scanner | null {
  try {
    const module = new WebAssembly.Module(Buffer.from(code, "base64"));
    const { memory, rowCount, memberCount, rows, separate } = new WebAssembly.Instance(module).exports as Code;
    memory.grow(memoryPages - memory.buffer.byteLength / memoryPage);
    const bytes = Buffer.from(memory.buffer);
    const placeFrom = (at: number): Buffer => bytes.subarray(at, at + receivedBytes);
    const places = [placeFrom(receivedAt), placeFrom(receivedAt + receivedBytes + margin)];
    return { memory, rowCount, memberCount, rows, separate, bytes, places };
  } catch {
    return null;
  }
}

/**
 * A place of one's own for bodies whose rows are then found without a copy of them.
 * @returns gives the place, the same each time; nothing before the first long page, and if others have them all
 */
export function createBodyPlace(): () => Buffer | undefined {
  let place: Buffer | undefined;
  return () => (place ??= scanner?.places.pop());
}

/**
 * @param from the first row
 * @returns nothing if the page is unusual: it may be right or wrong
 */
export function scanUsualRows(body: Buffer, from: number): FoundRows | undefined {
  if (body.length < leastBytes || body.length > mostBytes) return undefined;
  if (scanner === undefined) scanner = made();
  if (scanner === null) return undefined;
  const { memory, bytes, rows, rowCount, memberCount, separate } = scanner;
  const scan = ++scans;
  const isThere = body.buffer === memory.buffer;
  const at = isThere ? body.byteOffset : bodyAt;
  if (!isThere) bytes.set(body, at);
  bytes.fill(0, at + body.length, at + body.length + margin);
  const end = rows(at + from, at, 0, mostRows, rangesAt, placesAt, mostMembers);
  if (end === 0) return undefined;
  const count = rowCount.value;
  return {
    spans: new Uint32Array(memory.buffer, 0, count * 2),
    count,
    members: {
      ranges: new Uint32Array(memory.buffer, rangesAt, count * 2),
      places: new Uint32Array(memory.buffer, placesAt, memberCount.value * 4),
    },
    separate: isThere ? (byte) => scan === scans && (separate(0, count, at, byte), true) : undefined,
    end: end - at,
  };
}
