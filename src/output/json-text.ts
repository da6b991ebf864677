// Owns: what may be done to JSON text without losing any of it: laying it out, blanking keys, picking fields. Pure.
// Must not know: which resource it is, where it goes. Source: cli.md §2 (json), §1 (`--fields`), quality.md traps.
import { Failure } from "../errors.ts";
import { type JsonNode, type JsonTree, memberOf, parseJson, textOf } from "./json-tree.ts";

/** JSON text on one line, no white space outside of strings; every token as it came. @throws Failure as `parseJson` */
export function compactJson(text: string): string {
  const tree = parseJson(text);
  return printNode(tree, tree.root, { indent: 0, level: 0 });
}

/**
 * JSON text over several lines, two spaces a level; every token as it came.
 * @param level how deep the text stands in a larger one: every line but the first begins that much further right
 */
export function indentedJson(text: string, level = 0): string {
  const tree = parseJson(text);
  return printNode(tree, tree.root, { indent: 2, level });
}

/** A node as JSON text: compact where `indent` is 0. */
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
 * @throws Failure `unreachable` where the text is no JSON object
 */
export function withNulls(text: string, keys: readonly string[]): string {
  const { root } = parseJson(text);
  if (root.kind !== "object") throw new Failure("unreachable", "the answer is not the JSON object it should be");
  let result = "";
  let from = 0;
  for (const { key, value } of root.members) {
    if (!keys.includes(key)) continue;
    result += `${text.slice(from, value.start)}null`;
    from = value.end;
  }
  return result + text.slice(from);
}

/** One field of `--fields`: as typed, and as the way to the value. */
export interface FieldPath {
  readonly name: string;
  readonly steps: readonly string[];
}

/**
 * The fields of `--fields a,b.c`.
 * @param names as split at the commas; white space around a name is dropped
 * @throws Failure `usage` where a name, or a step of one, is empty or a name stands twice
 */
export function fieldPaths(names: readonly string[]): readonly FieldPath[] {
  const trimmed = names.map((name) => name.trim());
  const twice = trimmed.find((name, index) => trimmed.indexOf(name) !== index);
  if (twice !== undefined) throw new Failure("usage", `--fields names "${twice}" twice`);
  return trimmed.map((name) => {
    const steps = name.split(".");
    if (steps.includes("")) {
      throw new Failure("usage", `--fields has an empty name in "${names.join(",")}"`, {
        meaning: "It takes names separated by commas, and a dot to reach into a nested object",
      });
    }
    return { name, steps };
  });
}

/**
 * The value at a path: a key that has the whole path as its name, else step by step; a step into an array is an index
 * from 0. Undefined where there is none.
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
 * missing is `null`. Values keep their text.
 * @param missing is told each field that was not there
 * @returns compact JSON text
 */
export function projected(text: string, fields: readonly FieldPath[], missing?: (name: string) => void): string {
  const tree = parseJson(text);
  const parts = fields.map((field) => {
    const node = valueAt(tree.root, field);
    if (node === undefined) missing?.(field.name);
    return `${JSON.stringify(field.name)}:${node === undefined ? "null" : printNode(tree, node, compact)}`;
  });
  return `{${parts.join(",")}}`;
}

const compact = { indent: 0, level: 0 } as const;
