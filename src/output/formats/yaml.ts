import { ChosenFields, projected } from "../fields.ts";
import { hasMembers, rowCount, rowTexts } from "../row-page.ts";
import type { Formatter, ListTarget, ListView, PageWriter } from "./format.ts";
import { YamlBytes } from "./yaml-bytes.ts";
import { scalar, yamlText } from "./yaml-text.ts";

/** Block style out of JSON text, numbers as they came. */
export const yaml: Formatter = {
  resource: (text, { target }) => `${yamlText(projected(text, target.fields))}\n`,
  receipt(text, { target }) {
    const head = target.receiptsBefore === 0 ? "object: list\nreceipts:\n" : "";
    return `${head}  - ${yamlText(projected(text, target.fields), "    ")}\n`;
  },
  list: yamlList,
};

/** A list as the envelope of §2.1 in YAML, its rows as they come; a broken walk leaves it without its last two keys. */
function yamlList(
  view: ListView,
  { sink, fields, rowsBefore = 0, receiptsBefore, tellMissing }: ListTarget,
): PageWriter {
  const chosen = new ChosenFields(fields);
  const opening = receiptsBefore ? "" : "object: list\n";
  const bytes = new YamlBytes(chosen);
  let isFirst = rowsBefore === 0;
  return {
    async page(page) {
      if (rowCount(page) === 0) return;
      const head = isFirst ? `${opening}data:\n` : "";
      isFirst = false;
      if (hasMembers(page)) return sink.write(bytes.of(page, head));
      const rows = rowTexts(page).map((text) => `  - ${yamlText(chosen.of(text), "    ")}\n`);
      await sink.write(head + rows.join(""));
    },
    async end({ nextPageToken, hasMore }) {
      const head = isFirst ? `${opening}data: []\n` : "";
      const token = nextPageToken === null ? "null" : scalar(nextPageToken);
      await sink.write(`${head}next_page_token: ${token}\nhas_more: ${hasMore}\n`);
      chosen.tellMissing(view.singular, tellMissing);
    },
  };
}
