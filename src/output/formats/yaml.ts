// Own code, because a YAML library reads numbers into its language's own and loses digits (YAML 1.2.2 §10).
import { ChosenFields, projected } from "../fields.ts";
import { type JsonNode, type JsonObject, type JsonTree, parseJson, stringOf, textOf } from "../json-text.ts";
import { rowCount, rowTexts } from "../row-page.ts";
import { visibleYaml } from "../visible-text.ts";
import type { Formatter, ListTarget, ListView, PageWriter } from "./format.ts";

/** Words that every reader takes for text: letters first, nothing that YAML 1.1 or 1.2 gives a meaning. */
const plain = /^[A-Za-z][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
const reserved = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

/** Block style out of JSON text, numbers as they came. */
export const yaml: Formatter = {
  resource: (text, { target }) => `${yamlText(projected(text, target.fields))}\n`,
  receipt(text, { target }) {
    const head = target.receiptsBefore === 0 ? "object: list\nreceipts:\n" : "";
    return `${head}  - ${yamlText(projected(text, target.fields), "    ")}\n`;
  },
  list: yamlList,
};

/** JSON text as YAML block text, without a new line at the end; every line but the first begins with `margin`. */
export function yamlText(json: string, margin = ""): string {
  const tree = parseJson(json);
  return block(tree, { node: tree.root, margin });
}

/** A list as the envelope of §2.1 in YAML, its rows as they come; a broken walk leaves it without its last two keys. */
function yamlList(
  view: ListView,
  { sink, fields, rowsBefore = 0, receiptsBefore, tellMissing }: ListTarget,
): PageWriter {
  const chosen = new ChosenFields(fields);
  const opening = receiptsBefore ? "" : "object: list\n";
  let isFirst = rowsBefore === 0;
  return {
    async page(page) {
      if (rowCount(page) === 0) return;
      const rows = rowTexts(page).map((text) => `  - ${yamlText(chosen.of(text), "    ")}\n`);
      await sink.write((isFirst ? `${opening}data:\n` : "") + rows.join(""));
      isFirst = false;
    },
    async end({ nextPageToken, hasMore }) {
      const head = isFirst ? `${opening}data: []\n` : "";
      const token = nextPageToken === null ? "null" : scalar(nextPageToken);
      await sink.write(`${head}next_page_token: ${token}\nhas_more: ${hasMore}\n`);
      chosen.tellMissing(view.singular, tellMissing);
    },
  };
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

/** A text plain where no one can mistake it, else in double quotes, where YAML takes every JSON escape. */
function scalar(text: string): string {
  return plain.test(text) && !reserved.test(text) ? text : visibleYaml(text);
}
