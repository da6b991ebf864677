// Walks over a JSON text byte by byte (RFC 8259), checks all of it and makes nothing. Each function takes the index where
// something begins and returns the index after it; an index beyond the end reads as no byte and is refused. The text was
// checked to be UTF-8 before.
import { BrokenBody, maxNesting } from "./json-body.ts";

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
export const openBracket = 0x5b;
const backslash = 0x5c;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;

/** 1: stands for itself within a string. Bytes above 0x7f do: the whole body was checked to be UTF-8. */
const plain = new Uint8Array(256).map((_, byte) => (byte >= 0x20 && byte !== quote && byte !== backslash ? 1 : 0));
/** 1: white space of JSON. */
export const space = new Uint8Array(256).map((_, byte) =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09 ? 1 : 0,
);

/** @param depth of the value itself: the whole text is 1 */
export function scanValue(body: Buffer, from: number, depth: number): number {
  const byte = body[from]!;
  if (byte === quote) return scanString(body, from + 1);
  if (byte === openBrace) return scanObject(body, from + 1, depth + 1);
  if (byte === openBracket) return scanArray(body, from + 1, depth + 1);
  if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) return scanNumber(body, from);
  return scanWord(body, from);
}

/** @returns the index after the closing brace */
export function scanObject(body: Buffer, from: number, depth: number): number {
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
export function scanString(body: Buffer, from: number): number {
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

/** Bytes of white space outside of strings that were passed since the program began: whether any was is seen by comparing. */
let spacesPassed = 0;
export function countOfSpaces(): number {
  return spacesPassed;
}

export function skipSpace(body: Buffer, from: number): number {
  let at = from;
  while (space[body[at]!] === 1) at++;
  if (at !== from) spacesPassed += at - from;
  return at;
}

export function broken(at: number): BrokenBody {
  return new BrokenBody(`the page is not JSON, or is incomplete (at byte ${at})`);
}

function tooDeep(): BrokenBody {
  return new BrokenBody(`the page is nested deeper than ${maxNesting}`, "too_large");
}
