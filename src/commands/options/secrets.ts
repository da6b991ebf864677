// The `--secret-*` options. Each value keeps its position, because a modifier applies to the destination before it.
import { type FlagsOf, sharedOptions } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { type Entry, kindOf } from "../../journal/entry.ts";
import {
  type DestinationOption,
  type SecretCheck,
  type SecretFormat,
  type SecretOptions,
  storeKinds,
} from "../../secrets/destination.ts";
import { checkSecretFormat, checkSecretNames, secretFormats } from "../../secrets/secret-format.ts";
import { parseDuration } from "./global.ts";
import type { Context } from "../../context.ts";

interface Typed {
  readonly value: string;
  readonly at: number;
}

let typedCount = 0;

function ordered(value: string, before: readonly Typed[] = []): readonly Typed[] {
  typedCount += 1;
  return [...before, { value, at: typedCount }];
}

const stores = Object.keys(storeKinds)
  .map((scheme) => `${scheme}:…`)
  .join(", ")
  .replace(/, (?=[^,]*$)/, " or ");

export const addSecretOptions = sharedOptions((command) =>
  command
    .option("--secret-file <path>", "Write the secret to a new file, readable by you alone; repeatable", ordered)
    .option("--secret-command <command>", "Pass the secret to a command on standard input; repeatable", ordered)
    .option("--secret-profile <name>", "Make the secret an existing profile's credential; repeatable", ordered)
    .option("--secret-to <store>", `Write the secret to a store (${stores}); repeatable`, ordered)
    .option(
      "--escrow <recipient...>",
      "Encrypt the secret to age public keys and keep it in the team's journal until it is delivered [env: INTEG_ESCROW]",
    )
    .addOption(
      command
        .createOption(
          "--secret-format <format>",
          `Format for the preceding --secret-file or --secret-command (one of: ${secretFormats.join(", ")}, template:<text>; default: raw, only the secret's bytes)`,
        )
        .choices(secretFormats)
        .argParser(ordered),
    )
    .option(
      "--secret-env <names>",
      "Variables to write for the preceding --secret-file or --secret-command (NAME=field,…)",
      ordered,
    )
    .option(
      "--secret-check-command <command>",
      "Command that prints the stored secret, so that integ can compare it; follows its --secret-command",
      ordered,
    )
    .addOption(
      command
        .createOption(
          "--secret-check <how>",
          "How the preceding check confirms the delivery (one of: output, it prints the secret; exit, it exits with 0; default: output)",
        )
        .choices(["output", "exit"] satisfies SecretCheck["by"][])
        .argParser(ordered),
    )
    .option("--secret-command-timeout <duration>", "Time limit for each --secret-command and each check (default: 60s)")
    .option("--force", "Replace the current content of the destinations"),
);
export type SecretFlags = FlagsOf<typeof addSecretOptions>;

/** The issuer is the entry's service and organization, which may differ from the acting profile's. */
export function issuedAs(entry: Entry): Pick<SecretOptions, "yields" | "issuedBy"> {
  return {
    yields: kindOf(entry),
    issuedBy: { baseUrl: entry.base_url, organizationId: entry.organization_id ?? undefined },
  };
}

type Modifier = (option: DestinationOption) => DestinationOption;

/** @throws Failure `usage` for invalid or contradicting options, or for an option without its destination */
export function secretOptionsOf(flags: SecretFlags): SecretOptions {
  const to = destinationsIn(flags);
  const loose = unattachedFormat(flags, to);
  for (const { flag, at, for: kinds, modify } of modifiersIn(flags)) {
    if (loose !== undefined && kinds.includes("file")) continue;
    const destination = to.findLast((one) => one.at < at) ?? soleDestination(to, kinds);
    if (destination === undefined || !kinds.includes(destination.option.kind))
      throw new Failure("usage", `${flag} does not follow a ${kinds.map((kind) => `--secret-${kind}`).join(" or ")}.`, {
        hint: "Write it directly after the destination that it belongs to.",
      });
    destination.option = modify(destination.option);
  }
  const limit = flags.secretCommandTimeout;
  return {
    to: to.map(({ option }) => option),
    as: loose,
    escrow: flags.escrow,
    force: flags.force === true,
    commandLimitMs: limit === undefined ? undefined : parseDuration(limit, "--secret-command-timeout"),
  };
}

interface TypedDestination {
  readonly at: number;
  option: DestinationOption;
}

function destinationsIn(flags: SecretFlags): TypedDestination[] {
  const { secretFile = [], secretCommand = [], secretProfile = [], secretTo = [] } = flags;
  return [
    ...secretFile.map(({ value, at }) => ({ at, option: { kind: "file", path: value } as const })),
    ...secretCommand.map(({ value, at }) => ({ at, option: { kind: "command", command: value } as const })),
    ...secretProfile.map(({ value, at }) => ({ at, option: { kind: "profile", name: value, force: true } as const })),
    ...secretTo.map(({ value, at }) => ({ at, option: { kind: "store", to: value } as const })),
  ].sort((a, b) => a.at - b.at);
}

/** Without a destination, a typed format applies to the file that an unfinished entry records. */
function unattachedFormat(
  { secretFormat = [], secretEnv = [] }: SecretFlags,
  to: readonly unknown[],
): SecretFormat | undefined {
  if (to.length > 0) return undefined;
  const [format, names] = [secretFormat.at(-1), secretEnv.at(-1)];
  return names ? checkSecretNames(names.value) : format && checkSecretFormat(format.value);
}

/** If only one destination is typed, its modifiers may precede it. */
function soleDestination(to: readonly TypedDestination[], kinds: readonly string[]): TypedDestination | undefined {
  const fitting = to.filter(({ option }) => kinds.includes(option.kind));
  return to.length === 1 ? fitting[0] : undefined;
}

interface TypedModifier {
  readonly flag: string;
  readonly at: number;
  readonly for: readonly DestinationOption["kind"][];
  readonly modify: Modifier;
}

function modifiersIn(flags: SecretFlags): TypedModifier[] {
  const { secretFormat = [], secretEnv = [], secretCheckCommand = [], secretCheck = [] } = flags;
  const formats = [
    ...secretFormat.map((typed) => ({ flag: "--secret-format", at: typed.at, as: checkSecretFormat(typed.value) })),
    ...secretEnv.map((typed) => ({ flag: "--secret-env", at: typed.at, as: checkSecretNames(typed.value) })),
  ].map(({ flag, at, as }) => ({ flag, at, for: ["file", "command"] as const, modify: withFormat(as) }));
  const checks = secretCheckCommand.map(({ value, at }) => ({
    flag: "--secret-check-command",
    at,
    for: ["command"] as const,
    modify: withCheckCommand(value),
  }));
  const confirmations = secretCheck.map(({ value, at }) => ({
    flag: "--secret-check",
    at,
    for: ["command"] as const,
    modify: withConfirmation(value),
  }));
  return [...formats, ...checks, ...confirmations].sort((a, b) => a.at - b.at);
}

function withFormat(as: SecretFormat): Modifier {
  return (option) => {
    if (option.kind !== "file" && option.kind !== "command") return option;
    if (option.as !== undefined && !(option.as === "env" && as.startsWith("env:")))
      throw new Failure("usage", "One destination has two formats.", {
        hint: "Keep one --secret-format or --secret-env for each destination.",
      });
    return { ...option, as };
  };
}

function withCheckCommand(command: string): Modifier {
  return (option) => {
    if (option.kind !== "command") return option;
    if (option.check) throw new Failure("usage", "One --secret-command has two --secret-check-command.");
    return { ...option, check: { command, by: "output" } };
  };
}

function withConfirmation(how: string): Modifier {
  return (option) => {
    if (how !== "output" && how !== "exit")
      throw new Failure("usage", `--secret-check is output or exit, not "${how}".`);
    if (option.kind === "command" && option.check) return { ...option, check: { ...option.check, by: how } };
    throw new Failure("usage", "--secret-check has no --secret-check-command before it.", {
      hint: `Write it like --secret-check-command '<command>' --secret-check ${how}.`,
    });
  };
}

/** The default overlap of a rotation that shows its secret on the screen: a person needs time to store the secret. */
export const screenOverlapMs = 24 * 3_600_000;

export interface AskedDestination {
  readonly options: SecretOptions;
  /** True if the person chose to see the secret. */
  readonly isScreen: boolean;
}

interface AskOptions {
  readonly dryRun?: boolean | undefined;
  /** True if the answer decides the default overlap. */
  readonly overlaps?: boolean;
}

/**
 * Asks before a delivery replaces the credential of the acting profile or, with `entry`, of the entry's profile. Marks
 * the destination as agreed (`own`).
 * @throws Failure `usage` if the person declines
 */
export async function confirmOwnProfile(
  context: Context,
  options: SecretOptions,
  entry?: Pick<Entry, "profile" | "profile_id">,
): Promise<SecretOptions> {
  if (!options.to.some(({ kind }) => kind === "profile")) return options;
  const name = entry?.profile ?? (await context.profiles.active()).name;
  const isAsked = (option: DestinationOption): boolean =>
    option.kind === "profile" && option.name === name && option.own !== true;
  if (!options.to.some(isAsked)) return options;
  // Another machine's profile may have the same name.
  if (entry !== undefined && (await context.profiles.store()).get(name)?.id !== entry.profile_id) return options;
  const question = `Replace the credential of profile ${name}, as which this ${entry === undefined ? "command acts" : "change was made"}?`;
  if (!(await context.output.confirm(question, { destructive: true })))
    throw new Failure("usage", "Nothing was sent: the answer was no.");
  const to = options.to.map((option) => (isAsked(option) ? { ...option, own: true as const } : option));
  return { ...options, to };
}

/**
 * Asks where the secret goes, because terminals and logs would keep a printed secret. Does not ask in a dry run,
 * without a terminal, or if a destination, a format or `--force` is typed.
 * @throws Failure `usage` if the person declines to replace the acting profile's credential
 */
export async function askDestination(
  context: Context,
  given: SecretOptions,
  { dryRun = false, overlaps = false }: AskOptions = {},
): Promise<AskedDestination> {
  const { output } = context;
  const typed = dryRun ? given : await confirmOwnProfile(context, given);
  const isNamed = typed.to.length > 0 || typed.as !== undefined || typed.force === true;
  if (isNamed || !output.interactive || !output.isScreen) return { options: typed, isScreen: false };
  if (dryRun) {
    const overlap = overlaps ? " If the secret is shown on the terminal, the default overlap is 24h, not 0s." : "";
    output.note(`Without --dry-run, the command asks where the secret goes.${overlap}`);
    return { options: typed, isScreen: false };
  }
  const answer = await output.pick("Where does the secret go?", {
    choices,
    flag: "--secret-file <path>",
    isFirst: true,
  });
  if (answer !== "screen") return { options: { ...typed, to: [await askAddress(output, answer)] }, isScreen: false };
  output.note("The secret is shown once, in the result: copy it before you close the terminal.");
  return { options: typed, isScreen: true };
}

const choices = [
  { value: "file", hint: "A new file that only you can read" },
  { value: "command", hint: "A command reads it from standard input" },
  ...Object.entries(storeKinds).map(([value, { what }]) => ({ value, hint: what })),
  { value: "screen", hint: "Shown here, once" },
];

async function askAddress(output: Context["output"], answer: string): Promise<DestinationOption> {
  if (answer === "file")
    return { kind: "file", path: await output.ask("Path of the new file", { flag: "--secret-file <path>" }) };
  if (answer === "command")
    return { kind: "command", command: await output.ask("Command", { flag: "--secret-command <command>" }) };
  const form = Object.entries(storeKinds).find(([scheme]) => scheme === answer)?.[1].form ?? "";
  const address = await output.ask(`Address (${form})`, { flag: "--secret-to <store>" });
  return { kind: "store", to: address.startsWith(`${answer}:`) ? address : `${answer}:${address}` };
}
