import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import type { EntryRecords } from "../../journal/merge.ts";
import { shownAddress } from "../../journal/postgres/address.ts";
import { recordHash } from "../../journal/record.ts";
import { addDryRun, defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(command).requiredOption(
      "--to <path>",
      "Path of a file, or address of a team's journal (without a password)",
    ),
  examples: [
    { line: "integ journal move --to postgresql://integ@db.example.com/integ", does: "from this machine to the team" },
    { line: "integ journal move --to ./journal.ndjson", does: "back into a file" },
  ],
  more: "integ copies every entry with its records, compares the copy, and marks the old journal, which then refuses changes and names the new one. You can repeat an interrupted move.",
  async run(context, { options: { to, dryRun } }) {
    if (shownAddress(to) !== to)
      throw invalidValue("--to", undefined, {
        why: "the address contains a password",
        meaning: "Arguments are seen by others. Nothing was changed.",
        hint: "Put the password into PGPASSWORD or ~/.pgpass, and leave it out of the address.",
      });
    const [from, target] = [await context.journal(), await context.journalAt(to)];
    if (from.path === target.path)
      throw new Failure("usage", "The journal is there already.", { hint: "Choose another place with --to." });
    if (dryRun) return showMove(context, from, target);
    const moved = await move(context, from, target);
    const { added, extended, unchanged } = moved;
    context.output.note(`From now on: INTEG_JOURNAL=${target.path}`);
    await context.output.document({
      object: "journal_move",
      from: from.path,
      to: target.path,
      added,
      extended,
      unchanged,
    });
  },
});

async function showMove(context: Context, from: Journal, target: Journal): Promise<void> {
  const { showSteps } = await import("../running/dry-run.ts");
  const { length } = await entriesOf(from);
  return showSteps(context, [
    { what: `copy ${length === 1 ? "1 entry" : `${length} entries`} from ${from.path} to ${target.path}` },
    { what: `compare the copy, then mark ${from.path} as moved to ${target.path}` },
  ]);
}

async function move(context: Context, from: Journal, target: Journal): ReturnType<Journal["merge"]> {
  const before = await from.movedTo();
  if (before !== undefined && before !== target.path)
    throw new Failure("usage", `The entries of ${from.path} were moved to ${before} before.`, {
      meaning: "Nothing was changed.",
      hint: `Set INTEG_JOURNAL to ${before}, then run the command again.`,
    });
  // What came from here may be there, marked: it is written to only once this one is not.
  const mark = await target.movedTo();
  if (mark !== undefined) {
    if (mark !== from.path && !(await hasAll(from, target))) throw usedElsewhere(from, { path: target.path, mark });
    await target.markMoved(undefined);
  }
  const merged = await target.merge(await entriesOf(from));
  await from.markMoved(target.path);
  // What was recorded between the copy and the mark.
  const later = await target.merge(await entriesOf(from));
  const wrong = await differences(from, target);
  if (wrong.length > 0) {
    await from.markMoved(undefined);
    throw new Failure("failed", `The copy does not hold what the journal holds: ${wrong.slice(0, 5).join(", ")}.`, {
      meaning: "The old journal stays the one in use.",
      hint: "Run the command again.",
    });
  }
  context.output.note(`Compared ${merged.added + merged.extended + merged.unchanged} entries: the copy is whole.`);
  return { ...merged, extended: merged.extended + later.extended };
}

/** Two journals would be in use: the one that the mark names, and this one without what was recorded there. */
function usedElsewhere(from: Journal, { path, mark }: { readonly path: string; readonly mark: string }): Failure {
  return new Failure(
    "usage",
    `The entries of ${path} were moved to ${mark}, and ${from.path} does not have them all.`,
    {
      meaning: "Nothing was changed.",
      hint: `Set INTEG_JOURNAL to ${mark}, then run the command again.`,
    },
  );
}

/** Whether a journal has every record of another one: a copy under another name, or one that has more. */
async function hasAll(journal: Journal, other: Journal): Promise<boolean> {
  const here = new Map<string, readonly string[]>();
  for await (const { id, contents } of journal.records()) here.set(id, contents);
  for await (const { id, contents } of other.records())
    if (!contents.every((content, index) => here.get(id)?.[index] === content)) return false;
  return true;
}

async function entriesOf(journal: Journal): Promise<EntryRecords[]> {
  const entries: EntryRecords[] = [];
  for await (const entry of journal.records()) entries.push(entry);
  return entries;
}

/** Ids of entries that are not in the copy as they are here. */
async function differences(from: Journal, target: Journal): Promise<string[]> {
  const digest = ({ contents }: EntryRecords): string => recordHash(contents.map((one) => recordHash(one)).join(""));
  const there = new Map<string, string>();
  for await (const entry of target.records()) there.set(entry.id, digest(entry));
  const wrong: string[] = [];
  for await (const entry of from.records()) if (there.get(entry.id) !== digest(entry)) wrong.push(entry.id);
  return wrong;
}
