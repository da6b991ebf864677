// JSON values that keep the text they came with: digits that a number of JavaScript would lose, escapes, duplicate keys.
import { isAscii } from "node:buffer";
import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  isSpace,
  openBrace,
  openBracket,
  parseText,
  quote,
  Scanner,
} from "./json-body.ts";

/** A body as bytes, and as text where both have the same indices: cutting from a text is quicker. */
export class Source {
  readonly bytes: Buffer;
  #text: string | undefined;

  /** @param bytes UTF-8 */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** The text may keep all of the body in memory: what outlives the page is read by {@link JsonText.value}. */
  cut(start: number, end: number): string {
    this.#text ??= isAscii(this.bytes) ? this.bytes.toString("latin1") : "";
    return this.#text === "" ? this.bytes.toString("utf8", start, end) : this.#text.slice(start, end);
  }
}

/** One JSON value within a body that was checked. */
export class JsonText {
  readonly source: Source;
  /** Index of its first byte, and of the one behind its last. */
  readonly start: number;
  readonly end: number;
  /** No white space is in it outside of strings. */
  readonly isCompact: boolean;

  constructor(source: Source, start: number, end: number, isCompact: boolean) {
    this.source = source;
    this.start = start;
    this.end = end;
    this.isCompact = isCompact;
  }

  /** @throws BrokenBody for anything but one JSON text in UTF-8, nested no deeper than 200 */
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

  /** Exactly as it came. */
  get text(): string {
    return this.source.cut(this.start, this.end);
  }

  /** The value as JavaScript has it, without any key `__proto__`: a number may lose digits. */
  get value(): unknown {
    return parseText(this.text);
  }

  /** The string that it is. Call it for a string only. */
  get string(): string {
    return decoded(this.source, this.start, this.end);
  }

  /**
   * The members of an object by name, the items of an array by index; nothing for any other value. Of duplicate keys the
   * last counts, at the place of the first.
   */
  parts(): Map<string, JsonText> {
    const parts = new Map<string, JsonText>();
    if (this.isArray) for (const [index, item] of this.items().entries()) parts.set(String(index), item);
    else this.eachMember((name, value) => parts.set(name, value));
    return parts;
  }

  /** Calls `see` for each member of an object, duplicates included. */
  eachMember(see: (name: string, value: JsonText) => void): void {
    if (!this.isObject) return;
    const { source, isCompact } = this;
    const scanner = this.#scanner();
    scanner.object(this.start, 1, (name, nameEnd, start) => {
      const end = scanner.value(start, 1);
      see(decoded(source, name, nameEnd), new JsonText(source, start, end, isCompact));
      return end;
    });
  }

  /** The items of an array; nothing for any other value. */
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

  /**
   * The text of an object with the values of the named members replaced by `null`, duplicates and keys written with escapes
   * included. Where another string or name repeats such a value, it is masked. Everything else stays byte for byte. Keys that are
   * not there are not added.
   */
  withNulls(keys: readonly string[]): string {
    const { bytes } = this.source;
    const pieces: Buffer[] = [];
    const secrets: string[] = [];
    let from = 0;
    this.eachMember((key, value) => {
      if (!keys.includes(key)) return;
      pieces.push(bytes.subarray(from, value.start), Buffer.from("null"));
      from = value.end;
      if (value.isString && value.string.length >= shortestSecret) secrets.push(value.string);
    });
    return withoutSecrets(Buffer.concat([...pieces, bytes.subarray(from)]).toString(), secrets);
  }

  /** On one line, without white space outside of strings; every token as it came. */
  compact(): string {
    return this.isCompact ? this.text : this.#laidOut({ indent: 0, level: 0 });
  }

  /**
   * Over several lines, two spaces for each level; every token as it came.
   * @param level how deep the text is in a larger one: every line but the first begins that much further right
   */
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

/** A shorter text is a word that may occur anywhere. */
const shortestSecret = 8;

/** A JSON text with a mask for the secrets in its strings and names. */
function withoutSecrets(json: string, secrets: readonly string[]): string {
  if (secrets.length === 0) return json;
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, (token) => {
    const text = String(JSON.parse(token));
    const shown = secrets.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
    return shown === text ? token : JSON.stringify(shown);
  });
}

function decoded(source: Source, start: number, end: number): string {
  const text = source.cut(start + 1, end - 1);
  return text.includes("\\") ? String(JSON.parse(`"${text}"`)) : text;
}
