import { addDryRun, defineVerb } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { askEntry } from "../options/known-names.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<id>", "The entry whose lease is to end"),
  examples: [
    { line: "integ journal release 6k2f9", does: "asks first, and names the process that holds it" },
    { line: "integ journal release 6k2f9 --yes", does: "skip the question" },
  ],
  more: "For an entry whose process has ended or hangs on another machine or in another container. Of a journal in a file, the process must have made no step for ten minutes, and one that can be seen to run keeps its entry. In a team's journal a lease ends by itself too: journal list says who holds it, and journal show until when. The process records nothing more. What it sent may still arrive: an access key's request is looked into only after the time at which the lease would have ended.",
  asks: (context) => askEntry(context, { question: "Which entry is to be released?" }),
  async run(context, { args: [id], options }) {
    const { output } = context;
    const journal = await context.journal();
    const entry = await journal.find(id);
    const holder = (await journal.holders()).get(entry.id);
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      const who = holder && `process ${holder.pid} of ${holder.user} on ${holder.host}`;
      return showSteps(context, who === undefined ? [] : [{ what: `take ${entry.id} away from ${who}` }]);
    }
    if (holder === undefined && journal.isShared) {
      output.note(`No process holds the entry ${entry.id}.`);
    } else {
      const who = holder
        ? `process ${holder.pid} of ${holder.user} on ${holder.host}, since ${holder.since}`
        : "the process that began it, which must have ended";
      if (!(await output.confirm(`Take the entry ${entry.id} away from ${who}?`, { destructive: true })))
        throw new Failure("usage", "Nothing was released: the answer was no.");
    }
    await journal.takeAway(entry.id, holder);
    await output.document({ object: "journal_release", entry: entry.id, holder: holder ?? null });
  },
});
