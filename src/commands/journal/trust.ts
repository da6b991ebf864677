import { askEntry } from "../options/known-names.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { showTrust } from "./ask-trust.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<id...>", "The entries to trust"),
  examples: [
    { line: "integ journal trust 6k2f9", does: "show where its requests and its secret go, then confirm" },
    { line: "integ journal trust 6k2f9 --yes", does: "skip the question" },
  ],
  more: "An entry is untrusted if no key of this machine signed one of its records: the entry was imported, or the key was lost or replaced. Check the entry's destinations and addresses before you sign: its writer chose them.",
  asks: (context) => askEntry(context, { question: "Which entry should be trusted?" }),
  async run(context, { args: [ids], options }) {
    const journal = await context.journal();
    const found = await Promise.all(ids.map((id) => journal.find(id)));
    const entries = await journal.recordsOf([...new Set(found.map(({ id }) => id))]);
    const question = await showTrust(context, journal, entries);
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      return showSteps(context, question.steps);
    }
    await question.ask();
    await journal.trust(entries);
    await context.output.document({ object: "journal_trust", entries: entries.map(({ id }) => id) });
  },
});
