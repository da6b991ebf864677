// A published specification as untrusted JSON: what stands at a place of it, and what is found there.
import { isObject, type JsonObject } from "./json/json-body.ts";

export interface Finding {
  /** `addition` is no drift (§9.3). */
  readonly severity: "drift" | "addition";
  /** `GET /v1/entities`, or `contract version`. */
  readonly subject: string;
  readonly detail: string;
}

export function drift(subject: string, detail: string): Finding {
  return { severity: "drift", subject, detail };
}

/** Follows local references (`#/components/…`), a bounded number of them. */
export function resolve(root: JsonObject, value: unknown): JsonObject {
  let current = asObject(value);
  for (let steps = 0; steps < 20 && typeof current.$ref === "string" && current.$ref.startsWith("#/"); steps++) {
    const names = current.$ref
      .slice(2)
      .split("/")
      .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
    let found: unknown = root;
    for (const name of names) found = Object.hasOwn(asObject(found), name) ? asObject(found)[name] : undefined;
    current = asObject(found);
  }
  return current;
}

export function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A value of the document as it may stand in a sentence. */
export function word(value: unknown): string {
  if (value === undefined) return "nothing";
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 100);
}
