import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { fileFailure } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";
import { readExport } from "../../journal/exported.ts";
import { addDryRun, defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(command)
      .argument("<file>", "File that journal export wrote; - for standard input")
      .option("--trust", "Sign the entries: you know who wrote the export"),
  examples: [
    { line: "integ journal import journal.ndjson", does: "existing entries stay; safe to repeat" },
    { line: "gunzip -c journal.ndjson.gz | integ journal import -", does: "from standard input" },
  ],
  more: "Entries are merged by their ids. If one contradicts what the journal has, nothing at all is imported (exit 5).",
  async run(context, { args: [file], options }) {
    const entries = readExport(await bytesOf(context, file));
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      const { path } = await context.journal();
      const what = `merge ${entries.length === 1 ? "1 entry" : `${entries.length} entries`} into ${path}`;
      return showSteps(context, entries.length === 0 ? [] : [{ what }]);
    }
    const { added, extended, unchanged } = await (await context.journal()).merge(entries, {
      isTrusted: options.trust === true,
    });
    await context.output.document({ object: "journal_import", added, extended, unchanged });
  },
});

async function bytesOf(context: Context, file: string): Promise<Buffer> {
  if (file === "-") return context.input("export of a journal");
  const path = resolve(context.settings.cwd, file);
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Failure) throw error;
    // The argument looks like the address of a journal, which may contain a password, so the message does not repeat
    // it.
    if (/^\s*\w+\s*=|:\/\//.test(file))
      throw new Failure("usage", "The export is the address of a journal, and not a file.", {
        meaning: "Nothing was imported.",
        hint: "Name a file that integ journal export wrote, or bring the entries with integ journal move.",
      });
    throw fileFailure(error, "read the export", { path });
  }
}
