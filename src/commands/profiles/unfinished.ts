// Warns of unfinished changes and hidden entries when a profile is removed or gets another account or journal.
import type { Context } from "../../context.ts";
import { Failure, onFailure } from "../../errors.ts";
import { type Advice, flags } from "../../next-step.ts";
import type { Profile } from "../../profiles/profile.ts";

/** True if the profile can no longer finish its earlier entries. */
export function isBoundElsewhere(before: Profile, now: Profile): boolean {
  return (
    before.base_url !== now.base_url || before.organization_id?.toLowerCase() !== now.organization_id?.toLowerCase()
  );
}

/** Finds entries by the profile's id, because an earlier profile may have had the same name. */
export async function warnOfUnfinished(context: Context, profile: Profile, change: "removed" | "moved"): Promise<void> {
  await warnOf(context, "it has unfinished changes", () => unfinishedBy(context, profile, change));
}

/** @throws Failure `unreachable` if the journal does not respond */
export async function assertJournalAnswers(context: Context, address: string): Promise<void> {
  const tried = context.journalAt(address).then(async (journal) => void (await journal.count()));
  const hint: Advice = `Correct the address, or add ${flags.noVerify} to store it untested.`;
  // The first use of the journal reports other failures, such as missing tables.
  const refuse = ({ kind, message }: Failure): void => {
    if (kind === "unreachable") throw new Failure(kind, message, { meaning: "Nothing was stored.", hint });
  };
  await tried.catch(onFailure(refuse));
}

export async function warnOfHiddenEntries(
  context: Context,
  { before, now }: { readonly before?: string | undefined; readonly now?: string | undefined },
): Promise<void> {
  if (before === now) return;
  if (before !== undefined) context.output.warn(`The entries in ${before} stay there.`);
  if (now === undefined) return;
  const { hiddenEntries } = await import("../journal/own-journal.ts");
  await warnOf(context, "this machine has other entries", async () => {
    const hidden = await hiddenEntries(context, now);
    return hidden && `${hidden.words}. To move them: ${hidden.move}`;
  });
}

/** The profile changes even if the journal cannot be read, so the failure is only a warning. */
async function warnOf(context: Context, what: string, find: () => Promise<string | undefined>): Promise<void> {
  try {
    const text = await find();
    if (text !== undefined) context.output.warn(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    context.output.warn(`It is not known whether ${what}: ${error.message}`);
  }
}

async function unfinishedBy(
  context: Context,
  { id: profileId, name }: Profile,
  change: "removed" | "moved",
): Promise<string | undefined> {
  const journal = await context.journal();
  const unfinished = (await journal.unsettled()).filter(
    ({ profile_id, parent }) => profile_id === profileId && parent === null,
  );
  if (unfinished.length === 0) return undefined;
  const are = unfinished.length === 1 ? "1 change is" : `${unfinished.length} changes are`;
  const named = unfinished.map(({ id, operation, state }) => `${id} (${operation}, ${state})`).join(", ");
  if (change === "moved")
    return `${are} unfinished, and cannot be finished while ${name} has another address or organization than when it was started: ${named}.`;
  const finisher = journal.isShared ? "a profile of the same account, here or on another machine" : "this profile";
  const ids = unfinished.map(({ id }) => id).join(" ");
  return `${are} unfinished, and cannot be finished without ${finisher}: ${named}. First: integ journal recover ${ids}`;
}
