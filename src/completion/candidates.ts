// Finds the candidates at the cursor. All shells call `integ __complete`, so that they complete alike.
import type { Flag, Node, Tree, Value } from "./tree.ts";
import type { LiveNames } from "./values.ts";

export interface Candidate {
  readonly text: string;
  readonly summary?: string;
}

/** `prefix` is the start of the word that all candidates keep, such as `--output=`. */
export type Candidates = { readonly prefix: string } & (
  | { readonly kind: "commands" | "options" | "values"; readonly list: readonly Candidate[] }
  | { readonly kind: "files" }
  | { readonly kind: "live"; readonly names: LiveNames }
);

const nothing: Candidates = { kind: "values", prefix: "", list: [] };

interface WordContext {
  readonly node: Node;
  readonly argumentCount: number;
  /** A flag whose value may follow. With `isOptional`, another flag may follow instead. */
  readonly open: { readonly flag: Flag; readonly isOptional: boolean } | undefined;
  /** True after `--`: no flags follow. */
  readonly isPlain: boolean;
  /** True after `integ help`: the words name a command. */
  readonly isHelp: boolean;
  readonly usedFlags: ReadonlySet<string>;
}

/** @param words the words before the cursor, without the program's name */
export function candidatesAt(tree: Tree, words: readonly string[], current: string): Candidates {
  const context = contextAfter(tree, words);
  const { node, open, isPlain, isHelp } = context;
  const isFlag = !isPlain && current.startsWith("-");
  if (open && !(open.isOptional && current.startsWith("-"))) return valuesOf(open.flag.value, { node, current });
  const glued = isFlag ? /^(--[^=]+=)/.exec(current)?.[1] : undefined;
  if (glued !== undefined) {
    const value = flagNamed(tree, node, glued.slice(0, -1))?.value;
    return value ? valuesOf(value, { node, prefix: glued, current: current.slice(glued.length) }) : nothing;
  }
  if (isHelp) return commandsOf(node, current, node === tree.root ? tree.topics : []);
  if (isFlag) return optionsOf([...node.flags, ...tree.globals], context);
  if (node.nodes.length > 0) return commandsOf(node, current, node === tree.root ? [helpCandidate] : []);
  const argument = argumentAt(node, context.argumentCount);
  if (argument) return valuesOf(argument, { node, current });
  return isPlain || current !== "" ? nothing : optionsOf(node.flags, context);
}

const helpCandidate: Candidate = { text: "help", summary: "Show help for a command or topic" };

function contextAfter(tree: Tree, words: readonly string[]): WordContext {
  let node = tree.root;
  let argumentCount = 0;
  let open: WordContext["open"];
  let isPlain = false;
  let isHelp = false;
  const usedFlags = new Set<string>();
  for (const word of words) {
    if (open && !(open.isOptional && word.startsWith("-"))) {
      open = takesMany(open.flag) ? { flag: open.flag, isOptional: true } : undefined;
      continue;
    }
    open = undefined;
    if (!isPlain && word === "--") {
      isPlain = true;
    } else if (!isPlain && word.length > 1 && word.startsWith("-")) {
      const [name = ""] = word.split("=", 1);
      const flag = flagNamed(tree, node, name);
      const hasInlineValue = word.includes("=");
      if (flag?.value && (!hasInlineValue || takesMany(flag))) open = { flag, isOptional: hasInlineValue };
      usedFlags.add(name);
    } else {
      const child = node.nodes.find(({ path, aliases }) => path.at(-1) === word || aliases.includes(word));
      if (child) node = child;
      else if (node === tree.root && word === "help") isHelp = true;
      else argumentCount += 1;
    }
  }
  return { node, argumentCount, open, isPlain, isHelp, usedFlags };
}

function flagNamed({ globals }: Tree, node: Node, name: string): Flag | undefined {
  return [...node.flags, ...globals].find(({ long, short }) => long === name || short === name);
}

function takesMany({ value }: Flag): boolean {
  return value !== undefined && (value.repeatable || !value.required);
}

function commandsOf(node: Node, current: string, more: readonly Candidate[]): Candidates {
  const names = [...node.nodes.map(({ path, summary }) => ({ text: path.at(-1)!, summary })), ...more];
  const aliases = node.nodes.flatMap((child) => child.aliases.map((text) => ({ text, summary: child.summary })));
  const matches = ({ text }: Candidate): boolean => text.startsWith(current);
  return { kind: "commands", prefix: "", list: !names.some(matches) && aliases.some(matches) ? aliases : names };
}

function optionsOf(flags: readonly Flag[], { usedFlags }: WordContext): Candidates {
  const namesOf = ({ long, short }: Flag): string[] => (short === undefined ? [long] : [long, short]);
  const unused = flags.filter((flag) => takesMany(flag) || !namesOf(flag).some((name) => usedFlags.has(name)));
  const list = unused.flatMap((flag) => namesOf(flag).map((text) => ({ text, summary: flag.summary })));
  return { kind: "options", prefix: "", list };
}

function argumentAt({ arguments: all }: Node, index: number): Value | undefined {
  return all[index] ?? (all.at(-1)?.repeatable ? all.at(-1) : undefined);
}

interface ValuePosition {
  readonly node: Node;
  readonly current: string;
  readonly prefix?: string;
}

function valuesOf(value: Value | undefined, { node, current, prefix = "" }: ValuePosition): Candidates {
  const completion = value?.completion;
  if (completion?.kind === "fields") return { kind: "values", prefix, list: fieldsOf(node, current) };
  if (completion?.kind === "files") return { kind: "files", prefix };
  if (completion?.kind === "live") return { kind: "live", names: completion.names, prefix };
  const words = completion?.kind === "words" ? completion.words : [];
  return { kind: "values", prefix, list: words.map((text) => ({ text })) };
}

/** Each candidate contains the fields before it, because shells complete whole words. */
function fieldsOf({ fields = [] }: Node, current: string): Candidate[] {
  const before = current.slice(0, current.lastIndexOf(",") + 1);
  const typed = before.split(",");
  return fields.filter((name) => !typed.includes(name)).map((name) => ({ text: before + name }));
}
