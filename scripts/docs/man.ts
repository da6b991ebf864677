// Writes a man page for each command, with man(7) macros.
import { placeholder, usageOf, type Surface } from "../../src/completion/surface.ts";
import { isRunnable, nodesBelow, type Flag, type Node } from "../../src/completion/tree.ts";

export interface Page {
  readonly file: string;
  readonly text: string;
}

/** The pages have the contract's date (§9) instead of the build's, so that they change only with the program. */
export function manPages(surface: Surface): Page[] {
  return [...nodesBelow(surface.tree.root)].map((node) => ({
    file: `${pageName(node.path)}.1`,
    text: node.path.length === 0 ? rootPage(surface) : commandPage(node),
  }));
}

function pageName(path: readonly string[]): string {
  return ["integ", ...path].join("-");
}

function rootPage({ tree, environment, exitCodes }: Surface): string {
  const { root, globals } = tree;
  return page(root, [
    section(
      "COMMANDS",
      [...nodesBelow(root)].filter((node) => node.path.length > 0 && isRunnable(node)).map(reference),
    ),
    section("OPTIONS", root.flags.map(flagItem)),
    section("GLOBAL OPTIONS", [
      ...paragraph("Every command takes these, before or after its name."),
      ...globals.map(flagItem),
    ]),
    section(
      "ENVIRONMENT",
      environment.map(({ name, meaning, flag }) =>
        item(bold(name), flag ? `${text(meaning)} (${bold(flag)})` : text(meaning)),
      ),
    ),
    section(
      "EXIT STATUS",
      exitCodes.map(({ code, kind, when }) =>
        item(bold(String(code)), kind ? `${bold(kind)}: ${text(when)}` : text(when)),
      ),
    ),
  ]);
}

function commandPage(node: Node): string {
  const others = node.path.length > 1 ? [node.path.slice(0, -1), []] : [[]];
  const below = node.nodes.map(({ path }) => path);
  const related = [...others, ...below].map((path) => `.BR ${pageName(path).replaceAll("-", "\\-")} (1)`);
  return page(node, [
    section("COMMANDS", node.nodes.map(reference)),
    section(
      "ARGUMENTS",
      node.arguments.map((argument) => item(italic(placeholder(argument)), text(argument.summary))),
    ),
    section("OPTIONS", node.flags.map(flagItem)),
    section(
      "EXAMPLES",
      node.examples.flatMap(({ line, does }) => [...paragraph(does), ".EX", `    ${plain(line)}`, ".EE"]),
    ),
    section("SEE ALSO", related.join(" ,\n").split("\n")),
  ]);
}

function page(node: Node, sections: readonly string[][]): string {
  const name = pageName(node.path);
  const words = [...(node.more ? paragraph(node.more) : []), ...aliasLines(node), ...globalsLine(node)];
  const lines = [
    '.\\" Printed from the command tree: change the program, not this file.',
    `.TH ${name.toUpperCase().replaceAll("-", "\\-")} 1 2026-07-01 integ "integ manual"`,
    ...section("NAME", [filled(`${plain(name)} \\- ${text(node.summary.replace(/\.$/, ""))}`)]),
    ...section("SYNOPSIS", [synopsis(node)]),
    ...section("DESCRIPTION", words),
    ...sections.flat(),
  ];
  return `${lines.join("\n")}\n`;
}

function section(title: string, lines: readonly string[]): string[] {
  const rest = lines[0] === ".PP" ? lines.slice(1) : lines;
  return rest.length === 0 ? [] : [`.SH ${title}`, ...rest];
}

function synopsis(node: Node): string {
  const command = ["integ", ...node.path].join(" ");
  return `${bold(command)}${italic(usageOf(node).slice(command.length))}`;
}

function aliasLines({ path, aliases }: Node): string[] {
  return aliases.length === 0 ? [] : paragraph(`${path.join(" ")} may be written ${aliases.join(" or ")}.`);
}

function globalsLine({ path }: Node): string[] {
  if (path.length === 0) return [];
  return [".PP", "The global options, the environment and the exit status are described in", ".BR integ (1)."];
}

function reference(node: Node): string {
  return item(bold(["integ", ...node.path].join(" ")), text(node.summary));
}

function flagItem(flag: Flag): string {
  const names = [flag.short, flag.long].filter((name) => name !== undefined).map(bold);
  const value = flag.value ? ` ${italic(placeholder({ ...flag.value, required: true }))}` : "";
  return item(`${names.join(", ")}${value}`, flagText(flag));
}

function flagText({ summary, value, standard, mandatory }: Flag): string {
  const choices = value?.completion.kind === "words" && !value.completion.open ? value.completion.words : [];
  const rest = [
    ...(choices.length > 0 ? [`one of ${choices.join(", ")}`] : []),
    ...(standard === undefined ? [] : [`default ${standard}`]),
    ...(mandatory ? ["required"] : []),
    ...(value?.repeatable ? ["repeatable"] : []),
  ].filter((part) => !summary.includes(part));
  return text([summary, ...rest].join("; "));
}

function item(tag: string, words: string): string {
  return `.TP\n${tag}\n${filled(words)}`;
}

function paragraph(words: string): string[] {
  return words.split("\n\n").flatMap((part) => [".PP", filled(text(part))]);
}

/** Roff linters warn about source lines above 80 bytes. The reader's width decides the final lines. */
function filled(words: string): string {
  const lines: string[] = [""];
  for (const word of words.split(/\s+/)) {
    const line = lines.at(-1)!;
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= 80) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.map((line) => (line.startsWith(".") ? `\\&${line}` : line)).join("\n");
}

function bold(words: string): string {
  return `\\fB${plain(words)}\\fR`;
}

function italic(words: string): string {
  return `\\fI${plain(words)}\\fR`;
}

const glyphs: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
};

function plain(words: string): string {
  const escaped = words.replaceAll(/[\\'`^~-]/g, (character) => glyphs[character]!);
  return escaped.replaceAll(/[^\0-\x7f]/gu, (character) => {
    return `\\[u${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}

function text(words: string): string {
  return words
    .split(/`([^`]*)`/)
    .map((part, at) => (at % 2 === 1 ? bold(part) : plain(part)))
    .join("");
}
