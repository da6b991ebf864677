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
    const list = context.output.list({ ...entriesView, empty: whyNone({ isEmpty: entries.length === 0, profile }) });
    await list.page(entriesPage(shown));
    await list.end({ nextPageToken: null, hasMore: false });
  },
});

function whyNone({ isEmpty, profile }: { readonly isEmpty: boolean; readonly profile: string | undefined }): string {
  const of = profile === undefined ? "" : ` of profile ${profile}`;
  return isEmpty ? `No changes${of}.` : `No unfinished changes${of}. integ journal list --all shows the finished ones.`;
}
