import type { FieldPath } from "../fields.ts";
import type { RowPage } from "../row-page.ts";

export const formats = ["table", "json", "ndjson", "csv", "yaml", "markdown", "sarif", "html", "openmetrics"] as const;
export type Format = (typeof formats)[number];

/** One documented field of a row or a resource. */
export interface Column {
  /** Wire names, joined by dots. */
  readonly path: string;
  readonly heading: string;
  /**
   * Default: `id` or `word` by the field's name, else `text`. `time`: ISO 8601. `word`: one of a few words, never cut
   * because they begin alike. `status`: a coloured word. `list`: an array joined by commas. `id`: never cut, because
   * users copy it. `sentence`: wrapped on a terminal, never cut. `command`, `advice`: below the row on a terminal,
   * behind `Next:` and `Fix:`.
   */
  readonly kind?: "text" | "time" | "word" | "status" | "list" | "id" | "sentence" | "command" | "advice";
  /** True if a narrow terminal omits the column; an id and other columns move below the row. */
  readonly isDetail?: boolean;
  /** Shown on a terminal only with `--fields`. */
  readonly isHidden?: boolean;
  /** Shown on a terminal even if all rows have the same value. */
  readonly isNeeded?: boolean;
  /** The path is one key even if it contains dots. */
  readonly isKey?: boolean;
  /** For a status: the field with its expiry time, after which `active` is shown as `expired`. */
  readonly expiry?: string;
}

export interface ListView {
  readonly columns: readonly Column[];
  /** Documented fields without a column, which `--fields` accepts. */
  readonly further?: readonly Column[];
  /** The first page has all rows: a terminal omits columns with the same value in each row. */
  readonly isWhole?: boolean;
  /** `entity`, `entities`. */
  readonly singular: string;
  readonly plural: string;
  /** Message for an empty list. Default: `No entities.` */
  readonly empty?: string;
  /** Current time of the service's clock, for expiries. Default: this machine's. */
  readonly nowMs?: number;
}

/** The last page's envelope (§2.1). */
export interface ListEnd {
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/** Prints the pages of a list in one format, and keeps nothing of a page after its promise resolves. */
export interface PageWriter {
  /** Prints the rows of a page. May overwrite the bytes between them. Resolves when they are written. */
  page(page: RowPage): Promise<void>;
  /** Closes the list. Called once, at the end. */
  end(state: ListEnd): Promise<void>;
  /** Ends a failed list: printed rows are complete, and a JSON document stays unclosed. */
  abandon?(): Promise<void>;
}

/** A list that a command prints page by page. */
export interface ListWriter extends Required<PageWriter> {
  /** Prints a complete list. @param rows objects, or their JSON texts */
  whole(rows: readonly (object | string)[]): Promise<void>;
  readonly rowsWritten: number;
}

/** A list after single resources. Receipts are printed immediately, not with the list. */
export interface Report {
  readonly list: ListWriter;
  /**
   * Prints a resource before the list's first page; formats of one document put it under `receipts`.
   * @param text the API's JSON object, unchanged
   */
  receipt(text: string, view: ResourceView): Promise<void>;
}

/** How to show one resource. */
export interface ResourceView {
  /** Heading on a terminal. */
  readonly title?: string;
  readonly columns: readonly Column[];
  /** Top-level fields to print as null. */
  readonly nulls?: readonly string[];
  /** The top-level field with a one-time secret: a terminal says that it is shown once. */
  readonly secretField?: string;
  /** A table leaves out fields without a value. */
  readonly omitsEmpty?: boolean;
  /** Reject unknown `--fields`. Absent after a change, whose result must be printed. */
  readonly isRead?: boolean;
  /** As in `ListView`. */
  readonly nowMs?: number;
}

/** Receives the bytes of a list. */
export interface Sink {
  write(data: string | Buffer): Promise<void>;
}

/** A format's destination. */
export interface ListTarget {
  readonly sink: Sink;
  /** True for a terminal: indent, fit, colour, escape invisible characters. */
  readonly isTerminal: boolean;
  readonly hasRelativeTimes: boolean;
  readonly width: number;
  readonly colour: 0 | 1 | 2 | 3;
  readonly now: () => number;
  /** Of integ. */
  readonly version: string;
  /** Requested fields in order; default: all. */
  readonly fields?: readonly FieldPath[];
  /** Number of rows that an earlier run wrote to the same file: the list continues after them. */
  readonly rowsBefore?: number;
  /** Number of receipts before the list in the same document. */
  readonly receiptsBefore?: number;
  readonly note: (text: string) => void;
  readonly reportMissing: (what: string) => void;
}

export interface ShownResource {
  readonly view: ResourceView;
  readonly target: ListTarget;
}

/** The operations of a format. The text of a resource is a JSON object. */
export interface Formatter {
  readonly resource: (text: string, shown: ShownResource) => string | Promise<string>;
  /** A resource inside the document of the following list; absent if the format is not a document. */
  readonly receipt?: (text: string, shown: ShownResource) => string;
  readonly list: (view: ListView, target: ListTarget) => PageWriter;
}
