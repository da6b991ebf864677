// Paths and queries: text of a person or of the service is never a path, it is encoded into one.
import { Failure, invalidValue } from "../../errors.ts";

/**
 * One segment of a path.
 * @param id as typed or as the service gave it; opaque
 * @param what names it in the words of the failure: `client id`
 * @throws Failure `usage` if no encoding makes a segment of it: empty, `.`, `..`, half of a surrogate pair
 */
export function segment(id: string, what: string): string {
  const encoded = encode(id);
  if (id === "" || id === "." || id === ".." || encoded === undefined)
    throw invalidValue(what, id, { hint: "Give the id as the API shows it." });
  return encoded;
}

export type Pair = readonly [name: string, value: string];

/** `?a=b&c=d`, each name and value encoded; empty if there is no pair. */
export function query(pairs: readonly Pair[]): string {
  if (pairs.length === 0) return "";
  return `?${pairs.map(([name, value]) => `${parameter(name)}=${parameter(value)}`).join("&")}`;
}

/** @throws Failure `usage` if it is not text */
function parameter(text: string): string {
  const encoded = encode(text);
  if (encoded === undefined) throw new Failure("usage", "A parameter is not valid Unicode text.");
  return encoded;
}

/** Nothing if the text holds half of a surrogate pair. */
function encode(text: string): string | undefined {
  try {
    return encodeURIComponent(text);
  } catch {
    return undefined;
  }
}
