// JSON as block-style YAML with unchanged numbers.
import { stringify, type ScalarTag } from "yaml";
import { JsonText } from "../../api/json/json-text.ts";
import { ChosenFields, projected } from "../fields.ts";
import { visibleYaml } from "../visible-text.ts";
import type { Formatter, ListTarget, ListView, PageWriter, ShownResource } from "./format.ts";

export const yaml = {
  resource: (text: string, { target }: ShownResource) =>
    written(printed(JsonText.of(projected(JsonText.of(text), target.fields)))),
  receipt(text: string, { target }: ShownResource) {
    const head = target.receiptsBefore === 0 ? "object: list\nreceipts:\n" : "";
    return head + rows([JsonText.of(projected(JsonText.of(text), target.fields))]);
  },
  list: yamlList,
} satisfies Formatter;

/** A list as the envelope of §2.1, with rows printed as they arrive; a failed list lacks its last two keys. */
function yamlList(
  view: ListView,
  { sink, fields, rowsBefore = 0, receiptsBefore, reportMissing }: ListTarget,
): PageWriter {
  const chosen = new ChosenFields(fields);
  const opening = receiptsBefore ? "" : "object: list\n";
  let isFirst = rowsBefore === 0;
  return {
    async page(page) {
      if (page.length === 0) return;
      const head = isFirst ? `${opening}data:\n` : "";
      isFirst = false;
      await sink.write(head + rows(page.map((row) => (fields === undefined ? row : JsonText.of(chosen.of(row))))));
    },
    async end({ nextPageToken, hasMore }) {
      const head = isFirst ? `${opening}data: []\n` : "";
      const token = nextPageToken === null ? "null" : scalar(nextPageToken);
      await sink.write(`${head}next_page_token: ${token}\nhas_more: ${hasMore}\n`);
      chosen.reportMissing(view.singular, reportMissing);
    },
  };
}

/** Items of a sequence below a key. No scalar has a second line. */
const rows = (values: readonly JsonText[]): string =>
  written(values.map((row) => printed(row))).replaceAll(/^(?=.)/gm, "  ");

/**
 * Prints a scalar's text as it is. The package itself rounds long numbers, and leaves `=`, `<<` and U+2028 without
 * quotes, which readers of YAML 1.1 take for something else.
 */
const asItIs: ScalarTag = {
  tag: "tag:yaml.org,2002:str",
  default: true,
  identify: (value) => typeof value === "string",
  resolve: (text) => text,
  stringify: ({ value }) => value as string,
};

/** @param value each scalar as it is printed */
const written = (value: unknown): string =>
  stringify(value, {
    schema: "failsafe",
    customTags: (tags) => [asItIs, ...tags],
    aliasDuplicateObjects: false,
    lineWidth: 0,
  });

/** The value with each scalar as it is printed. */
function printed(value: JsonText): unknown {
  if (value.isString) return scalar(value.string, value);
  if (!value.hasParts) return value.compact();
  if (value.isArray) return value.items().map((item) => printed(item));
  const members = value.parts();
  return new Map(members.names.map((name) => [scalar(name), printed(members.get(name)!)]));
}

/** Plain words: no reader of YAML 1.1 or 1.2 takes them for another type. */
const plain = /^[A-Za-z][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
const reserved = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

/**
 * A plain text if it is unambiguous, else in double quotes: YAML accepts every JSON escape.
 * @param json the original text
 */
function scalar(text: string, json?: JsonText): string {
  if (plain.test(text) && !reserved.test(text)) return text;
  return json?.source.isPlain ? json.text : visibleYaml(text);
}
