import { extname } from "node:path";
import { type FlagsOf, sharedOptions } from "../verb.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Format } from "./global.ts";
import { type Advice, quotedWord } from "../../next-step.ts";

/** What a list command was asked for. */
export interface ListPlan {
  /** Rows per page; absent: the service's own (25). */
  readonly limit: number | undefined;
  readonly pageToken: string | undefined;
  /** Walk on after the first page. */
  readonly walks: boolean;
  /** Stop after so many rows. */
  readonly max: number | undefined;
  readonly filters: readonly (readonly [name: string, value: string])[];
  readonly unique: boolean;
  readonly out: { readonly path: string; readonly resume: boolean; readonly force: boolean } | undefined;
}

const formatOfSuffix: Readonly<Record<string, Format>> = {
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".json": "json",
  ".csv": "csv",
  ".yaml": "yaml",
  ".yml": "yaml",
};

/**
 * The format of a list's file: the one that was typed, else the suffix's, else the environment's.
 * @throws Failure `usage` for a table: its columns are fitted to its first rows, so that none could be resumed
 */
export function formatOfFile(
  path: string,
  { format, typedFormat }: { readonly format: Format; readonly typedFormat?: Format },
): Format {
  const found = typedFormat ?? formatOfSuffix[extname(path).toLowerCase()] ?? format;
  if (found !== "table") return found;
  throw new Failure("usage", `--out: ${path} would be a table, which cannot be resumed.`, {
    hint: `Choose -o ndjson, json, csv or yaml${typedFormat ? "" : `, or use a file name that ends in .ndjson, .json, .csv or .yaml: --out ${quotedWord(`${path}.ndjson`)}`}.`,
  });
}

/** §8: the largest page. */
const largestPage = 500;

/** Declares the options that every list has. */
export const addListOptions = sharedOptions((command) =>
  command
    .option("--limit <n>", "Rows per page, 1 to 500 (default: 25; with --all or --max: 500)")
    .option("--page-token <token>", "Continue after an earlier page: its next_page_token")
    .option("--all", "Fetch every page")
    .option("--max <n>", "Fetch exactly this many rows, over several pages")
    .option("--filter <name=value...>", "Additional filter of the endpoint; repeatable")
    .option("--unique", "Skip rows whose id was already printed")
    .option("--out <file>", "Write to a new file; its suffix chooses the format (.ndjson, .json, .csv, .yaml)")
    .option("--resume", "Continue the --out file of an interrupted list")
    .option("--force", "Let --out replace a file"),
);
export type ListFlags = FlagsOf<typeof addListOptions>;

/** @throws Failure `usage` for a value out of bounds, and for options that contradict each other */
export function planOf(flags: ListFlags): ListPlan {
  const max =
    flags.max === undefined ? undefined : wholeNumber("--max", flags.max, { least: 1, most: Number.MAX_SAFE_INTEGER });
  const walks = flags.all === true || max !== undefined;
  const limit =
    flags.limit === undefined ? undefined : wholeNumber("--limit", flags.limit, { least: 1, most: largestPage });
  refuseContradictions(flags);
  return {
    limit: limit ?? (walks ? largestPage : undefined),
    pageToken: flags.pageToken,
    walks,
    max,
    filters: (flags.filter ?? []).map(filterOf),
    unique: flags.unique === true,
    out:
      flags.out === undefined
        ? undefined
        : { path: flags.out, resume: flags.resume === true, force: flags.force === true },
  };
}

function wholeNumber(flag: string, text: string, { least, most }: { least: number; most: number }): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  throw invalidValue(flag, text, {
    why: `it is not a whole number ${range}`,
    hint:
      flag === "--limit"
        ? "Use --limit 500 for the largest page, or --all for every row."
        : `Write it like ${flag} 1000.`,
  });
}

function filterOf(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw invalidValue("--filter", text, {
    why: "it is not name=value",
    hint: "Write it like --filter status=active.",
  });
}

function refuseContradictions({ out, resume, force, unique, pageToken }: ListFlags): void {
  const contradict = (what: string, hint: Advice): never => {
    throw new Failure("usage", what, { hint });
  };
  if (out === "") contradict("--out names no file.", "Write it like --out entities.ndjson.");
  if (out === undefined && resume)
    contradict("--resume is for a list that is written with --out.", "Add --out <file>, or leave --resume out.");
  if (out === undefined && force) contradict("--force is for --out.", "Add --out <file>, or leave --force out.");
  if (resume && force) contradict("--resume and --force contradict each other.", "Keep one of them.");
  if (resume && pageToken !== undefined)
    contradict("--resume and --page-token contradict each other.", "Keep one of them.");
  if (resume && unique)
    contradict(
      "--unique cannot be resumed: the ids printed before are not stored.",
      "Leave --unique out, and drop repeats afterwards.",
    );
}
