import { addDryRun, defineVerb } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { askEntry } from "../options/known-names.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<id>", "The entry to release"),
  examples: [
    { line: "integ journal release 6k2f9", does: "show the holder, then confirm" },
    { line: "integ journal release 6k2f9 --yes", does: "skip the question" },
  ],
  more: "Use this if the process that holds the entry has ended or hangs on another machine or in another container. With a journal in a file, integ releases the entry only if the process has done nothing for ten minutes and is not known to be running. With a team's journal, the lease also ends by itself. The process then records nothing more, but a request that it sent may still arrive.",
  asks: (context) => askEntry(context, { question: "Which entry should be released?" }),
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
