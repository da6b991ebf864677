// A next step is a command to paste, or a sentence that starts with a verb. `shell` quotes the values in a command.

declare const quoted: unique symbol;

/**
 * Outside commands/ and edge/, messages name options by these keys. A test compares the options with the command tree.
 */
export const flags = {
  accessTokenCommand: "--access-token-command",
  accessTokenEndpoint: "--access-token-endpoint",
  adopt: "--adopt",
  all: "--all",
  apiKeyCommand: "--api-key-command",
  apiKeyId: "--api-key-id",
  apiKeyStdin: "--api-key-stdin",
  baseUrl: "--base-url",
  basicStyle: "--basic-style",
  byReplacement: "--by-replacement",
  clientId: "--client-id",
  clientAssertionCommand: "--client-assertion-command",
  clientKeyFile: "--client-key-file",
  clientSecretCommand: "--client-secret-command",
  clientSecretStdin: "--client-secret-stdin",
  contractVersion: "--contract-version",
  escrow: "--escrow",
  expiresAt: "--expires-at",
  expiresIn: "--expires-in",
  fields: "--fields",
  file: "--file",
  filter: "--filter",
  force: "--force",
  idempotencyKey: "--idempotency-key",
  journal: "--journal",
  journalKeyCommand: "--journal-key-command",
  json: "--json",
  keepOld: "--keep-old",
  limit: "--limit",
  name: "--name",
  marker: "--marker",
  new: "--new",
  noInput: "--no-input",
  noVerify: "--no-verify",
  offline: "--offline",
  olderThan: "--older-than",
  organizationId: "--organization-id",
  out: "--out",
  overlap: "--overlap",
  overlapUnused: "--overlap-unused",
  pageToken: "--page-token",
  param: "--param",
  profile: "--profile",
  region: "--region",
  replaceLostSecret: "--replace-lost-secret",
  resume: "--resume",
  revoke: "--revoke",
  retryFor: "--retry-for",
  scope: "--scope",
  secretCheckCommand: "--secret-check-command",
  secretCommand: "--secret-command",
  secretEnv: "--secret-env",
  secretFile: "--secret-file",
  secretFormat: "--secret-format",
  only: "--only",
  secretProfile: "--secret-profile",
  secretTo: "--secret-to",
  serviceAccount: "--service-account",
  serviceVersion: "--service-version",
  timeout: "--timeout",
  to: "--to",
  tokenEndpoint: "--token-endpoint",
  type: "--type",
  updateProfile: "--update-profile",
  yes: "--yes",
  acceptUnproven: "--accept-unproven",
} as const;

export const shortFlags = { file: "-f", output: "-o", profile: "-p", yes: "-y" } as const;

export type NextCommand = string & { readonly [quoted]: true };

/** The typed command with other flags. `commandAfter` completes it, because only the edge knows the typed words. */
export interface SameCommand {
  /** Flags to add, with their values; an added flag replaces the same typed flag. */
  readonly add?: readonly string[];
  /** Flags to omit; a flag with a value is written as `--page-token <token>`. */
  readonly without?: readonly string[];
  /** Only this verb accepts the flags; after any other command, such as a recovery, integ shows no next step. */
  readonly of?: string;
}

type Verb =
  | WordsOf<"Add Allow Ask Check Choose Claim Continue Correct Create Fetch Find Free Give Install Keep">
  | WordsOf<"Leave Look Mount Move Name Open Pass Put Recover Remove Renew Repair Replace Report Restore">
  | WordsOf<"Revoke Rotate Run Send Set Shorten Start Store Unlock Unset Upgrade Use Wait Write">;

type WordsOf<Text> = Text extends `${infer First} ${infer Rest}` ? First | WordsOf<Rest> : Text;

/** Advice is for a step that no single command can do. */
export type Advice = `${Verb} ${string}.` | `${Verb} ${string}: ${NextCommand}`;

export interface NextStep {
  readonly nextCommand?: NextCommand | SameCommand | undefined;
  readonly hint?: Advice | undefined;
}

type Word = string | number | readonly string[];

/** The template's text stays unchanged; each value or array element becomes one quoted word. */
export function shell(text: TemplateStringsArray, ...values: readonly Word[]): NextCommand {
  let line = text[0]!;
  for (const [index, value] of values.entries()) {
    const words = (typeof value === "object" ? value : [String(value)]).map(quotedWord).join(" ");
    // An empty array must not leave a second space.
    line = (words === "" ? line.trimEnd() : line + words) + text[index + 1]!;
  }
  return line.trim() as NextCommand;
}

/** The command is a help page, because only the user knows the value. */
export function settingOf(profile: string, flag: `--${string}`): NextStep {
  const edit = shell`integ profiles edit ${profile} ${flag}`;
  return { hint: `Set it with ${edit} <${flag.replace(/.*-/, "")}>.`, nextCommand: shell`integ help profiles edit` };
}

/**
 * Quotes a word unless POSIX shells and zsh read it unchanged: zsh expands a leading `=`, and all of them expand `~`.
 */
export function quotedWord(word: string): string {
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

interface RepeatedFlag {
  readonly short: string;
  readonly long: string;
  /** Next commands that accept the flag. */
  readonly takes: RegExp;
  /** Next commands that already contain the flag, or an argument with the same meaning. */
  readonly names: RegExp;
}

const repeatedFlags: readonly RepeatedFlag[] = [
  {
    short: shortFlags.profile,
    long: flags.profile,
    takes:
      /^integ (adopt|api|apply|cohorts|doctor|entities|keys|oauth-clients|people|plan|policy check|profiles show|report|spec|status)\b/,
    names: / (-p|--profile)\b|^integ profiles show ./,
  },
  // A plan contains the name of its policy file, so `apply` of a plan does not need the flag.
  {
    short: shortFlags.file,
    long: flags.file,
    takes: /^integ (apply|plan|policy check|status)\b/,
    names: / (-f|--file)\b|^integ apply [^-]/,
  },
];

/**
 * Repeats the typed profile and policy file in the next command. `typed` are the words after `integ`. Returns undefined
 * if the result would repeat the typed command, or if the typed command does not accept the flags.
 */
export function commandAfter(next: NextCommand | SameCommand, typed: readonly string[]): NextCommand | undefined {
  if (typeof next !== "string") {
    if (next.of !== undefined && !typed.includes(next.of)) return undefined;
    const words = sameWords(typed, next);
    // If no flag to omit was typed, the same command would fail again.
    const isTyped = (flag: string): boolean => typed.some((word) => word.split("=", 1)[0] === flag.replace(/ .*/, ""));
    const isRepetition = next.without !== undefined && next.add === undefined && !next.without.some(isTyped);
    return isRepetition ? undefined : shell`integ ${words}`;
  }
  return repeatedFlags.reduce((step, flag) => {
    const value = flag.takes.test(step) && !flag.names.test(step) ? typedValue(typed, flag) : undefined;
    return value === undefined ? step : (`${step} ${flag.short} ${quotedWord(value)}` as NextCommand);
  }, next);
}

/** Adds the profile to a step, which is a command or advice that can end with a command. */
export function stepAs<T extends string>(profile: string | undefined, step: T): T {
  const [, advice = "", command] = /^(.*: )?(integ .*)$/s.exec(step) ?? [];
  if (profile === undefined || command === undefined) return step;
  return `${advice}${commandAfter(command as NextCommand, [shortFlags.profile, profile])}` as T;
}

/** Names the profile of the policy in a step, unless the step reads the policy file, which names it. */
export function stepBeside<T extends string>(profile: string | undefined, step: T): T {
  return /(^|: )integ (adopt|apply|plan|policy|status)\b/.test(step) ? step : stepAs(profile, step);
}

export function typedValue(
  typed: readonly string[],
  { short, long }: Pick<RepeatedFlag, "short" | "long">,
): string | undefined {
  const isTypedFlag = (word: string): boolean =>
    word.startsWith(`${long}=`) || word === long || (/^-[^-]/.test(word) && word.startsWith(short));
  const at = typed.findLastIndex(isTypedFlag);
  const word = typed[at] ?? "";
  if (word === short || word === long) return typed[at + 1];
  if (word === "") return undefined;
  return word.startsWith(`${long}=`) ? word.slice(long.length + 1) : word.slice(short.length).replace(/^=/, "");
}

/** A next command repeats the typed command without these flags, so that integ asks for consent again. */
const consents = [
  flags.new,
  flags.force,
  flags.yes,
  shortFlags.yes,
  flags.acceptUnproven,
  flags.replaceLostSecret,
  `${flags.revoke} <id>`,
] as const;

export function needsForce({ nextCommand: next }: NextStep): boolean {
  return typeof next === "object" && next.add?.includes(flags.force) === true;
}

/** Agents run commands unchanged, so `--yes` in a command would be consent without a person. */
export function withoutConsent({ nextCommand: next, hint }: NextStep): NextStep {
  const agree: Advice = `Ask a person, and add ${flags.yes} only if they agree to this change.`;
  // Without a destination, claim prints the secret, which agent mode refuses.
  if (typeof next === "string" && /^integ journal claim \S+$/.test(next))
    return { hint: `Claim the secret to a new file or another destination, like ${next} ${flags.secretFile} <path>.` };
  if (typeof next === "string")
    return next.endsWith(` ${flags.yes}`)
      ? { nextCommand: next.slice(0, -flags.yes.length - 1) as NextCommand, hint: agree }
      : { nextCommand: next, hint };
  if (next?.add?.includes(flags.yes) !== true) return { nextCommand: next, hint };
  const add = next.add.filter((word) => word !== flags.yes);
  return { nextCommand: add.length === 0 ? undefined : { ...next, add }, hint: agree };
}

function sameWords(typed: readonly string[], { add = [], without = [] }: SameCommand): string[] {
  const omitted = [...consents, ...without];
  const takesValue = new Map(omitted.map((flag) => [flag.replace(/ .*/, ""), flag.includes(" ")]));
  add.forEach((word, at) => {
    if (word.startsWith("--")) takesValue.set(word, add[at + 1]?.startsWith("--") === false);
  });
  const words: string[] = [];
  for (let at = 0; at < typed.length; at += 1) {
    const word = typed[at] ?? "";
    const [name = ""] = word.split("=", 1);
    if (!takesValue.has(name)) words.push(word);
    else if (takesValue.get(name) === true && !word.includes("=")) at += 1;
  }
  const end = words.indexOf("--");
  return end < 0 ? [...words, ...add] : [...words.slice(0, end), ...add, ...words.slice(end)];
}

/** Returns undefined unless exactly one name is similar. */
export function similarName(typed: string, names: readonly string[]): string | undefined {
  const similar = names.filter(
    (name) => distance(typed.toLowerCase(), name.toLowerCase()) <= Math.min(2, name.length / 3),
  );
  return similar.length === 1 ? similar[0] : undefined;
}

/** Returns the edit distance, with transpositions of adjacent characters. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, row) => [row]);
  for (let column = 0; column <= b.length; column += 1) rows[0]![column] = column;
  for (let row = 1; row <= a.length; row += 1) {
    for (let column = 1; column <= b.length; column += 1) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1;
      const isTransposition = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      rows[row]![column] = Math.min(
        rows[row - 1]![column]! + 1,
        rows[row]![column - 1]! + 1,
        rows[row - 1]![column - 1]! + cost,
        isTransposition ? rows[row - 2]![column - 2]! + 1 : Number.POSITIVE_INFINITY,
      );
    }
  }
  return rows[a.length]![b.length]!;
}
