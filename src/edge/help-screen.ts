import type { Argument, Command, Help, Option } from "commander";
import { globalOptionsHeading } from "../commands/options/global.ts";
import type { Verb } from "../commands/verb.ts";
import { helpTopics } from "../completion/help-topics.ts";

/** In columns. With less space than this, a description is printed below its term. */
const leastBeside = 28;

export interface Section {
  readonly heading: string;
  readonly items: readonly (readonly [term: string, description: string])[];
}

/** @param helper has commander's texts, and the screen's width in `helpWidth` */
export function helpScreen(command: Command, helper: Help): string {
  const columns = helper.helpWidth ?? 80;
  const groups = helper.groupItems([...command.commands], helper.visibleCommands(command), (one) => one.helpGroup());
  const args = helper.visibleArguments(command);
  const options = helper.visibleOptions(command);
  const sections: Section[] = [
    ...[...groups].map(([heading, list]) => ({
      heading: heading || "Commands:",
      items: list.map((one) => [one.name(), helper.subcommandDescription(one)] as const),
    })),
    ...(command.parent ? [] : [{ heading: "Help topics:", items: Object.entries(helpTopics) }]),
    {
      heading: "Arguments:",
      items: args.map((one) => [helper.argumentTerm(one), helper.argumentDescription(one)] as const),
    },
    optionsSection(
      "Options:",
      options.filter((option) => !isGlobal(option) && !isInTopic(option, options)),
      helper,
    ),
  ];
  const hasTopic = options.some((option) => isInTopic(option, options));
  const globals = options.filter(isGlobal).map(shortest);
  const lettersFirst = globals.toSorted((one, other) => Number(one.length > 2) - Number(other.length > 2));
  return [
    wrapped(helper.commandDescription(command), { columns }),
    "",
    wrapped(`Usage: ${helper.commandUsage(command).replaceAll(/\|[a-z-]+/g, "")}`, { columns }),
    "",
    sectionsText(sections, helper),
    ...(hasTopic
      ? [wrapped("More destinations, formats and checks of the secret: integ help secrets", { columns })]
      : []),
    wrapped(`Global options: ${lettersFirst.join(", ")} (integ help options)`, { columns }),
    "",
  ].join("\n");
}

export function sectionsText(sections: readonly Section[], helper: Help): string {
  const columns = helper.helpWidth ?? 80;
  const width = Math.max(...sections.flatMap(({ items }) => items.map(([term]) => term.length)));
  const item = ([term, description]: Section["items"][number]): string =>
    columns - width - 4 < leastBeside
      ? `  ${term}\n${wrapped(description, { columns, before: "      " })}`
      : helper.formatItem(term, width, description, helper);
  return sections.flatMap(({ heading, items }) => helper.formatItemList(heading, items.map(item), helper)).join("\n");
}

export function optionsSection(heading: string, options: readonly Option[], helper: Help): Section {
  return { heading, items: options.map((one) => [helper.optionTerm(one), helper.optionDescription(one)]) };
}

export function isGlobal(option: Option): boolean {
  return option.helpGroupHeading === globalOptionsHeading;
}

/** `integ help secrets` explains these options for all commands. */
function isInTopic({ long }: Option, all: readonly Option[]): boolean {
  if (!all.some((one) => one.long === "--secret-file")) return false;
  return (
    long === "--escrow" || (long?.startsWith("--secret-") === true && !["--secret-file", "--secret-to"].includes(long))
  );
}

function shortest({ short, long, flags }: Option): string {
  return short ?? long ?? flags;
}

export function optionDescription({
  description,
  argChoices = [],
  defaultValue,
  negate = false,
}: Pick<Option, "description" | "argChoices"> & Partial<Option>): string {
  const isListed = argChoices.every((choice) => description.includes(choice));
  const values = [
    ...(isListed ? [] : [`one of: ${argChoices.join(", ")}`]),
    ...(negate || typeof defaultValue !== "string" ? [] : [`default: ${defaultValue}`]),
  ];
  return `${description}${values.length === 0 ? "" : ` (${values.join("; ")})`}`;
}

export function argumentDescription({ description, argChoices = [] }: Argument): string {
  return optionDescription({ description, argChoices });
}

export interface Screen {
  readonly width: number;
  readonly version: string;
}

export const rootNotes = {
  examples: [
    { line: "integ entities list --profile sandbox", does: "try it with no account" },
    { line: "integ help oauth-clients create", does: "a command's options and examples" },
    { line: "integ sandbox tour", does: "create, recover, rotate and audit in a few screens" },
  ],
};

export function helpNotes({ examples, more }: Pick<Verb, "examples" | "more">, columns: number): string {
  const width = Math.max(...examples.map(({ line }) => line.length));
  const isNarrow = width > 60 || examples.some(({ does }) => width + does.length + 5 > columns);
  const lines = examples.map(({ line, does }) =>
    isNarrow ? `${wrapped(does, { columns, before: "  # " })}\n  ${line}` : `  ${line.padEnd(width)}   ${does}`,
  );
  return `\nExamples:\n${lines.join("\n")}\n${more ? `\n${wrapped(more, { columns })}\n` : ""}`;
}

export function wrapped(text: string, { columns, before = "" }: { columns: number; before?: string }): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    const fits = line !== undefined && line.length + 1 + word.length <= columns;
    if (fits) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(before + word);
  }
  return lines.join("\n");
}
