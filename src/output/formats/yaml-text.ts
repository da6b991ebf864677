// JSON text as YAML. Own code, because a YAML library reads numbers into its language's own and loses digits (YAML 1.2.2 §10).
import { type JsonNode, type JsonObject, type JsonTree, parseJson, stringOf, textOf } from "../json-text.ts";
import { visibleYaml } from "../visible-text.ts";

/** Words that every reader takes for text: letters first, nothing that YAML 1.1 or 1.2 gives a meaning. */
const plain = /^[A-Za-z][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
export const reserved = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

/** JSON text as YAML block text, without a new line at the end; every line but the first begins with `margin`. */
export function yamlText(json: string, margin = ""): string {
  const tree = parseJson(json);
  return block(tree, { node: tree.root, margin });
}

/** What is behind a key: JSON text on the same line, or below it and further in. */
export function yamlEntry(json: string, margin: string): string {
  const tree = parseJson(json);
  return entry(tree, { node: tree.root, margin });
}

/** The lines of a node; the first one without its margin, for it follows a `- `. */
function block(tree: JsonTree, { node, margin }: { node: JsonNode; margin: string }): string {
  if (node.kind === "array") {
    if (node.items.length === 0) return "[]";
    const inner = `${margin}  `;
    return node.items.map((item) => `- ${block(tree, { node: item, margin: inner })}`).join(`\n${margin}`);
  }
  if (node.kind === "object") {
    if (node.members.length === 0) return "{}";
    return lastMembers(node)
      .map(({ key, value }) => scalar(key) + entry(tree, { node: value, margin }))
      .join(`\n${margin}`);
  }
  return node.kind === "string" ? scalar(stringOf(tree, node)) : textOf(tree, node);
}

/** A value behind its key: on the same line, or below it and further in. */
function entry(tree: JsonTree, { node, margin }: { node: JsonNode; margin: string }): string {
  const isBelow =
    (node.kind === "object" && node.members.length > 0) || (node.kind === "array" && node.items.length > 0);
  if (!isBelow) return `: ${block(tree, { node, margin })}`;
  const inner = `${margin}  `;
  return `:\n${inner}${block(tree, { node, margin: inner })}`;
}

/** YAML forbids duplicate keys: the last counts, at the place of the first. */
function lastMembers(node: JsonObject): readonly { key: string; value: JsonNode }[] {
  return [...new Map(node.members.map(({ key, value }) => [key, { key, value }])).values()];
}

/** A text plain if no one can mistake it, else in double quotes, where YAML takes every JSON escape. */
export function scalar(text: string): string {
  return plain.test(text) && !reserved.test(text) ? text : visibleYaml(text);
}
