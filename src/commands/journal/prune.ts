import { addDryRun, defineVerb } from "../verb.ts";
import { type Entry, kindOf } from "../../journal/entry.ts";
import { parseLifetime } from "../options/global.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(command)
      .requiredOption("--older-than <duration>", "Remove finished entries not updated for this long")
      .option("--include-live", "Also remove entries whose client or key may still be active; print their ids"),
  examples: [
    { line: "integ journal prune --older-than 90d", does: "unfinished changes and active clients and keys stay" },
    {
      line: "integ journal prune --older-than 90d --include-live --json",
      does: "remove active ones too, and list them",
    },
  ],
  more: "An entry whose client or key may be active stays: the API cannot list clients, so the journal may have the only copy of the id.",
  async run(context, { options }) {
    const olderThanMs = parseLifetime(options.olderThan, "--older-than");
    const includeLive = options.includeLive === true;
    const { removed, live, keptLive } = await (await context.journal()).prune(olderThanMs, {
      includeLive,
      isTrial: options.dryRun === true,
    });
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      const ids = live.map((entry) => ({ what: `forget the id of the ${nameOf(entry)}` }));
      return showSteps(
        context,
        removed === 0 ? [] : [{ what: `remove ${removed} ${removed === 1 ? "entry" : "entries"}` }, ...ids],
      );
    }
    for (const entry of live)
      context.output.warn(
        `The journal no longer contains ${nameOf(entry)}. The API cannot return the id again: note it.`,
      );
    if (keptLive.length > 0)
      context.output.note(
        `${keptLive.length === 1 ? "1 old entry stays: its client or key" : `${keptLive.length} old entries stay: their clients or keys`} may still be active (--include-live removes ${keptLive.length === 1 ? "it" : "them"} too).`,
      );
    await context.output.document({
      object: "journal_pruned",
      removed,
      kept_live: keptLive.length,
      live: live.map(({ id, operation, resource_id, profile, region, base_url }) => ({
        id,
        operation,
        resource_id,
        profile,
        region,
        base_url,
      })),
    });
  },
});

function nameOf(entry: Entry): string {
  const { resource_id, profile, region } = entry;
  const what = kindOf(entry) === "access_key" ? "access key" : "OAuth client";
  return `${what} ${resource_id} (profile ${profile}, ${region})`;
}
