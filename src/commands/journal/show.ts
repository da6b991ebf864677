import { publicEntry } from "../../journal/entry.ts";
import { askEntry } from "../options/known-names.ts";
import { defineVerb } from "../verb.ts";
import { entryView } from "./view.ts";

export const command = defineVerb({
  configure: (command) => command.argument("<id>", "The entry's id, or its beginning"),
  examples: [
    { line: "integ journal show 6k2f9", does: "one entry: its key, its request, what the last attempt met" },
    { line: "integ journal show 6k2f9 --json | jq .request", does: "the exact request" },
  ],
  asks: (context) => askEntry(context, { question: "Which entry?" }),
  async run(context, { args: [id] }) {
    const entry = await (await context.journal()).find(id);
    await context.output.resource(publicEntry(entry), { ...entryView, isRead: true });
  },
});
