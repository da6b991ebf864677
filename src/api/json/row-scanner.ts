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

interface FoundRows {
  readonly spans: Uint32Array;
  readonly count: number;
  /** Overwritten when the next page is scanned. */
  readonly members: Members;
  /** The index after the closing bracket. */
  readonly end: number;
}

const mostRows = 4096;
const mostMembers = 65_536;
/** Where things lie in the memory: spans, ranges, members, the body. */
const rangesAt = mostRows * 8;
const placesAt = rangesAt + mostRows * 8;
const bodyAt = placesAt + mostMembers * 16;
/** What is read in one step: a zero in it, behind the body, ends every string and every number. */
const margin = 32;
const memoryPage = 65_536;
/** A shorter body is read before the code would be compiled, a longer one would take memory that stays taken. */
const [leastBytes, mostBytes] = [32 * 1024, 8 * 1024 * 1024];

/** As far as it is used here: neither the language's types nor Node's name it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

interface Scanner {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly rowCount: { readonly value: number };
  readonly memberCount: { readonly value: number };
  rows(
    ...at: [at: number, body: number, spans: number, rows: number, ranges: number, places: number, members: number]
  ): number;
}

/** Made with the first long page; null if the processor lacks what it needs. */
let scanner: Scanner | null | undefined;

function made(): Scanner | null {
  try {
    const module = new WebAssembly.Module(Buffer.from(code, "base64"));
    return new WebAssembly.Instance(module).exports as Scanner;
  } catch {
    return null;
  }
}

/**
 * @param from the first row
 * @returns nothing if the page is unusual: it may be right or wrong
 */
export function scanUsualRows(body: Buffer, from: number): FoundRows | undefined {
  if (body.length < leastBytes || body.length > mostBytes) return undefined;
  if (scanner === undefined) scanner = made();
  if (scanner === null) return undefined;
  const { memory } = scanner;
  const missing = bodyAt + body.length + margin - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / memoryPage));
  const bytes = new Uint8Array(memory.buffer);
  bytes.set(body, bodyAt);
  bytes.fill(0, bodyAt + body.length, bodyAt + body.length + margin);
  const end = scanner.rows(bodyAt + from, bodyAt, 0, mostRows, rangesAt, placesAt, mostMembers);
  if (end === 0) return undefined;
  const count = scanner.rowCount.value;
  return {
    spans: new Uint32Array(memory.buffer, 0, count * 2).slice(),
    count,
    members: {
      ranges: new Uint32Array(memory.buffer, rangesAt, count * 2),
      places: new Uint32Array(memory.buffer, placesAt, scanner.memberCount.value * 4),
    },
    end: end - bodyAt,
  };
}
