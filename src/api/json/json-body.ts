// Turns a body into a JSON value safely: encoding, nesting, `__proto__`.
import { isUtf8 } from "node:buffer";

/** Deepest nesting of arrays and objects that is read. */
export const maxNesting = 200;

/** A body that breaks the contract. It ends an attempt as `unknown`; no other folder meets it. */
export class BrokenBody extends Error {
  override readonly name = "BrokenBody";
  readonly reason: "malformed" | "too_large";
  constructor(message: string, reason: "malformed" | "too_large" = "malformed") {
    super(message);
    this.reason = reason;
  }
}

export interface JsonBody {
  /** Exactly as it came. */
  readonly text: string;
  /** Without any key `__proto__`. */
  readonly value: unknown;
}

/**
 * @param body bounded in size by the transport
 * @throws BrokenBody for anything but one JSON text in UTF-8, nested no deeper than 200
 */
export function parseJson(body: Buffer): JsonBody {
  if (!isUtf8(body)) throw new BrokenBody("the response is not in UTF-8");
  if (nestingOf(body) > maxNesting)
    throw new BrokenBody(`the response is nested deeper than ${maxNesting}`, "too_large");
  const text = body.toString("utf8");
  return { text, value: parseText(text) };
}

/** A text that was checked to be UTF-8 and not too deep. @throws BrokenBody if it is not JSON */
export function parseText(text: string): unknown {
  try {
    // The key itself may be written with escapes.
    if (text.includes("__proto__") || text.includes("\\u")) return JSON.parse(text, withoutProto);
    return JSON.parse(text);
  } catch {
    throw new BrokenBody("the response is not JSON, or is incomplete");
  }
}

function withoutProto(key: string, value: unknown): unknown {
  return key === "__proto__" ? undefined : value;
}

/** Deepest nesting of brackets outside strings; right for every JSON text, and harmless for any other text. */
function nestingOf(body: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return deepest;
}

/** True if the media type says JSON (RFC 8259, RFC 6839 `+json`), or if nothing is said. */
export function saysJson(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  return /^application\/(?:json|[\w.!#$&^-]+\+json)\s*(?:;|$)/i.test(contentType.trim());
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** True for an object that is not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
