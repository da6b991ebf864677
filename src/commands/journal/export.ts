import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { headerLine, recordLine } from "../../journal/record.ts";
import { fileFailure, alreadyExists } from "../../disk/error-words.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command.option("--out <file>", "Write to a new file, readable by you alone"),
  examples: [
    { line: "integ journal export --out changes.ndjson", does: "every entry with its records; no secret is in it" },
    { line: "integ journal export | gzip > journal.ndjson.gz", does: "to standard output" },
  ],
  more: "The export is NDJSON, one record with its checksum on each line. integ journal import merges it into another journal.",
  async run(context, { options }) {
    const { out } = options;
    await warnOfSecrets(context);
    if (out === undefined) {
      for await (const text of linesOf(context)) await context.output.text(text);
      return;
    }
    const path = resolve(context.settings.cwd, out);
    const count = await writeTo(path, context);
    context.output.note(`Wrote ${count === 1 ? "1 entry" : `${count} entries`} to ${path}.`);
  },
});

async function warnOfSecrets(context: Context): Promise<void> {
  const ids = [...((await (await context.journal()).escrow?.ids()) ?? [])];
  if (ids.length === 0) return;
  context.output.warn(`Secrets that are encrypted in this journal are not in the export: ${ids.sort().join(", ")}.`);
}

async function* linesOf(context: Context, reportCount: (entries: number) => void = () => {}): AsyncIterable<string> {
  const journal = await context.journal();
  const createdAt = new Date(context.clock.now()).toISOString();
  yield headerLine({ file: "export", createdAt });
  let entries = 0;
  for await (const { records } of journal.records()) {
    entries += 1;
    yield records.map((record) => recordLine(record)).join("");
  }
  reportCount(entries);
}

async function writeTo(path: string, context: Context): Promise<number> {
  let entries = 0;
  try {
    await context.output.newFile(
      path,
      linesOf(context, (count) => (entries = count)),
    );
    return entries;
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (alreadyExists(error))
      throw new Failure("usage", `The file ${path} already exists.`, {
        meaning: "An export replaces no file.",
        hint: "Name another file.",
      });
    throw fileFailure(error, "write the export", { path });
  }
}
