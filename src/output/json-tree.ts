// Owns: JSON text read without loss: number text, key order, duplicate keys, `__proto__`, the place of every value. Pure.
// Must not know: what the document says, how it is shown. Source: RFC 8259, quality.md traps (`JSON.parse` loses digits).
import { Failure } from "../errors.ts";

/** How deep arrays and objects may stand in each other: far more than any answer needs, far less than the stack. */
export const maxNesting = 200;

/** A value and where it stands: `[start, end)` in UTF-16 units of the source text. */
export type JsonNode = JsonScalar | JsonArray | JsonObject;

/** A string, number, `true`, `false` or `null`; its text is `source.slice(start, end)`. */
export interface JsonScalar {
  readonly kind: "string" | "number" | "literal";
  readonly start: number;
  readonly end: number;
}

interface JsonArray {
  readonly kind: "array";
  readonly start: number;
  readonly end: number;
  readonly items: readonly JsonNode[];
}

export interface JsonObject {
  readonly kind: "object";
  readonly start: number;
  readonly end: number;
  /** In the order of the text, duplicates included. `key` is decoded, `keyNode` is where it stands. */
  readonly members: readonly JsonMember[];
}

interface JsonMember {
  readonly key: string;
  readonly keyNode: JsonScalar;
  readonly value: JsonNode;
}

/** A whole JSON text and its tree. */
export interface JsonTree {
  readonly source: string;
  readonly root: JsonNode;
}

/**
 * Reads a whole JSON text.
 * @throws Failure `unreachable` where the text is no JSON (RFC 8259) or nests deeper than {@link maxNesting}
 */
export function parseJson(source: string): JsonTree {
  const reader = new Reader(source);
  return { source, root: reader.whole() };
}

/** The text of a node as it came. */
export function textOf(tree: JsonTree, node: JsonNode): string {
  return tree.source.slice(node.start, node.end);
}

/** The decoded string of a string node. */
export function stringOf(tree: JsonTree, node: JsonScalar): string {
  return decoded(tree.source.slice(node.start, node.end));
}

/** The member that counts: of duplicate keys the last, as every JSON reader takes it. */
export function memberOf(node: JsonNode, key: string): JsonNode | undefined {
  if (node.kind !== "object") return undefined;
  return node.members.findLast((member) => member.key === key)?.value;
}

const whiteSpace = /[ \t\r\n]*/y;
const numberOrLiteral = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** A recursive reader; recursion is bounded by {@link maxNesting}. */
class Reader {
  private position = 0;
  private depth = 0;

  constructor(private readonly source: string) {}

  whole(): JsonNode {
    const root = this.value();
    this.skip();
    if (this.position !== this.source.length) throw this.broken();
    return root;
  }

  private value(): JsonNode {
    this.skip();
    const first = this.source[this.position];
    if (first === "{") return this.nested(() => this.object());
    if (first === "[") return this.nested(() => this.array());
    return this.scalar();
  }

  private nested(read: () => JsonNode): JsonNode {
    this.depth += 1;
    if (this.depth > maxNesting) throw broken(`nested deeper than ${maxNesting}`);
    const node = read();
    this.depth -= 1;
    return node;
  }

  private object(): JsonObject {
    const start = this.position;
    const members: JsonMember[] = [];
    this.sequence("}", () => {
      const keyNode = this.string();
      this.skip();
      if (!this.take(":")) throw this.broken();
      const key = decoded(this.source.slice(keyNode.start, keyNode.end));
      members.push({ key, keyNode, value: this.value() });
    });
    return { kind: "object", start, end: this.position, members };
  }

  private array(): JsonArray {
    const start = this.position;
    const items: JsonNode[] = [];
    this.sequence("]", () => items.push(this.value()));
    return { kind: "array", start, end: this.position, items };
  }

  /** `open (item (, item)*)? close`, the opening bracket being the next character. */
  private sequence(close: string, item: () => void): void {
    this.position += 1;
    this.skip();
    if (this.take(close)) return;
    do {
      this.skip();
      item();
      this.skip();
    } while (this.take(","));
    if (!this.take(close)) throw this.broken();
  }

  private scalar(): JsonScalar {
    const start = this.position;
    const first = this.source[start];
    if (first === '"') return this.string();
    numberOrLiteral.lastIndex = start;
    if (!numberOrLiteral.test(this.source)) throw this.broken();
    this.position = numberOrLiteral.lastIndex;
    return { kind: /[a-z]/.test(first ?? "") ? "literal" : "number", start, end: this.position };
  }

  /** Up to the first quote that no backslash escapes; what stands between is judged by `JSON.parse`. */
  private string(): JsonScalar {
    const start = this.position;
    if (this.source[start] !== '"') throw this.broken();
    let quote = start;
    do {
      quote = this.source.indexOf('"', quote + 1);
      if (quote === -1) throw this.broken();
    } while (this.isEscaped(quote));
    try {
      JSON.parse(this.source.slice(start, quote + 1));
    } catch {
      throw this.broken();
    }
    this.position = quote + 1;
    return { kind: "string", start, end: this.position };
  }

  private isEscaped(quote: number): boolean {
    let first = quote;
    while (this.source[first - 1] === "\\") first -= 1;
    return (quote - first) % 2 === 1;
  }

  private take(character: string): boolean {
    if (this.source[this.position] !== character) return false;
    this.position += 1;
    return true;
  }

  private skip(): void {
    whiteSpace.lastIndex = this.position;
    whiteSpace.test(this.source);
    this.position = whiteSpace.lastIndex;
  }

  private broken(): Failure {
    return broken(`unexpected ${this.position < this.source.length ? "text" : "end"} at character ${this.position}`);
  }
}

function decoded(text: string): string {
  const value: string = JSON.parse(text);
  return value;
}

function broken(what: string): Failure {
  return new Failure("unreachable", `the answer is not the JSON it should be: ${what}`);
}
