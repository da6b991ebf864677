// Creates the JSON document of `integ commands --json`, on which scripts may rely.
import { flags } from "../next-step.ts";
import { type Argument, type Flag, isRunnable, type Node, type Tree, type Value } from "./tree.ts";

export interface Variable {
  readonly name: string;
  readonly meaning: string;
  readonly flag?: string;
}

export interface ExitCode {
  readonly code: number;
  /** Null for exit code 0. */
  readonly kind: string | null;
  readonly when: string;
}

export interface Surface {
  readonly tree: Tree;
  readonly environment: readonly Variable[];
  readonly exitCodes: readonly ExitCode[];
}

/** @returns such as `integ oauth-clients get [options] <id>` */
export function usageOf(node: Node): string {
  const values = node.arguments.map(placeholder);
  const verb = isRunnable(node) ? `(<verb> | ${flags.all})` : "<verb>";
  const below = node.path.length === 0 ? ["<noun>", "<verb>"] : node.nodes.length > 0 ? [verb] : [];
  return ["integ", ...node.path, ...below, "[options]", ...values].join(" ");
}

export function placeholder({ name, required, repeatable }: Value): string {
  const text = `${name}${repeatable ? "..." : ""}`;
  return required ? `<${text}>` : `[${text}]`;
}

export function surfaceDocument({ tree, environment, exitCodes }: Surface, version: string): unknown {
  return {
    object: "program",
    name: "integ",
    version,
    summary: tree.root.summary,
    global_flags: tree.globals.map(flagDocument),
    flags: tree.root.flags.map(flagDocument),
    commands: tree.root.nodes.map(nodeDocument),
    environment: environment.map(({ name, meaning, flag }) => ({ name, meaning, flag: flag ?? null })),
    exit_codes: exitCodes.map(({ code, kind, when }) => ({ code, kind, when })),
  };
}

export function nodeDocument(node: Node): Record<string, unknown> {
  return {
    object: "command",
    name: node.path.at(-1),
    command: ["integ", ...node.path].join(" "),
    aliases: node.aliases,
    summary: node.summary,
    usage: usageOf(node),
    arguments: node.arguments.map((argument) => ({ ...valueDocument(argument), summary: argument.summary })),
    flags: node.flags.map(flagDocument),
    examples: node.examples.map(({ line, does }) => ({ line, does })),
    notes: node.more ?? null,
    commands: node.nodes.map(nodeDocument),
  };
}

function flagDocument(flag: Flag): Record<string, unknown> {
  return {
    name: flag.long,
    short: flag.short ?? null,
    summary: flag.summary,
    required: flag.mandatory,
    default: flag.standard ?? null,
    value: flag.value ? valueDocument(flag.value) : null,
  };
}

/** `choices` is a complete list of valid values, and `known` has examples. Each is null without such a list. */
function valueDocument({ name, required, repeatable, completion }: Value | Argument): Record<string, unknown> {
  const words = completion.kind === "words" ? completion : undefined;
  return {
    name,
    required,
    repeatable,
    choices: words && !words.open ? words.words : null,
    known: words?.open ? words.words : null,
    file: completion.kind === "files",
  };
}
