// Owns: the tree flattened into the tables that every shell's script is made of, so that all shells complete alike. Pure.
// Must not know: the syntax of any shell.
import { nodesBelow, type Flag, type Node, type Tree, type Value } from "./tree.ts";

/** A word with what is said of it. */
export interface Told {
  readonly word: string;
  readonly summary: string;
}

/** What may follow a flag: nothing, exactly one value, or values as long as no flag begins. */
export type Follows = "nothing" | "one" | "many";

export interface FlagLine {
  /** `--output`, then its short form where it has one. */
  readonly names: readonly string[];
  readonly summary: string;
  readonly follows: Follows;
  readonly kind: string;
}

export interface NodeLine {
  /** `integ oauth-clients create` */
  readonly key: string;
  readonly children: readonly (Told & { readonly aliases: readonly string[] })[];
  readonly flags: readonly FlagLine[];
  /** Kinds of its arguments, by position; the last one repeats where `repeats` says so. */
  readonly arguments: readonly string[];
  readonly repeats: boolean;
}

export interface Grammar {
  readonly nodes: readonly NodeLine[];
  readonly globals: readonly FlagLine[];
}

/** What stands at the top of every script. */
export const origin = (shell: string): string =>
  `${shell} completion for integ, printed by "integ completion ${shell}": change the program, not this file.`;

/**
 * Kinds of values, as the scripts tell them apart: `=a b` words, `@profiles` live names, `files`, `nothing`.
 * @throws Error for a word that would not survive in a list of words
 */
export function kindOf({ completion }: Value): string {
  if (completion.kind === "live") return `@${completion.names}`;
  if (completion.kind !== "words") return completion.kind;
  const bad = completion.words.find((word) => !/^[\w*:./-]+$/.test(word));
  if (bad !== undefined) throw new Error(`A completed word needs quoting that the scripts do not do: ${bad}`);
  return `=${completion.words.join(" ")}`;
}

export function grammarOf(tree: Tree): Grammar {
  const nodes = [...nodesBelow(tree.root)].map(nodeLine);
  const root = nodes[0]!;
  const help = { word: "help", summary: "help of a command", aliases: [] };
  return {
    nodes: [{ ...root, children: [...root.children, help] }, ...nodes.slice(1)],
    globals: tree.globals.map(flagLine),
  };
}

function nodeLine(node: Node): NodeLine {
  return {
    key: keyOf(node),
    children: node.nodes.map(({ path, summary, aliases }) => ({ word: path.at(-1)!, summary, aliases })),
    flags: node.flags.map(flagLine),
    arguments: node.arguments.map(kindOf),
    repeats: node.arguments.at(-1)?.repeatable ?? false,
  };
}

function keyOf(node: Node): string {
  return ["integ", ...node.path].join(" ");
}

function flagLine(flag: Flag): FlagLine {
  const { value } = flag;
  const many = value && (value.repeatable || !value.required);
  return {
    names: flag.short === undefined ? [flag.long] : [flag.long, flag.short],
    summary: flag.summary,
    follows: value ? (many ? "many" : "one") : "nothing",
    kind: value ? kindOf(value) : "nothing",
  };
}
