// The global options, before or after a command's name, and parsers of durations and versions.
import type { Command as PlainCommand, Option } from "commander";
import type { Command } from "@commander-js/extra-typings";
import { versionFault, noVersion } from "../../api/call/request.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Context } from "../../context.ts";
import { durationMs, isDate } from "../../api/json/iso-time.ts";
import type { Advice } from "../../next-step.ts";
import { type Format, formats } from "../../output/formats/format.ts";
import { agentMode } from "../../profiles/agent-mode.ts";

export interface GlobalOptions {
  profile?: string;
  output?: string;
  json?: true;
  ndjson?: true;
  fields?: string;
  serviceVersion?: string;
  timeout?: string;
  retryFor?: string;
  yes?: true;
  input?: boolean;
  quiet?: true;
  debug?: true;
  color?: boolean;
  times?: "iso" | "relative";
}

export interface GlobalChoice {
  readonly profile?: string;
  readonly format: Format;
  /** The format of a typed flag; undefined if it is from the environment or the default. */
  readonly typedFormat?: Format;
  readonly fields?: readonly string[];
  readonly serviceVersion?: string;
  readonly timeoutMs: number;
  readonly retryForMs: number;
  readonly yes: boolean;
  readonly noInput: boolean;
  readonly quiet: boolean;
  readonly debug: boolean;
  readonly noColor: boolean;
  /** Default: relative at a terminal, ISO 8601 elsewhere. */
  readonly times?: "iso" | "relative" | undefined;
}

export const globalOptionsHeading = "Global options:";

/** Shared by all commands, because creating the options for each command would slow every start. */
let globalOptions: readonly Option[] | undefined;

export function addGlobalOptions(command: Command): void {
  command.optionsGroup(globalOptionsHeading);
  globalOptions ??= createGlobalOptions(command);
  for (const option of globalOptions) command.addOption(option);
}

function createGlobalOptions(command: Command): readonly Option[] {
  const format = command.createOption(
    "-o, --output <format>",
    `Output format (one of: ${formats.join(", ")}; default: table; in agent mode json) [env: INTEG_OUTPUT]`,
  );
  const others = (lines: readonly (readonly [flags: string, description: string])[]): Option[] =>
    lines.map(([flags, description]) => command.createOption(flags, description));
  return [
    ...others([["-p, --profile <name>", "Profile to act as (default: the default profile) [env: INTEG_PROFILE]"]]),
    format.choices(formats),
    ...others([
      ["--json", "Short for -o json"],
      ["--ndjson", "Short for -o ndjson"],
      ["--fields <a,b.c>", "Print only these fields, in this order"],
    ]),
    command
      .createOption("--times <times>", "Times of a table (one of: iso, relative; default: relative at a terminal)")
      .choices(["iso", "relative"]),
    ...others([
      [
        "--service-version <date>",
        "Contract version to pin; the word none sends no version (default: the profile's, else 2026-07-01) [env: INTEG_SERVICE_VERSION]",
      ],
      ["--timeout <duration>", "Time limit for one request (default: 30s) [env: INTEG_TIMEOUT]"],
      ["--retry-for <duration>", "Time to keep retrying; 0: one attempt (default: 2m) [env: INTEG_RETRY_FOR]"],
      ["-y, --yes", "Skip confirmation"],
      ["--no-input", "Never prompt [env: INTEG_NO_INPUT]"],
      ["-q, --quiet", "Print results and errors only"],
      ["--debug", "Print requests and responses on stderr, secrets redacted [env: INTEG_DEBUG]"],
      ["--no-color", "No color [env: NO_COLOR]"],
    ]),
  ];
}

/**
 * @returns the options of all levels of the command line. A `--no-` option counts only as `false`: `true` is its
 * default, and commander stores a command's own `--input <file>` under the name of `--no-input`.
 */
export function typedGlobals(leaf: PlainCommand): GlobalOptions {
  const merged: Record<string, unknown> = {};
  for (let level: PlainCommand | null = leaf; level; level = level.parent) {
    const negated = new Set(level.options.filter((option) => option.negate).map((option) => option.attributeName()));
    for (const [name, value] of Object.entries(level.opts<Record<string, unknown>>())) {
      const isTyped = !negated.has(name) || value === false;
      if (isTyped && !(name in merged)) merged[name] = value;
    }
  }
  return merged;
}

/**
 * Precedence: flag, environment, default.
 * @throws Failure `usage` for an invalid format, field list, date or duration
 */
export function chooseGlobals(flags: GlobalOptions, env: Readonly<Record<string, string | undefined>>): GlobalChoice {
  return {
    profile: flags.profile,
    ...chooseFormat(flags, env),
    fields: flags.fields === undefined ? undefined : parseFields(flags.fields),
    serviceVersion: checkVersion(flags.serviceVersion ?? (env.INTEG_SERVICE_VERSION || undefined)),
    timeoutMs: positive(
      duration(["--timeout", flags.timeout], ["INTEG_TIMEOUT", env.INTEG_TIMEOUT], "30s"),
      "--timeout",
    ),
    retryForMs: duration(["--retry-for", flags.retryFor], ["INTEG_RETRY_FOR", env.INTEG_RETRY_FOR], "2m"),
    yes: flags.yes === true,
    noInput:
      flags.input === false || isEnabled(env.INTEG_NO_INPUT) || isEnabled(env.CI) || agentMode(env) !== undefined,
    quiet: flags.quiet === true,
    debug: flags.debug === true || isEnabled(env.INTEG_DEBUG),
    noColor: flags.color === false,
    times: flags.times,
  };
}

function isEnabled(value: string | undefined): boolean {
  return value !== undefined && value !== "" && value !== "0" && value.toLowerCase() !== "false";
}

/** Guesses the format of an error that occurs before the options are parsed. Never throws. */
export function guessFormat(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Format {
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  const requested: (string | undefined)[] = [env.INTEG_OUTPUT];
  for (let i = 0; i < end; i++) {
    const word = argv[i]!;
    if (word === "--json" || word === "--ndjson") requested.push(word.slice(2));
    else if (word === "-o" || word === "--output") requested.push(argv[i + 1]);
    else if (word.startsWith("--output=")) requested.push(word.slice("--output=".length));
    else if (/^-o[a-z]/.test(word)) requested.push(word.slice(2));
  }
  // The error about an invalid format is printed in the last valid format.
  const valid = requested.flatMap((text) => formats.find((format) => format === text) ?? []);
  return valid.at(-1) ?? standardFormat(env);
}

function standardFormat(env: Readonly<Record<string, string | undefined>>): Format {
  return agentMode(env) === undefined ? "table" : "json";
}

export const formatAdvice: Advice =
  "Choose one of table, json, ndjson, csv, yaml, markdown. A few commands also have sarif, html or openmetrics.";

function chooseFormat(
  flags: GlobalOptions,
  env: Readonly<Record<string, string | undefined>>,
): Pick<GlobalChoice, "format" | "typedFormat"> {
  const typed = [
    ...new Set([flags.output, flags.json && "json", flags.ndjson && "ndjson"].filter((x) => x !== undefined)),
  ];
  if (typed.length > 1)
    throw new Failure("usage", `Two output formats: ${typed.join(" and ")}.`, { hint: "Keep one of them." });
  const text = typed[0] ?? (env.INTEG_OUTPUT || standardFormat(env));
  const format = formats.find((name) => name === text);
  if (!format) throw invalidValue(typed.length === 1 ? "output format" : "INTEG_OUTPUT", text, { hint: formatAdvice });
  return { format, typedFormat: typed.length === 1 ? format : undefined };
}

function parseFields(text: string): string[] {
  const fields = text.split(",").map((field) => field.trim());
  if (fields.some((field) => field === ""))
    throw invalidValue("--fields", text, {
      why: "a field is empty",
      hint: "Write field names with commas: --fields id,status.",
    });
  return fields;
}

function checkVersion(text: string | undefined): string | undefined {
  const fault = text === undefined ? undefined : versionFault(text);
  if (text !== undefined && fault !== undefined)
    throw invalidValue("--service-version", text, {
      why: fault,
      hint: "Use --service-version 2026-07-01, or --service-version none to send no version.",
    });
  return text;
}

type Named = readonly [name: string, text: string | undefined];

function duration([flag, typed]: Named, [variable, set]: Named, standard: string): number {
  return typed === undefined ? parseDuration(set || standard, variable) : parseDuration(typed, flag);
}

function positive(ms: number, name: string): number {
  if (ms <= 0)
    throw invalidValue(name, "0", { why: "it must be longer than zero", hint: `Write it like ${name} 30s.` });
  return ms;
}

/**
 * @param name the flag or variable, for the message
 * @returns whole milliseconds, up to a hundred years
 * @throws Failure `usage` for an invalid duration
 */
export function parseDuration(text: string, name: string): number {
  return durationOf(text, { name, hint: `${forms}; a bare number is seconds.` });
}

const forms = "Write it like 500ms, 30s, 5m, 36h, 90d or PT30S";

function durationOf(text: string, { name, hint }: { readonly name: string; readonly hint: Advice }): number {
  const ms = durationMs(text);
  if (ms === undefined) throw invalidValue(name, text, { why: "it is not a duration", hint });
  return ms;
}

/**
 * @throws Failure `usage` for an invalid duration, or a number other than 0 without a unit: 90 may mean days or seconds
 */
export function parseLifetime(text: string, name: string): number {
  if (/^\d+(\.\d+)?$/.test(text.trim()) && Number(text) !== 0)
    throw invalidValue(name, text, {
      why: "it has no unit",
      meaning: `It could be seconds or days: write ${text.trim()}s or ${text.trim()}d.`,
      hint: `Write ${name} ${text.trim()}d for days.`,
    });
  return durationOf(text, { name, hint: `${forms}.` });
}

/**
 * @returns `--contract-version`, else the pinned version of requests (`--service-version`, `INTEG_SERVICE_VERSION`).
 * Without both, undefined for the current document, even if the profile has a version.
 * @throws Failure `usage` if both are given and differ, or if `--contract-version` is not a date
 */
export function documentVersion(
  { settings }: Context,
  { contractVersion }: { readonly contractVersion?: string },
): string | undefined {
  const serviceVersion = settings.serviceVersion === noVersion ? undefined : settings.serviceVersion;
  if (contractVersion !== undefined && serviceVersion !== undefined && contractVersion !== serviceVersion)
    throw new Failure(
      "usage",
      `--contract-version ${contractVersion} and the service version ${serviceVersion} name two versions.`,
      { hint: "Keep one of --contract-version, --service-version and INTEG_SERVICE_VERSION." },
    );
  if (contractVersion !== undefined && !isDate(contractVersion))
    throw invalidValue("--contract-version", contractVersion, {
      why: "it is not a date",
      hint: "Write it like --contract-version 2026-07-01.",
    });
  return contractVersion ?? serviceVersion;
}
