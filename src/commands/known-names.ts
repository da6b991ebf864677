// Owns: the names that this machine knows without the network, each with what tells it from the others: for completion and
// for a person who picks. Must not know: the service, how a name is asked for or printed.
import type { Context } from "../context.ts";
import type { Entry, EntryState } from "../journal/entry.ts";
import type { Choice } from "../output/output.ts";

/** The stored profiles, as they stand in their file. */
export async function storedProfiles(context: Context): Promise<Choice[]> {
  const names = await context.profiles.names();
  return names.map(({ name, region, base_url }) => ({ value: name, hint: `${region}, ${base_url}` }));
}

/** Every profile: the stored ones, and the two that always exist. */
export async function everyProfile(context: Context): Promise<Choice[]> {
  const own = await storedProfiles(context);
  return [
    ...own,
    { value: "sandbox", hint: "us, on this machine" },
    { value: "sandbox-eu", hint: "eu, on this machine" },
  ];
}

/** Entries of the journal by their ids, in the order given. */
export function entryChoices(entries: readonly Entry[]): Choice[] {
  return entries.map(({ id, operation, state }) => ({ value: id, hint: `${operation}, ${state}` }));
}

/**
 * Asks which entry of the journal is meant.
 * @param states of the entries that come into question; of all states where none is named
 * @returns nothing where there is no such entry
 */
export async function askEntry(
  context: Context,
  { question, states }: { readonly question: string; readonly states?: readonly EntryState[] },
): Promise<string | undefined> {
  const entries = await (await context.journal()).entries();
  const choices = entryChoices(states === undefined ? entries : entries.filter(({ state }) => states.includes(state)));
  return choices.length === 0 ? undefined : context.output.pick(question, { choices, flag: "<id>" });
}

/** Asks which profile is meant. @returns nothing where there is none */
export async function askProfile(
  context: Context,
  { question, choices }: { readonly question: string; readonly choices: readonly Choice[] },
): Promise<string | undefined> {
  return choices.length === 0 ? undefined : context.output.pick(question, { choices, flag: "<name>" });
}
