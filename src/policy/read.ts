// Parses a policy file's text, or reports its defects with their positions.
import { type Document, isAlias, isNode, isScalar, LineCounter, parseDocument, visit, type YAMLError } from "yaml";
import type * as z from "zod/mini";
import { Failure } from "../errors.ts";
import type { Policy } from "./policy.ts";
import { type Path, type Position, Positions } from "./positions.ts";
import { type Defect, policyFrom } from "./rules.ts";
import { policyJsonSchema, policySchema } from "./schema.ts";
import { shell, flags, similarName } from "../next-step.ts";

/** In bytes. */
export const longestPolicy = 1024 * 1024;
/** In bytes. The rows of a plan are longer than the items of its policy. */
export const longestPlan = 16 * longestPolicy;
const deepestNesting = 100;
const maxShown = 20;

export interface PolicySource {
  readonly text: string;
  readonly file: string;
  /** The base of relative paths. */
  readonly folder: string;
  readonly nowMs: number;
  /** Resolves symbolic links. Returns the path unchanged if that fails. */
  readonly realFolder?: (folder: string) => string;
}

/** @throws Failure `usage` for a file that is too large, or with the positions of its defects */
export function readPolicy({ text, file, folder, nowMs, realFolder }: PolicySource): Policy {
  const source = text.replace(/^\uFEFF/, "");
  refuseHuge(source, file);
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, merge: false, stringKeys: true });
  const positions = new Positions(document, lines);
  refuse(file, [...yamlDefects(document, { positions, source }), ...foreignNodes(document, positions)]);
  const parsed = policySchema.safeParse(document.toJS());
  const locate = ({ path, message, isKey }: Defect): LocatedDefect => ({
    message,
    ...(isKey ? positions.ofKey(path) : positions.ofValue(path)),
  });
  if (!parsed.success) refuse(file, schemaDefects(parsed.error.issues, document).map(locate));
  const { policy, defects } = policyFrom(parsed.data!, { folder, nowMs, realFolder });
  refuse(file, defects.map(locate));
  return policy;
}

interface LocatedDefect extends Position {
  readonly message: string;
}

function refuseHuge(source: string, file: string): void {
  if (Buffer.byteLength(source) > longestPolicy)
    throw new Failure("usage", `${file}: the file is too large. Allowed: up to 1 MiB.`, { meaning: nothingSent });
  // The YAML library's memory grows with nesting, so deep nesting could crash the process.
  let depth = 0;
  for (const [index, line] of source.split("\n").entries()) {
    const items = /^\s*(?:- )*/.exec(line)![0].split("-").length - 1;
    for (const letter of line) {
      if (letter === "[" || letter === "{") depth += 1;
      else if ((letter === "]" || letter === "}") && depth > 0) depth -= 1;
      if (depth + items <= deepestNesting) continue;
      refuse(file, [{ line: index + 1, column: 1, message: `nested too deep. Allowed: ${deepestNesting} levels` }]);
    }
  }
}

const nothingSent = "Nothing was read from the network, nothing was sent.";

function refuse(file: string, defects: readonly LocatedDefect[]): void {
  if (defects.length === 0) return;
  const sorted = [...defects].sort((a, b) => a.line - b.line || a.column - b.column);
  const [first = "", ...more] = sorted.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}.`);
  const shown = more.slice(0, maxShown);
  const left = more.length - shown.length;
  const meaning = [...shown, ...(left > 0 ? [`${left} more defects.`] : []), nothingSent].join("\n");
  throw new Failure("usage", first, {
    meaning,
    hint: "Correct the file, then check it again.",
    nextCommand: shell`integ policy check ${flags.offline}`,
  });
}

interface YamlSource {
  readonly positions: Positions;
  readonly source: string;
}

/** An error that is not independent may cause the others, so at most the first such error is reported. */
function yamlDefects(document: Document, { positions, source }: YamlSource): LocatedDefect[] {
  const errors = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0]);
  const hasTab = errors.some(({ code }) => code === "TAB_AS_INDENT");
  const first = hasTab ? undefined : errors.find(({ code }) => !independent.has(code));
  return errors
    .filter((error) => independent.has(error.code) || error === first)
    .map((error) => ({ ...positions.at(error.pos[0]), message: messageOf(error, source.slice(error.pos[0])) }));
}

const independent: ReadonlySet<string> = new Set(["DUPLICATE_KEY", "TAB_AS_INDENT", "MULTIPLE_DOCS", "NON_STRING_KEY"]);

function messageOf({ code, message }: YAMLError, rest: string): string {
  switch (code) {
    case "DUPLICATE_KEY":
      return `the key ${/^[^\s:]{1,100}/.exec(rest)?.[0] ?? ""} is used twice in this map. Allowed: each key once`;
    case "TAB_AS_INDENT":
      return "a tab indents the line. Allowed: spaces";
    case "MULTIPLE_DOCS":
      return "a second document starts. Allowed: one document";
    case "NON_STRING_KEY":
      return "the key is not a text. Allowed: a name";
    default:
      return `not valid YAML: ${syntaxWords(code, { message, rest })}`;
  }
}

/** Describes common typing mistakes in plain words instead of terms of YAML's grammar. */
function syntaxWords(code: string, { message, rest }: { readonly message: string; readonly rest: string }): string {
  const [, closing] = /end with a (\S)/.exec(message) ?? [];
  if (closing !== undefined) return `a ${closing} is missing before this. Allowed: lists as [a, b], maps as { a: b }`;
  if (/closing ["']/.test(message)) return "a quotation mark is missing before this. Allowed: both, or none";
  if (/^(Implicit (map )?keys|All mapping items)/.test(message))
    return message.startsWith("All")
      ? "the key has not as many spaces in front of it as the key above. Allowed: the same number"
      : "a colon is missing after the key. Allowed: <key>: <value>";
  if (code === "BAD_SCALAR_START")
    return `a value cannot begin with ${rest.slice(0, 1)}. Allowed: the value in quotation marks`;
  if (code === "BAD_ALIAS") return "a value cannot begin with *. Allowed: the value in quotation marks";
  return message.replace(/\.$/, "");
}

/** Anchors, aliases, tags, control characters and `__proto__` hide a value or have side effects. */
function foreignNodes(document: Document, positions: Positions): LocatedDefect[] {
  const defects: LocatedDefect[] = [];
  visit(document, (_key, node) => {
    if (!isNode(node)) return;
    const at = positions.at(node.range?.[0] ?? 0);
    const [sign] = isScalar(node) && typeof node.value === "string" ? (controls.exec(node.value) ?? []) : [];
    if (sign !== undefined)
      defects.push({ ...at, message: `the character ${codeOf(sign)}. Allowed: text without control characters` });
    else if (isScalar(node) && node.value === "__proto__")
      defects.push({ ...at, message: 'the name "__proto__". Allowed: another name' });
    else if (isAlias(node) && node.source !== "")
      defects.push({ ...at, message: `the alias "*${node.source}". Allowed: the value itself` });
    else if (node.anchor !== undefined)
      defects.push({ ...at, message: `the anchor "&${node.anchor}". Allowed: values without anchors` });
    else if (node.tag !== undefined)
      defects.push({ ...at, message: `the tag "${node.tag}". Allowed: values without tags` });
  });
  return defects;
}

/** Matches control characters except newlines and tabs, and those that embed, override or isolate text direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern searches for them
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

function codeOf(sign: string): string {
  return `U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

type Issue = z.core.$ZodIssue;

function schemaDefects(issues: readonly Issue[], document: Document, above: Path = []): Defect[] {
  return issues.flatMap((issue): Defect[] => {
    const path = [...above, ...(issue.path as (string | number)[])];
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({
        path: [...path, key],
        isKey: true,
        message: keysAllowed(path).split(", ").includes(key)
          ? `${nameOf(path)} has "${key}" together with another destination. Allowed: one, or a list of several`
          : `unknown key "${key}" in ${nameOf(path)}. ${suggestion(key, keysAllowed(path).split(", "))}Allowed: ${keysAllowed(path)}`,
      }));
    if (issue.code === "invalid_union") {
      const inner = closest(issue.errors as Issue[][], valueAt(document, path));
      if (inner) return schemaDefects(inner, document, path);
    }
    const value = valueAt(document, path);
    const isKey = issue.code === "invalid_key";
    const allowed = isKey ? namesAllowed(path) : allowedAt(path);
    const what = isKey
      ? `the name ${shown(path.at(-1))}`
      : value === undefined
        ? `${nameOf(path)} is missing`
        : path.length === 0 && value === null
          ? "the file is empty"
          : `${nameOf(path)} is ${shown(value)}`;
    return [{ path, isKey, message: `${what}. Allowed: ${allowed}` }];
  });
}

/** @returns the errors of the union's alternative that the user probably meant: all concern keys that the value has */
function closest(errors: readonly Issue[][], value: unknown): Issue[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const forms = errors.flatMap((issues): Issue[][] =>
    issues.length === 1 && issues[0]!.code === "invalid_union" ? (issues[0]!.errors as Issue[][]) : [issues],
  );
  return forms.find((issues) =>
    issues.every(({ path, code }) =>
      path.length > 0 ? valueIn(value, path[0]!) !== undefined : code === "unrecognized_keys",
    ),
  );
}

function valueAt(document: Document, path: Path): unknown {
  const node = document.getIn(path, true);
  return isScalar(node) ? node.value : isNode(node) ? node.toJS(document) : node;
}

function valueIn(value: object, key: PropertyKey): unknown {
  return Object.hasOwn(value, key) ? (value as Record<PropertyKey, unknown>)[key] : undefined;
}

function nameOf(path: Path): string {
  return path.length === 0 ? "the file" : path.join(".");
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

interface JsonSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | false;
  readonly propertyNames?: JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

function schemaAt(path: Path): JsonSchema[] {
  let schemas: JsonSchema[] = [{ ...policyJsonSchema(), description: "a map with version: 1" }];
  for (const step of path)
    schemas = schemas
      .flatMap(formsOf)
      .map(
        ({ properties, additionalProperties, items }) =>
          properties?.[step] ?? (additionalProperties || (typeof step === "number" && items) || undefined),
      )
      .filter((schema) => schema !== undefined);
  return schemas;
}

function formsOf(schema: JsonSchema): JsonSchema[] {
  return [schema, ...(schema.anyOf ?? []).flatMap(formsOf)];
}

function allowedAt(path: Path): string {
  return schemaAt(path).find(({ description }) => description !== undefined)?.description ?? "another value";
}

function namesAllowed(path: Path): string {
  return schemaAt(path.slice(0, -1))[0]?.propertyNames?.description ?? "another name";
}

function suggestion(key: string, allowed: readonly string[]): string {
  const meant = similarName(key, allowed);
  return meant === undefined ? "" : `Did you mean "${meant}"? `;
}

function keysAllowed(path: Path): string {
  const keys = schemaAt(path)
    .flatMap(formsOf)
    .flatMap(({ properties = {} }) => Object.keys(properties));
  return keys.length > 0 ? [...new Set(keys)].join(", ") : allowedAt(path);
}
