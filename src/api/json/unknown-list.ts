// The rows of lists whose shape the API document does not show (§4.4), in the API's own text.
import { BrokenBody, isObject, type JsonBody, type JsonObject } from "./json-body.ts";
import { closeBrace, closeBracket, comma, scanValue, skipSpace } from "./json-scanner.ts";

/** A row of a legacy list: the API's own text, and the same parsed. */
export interface Row {
  readonly text: string;
  readonly value: JsonObject;
}

export interface Rows {
  readonly rows: readonly Row[];
  /** Name of the member that wrapped the rows; nothing if the body was the array itself. */
  readonly wrappedIn: string | undefined;
  /** True if the answer says that there are more: none of the names is documented, so it is a hint and no promise. */
  readonly saysMore: boolean;
}

/** Names that lists are wrapped in, the likely ones first. */
const usualNames = ["data", "items", "results", "rows", "records"];

/**
 * The rows of a list whose shape is not shown: the body is an array, or an object that wraps one under any name.
 * @assumed §4.4 shows no list of the legacy contract.
 * @throws BrokenBody where no array of objects, or more than one that could be meant, is found
 */
export function readRows({ text, value }: JsonBody): Rows {
  const { array, name } = arrayIn(value);
  const body = Buffer.from(text, "utf8");
  const spans = elementSpans(body, name === undefined ? 0 : memberSpan(body, name).start);
  const rows = array.map((row, index) => {
    if (!isObject(row)) throw new BrokenBody("a row of the list is not an object");
    const { start, end } = spans[index]!;
    return { text: body.toString("utf8", start, end), value: row };
  });
  return { rows, wrappedIn: name, saysMore: isObject(value) && mentionsMore(value) };
}

interface FoundArray {
  readonly array: readonly unknown[];
  /** Of the member that it is; nothing if it is the body itself. */
  readonly name: string | undefined;
}

function arrayIn(value: unknown): FoundArray {
  if (Array.isArray(value)) return { array: value, name: undefined };
  if (!isObject(value)) throw new BrokenBody("the response is not a list");
  const arrays = Object.entries(value).flatMap(([name, array]): FoundArray[] =>
    Array.isArray(array) ? [{ array, name }] : [],
  );
  const usual = usualNames.flatMap((name) => arrays.filter((found) => found.name === name));
  const ofObjects = arrays.filter(({ array }) => array.some(isObject));
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

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * The elements of the array that begins at or after `from`.
 * @param body sound JSON in UTF-8: it was parsed before
 */
function elementSpans(body: Buffer, from: number): Span[] {
  const spans: Span[] = [];
  let at = skipSpace(body, skipSpace(body, from) + 1);
  while (body[at] !== closeBracket) {
    const end = scanValue(body, at, 1);
    spans.push({ start: at, end });
    at = skipSpace(body, end);
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  return spans;
}

/**
 * The value of a member of the object at the beginning of the text; of two with the same name the last, as `JSON.parse`.
 * @throws Error if there is none: the caller has seen it in the parsed value
 */
function memberSpan(body: Buffer, name: string): Span {
  let found: Span | undefined;
  let at = skipSpace(body, skipSpace(body, 0) + 1);
  while (body[at] !== closeBrace) {
    const keyEnd = scanValue(body, at, 1);
    const key: unknown = JSON.parse(body.toString("utf8", at, keyEnd));
    const start = skipSpace(body, skipSpace(body, keyEnd) + 1);
    const end = scanValue(body, start, 1);
    if (key === name) found = { start, end };
    at = skipSpace(body, end);
    if (body[at] === comma) at = skipSpace(body, at + 1);
  }
  if (!found) throw new Error(`no member "${name}"`);
  return found;
}
