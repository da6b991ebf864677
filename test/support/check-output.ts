// Compares the JSON output of tested commands with the schemas that `integ schema` shows.
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { guessFormat } from "../../src/commands/options/global.ts";
import { outputJsonSchema, outputs } from "../../src/commands/schema/outputs.ts";
import { tryParseJson } from "../../src/json.ts";
import { knownWords } from "../../src/program.ts";
import type { Said } from "./record-steps.ts";

const ajv = new Ajv2020({ allowUnionTypes: true, validateFormats: false });

export const seen = new Map<string, number>();

/** Base URLs of sandboxes that never sent a faulty body: the objects that they send must match the schemas. */
export const correctServices = new Set<string>();

/** The service behind each relay that changes no response, by the relay's address. */
export const relays = new Map<string, string>();

const { INTEG_TEST_STEPS: folder } = process.env;

function faultOf(name: string, value: unknown): string | undefined {
  seen.set(name, (seen.get(name) ?? 0) + 1);
  const validate = ajv.getSchema(name) ?? ajv.addSchema(outputJsonSchema(name)!, name).getSchema(name)!;
  return validate(value) ? undefined : `${name}: ${ajv.errorsText(validate.errors)}`;
}

/** A field of `--fields` may also be the beginning of a schema key, as a table's heading is (`expires` of `expires_at`). */
function fieldsFault(name: string, value: unknown): string | undefined {
  seen.set(name, (seen.get(name) ?? 0) + 1);
  type Shape = { readonly properties?: object; readonly anyOf?: readonly Shape[] };
  const { anyOf, properties = anyOf?.[0]?.properties } = outputJsonSchema(name) as Shape;
  const plain = (text: string): string => text.replaceAll(/[_ -]/g, "").toLowerCase();
  const known = Object.keys(properties ?? {}).map(plain);
  const isKnown = (field: string): boolean => known.some((key) => key.startsWith(plain(field.split(".")[0]!)));
  const other = Object.keys(value ?? {}).find((field) => !isKnown(field));
  return other === undefined || properties === undefined ? undefined : `${name}: it has no field ${other}`;
}

/** @param isService true to include the service's own objects */
function namesOf(
  words: readonly string[],
  isService: boolean,
): { readonly rows: string[]; readonly document?: string } {
  if (words.includes("--dry-run")) return { rows: ["step"] };
  const command = `${knownWords(words).join(" ")}${words.includes("--fix") ? " --fix" : ""}`;
  const printed = Object.entries(outputs).filter(([, { printedBy }]) => printedBy.includes(command));
  const rows = printed.filter(([, of]) => !of.isDocument);
  return {
    rows: isService || !rows.every(([, of]) => of.isOfService) ? rows.map(([name]) => name) : [],
    document: printed.find(([, of]) => of.isDocument)?.[0],
  };
}

/**
 * Finds schema violations in a command's JSON output: in its result, and in the error on the last line of stderr.
 * @param options.isService true if the service is correct, so that its objects must match their schemas too
 */
export function outputFaults(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { said, isService = false }: { readonly said: Said; readonly isService?: boolean },
): string[] {
  const format = guessFormat(words, env);
  if (format !== "json" && format !== "ndjson") return [];
  const { stdout, stderr } = said;
  const error = tryParseJson(stderr.trimEnd().split("\n").at(-1) ?? "");
  const isError = typeof error === "object" && error !== null && "error" in error;
  const { rows, document } = namesOf(words, isService);
  const hasFields = words.includes("--fields");
  const row = (value: unknown): string | undefined => {
    const names = rows.length > 0 || document === undefined ? rows : [document];
    const faults = names.map((name) => (hasFields ? fieldsFault(name, value) : faultOf(name, value)));
    return faults.includes(undefined) ? undefined : faults[0];
  };
  const result = (value: unknown): (string | undefined)[] => {
    if (document !== undefined && !hasFields) return [faultOf(document, value)];
    const isList = typeof value === "object" && value !== null && "object" in value && value.object === "list";
    if (!isList) return [row(value)];
    return [faultOf("list", value), ...((value as { data?: unknown[] }).data ?? []).map(row)];
  };
  const texts = format === "json" ? [stdout] : stdout.split("\n");
  const values = texts.map(tryParseJson).filter((value) => value !== undefined);
  const found = format === "json" ? values.flatMap(result) : values.map(row);
  return [...found, isError ? faultOf("error", error) : undefined].filter((fault) => fault !== undefined);
}

/** Checks what record-said.cjs wrote, and removes the folder. */
export function checkRecorded(recorded: string): void {
  const names = existsSync(recorded) ? readdirSync(recorded).filter((name) => name.endsWith(".json")) : [];
  const runs = names.map((name) => JSON.parse(readFileSync(join(recorded, name), "utf8")));
  rmSync(recorded, { recursive: true, force: true });
  for (const { words, env, said } of runs) checkOutput(words, env, said);
}

export function checkOutput(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  said: Said,
): void {
  const total = (): number => [...seen.values()].reduce((sum, count) => sum + count, 0);
  const before = total();
  const isOther = words.some((word) => word === "-p" || word.startsWith("--profile")) || env.INTEG_PROFILE;
  const { INTEG_BASE_URL: address = "" } = env;
  const isService = !isOther && correctServices.has(relays.get(address) ?? address);
  const faults = outputFaults(words, env, { said, isService });
  const values = total() - before;
  if (folder && values > 0)
    appendFileSync(join(folder, `${process.pid}.checked.ndjson`), `${JSON.stringify({ values })}\n`);
  if (faults.length > 0)
    throw new Error(`integ ${words.join(" ")} printed what its schema does not allow: ${faults[0]}`);
}
