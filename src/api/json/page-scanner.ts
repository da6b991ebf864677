// Finds the rows of a page without making objects of them, and checks every byte on the way: what is not sound JSON, no
// envelope of §2.1, or has a row that is not an object is refused whole. A test holds it against a full parse.
import { isUtf8 } from "node:buffer";
import { BrokenBody } from "./json-body.ts";
import {
  broken,
  closeBrace,
  closeBracket,
  colon,
  comma,
  countOfSpaces,
  openBrace,
  openBracket,
  quote,
  scanObject,
  scanString,
  scanValue,
  skipSpace,
  space,
} from "./json-scanner.ts";
import { type Members, type Separate, scanUsualRows } from "./row-scanner.ts";

/** A page that keeps the envelope rule (§2.1). */
export interface ScannedPage {
  /** Start and end of each row in the body, in bytes, alternating. They are overwritten when the next page is scanned. */
  readonly spans: Uint32Array;
  readonly count: number;
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
  /** No white space is in `data` outside of strings: rows are compact, and one comma apart. */
  readonly isTight: boolean;
  /** Where the rows' members stand, if it was found out. They are overwritten too. */
  readonly members?: Members | undefined;
  /** Puts another byte in the place of the commas between the rows, quickly, if it can. */
  readonly separate?: Separate | undefined;
}

/**
 * Checks a page and finds its rows.
 * @throws BrokenBody if the body is not exactly one list envelope, in any order of keys, with any unknown keys
 */
export function scanPage(body: Buffer): ScannedPage {
  if (!isUtf8(body)) throw new BrokenBody("the page is not in UTF-8");
  const usual = scanUsualPage(body);
  if (usual !== undefined) return usual;
  const envelope: Envelope = { seen: new Set(), spans: new Uint32Array(1024), count: 0, isTight: true };
  let at = skipSpace(body, 0);
  if (body[at] !== openBrace) throw new BrokenBody("the page is not a list envelope");
  at = skipSpace(body, at + 1);
  if (body[at] !== closeBrace) at = scanMembers(body, at, envelope);
  if (skipSpace(body, at + 1) !== body.length) throw broken(at + 1);
  return checkEnvelope(envelope);
}

const usualStart = '{"object":"list","data":[';
/** What is behind the rows; a token in it has no escapes. */
const usualRest = /^,"next_page_token":(?:"([ !#-[\]-~]+)","has_more":true|null,"has_more":false)\}$/;
/** A longer one is read in the slow way, bytes. */
const mostRest = 16_384;

/**
 * What most pages say behind their rows, read with one expression.
 * @returns the token, null if there are no more rows; nothing if it is written in any other way
 */
export function readUsualRest(body: Buffer, from: number): string | null | undefined {
  if (body.length - from > mostRest) return undefined;
  const found = usualRest.exec(body.toString("latin1", from));
  return found === null ? undefined : (found[1] ?? null);
}

/** A long page whose envelope is written as most are. @returns nothing for any other: it may be right or wrong */
function scanUsualPage(body: Buffer): ScannedPage | undefined {
  if (body.toString("latin1", 0, usualStart.length) !== usualStart) return undefined;
  const rows = scanUsualRows(body, usualStart.length);
  const nextPageToken = rows && readUsualRest(body, rows.end);
  if (rows === undefined || nextPageToken === undefined) return undefined;
  const { spans, count, members, separate } = rows;
  return { spans, count, isTight: true, members, separate, nextPageToken, hasMore: nextPageToken !== null };
}

interface Envelope {
  readonly seen: Set<string>;
  spans: Uint32Array;
  count: number;
  isTight: boolean;
  members?: Members;
  object?: unknown;
  hasRows?: boolean;
  nextPageToken?: unknown;
  hasMore?: unknown;
}

/** @returns the index of the closing brace */
function scanMembers(body: Buffer, from: number, envelope: Envelope): number {
  let at = from;
  for (;;) {
    if (body[at] !== quote) throw broken(at);
    const keyEnd = scanString(body, at + 1);
    const key = String(JSON.parse(body.toString("utf8", at, keyEnd)));
    // Of two it is unknown which is meant.
    if (envelope.seen.has(key)) throw new BrokenBody(`the page's envelope has "${key.slice(0, 40)}" twice`);
    envelope.seen.add(key);
    at = skipSpace(body, keyEnd);
    if (body[at] !== colon) throw broken(at);
    at = skipSpace(body, scanMember(body, skipSpace(body, at + 1), { key, envelope }));
    if (body[at] === closeBrace) return at;
    if (body[at] !== comma) throw broken(at);
    at = skipSpace(body, at + 1);
  }
}

/** @returns the index after the member's value */
function scanMember(body: Buffer, from: number, { key, envelope }: { key: string; envelope: Envelope }): number {
  if (key === "data") {
    envelope.hasRows = true;
    return scanRows(body, from, envelope);
  }
  const end = scanValue(body, from, 1);
  const value = (): unknown => JSON.parse(body.toString("utf8", from, end));
  if (key === "object") envelope.object = value();
  else if (key === "next_page_token") envelope.nextPageToken = value();
  else if (key === "has_more") envelope.hasMore = value();
  return end;
}

function scanRows(body: Buffer, from: number, envelope: Envelope): number {
  if (body[from] !== openBracket) throw new BrokenBody('"data" of the page is not an array');
  const usual = scanUsualRows(body, from + 1);
  if (usual !== undefined) {
    Object.assign(envelope, { spans: usual.spans, count: usual.count, members: usual.members });
    return usual.end;
  }
  const spacesBefore = countOfSpaces();
  let at = skipSpace(body, from + 1);
  if (body[at] === closeBracket) return at + 1;
  let { spans } = envelope;
  let filled = 0;
  for (;;) {
    if (body[at] !== openBrace) throw new BrokenBody(`row ${filled / 2 + 1} of the page is not an object`);
    const end = scanObject(body, at + 1, 3);
    if (filled === spans.length) spans = grown(spans);
    spans[filled++] = at;
    spans[filled++] = end;
    at = space[body[end]!] === 1 ? skipSpace(body, end) : end;
    if (body[at] === closeBracket) break;
    if (body[at] !== comma) throw broken(at);
    at++;
    if (space[body[at]!] === 1) at = skipSpace(body, at);
  }
  envelope.spans = spans;
  envelope.count = filled / 2;
  envelope.isTight = countOfSpaces() === spacesBefore;
  return at + 1;
}

function grown(spans: Uint32Array): Uint32Array {
  const larger = new Uint32Array(spans.length * 2);
  larger.set(spans);
  return larger;
}

/** The consistency rule of §2.1. */
function checkEnvelope(envelope: Envelope): ScannedPage {
  const { object, hasRows, nextPageToken, hasMore, spans, count, isTight, members } = envelope;
  if (object !== "list") throw new BrokenBody('"object" of the page is not "list"');
  if (!hasRows) throw new BrokenBody('the page has no "data"');
  const rows = { spans: spans.subarray(0, count * 2), count, isTight, members };
  if (nextPageToken === undefined) throw new BrokenBody('the page has no "next_page_token"');
  if (hasMore === true && typeof nextPageToken === "string" && nextPageToken !== "")
    return { ...rows, nextPageToken, hasMore };
  if (hasMore === false && nextPageToken === null) return { ...rows, nextPageToken, hasMore };
  if (typeof hasMore !== "boolean") throw new BrokenBody('"has_more" of the page is neither true nor false');
  throw new BrokenBody(
    hasMore
      ? "the page says that more rows exist, and has no token for them"
      : "the page says that no more rows exist, and has a token for more",
  );
}
