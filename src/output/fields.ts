import { flags, meantBy } from "../next-step.ts";
import { Failure } from "../errors.ts";
import type { JsonText, Parts } from "../api/json/json-text.ts";
import { visibleText } from "./visible-text.ts";

/** One field of `--fields`: as typed, and as the way to the value. */
export interface FieldPath {
  readonly name: string;
  readonly steps: readonly string[];
}

/**
 * The fields of `--fields a,b.c`.
 * @param names as split at the commas; white space around a name is dropped
 * @throws Failure `usage` if a name, or a step of one, is empty or a name occurs twice
 */
export function fieldPaths(names: readonly string[]): readonly FieldPath[] {
  const trimmed = names.map((name) => name.trim());
  const twice = trimmed.find((name, index) => trimmed.indexOf(name) !== index);
  if (twice !== undefined) throw new Failure("usage", `${flags.fields} names "${twice}" twice`);
  return trimmed.map((name) => {
    const steps = name.split(".");
    if (steps.includes("")) {
      throw new Failure("usage", `${flags.fields} has an empty name in "${names.join(",")}"`, {
        meaning: "It takes names separated by commas, and a dot to reach into a nested object",
      });
    }
    return { name, steps };
  });
}

/** `lastUsedAt`, `last used at` and `Last_Used_At` are one name. */
const snake = (name: string): string =>
  name
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])|[ -]/g, "_")
    .replaceAll("__", "_")
    .toLowerCase();

/**
 * Fields by what a table calls them too: `name` for `display_name`, `expires` or `expires_at` for `expiresAt`. A key that has
 * the name as typed comes first.
 */
export function asColumns(
  fields: readonly FieldPath[],
  columns: readonly { readonly path: string; readonly heading: string; readonly isKey?: boolean }[],
): readonly FieldPath[] {
  return fields.map((field) => {
    const calls = (name: string): boolean => snake(name) === snake(field.name);
    const column =
      columns.find(({ path }) => path === field.name) ??
      columns.find(({ heading }) => calls(heading)) ??
      columns.find(({ path }) => calls(path));
    if (column === undefined || column.path === field.name) return field;
    return { name: field.name, steps: column.isKey ? [column.path] : column.path.split(".") };
  });
}

/**
 * The values of fields, in their order; undefined for one that is not there. A field is a key that has the whole path as its
 * name, else it is found step by step; a step into an array is an index from 0.
 * @param parts of the value that the fields are in
 */
export function valuesAt(parts: Parts, fields: readonly FieldPath[]): (JsonText | undefined)[] {
  return fields.map(({ name, steps }) => {
    const whole = parts.get(name);
    if (whole !== undefined) return whole;
    let value = parts.get(steps[0] ?? "");
    for (const step of steps.slice(1)) value = value && stepInto(value, step);
    return value;
  });
}

function stepInto(value: JsonText, step: string): JsonText | undefined {
  return value.isArray ? value.items().find((_item, index) => String(index) === step) : value.parts().get(step);
}

/**
 * An object of exactly the fields asked for, in the order asked for, each under the path as typed; a field that is
 * missing is `null`. Values keep their text. Of an array each element.
 * @param fields without them the value stays as it came
 * @returns compact JSON text
 */
export function projected(root: JsonText, fields: readonly FieldPath[] | undefined): string {
  if (fields === undefined) return root.compact();
  return root.isArray
    ? `[${root
        .items()
        .map((item) => projected(item, fields))
        .join(",")}]`
    : objectOf(keysOf(fields), valuesAt(root.parts(), fields));
}

function keysOf(fields: readonly FieldPath[]): string[] {
  return fields.map(({ name }) => JSON.stringify(name));
}

function objectOf(keys: readonly string[], values: readonly (JsonText | undefined)[]): string {
  let text = "";
  for (const [index, key] of keys.entries())
    text += `${index === 0 ? "" : ","}${key}:${values[index]?.compact() ?? "null"}`;
  return `{${text}}`;
}

/** A field, or a column, that `--fields` may name. */
export interface KnownField {
  /** The wire name, or names joined by dots. */
  readonly path: string;
  /** The path is one key, whatever dots are in it. */
  readonly isKey?: boolean;
}

/**
 * Of a list that documents no fields nothing is known before it has a row.
 * @param fields that were asked for
 * @param known.rows the first page of a list, or one resource
 * @param known.singular what a row is called; absent if it is not a list
 * @throws Failure `usage` for fields that are neither documented nor in any of the rows
 */
export function assertKnown(
  fields: readonly FieldPath[] | undefined,
  known: {
    readonly rows: readonly JsonText[];
    readonly documented: readonly KnownField[];
    readonly singular?: string | undefined;
  },
): void {
  const { rows, documented, singular } = known;
  if (fields === undefined || (rows.length === 0 && documented.length === 0)) return;
  const names = new Set(documented.map(({ path, isKey }) => (isKey ? path : path.split(".")[0])));
  const chosen = new ChosenFields(fields.filter(({ steps: [first] }) => !names.has(first)));
  for (const row of rows) {
    if (chosen.unseen.size === 0) return;
    chosen.see(row);
  }
  const [first] = chosen.unseen;
  if (first === undefined) return;
  const keys = rows[0]?.isObject ? rows[0].parts().names : [];
  const all = [...new Set([...documented.map(({ path }) => path), ...keys])];
  const meant = meantBy(first.name, all);
  throw new Failure("usage", missingWords(chosen.unseen, singular), {
    meaning: meant === undefined ? undefined : `Did you mean "${visibleText(meant)}"?`,
    hint: `Choose from ${visibleText(all.slice(0, mostNamed).join(", "))}${all.length > mostNamed ? ", …" : ""}.`,
  });
}

/** Fields of an error: more are not read. */
const mostNamed = 30;

/** @param singular what a row is called; absent if it is not a list */
function missingWords(missing: ReadonlySet<FieldPath>, singular: string | undefined): string {
  const names = [...missing].map(({ name }) => `"${visibleText(name)}"`).join(", ");
  const fields = `${missing.size === 1 ? "field" : "fields"} ${names}`;
  return singular === undefined ? `The result has no ${fields}.` : `No ${singular} has the ${fields}.`;
}

/** The fields asked for in a list, and which of them no row has had so far. */
export class ChosenFields {
  readonly #fields: readonly FieldPath[] | undefined;
  readonly #keys: readonly string[];
  readonly #unseen: Set<FieldPath>;
  #rows = 0;
  #before: Parts | undefined;

  constructor(fields: readonly FieldPath[] | undefined) {
    this.#fields = fields;
    this.#keys = keysOf(fields ?? []);
    this.#unseen = new Set(fields);
  }

  get all(): readonly FieldPath[] | undefined {
    return this.#fields;
  }

  /** The fields that no row has had so far. */
  get unseen(): ReadonlySet<FieldPath> {
    return this.#unseen;
  }

  /** A row with only the fields asked for, or as it came if none were; compact. */
  of(row: JsonText): string {
    if (this.#fields !== undefined && row.isObject) return objectOf(this.#keys, this.valuesOf(row));
    this.see(row);
    return projected(row, this.#fields);
  }

  /** The values of the fields in a row. Call it if fields were asked for. */
  valuesOf(row: JsonText): readonly (JsonText | undefined)[] {
    const values = valuesAt((this.#before = row.parts(this.#before)), this.#fields ?? []);
    this.#rows += 1;
    if (this.#unseen.size > 0)
      for (const [index, field] of (this.#fields ?? []).entries())
        if (values[index] !== undefined) this.#unseen.delete(field);
    return values;
  }

  /** Takes note of a row; costs nothing once every field was seen. */
  see(row: JsonText): void {
    this.#rows += 1;
    if (this.#unseen.size === 0) return;
    const unseen = [...this.#unseen];
    for (const object of row.isArray ? row.items() : [row])
      for (const [index, value] of valuesAt(object.parts(), unseen).entries())
        if (value !== undefined) this.#unseen.delete(unseen[index]!);
  }

  /** At the end: names the fields that no row had. @param singular what a row is called; absent if it is not a list */
  tellMissing(singular: string | undefined, tell: (what: string) => void): void {
    if (this.#rows > 0 && this.#unseen.size > 0) tell(missingWords(this.#unseen, singular));
  }
}
