import { defineVerb } from "../verb.ts";
import { mentionDamage } from "../running/change.ts";
import { entriesView, entriesPage } from "./view.ts";

export const command = defineVerb({
  configure: (command) => command.option("--all", "Include settled entries"),
  examples: [
    { line: "integ journal list", does: "what is unsettled, newest first, and what to type next" },
    { line: "integ journal list --all --json | jq '.data[].state'", does: "every entry, for a script" },
  ],
  async run(context, { options }) {
    const { isSettled } = await import("../../journal/entry.ts");
    const all = await (await context.journal()).entries();
    await mentionDamage(context);
    const { profile } = context.settings;
    const entries = profile === undefined ? all : all.filter((entry) => entry.profile === profile);
    const shown = options.all ? entries : entries.filter((entry) => !isSettled(entry.state));
    const list = context.output.list(entriesView);
    await list.page(entriesPage(shown));
    await list.end({ nextPageToken: null, hasMore: false });
    if (shown.length === 0) context.output.note(whyNone({ isEmpty: entries.length === 0, profile }));
  },
});

function whyNone({ isEmpty, profile }: { readonly isEmpty: boolean; readonly profile: string | undefined }): string {
  const of = profile === undefined ? "" : ` of profile ${profile}`;
  if (!isEmpty) return `Nothing${of} is unsettled. integ journal list --all shows everything.`;
  return of === "" ? "The journal is empty." : `The journal has no entry${of}.`;
}
