import { defineVerb } from "../verb.ts";
import { mentionDamage } from "../running/change.ts";
import { entriesView, entriesPage } from "./view.ts";

export const command = defineVerb({
  configure: (command) => command.option("--all", "settled entries too"),
  examples: [
    { line: "integ journal list", does: "what is unsettled, newest first, and what to type next" },
    { line: "integ journal list --all --json | jq '.data[].state'", does: "every entry, for a script" },
  ],
  async run(context, { options }) {
    const { isSettled } = await import("../../journal/entry.ts");
    const entries = await (await context.journal()).entries();
    await mentionDamage(context);
    const shown = options.all ? entries : entries.filter((entry) => !isSettled(entry.state));
    const list = context.output.list(entriesView);
    await list.page(entriesPage(shown));
    await list.end({ nextPageToken: null, hasMore: false });
    if (shown.length === 0)
      context.output.note(
        entries.length === 0
          ? "The journal is empty."
          : "Nothing is unsettled. integ journal list --all shows everything.",
      );
  },
});
