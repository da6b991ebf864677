import type { FieldPath } from "../fields.ts";
import type { RowPage } from "../row-page.ts";

export const formats = ["table", "json", "ndjson", "csv", "yaml", "markdown", "sarif", "html", "openmetrics"] as const;
export type Format = (typeof formats)[number];

export interface Column {
  /** Keys of the JSON text, joined by dots. */
  readonly path: string;
  readonly heading: string;
  /**
   * The default is `id` or `word` by the field's name, else `text`. `time` is ISO 8601; `status` is a colored word;
   * `list` is an array. A terminal's table does not cut `id`, `word` and `status`, wraps `sentence`, and shows
   * `command` and `advice` below the row, after `Next:` and `Fix:`.
   */
  readonly kind?: "text" | "time" | "word" | "status" | "list" | "id" | "sentence" | "command" | "advice";
  /** A narrow terminal omits the column, or moves an id below the row. */
  readonly isDetail?: boolean;
  /** A terminal shows the column only with `--fields`. */
  readonly isHidden?: boolean;
  /** A terminal does not omit the column for equal values, unless all are empty. */
  readonly isNeeded?: boolean;
  readonly isKey?: boolean;
  /** The field with the time after which a table shows `active` as `expired`. */
  readonly expiry?: string;
  /** What a terminal shows for null. */
  readonly none?: string;
}

export interface ListView {
  readonly columns: readonly Column[];
  /** Documented fields without a column; `--fields` accepts them. */
  readonly extraColumns?: readonly Column[];
  /** True if the first page has all rows: a terminal may then omit columns that are empty or have equal values. */
  readonly isWhole?: boolean;
  readonly singular: string;
  readonly plural: string;
  /** The text for an empty list; by default, a text such as `No entities.` */
  readonly empty?: string;
  /** The service's time for expiries; by default, this machine's time. */
  readonly nowMs?: number;
}

/** Envelope of the last page (§2.1). */
export interface ListEnd {
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/** After `page` has resolved, the caller may reuse the page's memory. */
export interface PageWriter {
  /** May overwrite the bytes between the rows. */
  page(page: RowPage): Promise<void>;
  end(state: ListEnd): Promise<void>;
  /** Ends a failed list: rows are complete, a JSON document stays unclosed. */
  abandon?(): Promise<void>;
}

export interface ListWriter extends Required<PageWriter> {
  whole(rows: readonly (object | string)[]): Promise<void>;
  readonly rowsWritten: number;
}

/** A list after receipts, which are printed immediately. */
export interface Report {
  readonly list: ListWriter;
  /**
   * Call before the list's first page. JSON and YAML put receipts under `receipts`. `text` is the API's JSON object,
   * unchanged.
   */
  receipt(text: string, view: ResourceView): Promise<void>;
}

export interface ResourceView {
  /** The title above the fields, at a terminal and in HTML. */
  readonly title?: string;
  readonly columns: readonly Column[];
  /** Top-level fields to print as null. */
  readonly nulls?: readonly string[];
  /** Top-level field with a one-time secret; a note says that it is shown once. */
  readonly secretField?: string;
  readonly omitsEmpty?: boolean;
  /** True if unknown `--fields` are refused. Absent after a change, whose result must be printed. */
  readonly isRead?: boolean;
  readonly nowMs?: number;
}

export interface Sink {
  write(data: string | Buffer): Promise<void>;
}

export interface ListTarget {
  readonly sink: Sink;
  /** True if the output is laid out for a person at a terminal. */
  readonly isTerminal: boolean;
  readonly hasRelativeTimes: boolean;
  readonly width: number;
  readonly color: 0 | 1 | 2 | 3;
  readonly now: () => number;
  readonly version: string;
  readonly fields?: readonly FieldPath[];
  /** Number of rows that an earlier run wrote to the same file. */
  readonly rowsBefore?: number;
  /** Number of receipts before the list in the same document. */
  readonly receiptsBefore?: number;
  /** Prints the same text at most once in a run. */
  readonly note: (text: string) => void;
  readonly reportMissing: (what: string) => void;
}

export interface ShownResource {
  readonly view: ResourceView;
  readonly target: ListTarget;
}

/** A resource's text is a JSON object. */
export interface Formatter {
  readonly resource: (text: string, shown: ShownResource) => string | Promise<string>;
  /** Prints a receipt inside the following list's document; if absent, `resource` prints it before the list. */
  readonly receipt?: (text: string, shown: ShownResource) => string;
  readonly list: (view: ListView, target: ListTarget) => PageWriter;
}
