// JSON as block-style YAML with unchanged numbers. docs/design/output.md says why the `yaml` package is not used.
import { JsonText, type Parts } from "../../api/json/json-text.ts";
import { ChosenFields, projected } from "../fields.ts";
import { visibleYaml } from "../visible-text.ts";
import type { Formatter, ListTarget, ListView, PageWriter, ShownResource } from "./format.ts";

export const yaml = {
  resource: (text: string, { target }: ShownResource) =>
    `${block(JsonText.of(projected(JsonText.of(text), target.fields)))}\n`,
  receipt(text: string, { target }: ShownResource) {
    const head = target.receiptsBefore === 0 ? "object: list\nreceipts:\n" : "";
    return `${head}  - ${block(JsonText.of(projected(JsonText.of(text), target.fields)), rowMargin)}\n`;
  },
  list: yamlList,
} satisfies Formatter;

const rowMargin = "    ";

/** A list as the envelope of §2.1, with rows printed as they arrive; a failed list lacks its last two keys. */
function yamlList(
  view: ListView,
  { sink, fields, rowsBefore = 0, receiptsBefore, reportMissing }: ListTarget,
): PageWriter {
  const chosen = new ChosenFields(fields);
  const opening = receiptsBefore ? "" : "object: list\n";
  let isFirst = rowsBefore === 0;
  let known: Known = {};
  const knownOf = (row: JsonText): Known => {
    const parts = row.parts(known.parts);
    const hasSameNames = parts.names === known.parts?.names;
    return (known = { parts, keys: hasSameNames ? known.keys! : parts.names.map((name) => scalar(name)) });
  };
  return {
    async page(page) {
      if (page.length === 0) return;
      let text = isFirst ? `${opening}data:\n` : "";
      isFirst = false;
      for (const row of page) {
        const shown = fields === undefined ? row : JsonText.of(chosen.of(row));
        text += `  - ${block(shown, rowMargin, knownOf(shown))}\n`;
      }
      await sink.write(text);
    },
    async end({ nextPageToken, hasMore }) {
      const head = isFirst ? `${opening}data: []\n` : "";
      const token = nextPageToken === null ? "null" : scalar(nextPageToken);
      await sink.write(`${head}next_page_token: ${token}\nhas_more: ${hasMore}\n`);
      chosen.reportMissing(view.singular, reportMissing);
    },
  };
}

/** Cached names of an object's members, which most rows share. */
interface Known {
  readonly parts?: Parts;
  readonly keys?: readonly string[];
}

/** A value's lines without a final new line. All lines but the first start with the margin. */
function block(value: JsonText, margin = "", { parts, keys }: Known = {}): string {
  if (value.isString) return scalar(value.string, value);
  if (!value.hasParts) return value.compact();
  const inner = `${margin}  `;
  const members = parts ?? value.parts();
  const lines = value.isArray
    ? value.items().map((item) => `- ${block(item, inner)}`)
    : members.names.map((name, index) => {
        const part = members.get(name)!;
        return `${keys?.[index] ?? scalar(name)}:${part.hasParts ? `\n${inner}` : " "}${block(part, inner)}`;
      });
  return lines.join(`\n${margin}`);
}

/** Plain words: no reader of YAML 1.1 or 1.2 takes them for another type. */
const plain = /^[A-Za-z][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/;
const reserved = /^(?:true|false|yes|no|on|off|null|y|n)$/i;
const longestReserved = 5;

/**
 * A plain text if it is unambiguous, else in double quotes: YAML accepts every JSON escape.
 * @param json the original text
 */
function scalar(text: string, json?: JsonText): string {
  if (plain.test(text) && (text.length > longestReserved || !reserved.test(text))) return text;
  return json?.source.isPlain ? json.text : visibleYaml(text);
}
