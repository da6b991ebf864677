// Owns: NDJSON: a row a line, a write a page. Must not know: which rows, terminals' colours. Source: cli.md §2 (ndjson).
import { FieldWatch } from "./field-watch.ts";
import { compactJson, projected } from "./json-text.ts";
import { parseJson } from "./json-tree.ts";
import type { ListTarget, ListView, ListWriter } from "./list.ts";
import { type RowPage, rowCount, rowLines, rowTexts } from "./row-page.ts";
import { visibleJson } from "./visible-text.ts";

/** A list as NDJSON: the rows' own bytes, in one write a page; fields picked and terminals guarded where asked. */
export function ndjsonList(view: ListView, target: ListTarget): ListWriter {
  const watch = new FieldWatch(target.fields);
  let rowsWritten = target.rowsBefore ?? 0;
  return {
    get rowsWritten() {
      return rowsWritten;
    },
    async page(page) {
      if (rowCount(page) === 0) return;
      const isAsItCame = target.fields === undefined && !target.isTerminal;
      await target.sink.write(isAsItCame ? rowLines(page) : lines(page, { target, watch }));
      rowsWritten += rowCount(page);
    },
    async end() {
      const verdict = watch.verdict(view.singular);
      if (verdict !== undefined) target.note(verdict);
    },
    async abandon() {},
  };
}

function lines(page: RowPage, { target, watch }: { target: ListTarget; watch: FieldWatch }): string {
  const rows = rowTexts(page).map((text) => {
    watch.look(() => parseJson(text));
    return target.fields === undefined ? compactJson(text) : projected(text, target.fields);
  });
  const text = `${rows.join("\n")}\n`;
  return target.isTerminal ? visibleJson(text) : text;
}

/** One resource on one line. @param text JSON */
export function ndjsonResource(text: string, target: ListTarget): string {
  const line = target.fields === undefined ? compactJson(text) : projected(text, target.fields);
  return `${target.isTerminal ? visibleJson(line) : line}\n`;
}
