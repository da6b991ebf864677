import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { fileFailure } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";
import { readExport } from "../../journal/exported.ts";
import type { EntryRecords } from "../../journal/record.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { showTrust } from "./ask-trust.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(command)
      .argument("<file>", "File that journal export wrote; - for standard input")
      .option("--trust", "Sign the entries, after a question that shows where their requests and secrets go"),
  examples: [
    { line: "integ journal import journal.ndjson", does: "existing entries stay; safe to repeat" },
    { line: "gunzip -c journal.ndjson.gz | integ journal import -", does: "from standard input" },
  ],
  more: "Entries are merged by id. If one conflicts with the journal, integ imports nothing (exit 5).",
  async run(context, { args: [file], options }) {
    const entries = readExport(await bytesOf(context, file));
    const journal = await context.journal();
    const known = await journal.recordsOf(entries.map(({ id }) => id));
    const isNew = ({ records }: EntryRecords, index: number): boolean => records.length > known[index]!.records.length;
    const untrusted = options.trust ? entries.filter(isNew).filter((entry) => !journal.isSigned(entry)) : [];
    const question = await showTrust(context, journal, untrusted);
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      const what = `merge ${entries.length === 1 ? "1 entry" : `${entries.length} entries`} into ${journal.path}`;
      return showSteps(context, entries.length === 0 ? [] : [...question.steps, { what }]);
    }
    await question.ask();
    const merged = await journal.merge(entries, { trusted: new Set(untrusted.map(({ id }) => id)) });
    await context.output.document({ object: "journal_import", ...merged });
  },
});

async function bytesOf(context: Context, file: string): Promise<Buffer> {
  if (file === "-") return context.input("export of a journal");
  const path = resolve(context.settings.cwd, file);
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Failure) throw error;
    // An address may contain a password, so the message does not repeat it.
    if (/^\s*\w+\s*=|:\/\//.test(file))
      throw new Failure("usage", "The export is the address of a journal, and not a file.", {
        meaning: "Nothing was imported.",
        hint: "Name a file that integ journal export wrote, or bring the entries with integ journal move.",
      });
    throw fileFailure(error, "read the export", { path });
  }
}
