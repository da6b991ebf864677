// Converts commander's commands to plain data, for completion and documents.
import { helpTopics } from "./help-topics.ts";
import { completionOf, type Completion } from "./values.ts";

/** The members of commander's classes that this file uses. */
interface DeclaredOption {
  readonly short?: string | undefined;
  readonly long?: string | undefined;
  readonly flags: string;
  readonly description: string;
  readonly required: boolean;
  readonly optional: boolean;
  readonly variadic: boolean;
  readonly mandatory: boolean;
  readonly negate: boolean;
  readonly hidden: boolean;
  readonly defaultValue?: unknown;
  readonly argChoices?: readonly string[] | undefined;
}

interface DeclaredArgument {
  name(): string;
  readonly description: string;
  readonly required: boolean;
  readonly variadic: boolean;
  readonly argChoices?: readonly string[] | undefined;
}

export interface DeclaredCommand {
  name(): string;
  aliases(): readonly string[];
  description(): string;
  readonly options: readonly DeclaredOption[];
  readonly registeredArguments: readonly DeclaredArgument[];
  readonly commands: readonly DeclaredCommand[];
}

export interface Notes {
  readonly examples: readonly { readonly line: string; readonly does: string }[];
  readonly more?: string | undefined;
  /** Documented fields of the command's output, which `--fields` accepts. */
  readonly fields?: readonly string[] | undefined;
}

export interface Value {
  /** The text between the brackets, such as `id`. */
  readonly name: string;
  readonly required: boolean;
  readonly repeatable: boolean;
  readonly completion: Completion;
}

export interface Flag {
  readonly short?: string;
  /** With its dashes, such as `--secret-file` or `--no-input`. */
  readonly long: string;
  readonly summary: string;
  readonly value?: Value;
  readonly mandatory: boolean;
  readonly standard?: string;
}

export interface Argument extends Value {
  readonly summary: string;
}

export interface Node {
  /** The words after `integ`, such as `["oauth-clients", "create"]`; empty for `integ` itself. */
  readonly path: readonly string[];
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly arguments: readonly Argument[];
  /** The command's own flags; global flags are in `Tree`. */
  readonly flags: readonly Flag[];
  readonly nodes: readonly Node[];
  readonly examples: Notes["examples"];
  readonly more?: string;
  readonly fields?: readonly string[];
}

export interface Tree {
  readonly root: Node;
  readonly globals: readonly Flag[];
  readonly topics: readonly { readonly text: string; readonly summary: string }[];
}

const help: Flag = { short: "-h", long: "--help", summary: "Show help", mandatory: false };

export function treeOf(root: DeclaredCommand, notesOf: (command: DeclaredCommand) => Notes | undefined): Tree {
  const globalNames = new Set(root.options.map(({ long }) => long).filter((long) => long !== "--version"));
  const globals = root.options.filter(({ long, hidden }) => globalNames.has(long) && !hidden);
  const nodeOf = (command: DeclaredCommand, path: readonly string[]): Node => {
    const notes = notesOf(command);
    const own = command.options.filter(({ long, hidden }) => !globalNames.has(long) && !hidden);
    return {
      path,
      aliases: command.aliases(),
      summary: command.description(),
      arguments: command.registeredArguments.map((argument) => argumentOf(argument, path)),
      flags: own.map((option) => flagOf(option, path)),
      nodes: command.commands.map((child) => nodeOf(child, [...path, child.name()])),
      examples: notes?.examples ?? [],
      more: notes?.more,
      fields: notes?.fields,
    };
  };
  return {
    root: nodeOf(root, []),
    globals: [...globals.map((option) => flagOf(option, [])), help],
    topics: Object.entries(helpTopics).map(([text, summary]) => ({ text, summary })),
  };
}

/** True for verbs, and for nouns that work without a verb. */
export function isRunnable({ nodes, examples }: Node): boolean {
  return nodes.length === 0 || examples.length > 0;
}

export function* nodesBelow(node: Node): Generator<Node> {
  yield node;
  for (const child of node.nodes) yield* nodesBelow(child);
}

function flagOf(option: DeclaredOption, path: readonly string[]): Flag {
  const long = option.long ?? option.short!;
  const standard = option.negate || option.defaultValue === undefined ? undefined : standardOf(option.defaultValue);
  return {
    short: option.long === undefined ? undefined : option.short,
    long,
    summary: option.description,
    value: option.required || option.optional ? valueOf(option, { long, path }) : undefined,
    mandatory: option.mandatory,
    standard,
  };
}

function valueOf(option: DeclaredOption, { long, path }: { long: string; path: readonly string[] }): Value {
  const name = /[<[]([^>\]]+)[>\]]/.exec(option.flags)?.[1]?.replace(/\.{3}$/, "") ?? "value";
  return {
    name,
    required: option.required,
    repeatable: option.variadic || Array.isArray(option.defaultValue),
    completion: completionOf({ path, name, flag: long, choices: option.argChoices }),
  };
}

function argumentOf(argument: DeclaredArgument, path: readonly string[]): Argument {
  const name = argument.name();
  return {
    name,
    required: argument.required,
    repeatable: argument.variadic,
    summary: argument.description,
    completion: completionOf({ path, name, choices: argument.argChoices }),
  };
}

function standardOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.join(" ");
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}
