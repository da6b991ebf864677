// How a help screen reads: what it does, how it is typed, what it takes, and last, where the eye rests, examples.
import type { Command, Help } from "commander";
import type { Verb } from "../commands/verb.ts";

/** Where what is said of a flag has less room than this beside it, it stands below. Columns. */
const besideAtLeast = 28;

/** The layout that commander asks for. @param helper its own pieces, wrapped to the terminal's width */
export function helpScreen(command: Command, helper: Help): string {
  const width = helper.padWidth(command, helper);
  const columns = helper.helpWidth ?? 80;
  const item = (term: string, description: string): string =>
    columns - width - 4 < besideAtLeast
      ? `  ${term}\n${wrapped(description, { columns, before: "      " })}`
      : helper.formatItem(term, width, description, helper);
  const isGroup = command.commands.length > 0;
  const section = (heading: string, items: string[]): string[] => helper.formatItemList(heading, items, helper);
  const commands = helper.visibleCommands(command).map((one) => item(one.name(), helper.subcommandDescription(one)));
  const args = helper
    .visibleArguments(command)
    .map((one) => item(helper.argumentTerm(one), helper.argumentDescription(one)));
  const last = ([heading]: [string, unknown]): number => (heading === globalHeading ? 1 : 0);
  const groups = [...groupsOf(command, helper)].sort((a, b) => last(a) - last(b));
  const options = groups.flatMap(([heading, list]) =>
    isGroup && command.parent && heading === globalHeading
      ? [wrapped(`${globalHeading} integ --help lists them; they work before and after a command.`, { columns }), ""]
      : section(
          heading,
          list.map((one) => item(helper.optionTerm(one), helper.optionDescription(one))),
        ),
  );
  return [
    wrapped(helper.commandDescription(command), { columns }),
    "",
    wrapped(`Usage: ${helper.commandUsage(command).replaceAll(/\|[a-z-]+/g, "")}`, { columns }),
    "",
    ...section("Commands:", commands),
    ...section("Arguments:", args),
    ...options,
  ].join("\n");
}

export interface Screen {
  /** Columns for help screens. */
  readonly width: number;
  readonly version: string;
}

/** What stands below the help of `integ` alone. */
export const rootNotes = {
  examples: [
    { line: "integ entities list --profile sandbox", does: "try it with no account" },
    { line: "integ help oauth-clients create", does: "a command's options and examples" },
    { line: "integ sandbox tour", does: "the main job in a few screens" },
  ],
};

/** What stands below the options: examples, as they are typed, and further paragraphs. @param columns of the terminal */
export function helpNotes({ examples, more }: Pick<Verb, "examples" | "more">, columns: number): string {
  const width = Math.max(...examples.map(({ line }) => line.length));
  const isNarrow = width > 60 || examples.some(({ does }) => width + does.length + 5 > columns);
  const lines = examples.map(({ line, does }) =>
    isNarrow ? `${wrapped(does, { columns, before: "  # " })}\n  ${line}` : `  ${line.padEnd(width)}   ${does}`,
  );
  return `\nExamples:\n${lines.join("\n")}\n${more ? `\n${wrapped(more, { columns })}\n` : ""}`;
}

/** Words as many as fit in a line. */
function wrapped(text: string, { columns, before = "" }: { columns: number; before?: string }): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    const fits = line !== undefined && line.length + 1 + word.length <= columns;
    if (fits) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(before + word);
  }
  return lines.join("\n");
}

const globalHeading = "Global options:";

function groupsOf(command: Command, helper: Help): Map<string, ReturnType<Help["visibleOptions"]>> {
  const groups = new Map<string, ReturnType<Help["visibleOptions"]>>();
  for (const option of helper.visibleOptions(command)) {
    const heading = option.helpGroupHeading ?? "Options:";
    groups.set(heading, [...(groups.get(heading) ?? []), option]);
  }
  return groups;
}
