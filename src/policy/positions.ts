// Finds the positions of YAML values for messages. Lines and columns start at 1.
import { type Document, isMap, isNode, isPair, isSeq, LineCounter, type Node, type Pair } from "yaml";

export interface Position {
  readonly line: number;
  readonly column: number;
}

export type Path = readonly (string | number)[];

export class Positions {
  readonly #document: Document;
  readonly #lines: LineCounter;

  constructor(document: Document, lines: LineCounter) {
    this.#document = document;
    this.#lines = lines;
  }

  /** @returns the position of the value; if the value is missing, of its closest existing parent */
  ofValue(path: Path): Position {
    return this.#at(this.#follow(path).node);
  }

  ofKey(path: Path): Position {
    return this.#at(this.#follow(path).key ?? this.#follow(path).node);
  }

  at(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  #at(node: unknown): Position {
    return this.at((isNode(node) && node.range?.[0]) || 0);
  }

  #follow(path: Path): { node: unknown; key?: unknown } {
    let current: { node: unknown; key?: unknown } = { node: this.#document.contents };
    for (const step of path) {
      const next = stepInto(current.node, step);
      if (next === undefined) return current;
      current = next;
    }
    return current;
  }
}

function stepInto(node: unknown, step: string | number): { node: unknown; key?: unknown } | undefined {
  if (isSeq(node)) return node.items[Number(step)] === undefined ? undefined : { node: node.items[Number(step)] };
  if (!isMap(node)) return undefined;
  const pair = node.items.find((item) => isPair(item) && keyText(item) === String(step));
  return pair && { node: isNode(pair.value) ? pair.value : pair.key, key: pair.key };
}

function keyText({ key }: Pair): string {
  return String(isNode(key) && "value" in key ? (key as Node & { value: unknown }).value : key);
}
