// What this program reads of the responses of /v1 (§2), and how a published specification differs from it. What is in the
// document is untrusted text.
import { asArray, asObject, drift, type Finding, resolve, word } from "./contract-document.ts";
import type { JsonObject } from "./json/json-body.ts";

/** A field that is read: its types; the values it may have, if others would be misread; what its rows are. */
interface Field {
  readonly types: readonly string[];
  /** The whole set: another value has no rule here. */
  readonly only?: readonly string[];
  readonly rows?: Shape | "string";
  /** True if a response may be without it. */
  readonly isOptional?: true;
}

export type Shape = Readonly<Record<string, Field>>;

const text: Field = { types: ["string"] };
const textOrNull: Field = { types: ["string", "null"] };
const named = (name: string): Field => ({ types: ["string"], only: [name] });

/** §2.2; which of its fields are required or nullable is not shown. */
const free: Field = { ...textOrNull, isOptional: true };
const entity: Shape = {
  id: text,
  object: { ...named("entity"), isOptional: true },
  type: free,
  status: free,
  display_name: free,
  email: free,
  created_at: free,
  updated_at: free,
};

/** §2.1 */
const list = (rows?: Shape): Shape => ({
  object: named("list"),
  data: { types: ["array"], rows },
  next_page_token: textOrNull,
  has_more: { types: ["boolean"] },
});

/** §2.3, §3.1 */
const oauthClient: Shape = {
  object: named("oauth_client"),
  id: text,
  service_account_id: text,
  client_id: textOrNull,
  scopes: { types: ["array"], rows: "string" },
  status: { types: ["string"], only: ["active", "pending", "revoked", "disabled", "expired"] },
  created_at: text,
};

/** By what they are called in the expectations of the operations. The rows of a cohort are not shown (§4.3 rule 6). */
export const shapes = {
  entities: list(entity),
  members: list(),
  oauthClient,
  receipt: { ...oauthClient, client_secret: free },
} satisfies Readonly<Record<string, Shape>>;

/**
 * Compares the body of a response with what is read of it.
 * @param response as the document has it, references not followed
 */
export function compareAnswer(
  root: JsonObject,
  { name, response, shape }: { readonly name: string; readonly response: unknown; readonly shape: Shape },
): Finding[] {
  const content = asObject(resolve(root, response).content);
  const type = Object.keys(content).find((key) => /^application\/json\s*(;|$)/i.test(key));
  const { schema } = asObject(type === undefined ? undefined : content[type]);
  if (schema === undefined) return [drift(name, "does not document its responses")];
  return compareShape(root, { name, schema, shape, at: "" });
}

interface ShapeToCompare {
  readonly name: string;
  readonly schema: unknown;
  readonly shape: Shape;
  /** Before the names of fields: `data[].` */
  readonly at: string;
}

function compareShape(root: JsonObject, { name, schema, shape, at }: ShapeToCompare): Finding[] {
  const published = propertiesOf(root, schema);
  const required = requiredOf(root, schema);
  const findings: Finding[] = [];
  for (const [field, expected] of Object.entries(shape)) {
    const label = `${at}${field}`;
    if (!published.has(field)) findings.push(drift(name, `responds without the field ${label}`));
    else {
      if (!expected.isOptional && required.length > 0 && !required.includes(field))
        findings.push(drift(name, `may leave the field ${label} out of its answer`));
      findings.push(...compareField(root, { name, label, expected, schema: published.get(field) }));
    }
  }
  for (const field of published.keys())
    if (!Object.hasOwn(shape, field))
      findings.push({ severity: "addition", subject: name, detail: `responds with the field ${at}${word(field)}` });
  return findings;
}

function compareField(
  root: JsonObject,
  { name, label, expected, schema }: { name: string; label: string; expected: Field; schema: unknown },
): Finding[] {
  const types = typesOf(root, schema);
  const foreign = types.filter((type) => !expected.types.includes(type));
  if (foreign.length > 0)
    return [
      drift(name, `responds with ${label} as ${foreign.map(word).join(" or ")}, not as ${expected.types.join(" or ")}`),
    ];
  const values = valuesOf(root, schema);
  const unknown = expected.only === undefined ? [] : values.filter((value) => !expected.only!.includes(String(value)));
  if (unknown.length > 0)
    return [drift(name, `may respond with ${unknown.map(word).join(" or ")} as ${label}, which integ does not know`)];
  const { rows } = expected;
  if (rows === undefined) return [];
  const { items } = alternatives(root, schema).find((one) => one.items !== undefined) ?? {};
  if (items === undefined) return [];
  if (rows !== "string") return compareShape(root, { name, schema: items, shape: rows, at: `${label}[].` });
  return compareField(root, { name, label: `${label}[]`, expected: text, schema: items });
}

/** A schema with all that is said of the same value beside it or as one of several forms; bounded. */
function alternatives(root: JsonObject, schema: unknown, depth = 0): JsonObject[] {
  const own = resolve(root, schema);
  if (depth > 8) return [own];
  const parts = [own.allOf, own.anyOf, own.oneOf].flatMap(asArray).slice(0, 50);
  return [own, ...parts.flatMap((part) => alternatives(root, part, depth + 1))];
}

function propertiesOf(root: JsonObject, schema: unknown): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const one of alternatives(root, schema))
    for (const [field, value] of Object.entries(asObject(one.properties)))
      if (!found.has(field)) found.set(field, value);
  return found;
}

/** Only what holds of every form; nothing if the document does not say. */
function requiredOf(root: JsonObject, schema: unknown): string[] {
  const own = resolve(root, schema);
  return [own, ...asArray(own.allOf).map((part) => resolve(root, part))].flatMap((one) =>
    asArray(one.required).map(String),
  );
}

/** The JSON types that a value may have; none if the document does not say. */
function typesOf(root: JsonObject, schema: unknown): string[] {
  const found = new Set<string>();
  for (const one of alternatives(root, schema)) {
    for (const type of typeof one.type === "string" ? [one.type] : asArray(one.type)) found.add(word(type));
    if (one.nullable === true) found.add("null");
    if (one.type === undefined) for (const value of ownValues(one)) found.add(typeOf(value));
  }
  return [...found];
}

function valuesOf(root: JsonObject, schema: unknown): unknown[] {
  return alternatives(root, schema).flatMap(ownValues);
}

function ownValues(schema: JsonObject): unknown[] {
  return schema.const === undefined ? [...asArray(schema.enum)] : [schema.const];
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
