// Owns: which module speaks which format, each loaded when it is first needed.
// Must not know: streams, questions, what is printed. Source: cli.md §2, quality.md Performance (load on first use).
import { withNulls } from "./json-text.ts";
import type { ListTarget, ListView, ListWriter, ResourceView } from "./list.ts";

export type Format = "table" | "json" | "ndjson" | "csv" | "yaml";

/** One resource in a format. @param text JSON object as it came; the view's `nulls` are blanked here, before all else */
export async function resourceText(
  text: string,
  { view, format, target }: { view: ResourceView; format: Format; target: ListTarget },
): Promise<string> {
  const shown = view.nulls === undefined || view.nulls.length === 0 ? text : withNulls(text, view.nulls);
  switch (format) {
    case "json":
      return (await import("./json.ts")).jsonResource(shown, target);
    case "ndjson":
      return (await import("./ndjson.ts")).ndjsonResource(shown, target);
    case "csv":
      return (await import("./csv.ts")).csvResource(shown, { columns: view.columns, target });
    case "yaml":
      return (await import("./yaml.ts")).yamlResource(shown, target);
    default:
      return (await import("./table.ts")).tableResource(shown, { view, target });
  }
}

/** A resource that comes before a list, in the list's own document where the format is one. */
async function receiptText(
  text: string,
  given: { view: ResourceView; format: Format; target: ListTarget },
): Promise<string> {
  const { view, format, target } = given;
  if (format !== "json" && format !== "yaml") return resourceText(text, given);
  const shown = withNulls(text, view.nulls ?? []);
  if (format === "json") return (await import("./json.ts")).jsonReceipt(shown, target);
  return (await import("./yaml.ts")).yamlReceipt(shown, target);
}

/** A document of our own: for a person it reads best as YAML. @param json JSON text */
export async function documentText(
  json: string,
  { format, target }: { format: Format; target: ListTarget },
): Promise<string> {
  if (format === "table") return (await import("./yaml.ts")).yamlResource(json, target);
  return resourceText(json, { view: { columns: [] }, format, target });
}

async function listWriter(
  view: ListView,
  { format, target }: { format: Format; target: ListTarget },
): Promise<ListWriter> {
  switch (format) {
    case "json":
      return (await import("./json.ts")).jsonList(view, target);
    case "ndjson":
      return (await import("./ndjson.ts")).ndjsonList(view, target);
    case "csv":
      return (await import("./csv.ts")).csvList(view, target);
    case "yaml":
      return (await import("./yaml.ts")).yamlList(view, target);
    default:
      return (await import("./table.ts")).tableList(view, target);
  }
}

/**
 * A list whose format is loaded when there is something to write. Where the view has no columns, those of a table and of
 * CSV are the keys of the first rows that come.
 */
export class LazyList implements ListWriter {
  private writer: ListWriter | undefined;
  private receipts = 0;

  constructor(
    private readonly view: ListView,
    private readonly options: { readonly format: Format; readonly target: ListTarget },
  ) {}

  /** A resource that comes before the rows (see `Report`). */
  async receipt(text: string, { view, target }: { view: ResourceView; target: ListTarget }): Promise<void> {
    const { format } = this.options;
    const shown = await receiptText(text, { view, format, target: { ...target, receiptsBefore: this.receipts } });
    this.receipts += 1;
    await target.sink.write(shown);
  }

  get rowsWritten(): number {
    return this.writer?.rowsWritten ?? this.options.target.rowsBefore ?? 0;
  }

  async page(...[page]: Parameters<ListWriter["page"]>): Promise<void> {
    if (this.writer === undefined && this.lacksColumns()) {
      if (page.spans.length === 0) return;
      const { keysOf } = await import("./cells.ts");
      const columns = keysOf(page).map((key) => ({ path: key, heading: key, isKey: true }));
      this.writer = await this.begin({ ...this.view, columns });
    }
    this.writer ??= await this.begin(this.view);
    await this.writer.page(page);
  }

  private begin(view: ListView): Promise<ListWriter> {
    const { format, target } = this.options;
    return listWriter(view, { format, target: { ...target, receiptsBefore: this.receipts } });
  }

  private lacksColumns(): boolean {
    const { format, target } = this.options;
    return this.view.columns.length === 0 && target.fields === undefined && (format === "csv" || format === "table");
  }

  async end(...[state]: Parameters<ListWriter["end"]>): Promise<void> {
    if (this.writer === undefined && this.lacksColumns()) {
      if (this.options.target.isTerminal) this.options.target.note(`no ${this.view.plural}`);
      return;
    }
    this.writer ??= await this.begin(this.view);
    await this.writer.end(state);
  }

  async abandon(): Promise<void> {
    await this.writer?.abandon();
  }
}
