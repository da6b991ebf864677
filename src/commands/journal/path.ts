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
    const { path } = await context.journal();
    const { output } = context;
    await (output.format === "table" ? output.text(`${path}\n`) : output.document({ object: "journal_path", path }));
  },
});
