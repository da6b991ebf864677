import { Failure } from "../errors.ts";

/** How deep arrays and objects may be in each other: far more than any response needs, far less than the stack. */
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
 * @throws Failure `unreachable` if the text is not JSON (RFC 8259) or nests deeper than {@link maxNesting}
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
  position = 0;
  depth = 0;

  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }

  whole(): JsonNode {
    const root = this.value();
    this.skip();
    if (this.position !== this.source.length) throw this.broken();
    return root;
  }

  value(): JsonNode {
    this.skip();
    const first = this.source[this.position];
    if (first === "{") return this.nested(() => this.object());
    if (first === "[") return this.nested(() => this.array());
    return this.scalar();
  }

  nested(read: () => JsonNode): JsonNode {
    this.depth += 1;
    if (this.depth > maxNesting) throw broken(`nested deeper than ${maxNesting}`);
    const node = read();
    this.depth -= 1;
    return node;
  }

  object(): JsonObject {
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

  array(): JsonArray {
    const start = this.position;
    const items: JsonNode[] = [];
    this.sequence("]", () => items.push(this.value()));
    return { kind: "array", start, end: this.position, items };
  }

  /** `open (item (, item)*)? close`, the opening bracket being the next character. */
  sequence(close: string, item: () => void): void {
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

  scalar(): JsonScalar {
    const start = this.position;
    const first = this.source[start];
    if (first === '"') return this.string();
    numberOrLiteral.lastIndex = start;
    if (!numberOrLiteral.test(this.source)) throw this.broken();
    this.position = numberOrLiteral.lastIndex;
    return { kind: /[a-z]/.test(first ?? "") ? "literal" : "number", start, end: this.position };
  }

  /** Up to the first quote that no backslash escapes; what is between is judged by `JSON.parse`. */
  string(): JsonScalar {
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

  isEscaped(quote: number): boolean {
    let first = quote;
    while (this.source[first - 1] === "\\") first -= 1;
    return (quote - first) % 2 === 1;
  }

  take(character: string): boolean {
    if (this.source[this.position] !== character) return false;
    this.position += 1;
    return true;
  }

  skip(): void {
    whiteSpace.lastIndex = this.position;
    whiteSpace.test(this.source);
    this.position = whiteSpace.lastIndex;
  }

  broken(): Failure {
    return broken(`unexpected ${this.position < this.source.length ? "text" : "end"} at character ${this.position}`);
  }
}

function decoded(text: string): string {
  const value: string = JSON.parse(text);
  return value;
}

function broken(what: string): Failure {
  return new Failure("unreachable", `the response is not valid JSON: ${what}`);
}

/** JSON text on one line, no white space outside of strings; every token as it came. @throws Failure as `parseJson` */
export function compactJson(text: string): string {
  const tree = parseJson(text);
  return printNode(tree, tree.root, { indent: 0, level: 0 });
}

/**
 * JSON text over several lines, two spaces per level; every token as it came.
 * @param level how deep the text is in a larger one: every line but the first begins that much further right
 */
export function indentedJson(text: string, level = 0): string {
  const tree = parseJson(text);
  return printNode(tree, tree.root, { indent: 2, level });
}

/** A node as JSON text: compact if `indent` is 0. */
export function printNode(tree: JsonTree, node: JsonNode, layout: { indent: number; level: number }): string {
  if (node.kind !== "object" && node.kind !== "array") return textOf(tree, node);
  const inner = { indent: layout.indent, level: layout.level + 1 };
  const colon = layout.indent === 0 ? ":" : ": ";
  const parts =
    node.kind === "array"
      ? node.items.map((item) => printNode(tree, item, inner))
      : node.members.map(({ keyNode, value }) => textOf(tree, keyNode) + colon + printNode(tree, value, inner));
  return enclose(node.kind === "array" ? "[]" : "{}", parts, layout);
}

function enclose(brackets: string, parts: readonly string[], layout: { indent: number; level: number }): string {
  const open = brackets.slice(0, 1);
  const close = brackets.slice(1);
  if (parts.length === 0 || layout.indent === 0) return open + parts.join(",") + close;
  const outer = `\n${" ".repeat(layout.indent * layout.level)}`;
  const inner = outer + " ".repeat(layout.indent);
  return open + inner + parts.join(`,${inner}`) + outer + close;
}

/**
 * The text of a JSON object with the values of the named top-level keys replaced by `null`, duplicates and keys
 * written with escapes included. Everything else stays byte for byte. Keys that are not there are not added.
 * @throws Failure `unreachable` if the text is not a JSON object
 */
export function withNulls(text: string, keys: readonly string[]): string {
  const { root } = parseJson(text);
  if (root.kind !== "object") throw new Failure("unreachable", "the response is not a JSON object");
  let result = "";
  let from = 0;
  for (const { key, value } of root.members) {
    if (!keys.includes(key)) continue;
    result += `${text.slice(from, value.start)}null`;
    from = value.end;
  }
  return result + text.slice(from);
}
