import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [
    { line: "integ journal path", does: "print the path" },
    {
      line: "INTEG_JOURNAL=/var/lib/ci/journal.ndjson integ journal path",
      does: "keep it on a volume that the next job can read",
    },
  ],
  async run(context) {
    await context.output.text(`${(await context.journal()).path}\n`);
  },
});
