// Reads JSON (RFC 8259) of the service safely: its encoding, its nesting, its keys `__proto__`.
import { isUtf8 } from "node:buffer";

/** Deepest nesting of arrays and objects that is read. */
export const maxNesting = 200;

/** A body that breaks the contract. It ends an attempt as `unknown`. */
export class BrokenBody extends Error {
  override readonly name = "BrokenBody";
  readonly reason: "malformed" | "too_large";
  constructor(message: string, reason: "malformed" | "too_large" = "malformed") {
    super(message);
    this.reason = reason;
  }
}

export interface JsonBody {
  /** Exactly as it came. */
  readonly text: string;
  /** Without any key `__proto__`. */
  readonly value: unknown;
}

/**
 * @param body bounded in size by the transport
 * @throws BrokenBody for anything but one JSON text in UTF-8, nested no deeper than 200
 */
export function parseJson(body: Buffer): JsonBody {
  new Scanner(body).whole();
  const text = body.toString("utf8");
  return { text, value: parseText(text) };
}

/** The value of a JSON text that was checked. */
export function parseText(text: string): unknown {
  // The key itself may be written with escapes.
  if (text.includes("__proto__") || text.includes("\\u")) return JSON.parse(text, withoutProto);
  return JSON.parse(text);
}

function withoutProto(key: string, value: unknown): unknown {
  return key === "__proto__" ? undefined : value;
}

/** True if the media type says JSON (RFC 8259, RFC 6839 `+json`), or if nothing is said. */
export function saysJson(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  return /^application\/(?:json|[\w.!#$&^-]+\+json)\s*(?:;|$)/i.test(contentType.trim());
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** True for an object that is not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;
const backslash = 0x5c;

/** The bytes of white space: the only ones up to 0x20 that JSON has outside of strings. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/**
 * Reads over JSON text and checks every byte of it. Each method takes the index at which something begins and returns the
 * index behind it; behind the end of the body there is no byte, which no rule allows.
 */
export class Scanner {
  /** Bytes of white space outside of strings so far. */
  spaces = 0;
  readonly #body: Buffer;
  readonly #what: string;

  /** @param what the body is, for a message */
  constructor(body: Buffer, what = "response") {
    this.#body = body;
    this.#what = what;
  }

  /** Checks that the body is UTF-8. @returns the index at which its value begins */
  begin(): number {
    if (!isUtf8(this.#body)) throw new BrokenBody(`the ${this.#what} is not in UTF-8`);
    return this.space(0);
  }

  /** Checks that the body is one value. @returns its begin and end, without the white space around it */
  whole(): { readonly start: number; readonly end: number } {
    const start = this.begin();
    const end = this.value(start, 0);
    this.end(end);
    return { start, end };
  }

  /** Checks that nothing but white space is left. */
  end(from: number): void {
    const at = this.space(from);
    if (at !== this.#body.length) throw this.#broken(at);
  }

  /** @param depth of the array or object that the value is in, 0 for the whole text */
  value(from: number, depth: number): number {
    const byte = this.#body[from]!;
    if (byte === quote) return this.string(from);
    if (byte === openBrace) return this.object(from, depth + 1);
    if (byte === openBracket) return this.array(from, depth + 1);
    if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) return this.#number(from);
    return this.#word(from);
  }

  /** @param read reads over a member's value; gets the begin and the end of its name, quotes included */
  object(from: number, depth: number, read?: (name: number, nameEnd: number, value: number) => number): number {
    const body = this.#body;
    if (depth > maxNesting) throw this.#tooDeep();
    let at = this.space(from + 1);
    if (body[at] === closeBrace) return at + 1;
    for (;;) {
      const name = at;
      if (body[at] !== quote) throw this.#broken(at);
      const nameEnd = this.string(at);
      at = this.space(nameEnd);
      if (body[at] !== colon) throw this.#broken(at);
      at = this.space(at + 1);
      // Most values are strings: they are not worth another call.
      if (read !== undefined) at = read(name, nameEnd, at);
      else at = body[at] === quote ? this.string(at) : this.value(at, depth);
      at = this.space(at);
      if (body[at] === closeBrace) return at + 1;
      if (body[at] !== comma) throw this.#broken(at);
      at = this.space(at + 1);
    }
  }

  /** @param read reads over an item */
  array(from: number, depth: number, read?: (item: number) => number): number {
    const body = this.#body;
    if (depth > maxNesting) throw this.#tooDeep();
    let at = this.space(from + 1);
    if (body[at] === closeBracket) return at + 1;
    for (;;) {
      at = this.space(read === undefined ? this.value(at, depth) : read(at));
      if (body[at] === closeBracket) return at + 1;
      if (body[at] !== comma) throw this.#broken(at);
      at = this.space(at + 1);
    }
  }

  string(from: number): number {
    const body = this.#body;
    let at = from + 1;
    for (;;) {
      let byte = body[at]!;
      while (byte > quote ? byte !== backslash : byte === 0x20 || byte === 0x21) byte = body[++at]!;
      if (byte === quote) return at + 1;
      if (byte !== backslash) throw this.#broken(at);
      at = this.#escape(at + 1);
    }
  }

  space(from: number): number {
    const body = this.#body;
    if (body[from]! > 0x20) return from;
    let at = from;
    while (isSpace(body[at])) at++;
    this.spaces += at - from;
    return at;
  }

  #escape(from: number): number {
    const body = this.#body;
    if (body[from] !== 0x75) {
      if (from < body.length && '"\\/bfnrt'.includes(String.fromCharCode(body[from]!))) return from + 1;
      throw this.#broken(from);
    }
    for (let at = from + 1; at <= from + 4; at++) if (!isHexDigit(body[at])) throw this.#broken(at);
    return from + 5;
  }

  #number(from: number): number {
    const body = this.#body;
    let at = body[from] === 0x2d ? from + 1 : from;
    at = body[at] === 0x30 ? at + 1 : this.#digits(at);
    if (body[at] === 0x2e) at = this.#digits(at + 1);
    if (body[at] === 0x65 || body[at] === 0x45) {
      at++;
      if (body[at] === 0x2b || body[at] === 0x2d) at++;
      at = this.#digits(at);
    }
    return at;
  }

  #digits(from: number): number {
    let at = from;
    while (this.#body[at]! >= 0x30 && this.#body[at]! <= 0x39) at++;
    if (at === from) throw this.#broken(at);
    return at;
  }

  #word(from: number): number {
    for (const word of ["true", "false", "null"])
      if (this.#body.toString("latin1", from, from + word.length) === word) return from + word.length;
    throw this.#broken(from);
  }

  #broken(at: number): BrokenBody {
    return new BrokenBody(`the ${this.#what} is not JSON, or is incomplete (at byte ${at})`);
  }

  #tooDeep(): BrokenBody {
    return new BrokenBody(`the ${this.#what} is nested deeper than ${maxNesting}`, "too_large");
  }
}

function isHexDigit(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66));
}
