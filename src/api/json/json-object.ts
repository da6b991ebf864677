// Owns: telling a JSON object from anything else, so that what came over the wire is looked into without an assertion.
// Must not know: what the object should be.

export type JsonObject = Readonly<Record<string, unknown>>;

/** True for an object that is no array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
