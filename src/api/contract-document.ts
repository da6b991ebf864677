// Reads a published, untrusted specification.
import type { JsonObject } from "./json/json-text.ts";
import { isObject } from "../json.ts";

export interface Finding {
  /** An `addition` is allowed (§9 rule 3); a `notice` concerns a lifecycle stage or deprecation. */
  readonly severity: "drift" | "addition" | "notice";
  /** An operation such as `GET /v1/entities`, or `contract version`. */
  readonly subject: string;
  readonly detail: string;
}

export function drift(subject: string, detail: string): Finding {
  return { severity: "drift", subject, detail };
}

/** Follows at most 20 local references, which may be circular. */
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

export function word(value: unknown): string {
  if (value === undefined) return "nothing";
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 100);
}

/**
 * Checks that an operation accepts HTTP Basic alone (§5.1). §5.2 rule 7 does not show how OAuth tokens are used, so a
 * document may omit them.
 * @param operation its `security` replaces the document's: a list of alternatives, each of which needs all its schemes
 */
export function compareSecurity(
  root: JsonObject,
  operation: { readonly name: string; readonly security: unknown },
): Finding[] {
  const { name } = operation;
  const security = operation.security ?? root.security;
  if (security === undefined) return [drift(name, "does not say how to authenticate")];
  const sets = asArray(security).map((names) => Object.keys(asObject(names)));
  if (sets.every((names) => names.length === 0)) return [drift(name, "takes no credential")];
  const takesBasic = sets.some((names) => names.length > 0 && names.every((scheme) => isBasic(schemeOf(root, scheme))));
  return takesBasic ? [] : [drift(name, "does not take HTTP Basic alone")];
}

function schemeOf(root: JsonObject, name: string): JsonObject {
  const schemes = asObject(asObject(root.components).securitySchemes);
  return resolve(root, Object.hasOwn(schemes, name) ? schemes[name] : undefined);
}

function isBasic({ type, scheme }: JsonObject): boolean {
  return type === "http" && word(scheme).toLowerCase() === "basic";
}
