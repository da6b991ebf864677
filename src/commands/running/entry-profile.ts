// Which profile of this machine an entry of the journal belongs to.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
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
    if (profile && fits(profile, entry)) return profile;
  }
  return undefined;
}

/** A profile that cannot be used is not the one that is sought. */
function onlyFailure(error: unknown): undefined {
  if (!(error instanceof Failure)) throw error;
}

function fits({ baseUrl, organizationId, principal }: ActiveProfile, entry: Entry): boolean {
  const isSameClient = principal === undefined || entry.principal === undefined || principal === entry.principal;
  const isSameOrganization = organizationId?.toLowerCase() === entry.organization_id?.toLowerCase();
  return baseUrl === entry.base_url && isSameOrganization && isSameClient;
}
