// Compares the responses of a published, untrusted specification with the fields that integ reads (§2).
import { asArray, asObject, drift, type Finding, resolve, word } from "./contract-document.ts";
import type { JsonObject } from "./json/json-text.ts";

interface Field {
  readonly types: readonly string[];
  readonly only?: readonly string[];
  readonly rows?: Shape | "string";
  readonly isOptional?: true;
}

export type Shape = Readonly<Record<string, Field>>;

const text: Field = { types: ["string"] };
const textOrNull: Field = { types: ["string", "null"] };
const literal = (name: string): Field => ({ types: ["string"], only: [name] });

/** §2.2 does not show which fields are required or nullable. */
const undocumented: Field = { ...textOrNull, isOptional: true };
const entity: Shape = {
  id: text,
  object: { ...literal("entity"), isOptional: true },
  type: undocumented,
  status: undocumented,
  display_name: undocumented,
  email: undocumented,
  created_at: undocumented,
  updated_at: undocumented,
};

const list = (rows?: Shape): Shape => ({
  object: literal("list"),
  data: { types: ["array"], rows },
  next_page_token: textOrNull,
  has_more: { types: ["boolean"] },
});

const oauthClient: Shape = {
  object: literal("oauth_client"),
  id: text,
  service_account_id: text,
  client_id: textOrNull,
  scopes: { types: ["array"], rows: "string" },
  status: { types: ["string"], only: ["active", "pending", "revoked", "disabled", "expired"] },
  created_at: text,
};

/** `members` has no shape for rows, because §4.3 rule 6 does not show them. */
export const shapes = {
  entities: list(entity),
  members: list(),
  oauthClient,
  receipt: { ...oauthClient, client_secret: undocumented },
} satisfies Readonly<Record<string, Shape>>;

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
  /** Prefix of names in findings, such as `data[].`. */
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
  const itemSchemas = [...alternatives(root, schema)].flatMap(({ items: one }) => (one === undefined ? [] : [one]));
  if (itemSchemas.length === 0) return [];
  const items = allOf(itemSchemas);
  if (rows !== "string") return compareShape(root, { name, schema: items, shape: rows, at: `${label}[].` });
  return compareField(root, { name, label: `${label}[]`, expected: text, schema: items });
}

/** The schema and its `allOf`, `anyOf` and `oneOf` parts, each once: references may be circular. */
function alternatives(root: JsonObject, schema: unknown, seen = new Set<JsonObject>()): ReadonlySet<JsonObject> {
  const own = resolve(root, schema);
  if (seen.has(own)) return seen;
  seen.add(own);
  for (const part of [own.allOf, own.anyOf, own.oneOf].flatMap(asArray)) alternatives(root, part, seen);
  return seen;
}

function allOf(schemas: readonly unknown[]): unknown {
  return schemas.length === 1 ? schemas[0] : { allOf: schemas };
}

export function propertiesOf(root: JsonObject, schema: unknown): Map<string, unknown> {
  const found = new Map<string, unknown[]>();
  for (const one of alternatives(root, schema))
    for (const [field, value] of Object.entries(asObject(one.properties)))
      found.set(field, [...(found.get(field) ?? []), value]);
  return new Map([...found].map(([field, schemas]) => [field, allOf(schemas)]));
}

/** Ignores `anyOf` and `oneOf`, whose parts need not apply. */
export function requiredOf(root: JsonObject, schema: unknown, seen = new Set<JsonObject>()): string[] {
  const own = resolve(root, schema);
  if (seen.has(own)) return [];
  seen.add(own);
  return [...asArray(own.required).map(String), ...asArray(own.allOf).flatMap((part) => requiredOf(root, part, seen))];
}

function typesOf(root: JsonObject, schema: unknown): string[] {
  return [...(possibleValues(root, schema, ownTypes) ?? [])];
}

function valuesOf(root: JsonObject, schema: unknown): unknown[] {
  return [...(possibleValues(root, schema, ownValues) ?? [])];
}

/** Intersects `allOf`, unites `anyOf` and `oneOf`. @returns undefined if every value is allowed */
function possibleValues<T>(
  root: JsonObject,
  schema: unknown,
  ofOne: (schema: JsonObject) => readonly T[] | undefined,
  known = new Map<JsonObject, ReadonlySet<T> | undefined>(),
): ReadonlySet<T> | undefined {
  const own = resolve(root, schema);
  if (known.has(own)) return known.get(own);
  // A circular reference adds no restriction.
  known.set(own, undefined);
  const within = (parts: unknown): (ReadonlySet<T> | undefined)[] =>
    asArray(parts).map((part) => possibleValues(root, part, ofOne, known));
  const listed = ofOne(own);
  const all = [listed && new Set(listed), ...within(own.allOf), union(within(own.anyOf)), union(within(own.oneOf))];
  const found = all.reduce(common, undefined);
  known.set(own, found);
  return found;
}

function common<T>(one: ReadonlySet<T> | undefined, other: ReadonlySet<T> | undefined): ReadonlySet<T> | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return new Set([...one].filter((value) => other.has(value)));
}

function union<T>(sets: readonly (ReadonlySet<T> | undefined)[]): ReadonlySet<T> | undefined {
  return sets.length === 0 || sets.includes(undefined) ? undefined : new Set(sets.flatMap((set) => [...set!]));
}

function ownTypes(schema: JsonObject): string[] | undefined {
  const { type, nullable } = schema;
  if (type === undefined) return ownValues(schema)?.map(typeOf);
  const types = (typeof type === "string" ? [type] : asArray(type)).map(word);
  return nullable === true ? [...types, "null"] : types;
}

function ownValues({ const: only, enum: values, type }: JsonObject): readonly unknown[] | undefined {
  if (only !== undefined) return [only];
  if (values !== undefined) return asArray(values);
  return type === "null" ? [null] : undefined;
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
