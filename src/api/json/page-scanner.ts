// Finds the rows of a page, and checks every byte on the way: what is not sound JSON, no envelope of §2.1, or has a row that is
// not an object is refused whole.
import { BrokenBody, openBrace, openBracket, Scanner } from "./json-body.ts";
import { JsonText, Source } from "./json-text.ts";

/** A page that keeps the envelope rule (§2.1). */
export interface ScannedPage {
  readonly rows: readonly JsonText[];
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

/**
 * Checks a page and finds its rows.
 * @throws BrokenBody if the body is not exactly one list envelope, in any order of keys, with any unknown keys
 */
export function scanPage(body: Buffer): ScannedPage {
  const scanner = new Scanner(body, "page");
  const start = scanner.begin();
  if (body[start] !== openBrace) throw new BrokenBody("the page is not a list envelope");
  const envelope = new Map<string, unknown>();
  let rows: readonly JsonText[] = [];
  const end = scanner.object(start, 1, (name, nameEnd, value) => {
    const key = String(JSON.parse(body.toString("utf8", name, nameEnd)));
    // Of two it is unknown which is meant.
    if (envelope.has(key)) throw new BrokenBody(`the page's envelope has "${key.slice(0, 40)}" twice`);
    envelope.set(key, undefined);
    if (key === "data") {
      const found = scanRows(body, value, scanner);
      ({ rows } = found);
      return found.end;
    }
    const valueEnd = scanner.value(value, 1);
    if (envelopeKeys.has(key)) envelope.set(key, JSON.parse(body.toString("utf8", value, valueEnd)));
    return valueEnd;
  });
  scanner.end(end);
  return { rows, ...checkEnvelope(envelope) };
}

/** All but `data`. */
const envelopeKeys: ReadonlySet<string> = new Set(["object", "next_page_token", "has_more"]);

function scanRows(
  body: Buffer,
  from: number,
  scanner: Scanner,
): { readonly rows: readonly JsonText[]; readonly end: number } {
  if (body[from] !== openBracket) throw new BrokenBody('"data" of the page is not an array');
  const source = new Source(body);
  const rows: JsonText[] = [];
  const end = scanner.array(from, 2, (start) => {
    if (body[start] !== openBrace) throw new BrokenBody(`row ${rows.length + 1} of the page is not an object`);
    const spacesBefore = scanner.spaces;
    const rowEnd = scanner.object(start, 3);
    rows.push(new JsonText(source, start, rowEnd, scanner.spaces === spacesBefore));
    return rowEnd;
  });
  return { rows, end };
}

/** The consistency rule of §2.1. */
function checkEnvelope(envelope: ReadonlyMap<string, unknown>): Omit<ScannedPage, "rows"> {
  const nextPageToken = envelope.get("next_page_token");
  const hasMore = envelope.get("has_more");
  if (envelope.get("object") !== "list") throw new BrokenBody('"object" of the page is not "list"');
  if (!envelope.has("data")) throw new BrokenBody('the page has no "data"');
  if (nextPageToken === undefined) throw new BrokenBody('the page has no "next_page_token"');
  if (hasMore === true && typeof nextPageToken === "string" && nextPageToken !== "") return { nextPageToken, hasMore };
  if (hasMore === false && nextPageToken === null) return { nextPageToken, hasMore };
  if (typeof hasMore !== "boolean") throw new BrokenBody('"has_more" of the page is neither true nor false');
  throw new BrokenBody(
    hasMore
      ? "the page says that more rows exist, and has no token for them"
      : "the page says that no more rows exist, and has a token for more",
  );
}
