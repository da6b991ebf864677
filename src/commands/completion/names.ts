// Owns: `integ __complete`: the names of this machine that completion offers, a line each, what it is after a tab.
// Must not know: the network. Nothing here may fail aloud, wait or write: a person has pressed Tab.
import { liveNames, type LiveNames } from "../../completion/values.ts";
import type { Context } from "../../context.ts";
import type { Choice } from "../../output/output.ts";
import { entryChoices, everyProfile } from "../known-names.ts";
import { defineVerb } from "../verb.ts";

type Line = readonly [name: string, what: string];

export const command = defineVerb({
  configure: (command) => command.addArgument(command.createArgument("<what>", "which names").choices(liveNames)),
  examples: [{ line: "integ __complete profiles", does: "names of profiles" }],
  async run(context, { args: [what] }) {
    const lines = await linesOf(context, what).catch((): Line[] => []);
    const text = lines.map((line) => line.map(onOneLine).join("\t")).join("\n");
    if (text !== "") await context.output.text(text);
  },
});

/** Control characters would break the line, or act in the shell's menu. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}

async function linesOf(context: Context, what: LiveNames): Promise<Line[]> {
  if (what === "profiles") return linesFor(await everyProfile(context));
  // A shared journal is reached over the network.
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(context.settings.journalPath)) return [];
  const { isSettled } = await import("../../journal/entry.ts");
  const entries = await (await context.journal()).entries();
  const shown = what === "unsettled" ? entries.filter(({ state }) => !isSettled(state)) : entries;
  if (what === "entries" || what === "unsettled") return linesFor(entryChoices(shown));
  const prefix = what === "clients" ? "oauth_client." : "access_key.";
  const known = new Map<string, string>();
  for (const { operation, resource_id, state, created_at } of entries) {
    if (!operation.startsWith(prefix) || resource_id === null || known.has(resource_id)) continue;
    known.set(resource_id, `${operation}, ${state}, ${created_at.slice(0, 10)}`);
  }
  return [...known];
}

function linesFor(choices: readonly Choice[]): Line[] {
  return choices.map(({ value, hint = "" }) => [value, hint]);
}
