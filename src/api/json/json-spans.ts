// Owns: where the elements and members of a JSON text begin and end, so that text can be handed on as it came.
// Must not know: pages (page-scanner.ts has a fast way of its own). The text was parsed before: it is sound JSON.

export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * The elements of the array that begins at or after `from`.
 * @param body sound JSON in UTF-8
 */
export function elementSpans(body: Buffer, from: number): Span[] {
  const spans: Span[] = [];
  let at = skipSpace(body, skipSpace(body, from) + 1);
  while (body[at] !== 0x5d) {
    const end = skipValue(body, at);
    spans.push({ start: at, end });
    at = skipSpace(body, end);
    if (body[at] === 0x2c) at = skipSpace(body, at + 1);
  }
  return spans;
}

/**
 * The value of a member of the object at the beginning of the text; of two with the same name the last, as `JSON.parse`.
 * @throws Error where there is none: the caller has seen it in the parsed value
 */
export function memberSpan(body: Buffer, name: string): Span {
  let found: Span | undefined;
  let at = skipSpace(body, skipSpace(body, 0) + 1);
  while (body[at] !== 0x7d) {
    const keyEnd = skipValue(body, at);
    const key: unknown = JSON.parse(body.toString("utf8", at, keyEnd));
    const start = skipSpace(body, skipSpace(body, keyEnd) + 1);
    const end = skipValue(body, start);
    if (key === name) found = { start, end };
    at = skipSpace(body, end);
    if (body[at] === 0x2c) at = skipSpace(body, at + 1);
  }
  if (!found) throw new Error(`no member "${name}"`);
  return found;
}

function skipSpace(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x0a || body[at] === 0x0d || body[at] === 0x09) at++;
  return at;
}

/** @returns the index after the value that begins at `from` */
function skipValue(body: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < body.length; at++) {
    const byte = body[at];
    if (byte === 0x22) {
      at = closingQuote(body, at);
      if (depth === 0) return at + 1;
    } else if (byte === 0x5b || byte === 0x7b) depth++;
    else if (byte === 0x5d || byte === 0x7d) {
      if (depth <= 1) return depth === 1 ? at + 1 : at;
      depth--;
    } else if (depth === 0 && (byte === 0x2c || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09))
      return at;
  }
  return body.length;
}

function closingQuote(body: Buffer, opening: number): number {
  let at = opening + 1;
  while (at < body.length && body[at] !== 0x22) at += body[at] === 0x5c ? 2 : 1;
  return at;
}
