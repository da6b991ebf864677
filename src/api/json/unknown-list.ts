// The rows of lists whose shape the API document does not show (§4.4), in the API's own text. A list may have 100,000 rows:
// every byte is checked once, and a row is parsed when someone looks at it.
import { isUtf8 } from "node:buffer";
import { BrokenBody, type JsonObject, parseJson, parseText } from "./json-body.ts";
import { closeBrace, closeBracket, comma, openBrace, openBracket, scanValue, skipSpace } from "./json-scanner.ts";

/** A row of a legacy list: the API's own text, and the same parsed. */
export interface Row {
  readonly text: string;
  readonly value: JsonObject;
}

/** What an array of rows has in common with rows that are parsed one by one. */
export interface RowList extends Iterable<Row> {
  readonly length: number;
  map<T>(make: (row: Row) => T): T[];
  flatMap<T>(make: (row: Row) => T[]): T[];
}

export interface Rows {
  readonly rows: RowList;
  /** Name of the member that wrapped the rows; nothing if the body was the array itself. */
  readonly wrappedIn: string | undefined;
  /** True if the response says that there are more: none of the names is documented, so it is a hint and no promise. */
  readonly saysMore: boolean;
}

/** A class, since an object with a getter of its own costs V8 a hidden class for each, kept until the next full collection. */
class RowInBody implements Row {
  readonly #body: Buffer;
  readonly #start: number;
  readonly #end: number;

  constructor(body: Buffer, start: number, end: number) {
    this.#body = body;
    this.#start = start;
    this.#end = end;
  }

  get text(): string {
    return this.#body.toString("utf8", this.#start, this.#end);
  }

  get value(): JsonObject {
    return parseText(this.text) as JsonObject;
  }
}

/** Rows where they are in the body; a pair of offsets for each. */
class RowsInBody implements RowList {
  readonly #body: Buffer;
  readonly #spans: Spans;

  constructor(body: Buffer, spans: Spans) {
    this.#body = body;
    this.#spans = spans;
  }

  get length(): number {
    return this.#spans.length / 2;
  }

  *[Symbol.iterator](): Iterator<Row> {
    for (let at = 0; at < this.#spans.length; at += 2)
      yield new RowInBody(this.#body, this.#spans[at]!, this.#spans[at + 1]!);
  }

  map<T>(make: (row: Row) => T): T[] {
    return Array.from(this, make);
  }

  flatMap<T>(make: (row: Row) => T[]): T[] {
    const all: T[] = [];
    for (const row of this) all.push(...make(row));
    return all;
  }
}

type Spans = readonly number[];

/** Names that lists are wrapped in, the likely ones first. */
const usualNames = ["data", "items", "results", "rows", "records"];

/**
 * The rows of a list whose shape is not shown: the body is an array, or an object that wraps one under any name.
 * @assumed §4.4 shows no list of the legacy contract.
 * @param body as it came; it stays with the rows
 * @throws BrokenBody if no array of objects, or more than one that could be meant, is found
 */
export function readRows(body: Buffer): Rows {
  if (!isUtf8(body)) throw new BrokenBody("the response is not in UTF-8");
  const start = skipSpace(body, 0);
  const members = body[start] === openBrace ? membersOf(body, start) : undefined;
  const end = members?.end ?? scanValue(body, start, 1);
  if (skipSpace(body, end) !== body.length) throw new BrokenBody("the response is not JSON, or is incomplete");
  const whole: FoundArray[] =
    body[start] === openBracket ? [{ name: undefined, spans: elementSpans(body, start) }] : [];
  if (members === undefined && whole.length === 0) throw new BrokenBody("the response is not a list");
  const { name, spans } = whole[0] ?? chosen(body, members?.arrays ?? []);
  for (let at = 0; at < spans.length; at += 2)
    if (body[spans[at]!] !== openBrace) throw new BrokenBody("a row of the list is not an object");
  return {
    rows: new RowsInBody(body, spans),
    wrappedIn: name,
    saysMore: members !== undefined && mentionsMore(members.others),
  };
}

interface FoundArray {
  /** Of the member that it is; nothing if it is the body itself. */
  readonly name: string | undefined;
  readonly spans: Spans;
}

interface Members {
  readonly arrays: readonly FoundArray[];
  /** Members that are not arrays. */
  readonly others: JsonObject;
  /** The index after the closing brace. */
  readonly end: number;
}

/** The members of the object that begins there; of two with the same name the last counts, as for `JSON.parse`. */
function membersOf(body: Buffer, start: number): Members {
  const found = new Map<string, readonly [number, number]>();
  const end = scanValue(body, start, 1);
  for (let at = skipSpace(body, start + 1); body[at] !== closeBrace; ) {
    const keyEnd = scanValue(body, at, 2);
    const key = String(parseJson(body.subarray(at, keyEnd)).value);
    const from = skipSpace(body, skipSpace(body, keyEnd) + 1);
    const to = scanValue(body, from, 2);
    found.set(key, [from, to]);
    at = skipSpace(body, to);
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  found.delete("__proto__");
  const all = [...found];
  const isArray = ([from]: readonly [number, number]): boolean => body[from] === openBracket;
  const others = all.filter(([, span]) => !isArray(span) && body[span[0]] !== openBrace);
  return {
    arrays: all.flatMap(([name, span]) => (isArray(span) ? [{ name, spans: elementSpans(body, span[0]) }] : [])),
    others: Object.fromEntries(others.map(([name, [from, to]]) => [name, parseJson(body.subarray(from, to)).value])),
    end,
  };
}

function chosen(body: Buffer, arrays: readonly FoundArray[]): FoundArray {
  const usual = usualNames.flatMap((name) => arrays.filter((found) => found.name === name));
  const ofObjects = arrays.filter(({ spans }) =>
    spans.some((place, index) => index % 2 === 0 && body[place] === openBrace),
  );
  const candidates = [usual.slice(0, 1), ofObjects, arrays].find((found) => found.length > 0) ?? [];
  if (candidates.length !== 1) throw new BrokenBody("the response contains no list, or more than one");
  return candidates[0]!;
}

function mentionsMore(value: JsonObject): boolean {
  if (value.has_more === true || value.hasMore === true) return true;
  return ["next_page_token", "nextPageToken", "next_cursor", "nextCursor", "next"].some(
    (name) => typeof value[name] === "string" && value[name] !== "",
  );
}

/** Where each element of the array that begins there begins and ends. @param body sound JSON: it was scanned before */
function elementSpans(body: Buffer, start: number): number[] {
  const spans: number[] = [];
  for (let at = skipSpace(body, start + 1); body[at] !== closeBracket; ) {
    const end = scanValue(body, at, 2);
    spans.push(at, end);
    at = skipSpace(body, end);
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  return spans;
}
