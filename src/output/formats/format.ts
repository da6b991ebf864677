import type { FieldPath } from "../fields.ts";
import type { RowPage } from "../row-page.ts";

export type Format = "table" | "json" | "ndjson" | "csv" | "yaml" | "markdown" | "sarif" | "html" | "openmetrics";

/** One documented field of a row or a resource. */
export interface Column {
  /** The wire name, or names joined by dots. */
  readonly path: string;
  readonly heading: string;
  /**
   * `text` if nothing is said, and `id` or `word` for a name that ends like one. `time`: ISO 8601; `word`: one of a few
   * words, as an operation or a type, never cut, since those begin alike; `status`: the same, coloured; `list`: an array
   * shown with commas; `id`: what a person copies, never cut; `sentence`: broken into lines at the width of a terminal,
   * never cut. A `command` and an `advice` are below their row on a terminal, whole, behind `Next:` and `Fix:`.
   */
  readonly kind?: "text" | "time" | "word" | "status" | "list" | "id" | "sentence" | "command" | "advice";
  /** On a terminal that is too narrow it is left out; of the others, what does not fit is below the row. */
  readonly isDetail?: boolean;
  /** Few people ask for it: a terminal shows it with `--fields`. */
  readonly isHidden?: boolean;
  /** The path is one key, whatever dots are in it. */
  readonly isKey?: boolean;
  /** Of a status: the field with the time from which a person reads `expired` in place of `active`. */
  readonly expiry?: string;
}

export interface ListView {
  readonly columns: readonly Column[];
  /** Documented fields that are not columns: `--fields` may name them, whether a row has them or not. */
  readonly further?: readonly Column[];
  /** All rows come in the first page: at a terminal a column that says the same in each of them is left out. */
  readonly isWhole?: boolean;
  /** `entity`, `entities`. */
  readonly singular: string;
  readonly plural: string;
  /** What is said if there is no row: `No entities.` if it is absent. */
  readonly empty?: string;
  /** The time by the service's clock, for a column with an expiry; this machine's if it is absent. */
  readonly nowMs?: number;
}

/** How a walk ended: as the last page's envelope said it (§2.1). */
export interface ListEnd {
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/** Prints the pages of a list in one format. Nothing of a page is kept after its promise resolves. */
export interface PageWriter {
  /** Prints the rows of a page; the bytes between them may be overwritten. Resolves when they are written. */
  page(page: RowPage): Promise<void>;
  /** Closes the list. Called once, last. */
  end(state: ListEnd): Promise<void>;
  /** The walk broke: what was printed stays, whole rows only, and a JSON document stays unclosed. */
  abandon?(): Promise<void>;
}

/** A list that a command prints page by page. */
export interface ListWriter extends Required<PageWriter> {
  readonly rowsWritten: number;
}

/** A list before which single resources come as they are made, each immediately: a receipt is not held back for its list. */
export interface Report {
  readonly list: ListWriter;
  /**
   * Prints a resource; in a format of one document inside it, under `receipts`. Called before the list's first page.
   * @param text the API's JSON object as it came
   */
  receipt(text: string, view: ResourceView): Promise<void>;
}

/** One resource: its fields as a person reads them. */
export interface ResourceView {
  /** What it is, for a terminal. */
  readonly title?: string;
  readonly columns: readonly Column[];
  /** Top-level fields to show as null, whatever they hold. */
  readonly nulls?: readonly string[];
  /** The top-level field that holds a one-time secret: a person sees that it is shown once. */
  readonly secretField?: string;
  /** `--fields` must not name an unknown field; absent for what a change made, whose outcome wins. */
  readonly isRead?: boolean;
  /** As in a list. */
  readonly nowMs?: number;
}

/** Where the bytes of a list go. */
export interface Sink {
  write(data: string | Buffer): Promise<void>;
}

/** What a format needs to know of the place it writes to. */
export interface ListTarget {
  readonly sink: Sink;
  /** A person looks at it: indent, fit, colour, make visible. */
  readonly isTerminal: boolean;
  readonly hasRelativeTimes: boolean;
  readonly width: number;
  readonly colour: 0 | 1 | 2 | 3;
  readonly now: () => number;
  /** Keep these fields, in this order; all if absent. */
  readonly fields?: readonly FieldPath[];
  /** Rows that an earlier run wrote to the same place: the list continues behind them. */
  readonly rowsBefore?: number;
  /** Receipts that are before the list, in the same document. */
  readonly receiptsBefore?: number;
  /** For what must be said beside the list. */
  readonly note: (text: string) => void;
  readonly tellMissing: (what: string) => void;
}

/** A resource on its way to a format: how it is read, and where it goes. */
export interface ShownResource {
  readonly view: ResourceView;
  readonly target: ListTarget;
}

/** What each format can do. The text of a resource is a JSON object. */
export interface Formatter {
  readonly resource: (text: string, shown: ShownResource) => string | Promise<string>;
  /** A resource inside the document of the list that follows; absent if the format knows no such document. */
  readonly receipt?: (text: string, shown: ShownResource) => string;
  readonly list: (view: ListView, target: ListTarget) => PageWriter;
}
