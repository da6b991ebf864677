// Suggests commands and options for unknown words, such as those of other programs.
import type { Command } from "commander";
import type { FailureDetails } from "../errors.ts";
import { nounsWith } from "../program.ts";
import { helpTopics } from "../completion/help-topics.ts";
import { shell, similarName } from "../next-step.ts";

const familiarWords: Readonly<Record<string, FailureDetails>> = {
  auth: {
    meaning: "A profile has the region, the address and the credential.",
    nextCommand: shell`integ help profiles add`,
  },
  clients: { meaning: "OAuth clients are the noun oauth-clients.", nextCommand: shell`integ help oauth-clients` },
  config: { meaning: "The configuration is one or more profiles.", nextCommand: shell`integ profiles list` },
  log: { meaning: "Every change is in the journal.", nextCommand: shell`integ journal list --all` },
  logout: {
    meaning: "Removing a profile removes its stored credential.",
    nextCommand: shell`integ help profiles remove`,
  },
  tokens: {
    meaning: "oauth-clients token exchanges client credentials for a token.",
    nextCommand: shell`integ help oauth-clients token`,
  },
  version: { nextCommand: shell`integ --version` },
  whoami: { meaning: "profiles show prints the profile that commands use.", nextCommand: shell`integ profiles show` },
};

const familiarOptions: Readonly<Record<string, FailureDetails>> = {
  "auto-approve": { meaning: "--yes answers the question, after you have read the plan." },
  out: { hint: "Use > <file> to write the output to a file." },
  "out-file": { hint: "Use > <file> to write the output to a file." },
  target: { meaning: "--only <item> selects items of the policy." },
};

/** @returns advice if commander's `message` is about an unknown option that other programs have */
export function familiarOption(message: string, [noun = ""]: readonly string[]): FailureDetails | undefined {
  const [, name = ""] = /^unknown option '--?([\w-]+)/.exec(message) ?? [];
  const familiar = Object.hasOwn(familiarOptions, name) ? familiarOptions[name] : undefined;
  return familiar?.meaning === undefined || ["plan", "apply", "adopt"].includes(noun) ? familiar : undefined;
}

const aliases: Readonly<Record<string, keyof typeof familiarWords>> = {
  client: "clients",
  configure: "config",
  history: "log",
  login: "auth",
  logs: "log",
  setup: "auth",
  token: "tokens",
};

/** Groups of verbs with the same meaning. integ suggests the first verb of the group that the noun has. */
const synonyms: readonly (readonly string[])[] = [
  ["get", "show", "list", "view", "describe", "info", "ls"],
  ["create", "add", "new", "issue"],
  ["revoke", "remove", "forget", "delete", "rm", "disable", "destroy"],
  ["edit", "update", "set", "change"],
  ["rotate", "renew", "replace", "roll"],
  ["use", "switch", "select"],
];

/** `suggestion` is commander's sentence, such as `Did you mean get?`. */
export function unknownWordHelp(
  command: Command,
  { suggestion, isHelp }: { readonly suggestion: string | undefined; readonly isHelp: boolean },
): FailureDetails {
  const [word = ""] = command.args;
  const topic = isHelp && command.parent === null ? similarName(word, Object.keys(helpTopics)) : undefined;
  if (topic !== undefined) return { meaning: `Did you mean ${topic}?`, nextCommand: shell`integ help ${topic}` };
  const familiar = command.parent === null ? familiarWords[aliases[word] ?? word] : undefined;
  if (familiar !== undefined) return familiar;
  const isVerb = command.parent === null && nounsWith(word).length > 0;
  if (suggestion !== undefined && !isVerb) return { meaning: suggestion, ...helpOf(command, suggestion) };
  return command.parent === null ? nounSuggestion(word) : verbsOf(command, word);
}

function helpOf(command: Command, suggestion: string): FailureDetails {
  const [, meant] = /^Did you mean ([\w-]+)\?$/.exec(suggestion) ?? [];
  const noun = command.parent === null ? [] : [command.name()];
  return meant === undefined ? {} : { nextCommand: shell`integ help ${[...noun, meant]}` };
}

function verbsOf(noun: Command, word: string): FailureDetails {
  if (noun.parent?.commands.some((command) => command.name() === word) === true)
    return { meaning: `The command is integ ${word}, without ${noun.name()}.`, nextCommand: shell`integ help ${word}` };
  const verbs = noun.commands.map((verb) => verb.name());
  const meant = synonyms.find((group) => group.includes(word))?.find((verb) => verbs.includes(verb));
  const words = meant === undefined ? [noun.name()] : [noun.name(), meant];
  return {
    meaning: `The commands of integ ${noun.name()}: ${verbs.join(", ")}.`,
    nextCommand: shell`integ help ${words}`,
  };
}

function nounSuggestion(verb: string): FailureDetails {
  const nouns = nounsWith(verb);
  if (nouns.length === 0) return {};
  const meaning = `${verb} follows a noun: ${andList(nouns.map((noun) => `integ ${noun} ${verb}`))}.`;
  return nouns.length === 1 ? { meaning, nextCommand: shell`integ help ${nouns} ${verb}` } : { meaning };
}

function andList(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
