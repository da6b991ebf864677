import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [
    { line: "integ journal path", does: "where the journal is" },
    {
      line: "INTEG_JOURNAL=/var/lib/ci/journal.ndjson integ journal path",
      does: "put it on a volume that outlives the runner",
    },
  ],
  async run(context) {
    await context.output.text(`${(await context.journal()).path}\n`);
  },
});
