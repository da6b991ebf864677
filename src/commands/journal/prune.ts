import { parseDuration } from "../options/values.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) =>
    command.requiredOption("--older-than <duration>", "settled entries not touched for this long"),
  examples: [{ line: "integ journal prune --older-than 90d", does: "what is unsettled stays, however old" }],
  async run(context, { options }) {
    const olderThanMs = parseDuration(options.olderThan, "--older-than");
    const { removed } = await (await context.journal()).prune(olderThanMs);
    await context.output.document({ object: "journal_pruned", removed });
  },
});
