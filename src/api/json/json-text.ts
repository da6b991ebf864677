// Reads untrusted JSON (RFC 8259), and keeps the text of its values, because parsing would change long numbers.
import { isAscii, isUtf8 } from "node:buffer";

/** A body in UTF-8. `text` is empty unless the body is ASCII; cutting `text` is faster than cutting `bytes`. */
export class Source {
  readonly bytes: Buffer;
  #text: string | undefined;
  #isPlain: boolean | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** True if strings contain only printable ASCII without escapes. */
  get isPlain(): boolean {
    const { bytes } = this;
    return (this.#isPlain ??= isAscii(bytes) && !bytes.includes(backslash) && !bytes.includes(0x7f));
  }

  get text(): string {
    return (this.#text ??= isAscii(this.bytes) ? this.bytes.toString("latin1") : "");
  }

  /** The result may keep the whole body in memory. A caller that keeps a value uses {@link JsonText.value}. */
  cut(start: number, end: number): string {
    const { text } = this;
    return text === "" ? this.bytes.toString("utf8", start, end) : text.slice(start, end);
  }

  /** @param start index of the opening quote. @param end index after the closing quote */
  string(start: number, end: number): string {
    const text = this.cut(start + 1, end - 1);
    return !this.isPlain && text.includes("\\") ? String(JSON.parse(`"${text}"`)) : text;
  }
}

export class JsonText {
  readonly source: Source;
  readonly start: number;
  readonly end: number;
  /** True only if the text has no white space outside strings. */
  readonly isCompact: boolean;

  constructor(source: Source, start: number, end: number, isCompact: boolean) {
    this.source = source;
    this.start = start;
    this.end = end;
    this.isCompact = isCompact;
  }

  /** @throws BrokenBody unless the text is one JSON value in UTF-8, nested at most 200 deep */
  static of(text: string | Buffer): JsonText {
    const body = typeof text === "string" ? Buffer.from(text) : text;
    const scanner = new Scanner(body);
    const { start, end } = scanner.whole();
    return new JsonText(new Source(body), start, end, scanner.spaces === 0);
  }

  get isObject(): boolean {
    return this.source.bytes[this.start] === openBrace;
  }

  get isArray(): boolean {
    return this.source.bytes[this.start] === openBracket;
  }

  get isString(): boolean {
    return this.source.bytes[this.start] === quote;
  }

  get isNull(): boolean {
    return this.source.bytes[this.start] === 0x6e;
  }

  get hasParts(): boolean {
    if (!this.isObject && !this.isArray) return false;
    return this.#scanner().space(this.start + 1) < this.end - 1;
  }

  get text(): string {
    return this.source.cut(this.start, this.end);
  }

  /** The parsed value without `__proto__` keys. Large numbers lose digits. */
  get value(): unknown {
    return parseText(this.text);
  }

  get string(): string {
    return this.source.string(this.start, this.end);
  }

  /** @param like an object that probably has the same names, for speed */
  parts(like?: Parts): Parts {
    return new Parts(this, like);
  }

  /** Start and end of each member's name, then of its value; duplicates included. */
  places(): number[] {
    const places: number[] = [];
    const scanner = this.#scanner();
    if (this.isObject)
      scanner.object(this.start, 1, (name, nameEnd, start) => {
        const end = scanner.value(start, 1);
        places.push(name, nameEnd, start, end);
        return end;
      });
    return places;
  }

  items(): JsonText[] {
    const { source, isCompact } = this;
    const items: JsonText[] = [];
    if (!this.isArray) return items;
    const scanner = this.#scanner();
    scanner.array(this.start, 1, (start) => {
      const end = scanner.value(start, 1);
      items.push(new JsonText(source, start, end, isCompact));
      return end;
    });
    return items;
  }

  /** Sets the named members to `null`, including duplicates and escaped names. Masks their texts in other strings. */
  withNulls(keys: readonly string[]): string {
    const { bytes } = this.source;
    const pieces: Buffer[] = [];
    const secrets: string[] = [];
    const places = this.places();
    let from = 0;
    for (let at = 0; at < places.length; at += 4) {
      if (!keys.includes(this.source.string(places[at]!, places[at + 1]!))) continue;
      const value = new JsonText(this.source, places[at + 2]!, places[at + 3]!, this.isCompact);
      pieces.push(bytes.subarray(from, value.start), Buffer.from("null"));
      from = value.end;
      if (value.isString && value.string.length >= shortestSecret) secrets.push(value.string);
    }
    return withoutSecrets(Buffer.concat([...pieces, bytes.subarray(from)]).toString(), secrets);
  }

  compact(): string {
    return this.isCompact ? this.text : this.#laidOut({ indent: 0, level: 0 });
  }

  /** Indents by two spaces per level, with unchanged tokens. @param level of the first line */
  indented(level = 0): string {
    return this.#laidOut({ indent: 2, level });
  }

  #laidOut({ indent, level }: { readonly indent: number; readonly level: number }): string {
    const { bytes } = this.source;
    const scanner = this.#scanner();
    let depth = level;
    const newLine = (): string => (indent === 0 ? "" : `\n${" ".repeat(indent * depth)}`);
    let text = "";
    for (let at = this.start; at < this.end; ) {
      const byte = bytes[at]!;
      if (isSpace(byte)) at++;
      else if (byte === openBrace || byte === openBracket) {
        const next = scanner.space(at + 1);
        const close = byte === openBrace ? closeBrace : closeBracket;
        const isEmpty = bytes[next] === close;
        if (!isEmpty) depth++;
        text += String.fromCharCode(byte) + (isEmpty ? String.fromCharCode(close) : newLine());
        at = isEmpty ? next + 1 : next;
      } else if (byte === closeBrace || byte === closeBracket) {
        depth--;
        text += newLine() + String.fromCharCode(byte);
        at++;
      } else if (byte === comma || byte === colon) {
        text += byte === comma ? `,${newLine()}` : indent === 0 ? ":" : ": ";
        at++;
      } else {
        const end = scanner.value(at, 0);
        text += this.source.cut(at, end);
        at = end;
      }
    }
    return text;
  }

  #scanner(): Scanner {
    return new Scanner(this.source.bytes);
  }
}

/** An object's members. Of duplicate names, the last value counts, at the first place. */
export class Parts {
  readonly names: readonly string[];
  readonly #object: JsonText;
  /** Start and end of values, in source order. */
  readonly #places: readonly number[];
  /** Indices in `#places`. */
  readonly #values: ReadonlyMap<string, number>;
  #heads: readonly string[] | undefined;

  constructor(object: JsonText, like?: Parts) {
    this.#object = object;
    const alike = like === undefined ? undefined : like.#placesIn(object);
    if (like !== undefined && alike !== undefined) {
      [this.names, this.#values, this.#places, this.#heads] = [like.names, like.#values, alike, like.#heads];
      return;
    }
    const places = object.places();
    const values = new Map<string, number>();
    const own: number[] = [];
    for (let at = 0; at < places.length; at += 4) {
      values.set(object.source.string(places[at]!, places[at + 1]!), own.length);
      own.push(places[at + 2]!, places[at + 3]!);
    }
    [this.names, this.#values, this.#places] = [[...values.keys()], values, own];
  }

  get(name: string): JsonText | undefined {
    const at = this.#values.get(name);
    if (at === undefined) return undefined;
    const { source, isCompact } = this.#object;
    return new JsonText(source, this.#places[at]!, this.#places[at + 1]!, isCompact);
  }

  /** @returns undefined if the object may have other names or another order; the constructor then scans it */
  #placesIn({ source, start, end, isCompact }: JsonText): number[] | undefined {
    if (!isCompact || !source.isPlain) return undefined;
    const { text, bytes } = source;
    const places: number[] = [];
    let at = start;
    for (const head of (this.#heads ??= this.#headsOf())) {
      if (!text.startsWith(head, at)) return undefined;
      const value = at + head.length;
      // Strings of a plain source contain no escapes, so the next quote ends the string.
      at = bytes[value] === quote ? text.indexOf('"', value + 1) + 1 : new Scanner(bytes).value(value, 1);
      places.push(value, at);
    }
    return bytes[at] === closeBrace && at + 1 === end ? places : undefined;
  }

  #headsOf(): string[] {
    const { source, start } = this.#object;
    const places = this.#places;
    return places.flatMap((place, at) => (at % 2 === 0 ? [source.cut(at === 0 ? start : places[at - 1]!, place)] : []));
  }
}

/** Shorter secrets are not masked, because they could occur anywhere in a text. */
const shortestSecret = 8;

function withoutSecrets(json: string, secrets: readonly string[]): string {
  if (secrets.length === 0) return json;
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, (token) => {
    const text = String(JSON.parse(token));
    const shown = secrets.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
    return shown === text ? token : JSON.stringify(shown);
  });
}

export const maxNesting = 200;

/** The body breaks the contract. */
export class BrokenBody extends Error {
  override readonly name = "BrokenBody";
  readonly reason: "malformed" | "too_large";
  constructor(message: string, reason: "malformed" | "too_large" = "malformed") {
    super(message);
    this.reason = reason;
  }
}

export interface JsonBody {
  readonly text: string;
  readonly value: unknown;
}

/** @throws BrokenBody unless the body is one JSON value in UTF-8, nested at most 200 deep */
export function parseJson(body: Buffer): JsonBody {
  new Scanner(body).whole();
  const text = body.toString("utf8");
  return { text, value: parseText(text) };
}

function parseText(text: string): unknown {
  // Escapes can spell `__proto__` too.
  if (text.includes("__proto__") || text.includes("\\u")) return JSON.parse(text, withoutProto);
  return JSON.parse(text);
}

function withoutProto(key: string, value: unknown): unknown {
  return key === "__proto__" ? undefined : value;
}

/** Also true without a header, and for `+json` (RFC 6839). */
export function saysJson(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  return /^application\/(?:json|[\w.!#$&^-]+\+json)\s*(?:;|$)/i.test(contentType.trim());
}

export type JsonObject = Readonly<Record<string, unknown>>;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
export const openBracket = 0x5b;
const closeBracket = 0x5d;
export const openBrace = 0x7b;
const closeBrace = 0x7d;
const backslash = 0x5c;

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/**
 * Scans JSON text. Methods named after a token take its start index and return the index after it. Bytes past the end
 * are undefined, which no rule accepts.
 */
export class Scanner {
  spaces = 0;
  readonly #body: Buffer;
  readonly #what: string;

  constructor(body: Buffer, what = "response") {
    this.#body = body;
    this.#what = what;
  }

  /** Checks the encoding. @returns the value's index */
  begin(): number {
    if (!isUtf8(this.#body)) throw new BrokenBody(`the ${this.#what} is not in UTF-8`);
    return this.space(0);
  }

  /** Checks that the body is one value. @returns its place, without white space around it */
  whole(): { readonly start: number; readonly end: number } {
    const start = this.begin();
    const end = this.value(start, 0);
    this.end(end);
    return { start, end };
  }

  end(from: number): void {
    const at = this.space(from);
    if (at !== this.#body.length) throw this.#broken(at);
  }

  /** @param depth of the surrounding array or object; 0 for the whole text */
  value(from: number, depth: number): number {
    const byte = this.#body[from]!;
    if (byte === quote) return this.string(from);
    if (byte === openBrace) return this.object(from, depth + 1);
    if (byte === openBracket) return this.array(from, depth + 1);
    if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) return this.#number(from);
    return this.#word(from);
  }

  /** @param read scans a member's value, and returns the index after it. The name's place includes the quotes. */
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
      // Inline for speed: most values are strings.
      if (read !== undefined) at = read(name, nameEnd, at);
      else at = body[at] === quote ? this.string(at) : this.value(at, depth);
      at = this.space(at);
      if (body[at] === closeBrace) return at + 1;
      if (body[at] !== comma) throw this.#broken(at);
      at = this.space(at + 1);
    }
  }

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
