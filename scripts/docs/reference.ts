// Writes the command reference, docs/commands.md.
import { flags } from "../../src/next-step.ts";
import { placeholder, usageOf, type Surface } from "../../src/completion/surface.ts";
import { isRunnable, nodesBelow, type Argument, type Flag, type Node } from "../../src/completion/tree.ts";

export function referenceText({ tree, environment, exitCodes }: Surface): string {
  const runnable = [...nodesBelow(tree.root)].filter((node) => node.path.length > 0 && isRunnable(node));
  const blocks = [
    "<!-- Printed from the command tree by `npm run docs`: change the program, not this file. -->",
    "# Commands",
    `The same in a terminal: \`integ help <command>\`; for a program: \`integ commands ${flags.json}\`.`,
    table(
      ["Command", "What it does"],
      runnable.map((node) => [`[${code(title(node))}](#${anchor(title(node))})`, cell(node.summary)]),
    ),
    ...tree.root.nodes.flatMap(topBlocks),
    "## Global options",
    "Every command takes these, before or after its name.",
    flagTable([...tree.globals, ...tree.root.flags]),
    "## Environment",
    table(
      ["Variable", "Meaning", "Flag that wins"],
      environment.map(({ name, meaning, flag }) => [code(name), cell(meaning), flag ? code(flag) : ""]),
    ),
    "## Exit codes",
    table(
      ["Code", "Kind", "When"],
      exitCodes.map(({ code: number, kind, when }) => [String(number), kind ? code(kind) : "", cell(when)]),
    ),
  ];
  return `${blocks.join("\n\n")}\n`;
}

function topBlocks(node: Node): string[] {
  if (node.nodes.length === 0) return [`## ${title(node)}`, sentence(node.summary), ...verbBlocks(node)];
  const alias =
    node.aliases.length === 0 ? "" : ` Short: ${node.aliases.map((name) => code(`integ ${name}`)).join(", ")}.`;
  const verbs = node.nodes.flatMap((verb) => [`### ${title(verb)}`, sentence(verb.summary), ...verbBlocks(verb)]);
  const own = isRunnable(node) ? verbBlocks(node) : [];
  return [`## ${title(node)}`, `${sentence(node.summary)}${alias}`, ...own, ...verbs];
}

function verbBlocks(node: Node): string[] {
  return [
    fenced([usageOf(node)]),
    ...(node.arguments.length === 0 ? [] : [table(["Argument", "Meaning"], node.arguments.map(argumentRow))]),
    ...(node.flags.length === 0 ? [] : [flagTable(node.flags)]),
    ...(node.more === undefined ? [] : [prose(node.more)]),
    fenced(node.examples.flatMap(({ line, does }) => [`# ${does}`, line])),
  ];
}

function title({ path }: Node): string {
  return ["integ", ...path].join(" ");
}

/** @returns the anchor that GitHub and GitLab generate for the heading */
function anchor(heading: string): string {
  return heading.toLowerCase().replaceAll(" ", "-");
}

function sentence(words: string): string {
  const ended = /[.!?]$/.test(words) ? words : `${words}.`;
  return prose(`${ended.charAt(0).toUpperCase()}${ended.slice(1)}`);
}

function argumentRow(argument: Argument): string[] {
  return [code(placeholder(argument)), cell(argument.summary)];
}

function flagTable(flags: readonly Flag[]): string {
  return table(["Flag", "Meaning", "Default"], flags.map(flagRow));
}

function flagRow(flag: Flag): string[] {
  const names = [flag.short, flag.long].filter((name) => name !== undefined).join(", ");
  const value = flag.value ? ` ${placeholder({ ...flag.value, required: true })}` : "";
  const words =
    flag.value?.completion.kind === "words" && !flag.value.completion.open ? flag.value.completion.words : [];
  const missing = words.some((word) => !flag.summary.includes(word));
  const choices = missing ? ` (one of: ${words.map(code).join(", ")})` : "";
  return [
    code(`${names}${value}`),
    `${cell(flag.summary)}${choices}${flag.mandatory ? " (required)" : ""}`,
    flag.standard ?? "",
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Escapes `|`, which would end a cell of a table. */
function code(words: string): string {
  return `\`${words.replaceAll("|", "\\|")}\``;
}

function cell(words: string): string {
  return prose(words).replaceAll("|", "\\|");
}

function prose(words: string): string {
  return words
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") ? part : part.replaceAll(/[\\*_[\]]/g, "\\$&").replaceAll("<", "&lt;")))
    .join("");
}

function fenced(lines: readonly string[]): string {
  return ["```sh", ...lines, "```"].join("\n");
}
