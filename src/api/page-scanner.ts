// Owns: finding the rows of a page without making objects of them, and checking every byte on the way: what is no sound
// JSON, no envelope of §2.1, or has a row that is no object is refused whole. A test holds it against a full parse.
// Must not know: walking, HTTP, what a row means.
import { isUtf8 } from "node:buffer";
import { BrokenBody, maxNesting } from "./json-body.ts";

/** A page that keeps the envelope rule (§2.1). */
export interface ScannedPage {
  /** Start and end of each row in the body, in bytes, alternating. */
  readonly spans: Uint32Array;
  readonly count: number;
  readonly nextPageToken: string | null;
  readonly hasMore: boolean;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** 1: stands for itself within a string. Bytes above 0x7f do: the whole body was checked to be UTF-8. */
const plain = new Uint8Array(256).map((_, byte) => (byte >= 0x20 && byte !== quote && byte !== backslash ? 1 : 0));
/** 1: white space of JSON. */
const space = new Uint8Array(256).map((_, byte) =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09 ? 1 : 0,
);

/**
 * Checks a page and finds its rows.
 * @throws BrokenBody where the body is not exactly one list envelope, in any order of keys, with any unknown keys
 */
export function scanPage(body: Buffer): ScannedPage {
  if (!isUtf8(body)) throw new BrokenBody("the page is not in UTF-8");
  const envelope: Envelope = { seen: new Set(), spans: new Uint32Array(1024), count: 0 };
  let at = skipSpace(body, 0);
  if (body[at] !== openBrace) throw new BrokenBody("the page is no list envelope");
  at = skipSpace(body, at + 1);
  if (body[at] !== closeBrace) at = scanMembers(body, at, envelope);
  if (skipSpace(body, at + 1) !== body.length) throw broken(at + 1);
  return checkEnvelope(envelope);
}

interface Envelope {
  readonly seen: Set<string>;
  spans: Uint32Array;
  count: number;
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
    const key = JSON.parse(body.toString("utf8", at, keyEnd)) as string;
    // Which of two would be meant nobody knows.
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
  if (body[from] !== openBracket) throw new BrokenBody('"data" of the page is no array');
  let at = skipSpace(body, from + 1);
  if (body[at] === closeBracket) return at + 1;
  let { spans } = envelope;
  let filled = 0;
  for (;;) {
    if (body[at] !== openBrace) throw new BrokenBody(`row ${filled / 2 + 1} of the page is no object`);
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
  return at + 1;
}

function grown(spans: Uint32Array): Uint32Array {
  const larger = new Uint32Array(spans.length * 2);
  larger.set(spans);
  return larger;
}

/** The consistency rule of §2.1. */
function checkEnvelope({ object, hasRows, nextPageToken, hasMore, spans, count, seen }: Envelope): ScannedPage {
  if (object !== "list") throw new BrokenBody('"object" of the page is not "list"');
  if (!hasRows) throw new BrokenBody('the page has no "data"');
  if (typeof hasMore !== "boolean") throw new BrokenBody('"has_more" of the page is neither true nor false');
  if (!seen.has("next_page_token")) throw new BrokenBody('the page has no "next_page_token"');
  if (hasMore && (typeof nextPageToken !== "string" || nextPageToken === ""))
    throw new BrokenBody("the page says that there are more, and gives no token to go on");
  if (!hasMore && nextPageToken !== null)
    throw new BrokenBody("the page says that there are no more, and gives a token to go on");
  return {
    spans: spans.subarray(0, count * 2),
    count,
    nextPageToken: hasMore ? (nextPageToken as string) : null,
    hasMore,
  };
}

/** @param depth of the value itself: the whole text is 1 */
function scanValue(body: Buffer, from: number, depth: number): number {
  const byte = body[from]!;
  if (byte === quote) return scanString(body, from + 1);
  if (byte === openBrace) return scanObject(body, from + 1, depth + 1);
  if (byte === openBracket) return scanArray(body, from + 1, depth + 1);
  if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) return scanNumber(body, from);
  return scanWord(body, from);
}

/** @returns the index after the closing brace */
function scanObject(body: Buffer, from: number, depth: number): number {
  if (depth > maxNesting) throw tooDeep();
  let at = from;
  if (space[body[at]!] === 1) at = skipSpace(body, at);
  if (body[at] === closeBrace) return at + 1;
  for (;;) {
    if (body[at] !== quote) throw broken(at);
    at = scanString(body, at + 1);
    if (space[body[at]!] === 1) at = skipSpace(body, at);
    if (body[at] !== colon) throw broken(at);
    at++;
    if (space[body[at]!] === 1) at = skipSpace(body, at);
    // Most values are strings: they are not worth a call.
    at = body[at] === quote ? scanString(body, at + 1) : scanValue(body, at, depth);
    if (space[body[at]!] === 1) at = skipSpace(body, at);
    if (body[at] === closeBrace) return at + 1;
    if (body[at] !== comma) throw broken(at);
    at++;
    if (space[body[at]!] === 1) at = skipSpace(body, at);
  }
}

/** @returns the index after the closing bracket */
function scanArray(body: Buffer, from: number, depth: number): number {
  if (depth > maxNesting) throw tooDeep();
  let at = skipSpace(body, from);
  if (body[at] === closeBracket) return at + 1;
  for (;;) {
    at = skipSpace(body, scanValue(body, at, depth));
    if (body[at] === closeBracket) return at + 1;
    if (body[at] !== comma) throw broken(at);
    at = skipSpace(body, at + 1);
  }
}

/** @returns the index after the closing quote */
function scanString(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    while (plain[body[at]!] === 1) at++;
    if (body[at] === quote) return at + 1;
    if (body[at] !== backslash) throw broken(at);
    at = scanEscape(body, at + 1);
  }
}

function scanEscape(body: Buffer, from: number): number {
  switch (body[from]) {
    case 0x22: // "
    case 0x2f: // /
    case 0x5c: // \
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return from + 1;
    case 0x75: // u
      for (let at = from + 1; at <= from + 4; at++) if (!isHexDigit(body[at])) throw broken(at);
      return from + 5;
    default:
      throw broken(from);
  }
}

function isHexDigit(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66));
}

function scanNumber(body: Buffer, from: number): number {
  let at = body[from] === 0x2d ? from + 1 : from;
  if (body[at] === 0x30) at++;
  else at = scanDigits(body, at);
  if (body[at] === 0x2e) at = scanDigits(body, at + 1);
  if (body[at] === 0x65 || body[at] === 0x45) {
    at++;
    if (body[at] === 0x2b || body[at] === 0x2d) at++;
    at = scanDigits(body, at);
  }
  return at;
}

function scanDigits(body: Buffer, from: number): number {
  let at = from;
  while (body[at]! >= 0x30 && body[at]! <= 0x39) at++;
  if (at === from) throw broken(at);
  return at;
}

const words = ["true", "false", "null"].map((word) => Buffer.from(word));

function scanWord(body: Buffer, from: number): number {
  for (const word of words)
    if (body.length - from >= word.length && body.compare(word, 0, word.length, from, from + word.length) === 0)
      return from + word.length;
  throw broken(from);
}

function skipSpace(body: Buffer, from: number): number {
  let at = from;
  while (space[body[at]!] === 1) at++;
  return at;
}

function broken(at: number): BrokenBody {
  return new BrokenBody(`the page is not JSON, or was cut (at byte ${at})`);
}

function tooDeep(): BrokenBody {
  return new BrokenBody(`the page is nested deeper than ${maxNesting}`, "too_large");
}
