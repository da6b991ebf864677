// JSON and NDJSON: indented for a person, compact for a program. A program's NDJSON is the response's own bytes, one write
// per page.
import { ChosenFields, projected } from "../fields.ts";
import { compactJson, indentedJson } from "../json-text.ts";
import { type RowPage, joinedRows, rowCount, rowLines, rowTexts } from "../row-page.ts";
import type { PickedRows } from "../picked-rows.ts";
import { visibleJson } from "../visible-text.ts";
import type { Formatter, ListEnd, ListTarget, ListView, PageWriter } from "./format.ts";

/** One document. A list is the envelope of §2.1, not closed before its end: what a broken walk leaves never parses. */
export const json: Formatter = {
  resource(text, { target }) {
    const chosen = projected(text, target.fields);
    return `${target.isTerminal ? visibleJson(indentedJson(chosen)) : compactJson(chosen)}\n`;
  },
  receipt(text, { target }) {
    const chosen = projected(text, target.fields);
    const isFirst = target.receiptsBefore === 0;
    if (!target.isTerminal) return (isFirst ? '{"object":"list","receipts":[' : ",") + compactJson(chosen);
    // A terminal shows whole lines only: the comma comes with the next.
    const before = isFirst ? '{\n  "object": "list",\n  "receipts": [\n' : "    ,\n";
    return `${before}${visibleJson(`    ${indentedJson(chosen, 2)}`)}\n`;
  },
  list: (view, target) => (target.isTerminal ? indentedList : compactList)(view, target),
};

/** One row or resource per line. */
export const ndjson: Formatter = {
  resource(text, { target }) {
    const line = target.fields === undefined ? compactJson(text) : projected(text, target.fields);
    return `${target.isTerminal ? visibleJson(line) : line}\n`;
  },
  list: lineList,
};

/** Few lists have `--fields`. */
async function pickedRows(chosen: ChosenFields, separator: "," | "\n"): Promise<PickedRows> {
  return new (await import("../picked-rows.ts")).PickedRows(chosen, separator);
}

function lineList(view: ListView, { sink, fields, isTerminal, tellMissing }: ListTarget): PageWriter {
  const chosen = new ChosenFields(fields);
  let picked: PickedRows | undefined;
  const lines = (page: RowPage): string => {
    const rows = rowTexts(page).map((text) => (fields === undefined ? compactJson(text) : chosen.of(text)));
    return visibleJson(`${rows.join("\n")}\n`);
  };
  return {
    isVerbatim: fields === undefined && !isTerminal,
    async page(page) {
      if (rowCount(page) === 0) return;
      if (isTerminal) return sink.write(lines(page));
      if (fields === undefined) return sink.write(rowLines(page));
      picked ??= await pickedRows(chosen, "\n");
      await sink.write(picked.of(page));
    },
    async end() {
      chosen.tellMissing(view.singular, tellMissing);
    },
  };
}

function compactList(
  view: ListView,
  { sink, fields, rowsBefore = 0, receiptsBefore, tellMissing }: ListTarget,
): PageWriter {
  const chosen = new ChosenFields(fields);
  let picked: PickedRows | undefined;
  const head = receiptsBefore ? '],"data":[' : '{"object":"list","data":[';
  let isFirst = rowsBefore === 0;
  return {
    isVerbatim: fields === undefined,
    async page(page) {
      if (rowCount(page) === 0) return;
      await sink.write(isFirst ? head : ",");
      isFirst = false;
      if (fields === undefined) return sink.write(joinedRows(page, ","));
      picked ??= await pickedRows(chosen, ",");
      await sink.write(picked.of(page));
    },
    async end(state) {
      await sink.write(`${isFirst ? head : ""}],${envelopeTail(state).join(",")}}\n`);
      chosen.tellMissing(view.singular, tellMissing);
    },
  };
}

/** A terminal shows whole lines only, so a row waits for the comma that may have to follow it. */
function indentedList(view: ListView, { sink, fields, receiptsBefore, tellMissing }: ListTarget): PageWriter {
  const chosen = new ChosenFields(fields);
  const head = receiptsBefore ? "  ],\n" : '{\n  "object": "list",\n';
  let waiting = "";
  return {
    async page(page) {
      if (rowCount(page) === 0) return;
      const rows = rowTexts(page).map((text) => visibleJson(`    ${indentedJson(chosen.of(text), 2)}`));
      const before = waiting === "" ? `${head}  "data": [\n` : `${waiting},\n`;
      waiting = rows.pop() ?? "";
      await sink.write(before + rows.map((row) => `${row},\n`).join(""));
    },
    async end(state) {
      const data = waiting === "" ? `${head}  "data": [],\n` : `${waiting}\n  ],\n`;
      const tail = envelopeTail(state).map((member) => `  ${member.replace('":', '": ')}`);
      await sink.write(`${data}${tail.join(",\n")}\n}\n`);
      chosen.tellMissing(view.singular, tellMissing);
    },
    async abandon() {
      if (waiting !== "") await sink.write(`${waiting}\n`);
    },
  };
}

function envelopeTail({ nextPageToken, hasMore }: ListEnd): string[] {
  return [`"next_page_token":${JSON.stringify(nextPageToken)}`, `"has_more":${hasMore}`];
}
