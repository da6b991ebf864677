// Where in a JSON text something stands. Why own code: `JSON.parse` names no place for most errors before Node 22, and
// never one for a value that is sound JSON and wrong for its schema.

/** A place for a person: both count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Offsets of all values by path (keys and indexes joined by NUL), and of the first error. */
export interface JsonMap {
  readonly offsets: ReadonlyMap<string, number>;
  readonly brokenAt?: number;
}

const scalar =
  /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/uy;
const white = /[ \t\r\n]*/y;

class Broken extends Error {}

class Scanner {
  readonly offsets = new Map<string, number>();
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get at(): number {
    return this.#at;
  }

  /** Skips white space and tells the next character, without taking it. */
  peek(): string | undefined {
    white.lastIndex = this.#at;
    white.test(this.#text);
    this.#at = white.lastIndex;
    return this.#text[this.#at];
  }

  take(expected: string): void {
    if (this.peek() !== expected) throw new Broken();
    this.#at++;
  }

  scalar(): string {
    scalar.lastIndex = this.#at;
    const [found] = scalar.exec(this.#text) ?? [];
    if (found === undefined) throw new Broken();
    this.#at += found.length;
    return found;
  }

  value(path: readonly (string | number)[]): void {
    const next = this.peek();
    this.offsets.set(path.join("\0"), this.#at);
    if (path.length > 100) throw new Broken();
    if (next === "{") this.items("{", "}", (index) => this.value([...path, this.key(index)]));
    else if (next === "[") this.items("[", "]", (index) => this.value([...path, index]));
    else this.scalar();
  }

  key(_index: number): string {
    if (this.peek() !== '"') throw new Broken();
    const key = String(JSON.parse(this.scalar()));
    this.take(":");
    return key;
  }

  items(open: string, close: string, item: (index: number) => void): void {
    this.take(open);
    for (let index = 0; this.peek() !== close; index++) {
      if (index > 0) this.take(",");
      item(index);
    }
    this.take(close);
  }
}

/** Walks a JSON text to its end or to the first place where it is none. */
export function mapJson(text: string): JsonMap {
  const scanner = new Scanner(text);
  try {
    scanner.value([]);
    if (scanner.peek() !== undefined) throw new Broken();
    return { offsets: scanner.offsets };
  } catch (error) {
    if (error instanceof Broken) return { offsets: scanner.offsets, brokenAt: scanner.at };
    throw error;
  }
}

/** Line and column of an offset. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** The place of the value at `path`, or of the nearest value around it that is there. */
export function placeOfValue(text: string, path: readonly PropertyKey[]): Place {
  const { offsets } = mapJson(text);
  for (let length = path.length; length > 0; length--) {
    const offset = offsets.get(path.slice(0, length).map(String).join("\0"));
    if (offset !== undefined) return placeOf(text, offset);
  }
  return { line: 1, column: 1 };
}
