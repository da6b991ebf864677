// JSON, indented at a terminal, otherwise compact. Values keep the text of the response.
import { JsonText } from "../../api/json/json-text.ts";
import { ChosenFields, projected } from "../fields.ts";
import { joinedRows } from "../row-page.ts";
import { visibleJson } from "../visible-text.ts";
import type { Formatter, ListEnd, ListTarget, ListView, PageWriter } from "./format.ts";

/** The envelope (§2.1) is closed only after the last page, so that an incomplete list is not valid JSON. */
export const json: Formatter = {
  resource(text, { target }) {
    const chosen = projected(JsonText.of(text), target.fields);
    return `${target.isTerminal ? visibleJson(JsonText.of(chosen).indented()) : chosen}\n`;
  },
  receipt(text, { target }) {
    const chosen = projected(JsonText.of(text), target.fields);
    const isFirst = target.receiptsBefore === 0;
    if (!target.isTerminal) return (isFirst ? '{"object":"list","receipts":[' : ",") + chosen;
    // At a terminal, each text ends with a line break, because progress can be drawn only below a complete line.
    const before = isFirst ? '{\n  "object": "list",\n  "receipts": [\n' : "    ,\n";
    return `${before}${visibleJson(`    ${JsonText.of(chosen).indented(2)}`)}\n`;
  },
  list: (view, target) => (target.isTerminal ? indentedList : compactList)(view, target),
};

export const ndjson: Formatter = {
  resource(text, { target }) {
    const line = projected(JsonText.of(text), target.fields);
    return `${target.isTerminal ? visibleJson(line) : line}\n`;
  },
  list: lineList,
};

function lineList(view: ListView, { sink, fields, isTerminal, reportMissing }: ListTarget): PageWriter {
  const chosen = new ChosenFields(fields);
  return {
    async page(page) {
      if (page.length === 0) return;
      if (fields === undefined && !isTerminal) return sink.write(joinedRows(page, "\n", "\n"));
      const lines = page.map((row) => `${chosen.of(row)}\n`).join("");
      await sink.write(isTerminal ? visibleJson(lines) : lines);
    },
    async end() {
      chosen.reportMissing(view.singular, reportMissing);
    },
  };
}

function compactList(
  view: ListView,
  { sink, fields, rowsBefore = 0, receiptsBefore, reportMissing }: ListTarget,
): PageWriter {
  const chosen = new ChosenFields(fields);
  const head = receiptsBefore ? '],"data":[' : '{"object":"list","data":[';
  let isFirst = rowsBefore === 0;
  return {
    async page(page) {
      if (page.length === 0) return;
      await sink.write(isFirst ? head : ",");
      isFirst = false;
      await sink.write(fields === undefined ? joinedRows(page, ",") : page.map((row) => chosen.of(row)).join(","));
    },
    async end(state) {
      await sink.write(`${isFirst ? head : ""}],${envelopeTail(state).join(",")}}\n`);
      chosen.reportMissing(view.singular, reportMissing);
    },
  };
}

/** Holds back the last row: a comma follows it only if there is another page. */
function indentedList(view: ListView, { sink, fields, receiptsBefore, reportMissing }: ListTarget): PageWriter {
  const chosen = new ChosenFields(fields);
  const head = receiptsBefore ? "  ],\n" : '{\n  "object": "list",\n';
  let lastRow = "";
  return {
    async page(page) {
      if (page.length === 0) return;
      const rows = page.map((row) => visibleJson(`    ${JsonText.of(chosen.of(row)).indented(2)}`));
      const before = lastRow === "" ? `${head}  "data": [\n` : `${lastRow},\n`;
      lastRow = rows.pop() ?? "";
      await sink.write(before + rows.map((row) => `${row},\n`).join(""));
    },
    async end(state) {
      const data = lastRow === "" ? `${head}  "data": [],\n` : `${lastRow}\n  ],\n`;
      const tail = envelopeTail(state).map((member) => `  ${member.replace('":', '": ')}`);
      await sink.write(`${data}${tail.join(",\n")}\n}\n`);
      chosen.reportMissing(view.singular, reportMissing);
    },
    async abandon() {
      if (lastRow !== "") await sink.write(`${lastRow}\n`);
    },
  };
}

function envelopeTail({ nextPageToken, hasMore }: ListEnd): string[] {
  return [`"next_page_token":${JSON.stringify(nextPageToken)}`, `"has_more":${hasMore}`];
}
