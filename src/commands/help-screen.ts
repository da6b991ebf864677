// Owns: how a help screen reads: what it does, how it is typed, what it takes, and last, where the eye rests, examples.
// Must not know: any one command. Pure.
import type { Command, Help } from "commander";

/** The layout that commander asks for. @param helper its own pieces, wrapped to the terminal's width */
export function helpScreen(command: Command, helper: Help): string {
  const width = helper.padWidth(command, helper);
  const item = (term: string, description: string): string => helper.formatItem(term, width, description, helper);
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
      ? [`${globalHeading} integ --help lists them; they work before and after a command.`, ""]
      : section(
          heading,
          list.map((one) => item(helper.optionTerm(one), helper.optionDescription(one))),
        ),
  );
  return [
    helper.boxWrap(helper.commandDescription(command), helper.helpWidth ?? 80),
    "",
    `Usage: ${helper.commandUsage(command).replaceAll(/\|[a-z-]+/g, "")}`,
    "",
    ...section("Commands:", commands),
    ...section("Arguments:", args),
    ...options,
  ].join("\n");
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
