import type { FieldPath } from "../fields.ts";
import type { RowPage } from "../row-page.ts";

export const formats = ["table", "json", "ndjson", "csv", "yaml", "markdown", "sarif", "html", "openmetrics"] as const;
export type Format = (typeof formats)[number];

export interface Column {
  /** Keys of the JSON text, joined by dots. */
  readonly path: string;
  readonly heading: string;
  /**
   * By default, the field's name selects `id` or `word`, otherwise the kind is `text`. `time` is ISO 8601; `status` is
   * a colored word; `list` is an array joined by commas. `id`, `word` and `status` are never cut, because users copy
   * ids and words may begin alike. `sentence` is wrapped at a terminal and never cut. `command` and `advice` are
   * printed below the row at a terminal, after `Next:` and `Fix:`.
   */
  readonly kind?: "text" | "time" | "word" | "status" | "list" | "id" | "sentence" | "command" | "advice";
  /** True if a narrow terminal omits the column, or moves it below the row if it is an id. */
  readonly isDetail?: boolean;
  /** True if a terminal shows the column only with `--fields`. */
  readonly isHidden?: boolean;
  /** True if a terminal shows the column even if all rows have the same value. */
  readonly isNeeded?: boolean;
  readonly isKey?: boolean;
  /** The field with the expiry time of a status; after that time, `active` is shown as `expired`. */
  readonly expiry?: string;
}

export interface ListView {
  readonly columns: readonly Column[];
  /** Documented fields without a column; `--fields` accepts them. */
  readonly further?: readonly Column[];
  /** True if the first page has all rows: a terminal then omits columns with the same value in each row. */
  readonly isWhole?: boolean;
  /** Name of one row, such as `entity`. */
  readonly singular: string;
  readonly plural: string;
  /** Message for an empty list; by default a text such as `No entities.` */
  readonly empty?: string;
  /** Current time by the service's clock, for expiries; by default this machine's time. */
  readonly nowMs?: number;
}

/** Envelope of the last page (§2.1). */
export interface ListEnd {
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/** A writer does not use the bytes of a page after the promise of `page` has resolved. */
export interface PageWriter {
  /** The writer may overwrite the bytes between the rows. */
  page(page: RowPage): Promise<void>;
  /** Call once, after the last page. */
  end(state: ListEnd): Promise<void>;
  /** Ends a failed list: printed rows are complete, and a JSON document stays unclosed. */
  abandon?(): Promise<void>;
}

export interface ListWriter extends Required<PageWriter> {
  whole(rows: readonly (object | string)[]): Promise<void>;
  readonly rowsWritten: number;
}

/** A list that follows receipts, which are printed immediately. */
export interface Report {
  readonly list: ListWriter;
  /**
   * Call before the list's first page. Formats of one document put receipts under `receipts`. `text` is the API's JSON
   * object, unchanged.
   */
  receipt(text: string, view: ResourceView): Promise<void>;
}

export interface ResourceView {
  /** Heading at a terminal. */
  readonly title?: string;
  readonly columns: readonly Column[];
  /** Top-level fields to print as null. */
  readonly nulls?: readonly string[];
  /** Top-level field with a one-time secret; a note says that it is shown only once. */
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
  /** At a terminal, text is indented, fitted and colored, and invisible characters are escaped. */
  readonly isTerminal: boolean;
  readonly hasRelativeTimes: boolean;
  readonly width: number;
  readonly color: 0 | 1 | 2 | 3;
  readonly now: () => number;
  readonly version: string;
  /** Requested fields in order; by default all fields. */
  readonly fields?: readonly FieldPath[];
  /** An earlier run wrote this number of rows to the same file; the list continues after them. */
  readonly rowsBefore?: number;
  /** The same document has this number of receipts before the list. */
  readonly receiptsBefore?: number;
  readonly note: (text: string) => void;
  readonly reportMissing: (what: string) => void;
}

export interface ShownResource {
  readonly view: ResourceView;
  readonly target: ListTarget;
}

/** The text of a resource is a JSON object. */
export interface Formatter {
  readonly resource: (text: string, shown: ShownResource) => string | Promise<string>;
  /** Prints a resource inside the document of the following list; absent if the format has no such document. */
  readonly receipt?: (text: string, shown: ShownResource) => string;
  readonly list: (view: ListView, target: ListTarget) => PageWriter;
}
