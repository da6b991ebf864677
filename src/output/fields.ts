import { flags, similarName } from "../next-step.ts";
import { Failure } from "../errors.ts";
import type { JsonText, Parts } from "../api/json/json-text.ts";
import { visibleText } from "./visible-text.ts";

export interface FieldPath {
  readonly name: string;
  readonly steps: readonly string[];
}

/**
 * `names` are already split at commas.
 * @throws Failure `usage` for an empty name or step, or a repeated name
 */
export function fieldPaths(names: readonly string[]): readonly FieldPath[] {
  const trimmed = names.map((name) => name.trim());
  const duplicate = trimmed.find((name, index) => trimmed.indexOf(name) !== index);
  if (duplicate !== undefined) throw new Failure("usage", `${flags.fields} names "${duplicate}" twice`);
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

/** Gives `lastUsedAt`, `last used at` and `Last_Used_At` the same name. */
const snake = (name: string): string =>
  name
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])|[ -]/g, "_")
    .replaceAll("__", "_")
    .toLowerCase();

/** Accepts a table's headings, such as `expires` for `expiresAt`. Exact paths have priority. */
export function asColumns(
  fields: readonly FieldPath[],
  columns: readonly { readonly path: string; readonly heading: string; readonly isKey?: boolean }[],
): readonly FieldPath[] {
  return fields.map((field) => {
    const matches = (name: string): boolean => snake(name) === snake(field.name);
    const column =
      columns.find(({ path }) => path === field.name) ??
      columns.find(({ heading }) => matches(heading)) ??
      columns.find(({ path }) => matches(path));
    if (column === undefined || column.path === field.name) return field;
    return { name: field.name, steps: column.isKey ? [column.path] : column.path.split(".") };
  });
}

/**
 * @returns undefined for a missing value. A key equal to the whole path has priority over its steps; a step into an
 * array is an index from 0.
 */
export function valuesAt(parts: Parts, fields: readonly FieldPath[]): (JsonText | undefined)[] {
  return fields.map(({ name, steps }) => {
    const whole = parts.get(name);
    if (whole !== undefined) return whole;
    let value = parts.get(steps[0] ?? "");
    for (const step of steps.slice(1)) value = value && member(value, step);
    return value;
  });
}

function member(value: JsonText, step: string): JsonText | undefined {
  return value.isArray ? value.items().find((_item, index) => String(index) === step) : value.parts().get(step);
}

/**
 * @returns compact JSON with exactly the requested fields in order, each named by its typed path. Missing fields are
 * `null`, values keep their text, and arrays are projected element by element. Without `fields`, the whole value.
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

export interface KnownField {
  readonly path: string;
  readonly isKey?: boolean;
}

/**
 * Without rows and documented fields, the function checks nothing.
 * @param known `rows` is the first page of a list, or one resource; `singular` is a row's name, absent for a resource
 * @throws Failure `usage` for fields that are neither documented nor in any row
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
    if (chosen.missing.size === 0) return;
    chosen.see(row);
  }
  const [first] = chosen.missing;
  if (first === undefined) return;
  const keys = rows[0]?.isObject ? rows[0].parts().names : [];
  const all = [...new Set([...documented.map(({ path }) => path), ...keys])];
  const meant = similarName(first.name, all);
  throw new Failure("usage", missingWords(chosen.missing, singular), {
    meaning: meant === undefined ? undefined : `Did you mean "${visibleText(meant)}"?`,
    hint: `Choose from ${visibleText(all.slice(0, maxNamed).join(", "))}${all.length > maxNamed ? ", …" : ""}.`,
  });
}

const maxNamed = 30;

function missingWords(missing: ReadonlySet<FieldPath>, singular: string | undefined): string {
  const names = [...missing].map(({ name }) => `"${visibleText(name)}"`).join(", ");
  const fields = `${missing.size === 1 ? "field" : "fields"} ${names}`;
  return singular === undefined ? `The result has no ${fields}.` : `No ${singular} has the ${fields}.`;
}

/** Selects the requested fields of each row, and records those that no row has. */
export class ChosenFields {
  readonly #fields: readonly FieldPath[] | undefined;
  readonly #keys: readonly string[];
  readonly #missing: Set<FieldPath>;
  #rows = 0;
  #before: Parts | undefined;

  constructor(fields: readonly FieldPath[] | undefined) {
    this.#fields = fields;
    this.#keys = keysOf(fields ?? []);
    this.#missing = new Set(fields);
  }

  get all(): readonly FieldPath[] | undefined {
    return this.#fields;
  }

  get missing(): ReadonlySet<FieldPath> {
    return this.#missing;
  }

  of(row: JsonText): string {
    if (this.#fields !== undefined && row.isObject) return objectOf(this.#keys, this.valuesOf(row));
    this.see(row);
    return projected(row, this.#fields);
  }

  /** Call only if fields were requested. */
  valuesOf(row: JsonText): readonly (JsonText | undefined)[] {
    const values = valuesAt((this.#before = row.parts(this.#before)), this.#fields ?? []);
    this.#rows += 1;
    if (this.#missing.size > 0)
      for (const [index, field] of (this.#fields ?? []).entries())
        if (values[index] !== undefined) this.#missing.delete(field);
    return values;
  }

  see(row: JsonText): void {
    this.#rows += 1;
    if (this.#missing.size === 0) return;
    const missing = [...this.#missing];
    for (const object of row.isArray ? row.items() : [row])
      for (const [index, value] of valuesAt(object.parts(), missing).entries())
        if (value !== undefined) this.#missing.delete(missing[index]!);
  }

  reportMissing(singular: string | undefined, report: (text: string) => void): void {
    if (this.#rows > 0 && this.#missing.size > 0) report(missingWords(this.#missing, singular));
  }
}
