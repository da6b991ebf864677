// GitHub Markdown tables, in which text with a meaning in Markdown or HTML is escaped.
import { JsonText } from "../../api/json/json-text.ts";
import { valuesAt } from "../fields.ts";
import type { RowPage } from "../row-page.ts";
import { type CellColumn, cellColumns, cellOf, keyColumn, keysOf, personCell } from "./cells.ts";
import type { Formatter, ListTarget, ListView } from "./format.ts";

export const markdown: Formatter = {
  resource(text, { view, target }) {
    const row = JsonText.of(text);
    const columns = columnsOf([row], view, target);
    const lines = cells(row, columns).map((cell, index) => `| ${escaped(columns[index]!.heading)} | ${cell} |\n`);
    return `| field | value |\n| --- | --- |\n${lines.join("")}`;
  },
  list(view, target) {
    let columns: readonly CellColumn[] | undefined;
    const begin = (page: RowPage): string => {
      if (columns !== undefined) return "";
      columns = columnsOf(page, view, target);
      return `${line(columns.map(({ heading }) => escaped(heading)))}${line(columns.map(() => "---"))}`;
    };
    return {
      async page(page) {
        if (page.length === 0) return;
        const head = begin(page);
        await target.sink.write(head + page.map((row) => line(cells(row, columns ?? []))).join(""));
      },
      async end() {
        if (columns === undefined && view.columns.length > 0) await target.sink.write(begin([]));
      },
    };
  },
};

function columnsOf(page: RowPage, view: Pick<ListView, "columns">, { fields }: ListTarget): readonly CellColumn[] {
  const columns = cellColumns(view.columns, fields);
  if (columns.length > 0) return columns;
  return keysOf(page).map(keyColumn);
}

function cells(row: JsonText, columns: readonly CellColumn[]): string[] {
  const fields = columns.map(({ field }) => field);
  const identity = (iso: string): string => iso;
  return valuesAt(row.parts(), fields).map((value, index) => {
    const text = personCell(cellOf(value), { kind: columns[index]!.kind, time: identity });
    return columns[index]!.kind === "command" && text !== "-" ? code(text) : escaped(text);
  });
}

function line(texts: readonly string[]): string {
  return `| ${texts.join(" | ")} |\n`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;" };

function escaped(text: string): string {
  // One pass replaces all signs, because the entity of `@` contains `#`.
  return text.replaceAll(/[&<>@\\`*_[\]|~!#]/g, (sign) => entities[sign] ?? `\\${sign}`);
}

/** Uses an HTML element, because a backtick in the text would end a Markdown code span. */
function code(text: string): string {
  return `<code>${escaped(text)}</code>`;
}
