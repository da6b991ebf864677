// Block-style YAML from JSON, with unchanged numbers.
import { stringify, type ScalarTag } from "yaml";
import { JsonText } from "../../api/json/json-text.ts";
import { ChosenFields, projected } from "../fields.ts";
import { visibleYaml } from "../visible-text.ts";
import type { Formatter, ListTarget, ListView, PageWriter, ShownResource } from "./format.ts";

export const yaml = {
  resource: (text: string, { target }: ShownResource) =>
    yamlOf(withScalars(JsonText.of(projected(JsonText.of(text), target.fields)))),
  receipt(text: string, { target }: ShownResource) {
    const head = target.receiptsBefore === 0 ? "object: list\nreceipts:\n" : "";
    return head + sequenceItems([JsonText.of(projected(JsonText.of(text), target.fields))]);
  },
  list: yamlList,
} satisfies Formatter;

/** A list is the envelope of §2.1; a failed list lacks the last two keys. */
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
      await sink.write(
        head + sequenceItems(page.map((row) => (fields === undefined ? row : JsonText.of(chosen.of(row))))),
      );
    },
    async end({ nextPageToken, hasMore }) {
      const head = isFirst ? `${opening}data: []\n` : "";
      const token = nextPageToken === null ? "null" : scalar(nextPageToken);
      await sink.write(`${head}next_page_token: ${token}\nhas_more: ${hasMore}\n`);
      chosen.reportMissing(view.singular, reportMissing);
    },
  };
}

/** Every line can be indented, because no scalar has a line break. */
const sequenceItems = (values: readonly JsonText[]): string =>
  yamlOf(values.map((row) => withScalars(row))).replaceAll(/^(?=.)/gm, "  ");

/**
 * Prints prepared scalars: the yaml package would round long numbers, and leave text unquoted that YAML 1.1 parsers
 * misread.
 */
const verbatim: ScalarTag = {
  tag: "tag:yaml.org,2002:str",
  default: true,
  identify: (value) => typeof value === "string",
  resolve: (text) => text,
  stringify: ({ value }) => value as string,
};

/** @param value from `withScalars` */
const yamlOf = (value: unknown): string =>
  stringify(value, {
    schema: "failsafe",
    customTags: (tags) => [verbatim, ...tags],
    aliasDuplicateObjects: false,
    lineWidth: 0,
  });

/** @returns arrays and maps whose leaves are scalars in YAML syntax */
function withScalars(value: JsonText): unknown {
  if (value.isString) return scalar(value.string, value);
  if (!value.hasParts) return value.compact();
  if (value.isArray) return value.items().map((item) => withScalars(item));
  const members = value.parts();
  return new Map(members.names.map((name) => [scalar(name), withScalars(members.get(name)!)]));
}

/** Every parser of YAML 1.1 and 1.2 reads these texts as strings, except the `reserved` words. */
const plain = /^[A-Za-z][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
const reserved = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

/** Quotes text that a YAML parser may not read as the same string. @param json the original text, if any */
function scalar(text: string, json?: JsonText): string {
  if (plain.test(text) && !reserved.test(text)) return text;
  return json?.source.isPlain ? json.text : visibleYaml(text);
}
