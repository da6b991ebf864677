import { type Entry, isEarly, isSettled } from "../../journal/entry.ts";
import { askEntry } from "../options/known-names.ts";
import type { Context } from "../../context.ts";
import type { ListView } from "../../output/formats/format.ts";
import { defineVerb } from "../verb.ts";
import { deliveriesOf, deliveriesView } from "./deliveries.ts";
import { type EntryExtras, entryView, entryWithHolderView, historyView, publicEntry, untrustedWords } from "./view.ts";
import { warnOfMove } from "../running/change.ts";

export const command = defineVerb({
  isPaged: true,
  fields: entryView.columns.map(({ path }) => path),
  configure: (command) => command.argument("<id>", "The entry's id, or its first characters"),
  examples: [
    { line: "integ journal show 6k2f9", does: "one entry: its key, its request, its steps and who made them" },
    { line: "integ journal show 6k2f9 --json | jq .request", does: "the exact request" },
  ],
  asks: (context) => askEntry(context, { question: "Which entry?" }),
  async run(context, { args: [id] }) {
    const journal = await context.journal();
    await warnOfMove(context);
    const entry = await journal.find(id);
    const history = (await journal.history(entry.id)).map(({ at, state, actor }) => ({ at, state, actor }));
    const destinations = await deliveriesOf(journal, entry);
    const holder = (await journal.holders()).get(entry.id);
    const isUntrusted = (await journal.untrusted([entry.id])).has(entry.id);
    const first = isSettled(entry.state) ? undefined : await requiredStep(context, entry);
    const { output } = context;
    const isTable = output.format === "table" && output.fields === undefined;
    const isLater = output.format === "table" && isEarly(entry, context.clock.now());
    const step = first ?? (isLater ? { needs: undefined, command: null } : undefined);
    await output.resource(
      publicEntry(entry, {
        first: step,
        isUntrusted,
        holder,
        ...(isTable ? { lastError: entry.last_error?.message } : { destinations, history }),
      }),
      {
        ...(holder === undefined ? entryView : entryWithHolderView),
        isRead: true,
      },
    );
    if (isUntrusted) output.warn(untrustedWords([entry.id]));
    if (!isTable) return;
    if (destinations.length > 0) await printTable(context, deliveriesView, destinations);
    await printTable(context, historyView, history);
  },
});

async function requiredStep(context: Context, entry: Entry): Promise<EntryExtras["first"]> {
  const { noteMissing } = await import("../running/missing.ts");
  return (await noteMissing(context, [entry])).get(entry.id);
}

async function printTable({ output }: Context, view: ListView, rows: readonly object[]): Promise<void> {
  await output.text("\n");
  await output.list(view).whole(rows);
}
