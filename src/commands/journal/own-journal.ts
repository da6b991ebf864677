import { join } from "node:path";
import type { Context } from "../../context.ts";
import type { Journal } from "../../journal/journal.ts";
import { type NextCommand, shell } from "../../next-step.ts";

export async function ownJournal(context: Context): Promise<Journal | undefined> {
  const journal = await context.journalAt(join(context.settings.stateDir, "journal.ndjson"));
  if ((await journal.count()) === 0 || (await journal.condition()).moved?.isUnfinished === false) return undefined;
  return journal;
}

export interface HiddenEntries {
  readonly words: string;
  readonly move: NextCommand;
}

/** @returns what this machine's journal file contains, if integ uses another journal */
export async function hiddenEntries(context: Context, used: string): Promise<HiddenEntries | undefined> {
  const own = await ownJournal(context);
  if (own === undefined || own.path === used) return undefined;
  const [count, { length }] = [await own.count(), await own.unsettled()];
  const entries = `${count === 1 ? "1 entry" : `${count} entries`} (${length} unfinished)`;
  return {
    words: `${entries} in ${own.path} are not shown: the journal is ${used}`,
    move: shell`integ journal move --to ${used}`,
  };
}
