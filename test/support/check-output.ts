// Compares every JSON output of a tested program with the schema that `integ schema` shows for it.
import { Ajv2020 } from "ajv/dist/2020.js";
import { guessFormat } from "../../src/commands/options/global.ts";
import { outputJsonSchema, outputs } from "../../src/commands/schema/outputs.ts";
import { knownWords } from "../../src/program.ts";
import type { Said } from "./record-steps.ts";

const ajv = new Ajv2020({ allowUnionTypes: true, validateFormats: false });

/** How many values were compared with each schema. */
const seen = new Map<string, number>();

function faultOf(name: string, value: unknown): string | undefined {
  seen.set(name, (seen.get(name) ?? 0) + 1);
  const validate = ajv.getSchema(name) ?? ajv.addSchema(outputJsonSchema(name)!, name).getSchema(name)!;
  return validate(value) ? undefined : `${name}: ${ajv.errorsText(validate.errors)}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
  if ((format !== "json" && format !== "ndjson") || words.includes("--fields")) return [];
  const { stdout, stderr } = said;
  const error = parsed(stderr.trimEnd().split("\n").at(-1) ?? "");
  const isError = typeof error === "object" && error !== null && "error" in error;
  const { rows, document } = namesOf(words, isService);
  const row = (value: unknown): string | undefined => {
    const faults = rows.map((name) => faultOf(name, value));
    return faults.includes(undefined) ? undefined : faults[0];
  };
  const result = (value: unknown): (string | undefined)[] => {
    if (document !== undefined) return [faultOf(document, value)];
    const isList = typeof value === "object" && value !== null && "object" in value && value.object === "list";
    if (!isList) return [row(value)];
    return [faultOf("list", value), ...((value as { data?: unknown[] }).data ?? []).map(row)];
  };
  const texts = format === "json" ? [stdout] : stdout.split("\n");
  const values = texts.map(parsed).filter((value) => value !== undefined);
  const found = format === "json" ? values.flatMap(result) : values.map(row);
  return [...found, isError ? faultOf("error", error) : undefined].filter((fault) => fault !== undefined);
}

export function checkOutput(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  said: Said,
): void {
  const faults = outputFaults(words, env, { said });
  if (faults.length > 0)
    throw new Error(`integ ${words.join(" ")} printed what its schema does not allow: ${faults[0]}`);
}
