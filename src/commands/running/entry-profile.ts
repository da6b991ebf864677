// Which profile of this machine an entry of the journal belongs to.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { type Entry, type EntryAccount, isOfAccount } from "../../journal/entry.ts";
import type { EntryFilter } from "../../journal/filter.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";

/**
 * The profile as which an entry is finished. In a journal of this machine it is the one that the entry names. In a team's
 * journal others made entries, with profiles of their own: what counts is the same address, organization and client.
 */
export async function profileOf(context: Context, entry: Entry): Promise<ActiveProfile> {
  const { isShared } = await context.journal();
  return (isShared ? await fittingProfile(context, entry) : undefined) ?? context.profiles.named(entry.profile);
}

/** The one of the entry's name, then the chosen one, then any other that fits; undefined if none does. */
export async function fittingProfile(context: Context, entry: Entry): Promise<ActiveProfile | undefined> {
  const { profiles } = context;
  const stored = (await profiles.store()).list().map(({ name }) => name);
  const names = [entry.profile, ...stored.filter((name) => name !== entry.profile)];
  const [ofName, ...others] = names.map((name) => () => profiles.named(name));
  for (const find of [ofName, () => profiles.active(), ...others]) {
    const profile = await find?.().catch(onlyFailure);
    if (profile && isOfAccount(entry, accountOf(profile))) return profile;
  }
  return undefined;
}

/** A profile that cannot be used is not the one that is sought. */
function onlyFailure(error: unknown): undefined {
  if (!(error instanceof Failure)) throw error;
}

function accountOf({ baseUrl, organizationId, principal }: ActiveProfile): EntryAccount {
  return { base_url: baseUrl, organization_id: organizationId ?? null, principal };
}

/**
 * The entries that `--profile <name>` means. In a team's journal the same account has other names on other machines, and the
 * same name may be another account; a name that only the journal has is that of an entry.
 */
export async function entriesOfProfile(
  { journal, profiles }: Context,
  name: string | undefined,
): Promise<Pick<EntryFilter, "profile" | "account">> {
  if (name === undefined) return {};
  if (!(await journal()).isShared) return { profile: name };
  const found = await profiles.named(name).catch(onlyFailure);
  return found === undefined ? { profile: name } : { account: accountOf(found) };
}
