import { flags, shortFlags } from "../next-step.ts";
import { Failure } from "../errors.ts";
import { type JsonNode, type JsonTree, memberOf, parseJson, printNode } from "./json-text.ts";
import { visibleText } from "./visible-text.ts";

/** One field of `--fields`: as typed, and as the way to the value. */
export interface FieldPath {
  readonly name: string;
  readonly steps: readonly string[];
}

/**
 * The fields of `--fields a,b.c`.
 * @param names as split at the commas; white space around a name is dropped
 * @throws Failure `usage` if a name, or a step of one, is empty or a name occurs twice
 */
export function fieldPaths(names: readonly string[]): readonly FieldPath[] {
  const trimmed = names.map((name) => name.trim());
  const twice = trimmed.find((name, index) => trimmed.indexOf(name) !== index);
  if (twice !== undefined) throw new Failure("usage", `${flags.fields} names "${twice}" twice`);
  return trimmed.map((name) => {
    const steps = name.split(".");
    if (steps.includes("")) {
      throw new Failure("usage", `${flags.fields} has an empty name in "${names.join(",")}"`, {
        meaning: "It takes names separated by commas, and a dot to reach into a nested object",
      });
    }
    return { name, steps };
  });
}

/**
 * The value at a path: a key that has the whole path as its name, else step by step; a step into an array is an index
 * from 0. Undefined if there is none.
 */
export function valueAt(root: JsonNode, path: FieldPath): JsonNode | undefined {
  const whole = memberOf(root, path.name);
  if (whole !== undefined) return whole;
  let node: JsonNode | undefined = root;
  for (const step of path.steps) {
    if (node === undefined) return undefined;
    node = node.kind === "array" && /^\d+$/.test(step) ? node.items[Number(step)] : memberOf(node, step);
  }
  return node;
}

/**
 * An object of exactly the fields asked for, in the order asked for, each under the path as typed; a field that is
 * missing is `null`. Values keep their text. Of an array each element.
 * @param fields without them the text stays as it came
 * @returns compact JSON text
 */
export function projected(text: string, fields: readonly FieldPath[] | undefined): string {
  if (fields === undefined) return text;
  const tree = parseJson(text);
  const chosen = (root: JsonNode): string => {
    const parts = fields.map((field) => {
      const node = valueAt(root, field);
      return `${JSON.stringify(field.name)}:${node === undefined ? "null" : printNode(tree, node, compact)}`;
    });
    return `{${parts.join(",")}}`;
  };
  return tree.root.kind === "array" ? `[${tree.root.items.map(chosen).join(",")}]` : chosen(tree.root);
}

const compact = { indent: 0, level: 0 } as const;

export function noSuchField(what: string): Failure {
  return new Failure("usage", what, {
    hint: `Leave ${flags.fields} out, with ${shortFlags.output} json, to see the fields.`,
  });
}

/** Fields of `--fields` that nothing of what was printed had. */
export interface MissingFields {
  /** A sentence that names them. */
  readonly what: string;
  /** No field that was asked for was there. */
  readonly isAll: boolean;
}

/**
 * The fields asked for in a list, and which of them no row has had so far: most likely a typing mistake, which a row of
 * nulls would not show.
 */
export class ChosenFields {
  readonly #fields: readonly FieldPath[] | undefined;
  readonly #unseen: Set<FieldPath>;
  #rows = 0;

  constructor(fields: readonly FieldPath[] | undefined) {
    this.#fields = fields;
    this.#unseen = new Set(fields);
  }

  get all(): readonly FieldPath[] | undefined {
    return this.#fields;
  }

  /** The fields that no row has had so far. */
  get unseen(): ReadonlySet<FieldPath> {
    return this.#unseen;
  }

  /** Takes note of rows that were looked at elsewhere, and of a field that they have. */
  count(rows: number): void {
    this.#rows += rows;
  }

  found(field: FieldPath): void {
    this.#unseen.delete(field);
  }

  /** A row with only the fields asked for, or as it came if none were. */
  of(row: string): string {
    this.see(() => parseJson(row));
    return projected(row, this.#fields);
  }

  /** Takes note of a row; costs nothing once every field was seen. @param tree the row, read when needed */
  see(tree: () => JsonTree): void {
    this.#rows += 1;
    if (this.#unseen.size === 0) return;
    const { root } = tree();
    const objects = root.kind === "array" ? root.items : [root];
    for (const field of this.#unseen)
      if (objects.some((object) => valueAt(object, field) !== undefined)) this.#unseen.delete(field);
  }

  /** @throws Failure `usage` if nothing that was looked at has a field that was asked for */
  assertAny(singular?: string): void {
    this.tellMissing(singular, ({ what, isAll }) => {
      if (isAll) throw noSuchField(what);
    });
  }

  /** At the end: names the fields that no row had. @param singular what a row is called; absent if it is not a list */
  tellMissing(singular: string | undefined, tell: (missing: MissingFields) => void): void {
    if (this.#rows === 0 || this.#unseen.size === 0) return;
    const names = [...this.#unseen].map(({ name }) => `"${visibleText(name)}"`).join(", ");
    const fields = `${this.#unseen.size === 1 ? "field" : "fields"} ${names}`;
    const what = singular === undefined ? `The result has no ${fields}.` : `No ${singular} has the ${fields}.`;
    tell({ what, isAll: this.#unseen.size === this.#fields?.length });
  }
}
