import { addDryRun, defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command),
  examples: [
    { line: "integ journal init", does: "once for each team, by a role that may create tables; safe to repeat" },
    {
      line: "INTEG_JOURNAL=postgresql://integ@db.example.com/integ integ journal init",
      does: "in the database of that address",
    },
  ],
  more: "integ uses the journal of INTEG_JOURNAL or of the profile (profiles add --journal). Existing tables stay unchanged.",
  async run(context, { options }) {
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      const { path } = await context.journal();
      return showSteps(context, [{ what: `create or upgrade the tables of the journal in ${path}, if they need it` }]);
    }
    await context.secrets.checkMask();
    const { version, isNew, key } = await context.initJournal();
    const { path } = await context.journal();
    context.output.note(
      isNew ? `Created the tables of the journal in ${path}.` : `The tables of the journal are there.`,
    );
    if (key !== undefined) {
      await context.secrets.mask(key, key);
      context.output.note(
        "Give the key to every machine of the team as INTEG_JOURNAL_KEY: it is shown only now, and kept nowhere.",
      );
    }
    await context.output.document({ object: "journal_tables", address: path, version, created: isNew, key });
  },
});
