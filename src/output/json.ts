// Owns: JSON documents: one resource, and the list envelope written row by row, indented for a person, compact for a
// program. Must not know: which resource, the API. Source: cli.md §2 (json), §2.1 of the document (the envelope).
import { FieldWatch } from "./field-watch.ts";
import { compactJson, indentedJson, projected } from "./json-text.ts";
import { parseJson } from "./json-tree.ts";
import type { ListEnd, ListTarget, ListView, ListWriter } from "./list.ts";
import { joinedRows, rowCount, rowTexts, type RowPage } from "./row-page.ts";
import { visibleJson } from "./visible-text.ts";

/** One resource as one JSON document. @param text JSON, printed as it came but for white space */
export function jsonResource(text: string, target: ListTarget): string {
  const chosen = target.fields === undefined ? text : projected(text, target.fields);
  return `${target.isTerminal ? visibleJson(indentedJson(chosen)) : compactJson(chosen)}\n`;
}

/** A receipt of the list that follows, in its envelope before `data`. */
export function jsonReceipt(text: string, target: ListTarget): string {
  const chosen = target.fields === undefined ? text : projected(text, target.fields);
  const isFirst = target.receiptsBefore === 0;
  if (!target.isTerminal) return (isFirst ? '{"object":"list","receipts":[' : ",") + compactJson(chosen);
  // A terminal shows whole lines only: the comma comes with the next.
  const before = isFirst ? '{\n  "object": "list",\n  "receipts": [\n' : "    ,\n";
  return `${before}${visibleJson(`    ${indentedJson(chosen, 2)}`)}\n`;
}

/**
 * A list as the envelope of §2.1. Until `end` the document is not closed, so that what a broken walk leaves never
 * parses as a whole answer.
 */
export function jsonList(view: ListView, target: ListTarget): ListWriter {
  return target.isTerminal ? new IndentedList(view, target) : new CompactList(view, target);
}

class CompactList implements ListWriter {
  rowsWritten: number;
  private readonly watch: FieldWatch;

  constructor(
    private readonly view: ListView,
    private readonly target: ListTarget,
  ) {
    this.watch = new FieldWatch(target.fields);
    this.rowsWritten = target.rowsBefore ?? 0;
  }

  async page(page: RowPage): Promise<void> {
    if (rowCount(page) === 0) return;
    await this.target.sink.write(this.rowsWritten === 0 ? this.head() : ",");
    await this.target.sink.write(this.rows(page));
    this.rowsWritten += rowCount(page);
  }

  private head(): string {
    return this.target.receiptsBefore ? '],"data":[' : '{"object":"list","data":[';
  }

  private rows(page: RowPage): string | Buffer {
    if (this.target.fields === undefined) return joinedRows(page, ",");
    return chosenRows(page, { target: this.target, watch: this.watch }).join(",");
  }

  async end(state: ListEnd): Promise<void> {
    const head = this.rowsWritten === 0 ? this.head() : "";
    await this.target.sink.write(`${head}],${envelopeTail(state).join(",")}}\n`);
    tellMissing(this.watch, { view: this.view, target: this.target });
  }

  async abandon(): Promise<void> {}
}

/** A terminal shows whole lines only, so a row waits for the comma that may have to follow it. */
class IndentedList implements ListWriter {
  rowsWritten = 0;
  private readonly watch: FieldWatch;
  private waiting = "";

  constructor(
    private readonly view: ListView,
    private readonly target: ListTarget,
  ) {
    this.watch = new FieldWatch(target.fields);
  }

  async page(page: RowPage): Promise<void> {
    if (rowCount(page) === 0) return;
    const rows = chosenRows(page, { target: this.target, watch: this.watch }).map((text) =>
      visibleJson(`    ${indentedJson(text, 2)}`),
    );
    const before = this.rowsWritten === 0 ? `${this.head()}  "data": [\n` : `${this.waiting},\n`;
    this.waiting = rows.pop() ?? "";
    await this.target.sink.write(before + rows.map((row) => `${row},\n`).join(""));
    this.rowsWritten += rowCount(page);
  }

  async end(state: ListEnd): Promise<void> {
    const data = this.rowsWritten === 0 ? `${this.head()}  "data": [],\n` : `${this.waiting}\n  ],\n`;
    const tail = envelopeTail(state).map((member) => `  ${member.replace('":', '": ')}`);
    await this.target.sink.write(`${data}${tail.join(",\n")}\n}\n`);
    tellMissing(this.watch, { view: this.view, target: this.target });
  }

  private head(): string {
    return this.target.receiptsBefore ? "  ],\n" : '{\n  "object": "list",\n';
  }

  async abandon(): Promise<void> {
    if (this.waiting !== "") await this.target.sink.write(`${this.waiting}\n`);
  }
}

function envelopeTail({ nextPageToken, hasMore }: ListEnd): string[] {
  return [`"next_page_token":${JSON.stringify(nextPageToken)}`, `"has_more":${hasMore}`];
}

function chosenRows(page: RowPage, { target, watch }: { target: ListTarget; watch: FieldWatch }): string[] {
  const { fields } = target;
  if (fields === undefined) return rowTexts(page);
  return rowTexts(page).map((text) => {
    watch.look(() => parseJson(text));
    return projected(text, fields);
  });
}

function tellMissing(watch: FieldWatch, { view, target }: { view: ListView; target: ListTarget }): void {
  const verdict = watch.verdict(view.singular);
  if (verdict !== undefined) target.note(verdict);
}
