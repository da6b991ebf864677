// Builds the command tree, in which each verb has one line. A command's file is loaded only when it is needed.
import { Command } from "commander";
import type { Command as TypedCommand } from "@commander-js/extra-typings";
import type { Verb, WholeTree } from "./commands/verb.ts";
import type { Failure } from "./errors.ts";
import { addGlobalOptions, type GlobalOptions, typedGlobals } from "./commands/options/global.ts";

type Load = () => Promise<{ command: Verb }>;
type VerbLine = readonly [name: string, summary: string, load: Load];
interface Noun {
  readonly name: string;
  readonly alias?: string;
  readonly summary: string;
  readonly verbs: readonly VerbLine[];
  /** The noun runs this command with `--all`. */
  readonly all?: Load;
}

/** Groups on the first help screen: nouns, and verbs without a noun. */
const groups: readonly { readonly heading: string; readonly lines: readonly (Noun | VerbLine)[] }[] = [
  {
    heading: "Everyday commands:",
    lines: [
      {
        name: "entities",
        alias: "entity",
        summary: "List entities of the organization",
        verbs: [["list", "List entities, a page or all of them", () => import("./commands/entities/list.ts")]],
      },
      {
        name: "cohorts",
        alias: "cohort",
        summary: "List the members of cohorts",
        verbs: [["members", "List the members of a cohort", () => import("./commands/cohorts/members.ts")]],
      },
      {
        name: "people",
        alias: "person",
        summary: "Find people of the organization (legacy contract)",
        verbs: [
          ["search", "Find people", () => import("./commands/people/search.ts")],
          ["membership", "Show a person's membership", () => import("./commands/people/membership.ts")],
        ],
      },
      ["api", "Send a request to any endpoint, authenticated", () => import("./commands/api/send.ts")],
    ],
  },
  {
    heading: "Changes:",
    lines: [
      {
        name: "oauth-clients",
        alias: "oauth-client",
        summary: "Manage OAuth clients of service accounts",
        verbs: [
          ["create", "Create a client and deliver its secret", () => import("./commands/oauth-clients/create.ts")],
          ["get", "Show a client", () => import("./commands/oauth-clients/get.ts")],
          [
            "list",
            "List the clients that this machine's journal knows",
            () => import("./commands/oauth-clients/list.ts"),
          ],
          ["revoke", "Revoke clients (safe to repeat)", () => import("./commands/oauth-clients/revoke.ts")],
          ["rotate", "Replace a client without downtime", () => import("./commands/oauth-clients/rotate.ts")],
          ["audit", "Find clients that are a risk", () => import("./commands/oauth-clients/audit.ts")],
          ["token", "Exchange client credentials for a token", () => import("./commands/oauth-clients/token.ts")],
        ],
      },
      {
        name: "keys",
        alias: "key",
        summary: "Manage API access keys (legacy contract)",
        verbs: [
          ["list", "List access keys", () => import("./commands/keys/list.ts")],
          ["get", "Show a key", () => import("./commands/keys/get.ts")],
          ["create", "Create a key and deliver its secret", () => import("./commands/keys/create.ts")],
          ["rotate", "Rotate a key's secret, in place or by replacement", () => import("./commands/keys/rotate.ts")],
          ["revoke", "Revoke keys (safe to repeat)", () => import("./commands/keys/revoke.ts")],
          ["audit", "Find keys that are a risk", () => import("./commands/keys/audit.ts")],
        ],
      },
      {
        name: "journal",
        summary: "Inspect and recover changes",
        verbs: [
          ["list", "List unfinished changes, or all of them", () => import("./commands/journal/list.ts")],
          ["show", "Show a change", () => import("./commands/journal/show.ts")],
          ["recover", "Finish interrupted changes", () => import("./commands/journal/recover.ts")],
          ["claim", "Deliver a kept secret", () => import("./commands/journal/claim.ts")],
          ["forget", "Stop tracking a change", () => import("./commands/journal/forget.ts")],
          ["prune", "Remove old finished entries", () => import("./commands/journal/prune.ts")],
          ["verify", "Check every record of the journal", () => import("./commands/journal/verify.ts")],
          ["path", "Print the path or the address of the journal", () => import("./commands/journal/path.ts")],
          ["move", "Change where the journal is kept", () => import("./commands/journal/move.ts")],
          ["export", "Print every entry with its records", () => import("./commands/journal/export.ts")],
          ["import", "Add the entries of an export", () => import("./commands/journal/import.ts")],
          ["trust", "Sign the records of an entry that you looked at", () => import("./commands/journal/trust.ts")],
          ["release", "Release an entry that a process holds", () => import("./commands/journal/release.ts")],
          ["init", "Create the tables of a team's journal", () => import("./commands/journal/init.ts")],
        ],
      },
    ],
  },
  {
    heading: "Policy:",
    lines: [
      [
        "report",
        "Print the access review: every credential and its facts",
        () => import("./commands/report/report.ts"),
      ],
      ["status", "Show what is unfinished, due and about to expire", () => import("./commands/policy/status.ts")],
      ["plan", "Show what a policy needs, and change nothing", () => import("./commands/policy/plan.ts")],
      ["apply", "Apply a policy: create, rotate and revoke", () => import("./commands/policy/apply.ts")],
      {
        name: "adopt",
        summary: "Adopt existing credentials into a policy",
        all: () => import("./commands/policy/adopt-all.ts"),
        verbs: [
          ["oauth-client", "Adopt an OAuth client", () => import("./commands/policy/adopt-client.ts")],
          ["access-key", "Adopt an access key", () => import("./commands/policy/adopt-key.ts")],
        ],
      },
      {
        name: "policy",
        summary: "Write and check a policy: which credentials should exist",
        verbs: [
          ["init", "Write a first policy file", () => import("./commands/policy/init.ts")],
          ["check", "Check a policy file", () => import("./commands/policy/check.ts")],
        ],
      },
    ],
  },
  {
    heading: "Setup:",
    lines: [
      {
        name: "profiles",
        alias: "profile",
        summary: "Manage profiles (region, address, credentials)",
        verbs: [
          ["add", "Add a profile and its credential", () => import("./commands/profiles/add.ts")],
          ["list", "List profiles", () => import("./commands/profiles/list.ts")],
          ["show", "Show a profile, its credential masked", () => import("./commands/profiles/show.ts")],
          ["use", "Make a profile the default", () => import("./commands/profiles/use.ts")],
          ["edit", "Change a profile", () => import("./commands/profiles/edit.ts")],
          ["remove", "Remove a profile and its stored credential", () => import("./commands/profiles/remove.ts")],
        ],
      },
      ["doctor", "Check configuration, credentials and service", () => import("./commands/doctor/diagnose.ts")],
      {
        name: "sandbox",
        summary: "Run the whole API on this machine",
        verbs: [
          ["start", "Serve the sandbox until Ctrl-C", () => import("./commands/sandbox/start.ts")],
          ["status", "Show the sandbox's accounts and credentials", () => import("./commands/sandbox/status.ts")],
          ["reset", "Delete the sandbox's state", () => import("./commands/sandbox/reset.ts")],
          ["tour", "Show how to create, recover, rotate and audit", () => import("./commands/sandbox/tour.ts")],
        ],
      },
      {
        name: "spec",
        summary: "Show the published contract and check it for drift",
        verbs: [
          ["show", "Print the published specification", () => import("./commands/spec/show.ts")],
          [
            "check",
            "Compare the published contract with what integ supports",
            () => import("./commands/spec/check.ts"),
          ],
        ],
      },
      ["schema", "Print the JSON Schema of a file or an output", () => import("./commands/schema/print.ts")],
      ["completion", "Print a shell completion script", () => import("./commands/completion/print.ts")],
      [
        "commands",
        "List every command, option, variable and exit code",
        () => describer(import("./commands/commands/list.ts")),
      ],
    ],
  },
];
const tree = groups.flatMap(({ lines }) => lines);

async function describer(file: Promise<{ describe: (tree: typeof wholeTree) => { command: Verb } }>): ReturnType<Load> {
  return (await file).describe(wholeTree);
}

export interface Typed {
  readonly verb: Verb;
  /** The words of the command without `integ`, such as `oauth-clients create` or `schema`. */
  readonly name: string;
  readonly args: unknown[];
  readonly options: Record<string, unknown>;
  readonly globals: GlobalOptions;
  /** The failure for a missing first argument, thrown if integ cannot ask for it. */
  readonly missing?: Failure;
}

const loaded = new WeakMap<object, Verb>();

/** @returns undefined if the verb is not loaded; `args` is empty if commander rejected the arguments */
export function typedFor(leaf: Command): Typed | undefined {
  const verb = loaded.get(leaf);
  if (!verb) return undefined;
  const noun = leaf.parent?.parent ? `${leaf.parent.name()} ` : "";
  const name = `${noun}${leaf.name()}`;
  return { verb, name, args: leaf.processedArgs, options: leaf.opts(), globals: typedGlobals(leaf) };
}

export function knownWords(words: readonly string[]): string[] {
  const given = words.filter((word) => !word.startsWith("-"));
  // The value of a preceding global option can equal a command's name, as in `--profile sandbox entities list`.
  const at = given.findIndex((word, place) => isCompleteCommand(lineNamed(word), given[place + 1]));
  const [first, second] = given.slice(Math.max(at, 0));
  const line = lineNamed(first);
  if (!line) return [];
  const verb = isVerb(line) ? undefined : line.verbs.find(([name]) => name === second);
  return [nameOf(line).name, ...(verb ? [verb[0]] : [])];
}

function isCompleteCommand(line: Noun | VerbLine | undefined, verb: string | undefined): boolean {
  return line !== undefined && (isVerb(line) || line.verbs.some(([name]) => name === verb));
}

export function nounsWith(verb: string): string[] {
  return tree.flatMap((line) => (!isVerb(line) && line.verbs.some(([name]) => name === verb) ? [line.name] : []));
}

function lineNamed(name: string | undefined): Noun | VerbLine | undefined {
  return tree.find((line) => name !== undefined && [nameOf(line).name, nameOf(line).alias].includes(name));
}

function isVerb(line: Noun | VerbLine): line is VerbLine {
  return Array.isArray(line);
}

function nameOf(line: Noun | VerbLine): { name: string; alias?: string } {
  return isVerb(line) ? { name: line[0] } : line;
}

/**
 * Adds a verb's options only when the verb is typed; `onTyped` receives the typed verb. If `words` start with a
 * command, builds only that command, otherwise all commands without the verbs of nouns that are not typed. Without
 * `words`, builds everything.
 */
export function buildProgram(version: string, onTyped: (typed: Typed) => void, words?: readonly string[]): Command {
  const program = new Command("integ");
  program
    .description("Administer an organization's account through the Public Integration API.")
    .usage("<noun> <verb> [options]")
    .version(version, "-V, --version", "Print the version")
    .helpOption("-h, --help", "Show help")
    .helpCommand(false)
    .showSuggestionAfterError(true);
  addGlobalOptions(program as unknown as TypedCommand);
  const beginning = words && beginningOf(words);
  for (const { heading, lines } of beginning ? [{ heading: "", lines: [beginning] }] : groups) {
    program.commandsGroup(heading);
    for (const line of lines) {
      if (isVerb(line)) addVerb(program, line, onTyped);
      else addNoun(program, line, words && !isAmong(words, line) ? undefined : onTyped, words?.includes("--all"));
    }
  }
  loadWhenTyped(program, [...tree.filter(isVerb), ...runnableNouns(words)]);
  return program;
}

/** Returns the command that the words start with; a noun has only the typed verb. */
function beginningOf([first, second]: readonly string[]): Noun | VerbLine | undefined {
  const line = lineNamed(first);
  if (line === undefined || isVerb(line)) return line;
  const verb = line.verbs.find(([name]) => name === second);
  return verb && { ...line, verbs: [verb] };
}

/** `commands --json`, the man pages and the reference need the tree with all verbs loaded. */
export function wholeTree(): Promise<WholeTree> {
  return loadTree();
}

/** Completion needs only the options of typed verbs. */
export function treeAt(words: readonly string[]): Promise<WholeTree> {
  return loadTree(words);
}

async function loadTree(words?: readonly string[]): Promise<WholeTree> {
  const root = buildProgram("", () => {}, words);
  const load = async (parent: Command | undefined, lines: readonly VerbLine[]): Promise<void> => {
    for (const line of lines) {
      const leaf = parent?.commands.find((command) => command.name() === line[0]);
      if (leaf && (words === undefined || words.includes(line[0]))) await configureVerb(leaf, line);
    }
  };
  await load(root, [...tree.filter(isVerb), ...runnableNouns(words)]);
  for (const line of tree) {
    if (isVerb(line)) continue;
    const noun = root.commands.find((command) => command.name() === line.name);
    await load(noun, line.verbs);
  }
  return { root, verbOf: (command) => loaded.get(command) };
}

/** Returns the nouns that work without a verb; with `words`, only typed nouns without a typed verb. */
function runnableNouns(words?: readonly string[]): VerbLine[] {
  return tree.flatMap((line) => {
    if (isVerb(line) || line.all === undefined) return [];
    const isNamed = words === undefined || (isAmong(words, line) && !line.verbs.some(([name]) => words.includes(name)));
    return isNamed ? [[line.name, line.summary, line.all] as const] : [];
  });
}

function isAmong(words: readonly string[], { name, alias }: Noun): boolean {
  return words.some((word) => word === name || word === alias);
}

/** Without `onTyped`, adds only the noun's line for a help screen. `isAll` is true if `--all` was typed. */
function addNoun(program: Command, noun: Noun, onTyped: ((typed: Typed) => void) | undefined, isAll = false): void {
  const group = program.command(noun.name).description(noun.summary).helpCommand(false).usage("<verb> [options]");
  if (noun.alias) group.alias(noun.alias);
  if (!onTyped) return;
  addGlobalOptions(group as unknown as TypedCommand);
  if (noun.all) group.usage("(<verb> | --all) [options]");
  if (noun.all && isAll) runWhenTyped(group, onTyped);
  for (const line of noun.verbs) addVerb(group, line, onTyped);
  loadWhenTyped(group, noun.verbs);
}

function loadWhenTyped(parent: Command, lines: readonly VerbLine[]): void {
  parent.hook("preSubcommand", async (_parent, leaf) => {
    const line = lines.find(([name]) => name === leaf.name());
    if (line) await configureVerb(leaf, line);
  });
}

function addVerb(parent: Command, [name, summary]: VerbLine, onTyped: (typed: Typed) => void): void {
  const leaf = parent.command(name).description(summary).helpCommand(false);
  runWhenTyped(leaf, onTyped);
}

function runWhenTyped(command: Command, onTyped: (typed: Typed) => void): void {
  command.action(() => {
    const typed = typedFor(command);
    if (typed) onTyped(typed);
  });
}

async function configureVerb(leaf: Command, [, , load]: VerbLine): Promise<void> {
  const { command } = await load();
  loaded.set(leaf, command);
  const isNoun = leaf.commands.length > 0;
  // A noun already has the global options, so its own options start another group.
  if (isNoun) leaf.optionsGroup("Options:");
  command.configure(leaf as unknown as TypedCommand);
  if (!isNoun) addGlobalOptions(leaf as unknown as TypedCommand);
}
