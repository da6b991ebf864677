import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import type { Journal, Merged } from "../../journal/journal.ts";
import { shownAddress } from "../../journal/postgres/address.ts";
import { type EntryRecords, historyHash } from "../../journal/record.ts";
import { type MoveMark } from "../../journal/entry.ts";
import { shell } from "../../next-step.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { showTrust } from "./ask-trust.ts";
import { ownJournal } from "./own-journal.ts";

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
  more: "integ first marks the old journal, which then refuses changes and names the new one. Then integ copies every entry and compares the copy. If a move is interrupted, run it again.",
  async run(context, { options: { to, dryRun } }) {
    if (shownAddress(to) !== to)
      throw invalidValue("--to", undefined, {
        why: "the address contains a password",
        meaning: "Arguments are seen by others. Nothing was changed.",
        hint: "Put the password into PGPASSWORD or ~/.pgpass, and leave it out of the address.",
      });
    const [used, target] = [await context.journal(), await context.journalAt(to)];
    // If the profile or INTEG_JOURNAL already names the target, the entries to move are in this machine's own journal.
    const from = used.path === target.path ? await ownJournal(context) : used;
    if (from === undefined || from.path === target.path)
      throw new Failure("usage", "The journal is already there.", { hint: "Choose another place with --to." });
    if (dryRun) return showMove(context, from, target);
    const moved = await move(context, from, target);
    const { added, extended, unchanged } = moved;
    context.output.note(`From now on: INTEG_JOURNAL=${target.path}`);
    if (context.output.isTable) return context.output.text(`The entries of ${from.path} are in ${target.path} now.`);
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
  const length = await from.count();
  const { steps } = await showTrust(context, from, await untrustedIn(from));
  return showSteps(context, [
    ...steps,
    { what: `mark ${from.path}: it takes no changes from then on` },
    { what: `copy ${length === 1 ? "1 entry" : `${length} entries`} to ${target.path}, and compare the copy` },
  ]);
}

async function move(context: Context, from: Journal, target: Journal): Promise<Merged> {
  const before = (await from.condition()).moved;
  if (before !== undefined && before.to !== target.path)
    throw new Failure("usage", `The entries of ${from.path} were moved to ${before.to} before.`, {
      meaning: "Nothing was changed.",
      hint: `Set INTEG_JOURNAL to ${before.to}, then run the command again.`,
    });
  const mark = (await target.condition()).moved;
  if (mark !== undefined) await assertNotElsewhere(from, target, { mark, isDone: before?.isUnfinished === false });
  const secrets = await secretsIn(from, target);
  const untrusted = await untrustedIn(from);
  await (await showTrust(context, from, untrusted)).ask();
  // From here on, at most one of the journals accepts changes, even after a crash.
  if (before === undefined) await from.markMoved({ to: target.path, isUnfinished: true });
  const merged = await copy(from, target, { secrets, untrusted }).catch((error: unknown) =>
    unmarkAndThrow(error, from, before),
  );
  if (mark !== undefined) await target.markMoved(undefined);
  if (before?.isUnfinished !== false) await from.markMoved({ to: target.path, isUnfinished: false });
  for (const id of secrets) await from.escrow?.remove(id);
  context.output.note(`Compared entries: ${merged.added + merged.extended + merged.unchanged}. The copy is whole.`);
  return merged;
}

/** Finds the untrusted entries before the move, because the target's key will sign all entries. */
async function untrustedIn(from: Journal): Promise<EntryRecords[]> {
  const found: EntryRecords[] = [];
  for await (const entry of from.records()) if (!from.isSigned(entry)) found.push(entry);
  return found;
}

async function copy(
  from: Journal,
  target: Journal,
  { secrets, untrusted }: { readonly secrets: readonly string[]; readonly untrusted: readonly EntryRecords[] },
): Promise<Merged> {
  const merged = await target.merge(from.recordsAsSeen(untrusted), { isMove: true });
  // After an earlier attempt, a secret may have been claimed from the target already: `select` skips its finished
  // entry.
  const open = secrets.length === 0 ? [] : await target.select({ ids: secrets });
  for (const { id } of open) {
    const ciphertext = await from.escrow?.get(id);
    if (ciphertext !== undefined) await target.escrow?.put(id, ciphertext);
  }
  const wrong = await differences(from, target);
  if (wrong.length === 0) return merged;
  throw new Failure("failed", `The copy differs from the journal: ${wrong.slice(0, 5).join(", ")}.`, {
    meaning: "integ still uses the old journal.",
    hint: "Run the command again.",
  });
}

/** Keeps the mark if the entries may have arrived: without the mark, both journals would accept changes. */
async function unmarkAndThrow(error: unknown, from: Journal, before: MoveMark | undefined): Promise<never> {
  const mayHaveArrived = error instanceof Failure && error.kind === "unreachable";
  if (before !== undefined) throw error;
  if (!mayHaveArrived) {
    await from.markMoved(undefined);
    throw error;
  }
  const { message, details } = error;
  throw new Failure("unreachable", message, {
    ...details,
    meaning: `The move is not finished: until it is, ${from.path} takes no changes.`,
    hint: "Run the command again.",
    nextCommand: undefined,
  });
}

async function secretsIn(from: Journal, target: Journal): Promise<string[]> {
  const kept = from.escrow === undefined ? [] : [...(await from.escrow.ids())];
  const ids = kept.length === 0 ? [] : (await from.select({ ids: kept })).map(({ id }) => id);
  const [first] = ids;
  if (first === undefined || target.escrow !== undefined) return ids;
  throw new Failure("usage", `Secrets are encrypted in ${from.path}, and a file cannot hold them: ${ids.join(", ")}.`, {
    meaning: "Nothing was changed.",
    hint: "Claim each of them, then run the command again.",
    nextCommand: shell`integ journal claim ${first}`,
  });
}

/**
 * Refuses a target whose entries were moved elsewhere, unless `from` has all of them. If the entries of `from` were
 * moved too (`isDone`), the target's move must be unfinished.
 */
async function assertNotElsewhere(
  from: Journal,
  target: Journal,
  { mark, isDone }: { readonly mark: MoveMark; readonly isDone: boolean },
): Promise<void> {
  const isSameMove = mark.to === from.path || (await hasAllRecordsOf(from, target));
  if (!isSameMove || (isDone && !mark.isUnfinished))
    throw movedElsewhereFailure(from, { path: target.path, mark: mark.to });
}

function movedElsewhereFailure(
  from: Journal,
  { path, mark }: { readonly path: string; readonly mark: string },
): Failure {
  return new Failure(
    "usage",
    `The entries of ${path} were moved to ${mark}, and ${from.path} does not have them all.`,
    {
      meaning: "Nothing was changed.",
      hint: `Set INTEG_JOURNAL to ${mark}, then run the command again.`,
    },
  );
}

async function hasAllRecordsOf(journal: Journal, other: Journal): Promise<boolean> {
  const here = new Map<string, EntryRecords["records"]>();
  for await (const { id, records } of journal.records()) here.set(id, records);
  for await (const { id, records } of other.records())
    if (!records.every(({ content }, index) => here.get(id)?.[index]?.content === content)) return false;
  return true;
}

async function differences(from: Journal, target: Journal): Promise<string[]> {
  const lengths = new Map<string, number>();
  const here = new Map<string, string>();
  for await (const { id, records } of from.records()) {
    lengths.set(id, records.length);
    here.set(id, historyHash(records));
  }
  for await (const { id, records } of target.records())
    if (here.get(id) === historyHash(records.slice(0, lengths.get(id)))) here.delete(id);
  return [...here.keys()];
}
