// Names for completion and prompts, with details that distinguish them.
import { isAbsolute } from "node:path";
import type { LiveNames } from "../../completion/values.ts";
import type { Context } from "../../context.ts";
import { type Entry, type EntryState, revokedBy } from "../../journal/entry.ts";
import type { EntryFilter } from "../../journal/lookup.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Choice } from "../../output/asking/pick-list.ts";
import type { ProfileName } from "../../profiles/names.ts";

export interface KnownNames {
  profileNames(): readonly ProfileName[];
  policyText(): string | undefined;
  /** A file's absolute path, or a server's address. */
  readonly journalPath: string;
  /** If set, keys and clients of other profiles at other addresses are excluded. */
  readonly profile?: { readonly name: string; readonly base_url?: string } | undefined;
  /** @returns entries, the newest first */
  entries(filter: NameFilter): Promise<readonly Entry[]>;
}

type NameFilter = EntryFilter & { readonly limit: number };

const newest: NameFilter = { all: true, limit: 200 };
const unfinishedLimit = 100;

export function newestEntries(journal: Journal): Promise<Entry[]> {
  return journal.select(newest);
}

/** Offers no names from a team's journal, because completion must not need the network. */
export async function namesFor(what: LiveNames, known: KnownNames): Promise<Choice[]> {
  if (what === "profiles") return everyProfile(known.profileNames());
  if (what === "items") return itemChoices(known.policyText());
  if (!isAbsolute(known.journalPath)) return [];
  if (what === "unfinished") return entryChoices(await known.entries({ limit: unfinishedLimit }));
  if (what === "claimable")
    return entryChoices(await known.entries({ states: ["undelivered"], limit: unfinishedLimit }));
  const entries = await known.entries(newest);
  if (what === "entries") return entryChoices(entries);
  if (what === "accounts") return accountChoices(entries);
  const { profile: own } = known;
  const here = (entry: Entry): boolean => !own || entry.profile === own.name || entry.base_url === own.base_url;
  return resourceChoices(entries.filter(here), what === "clients" ? "oauth_client." : "access_key.");
}

function profileChoices(stored: readonly ProfileName[]): Choice[] {
  return stored.map(({ name, region, base_url }) => ({ value: name, hint: `${region}, ${base_url}` }));
}

export function everyProfile(stored: readonly ProfileName[]): Choice[] {
  return [
    ...profileChoices(stored),
    { value: "sandbox", hint: "us, on this machine" },
    { value: "sandbox-eu", hint: "eu, on this machine" },
  ];
}

function entryChoices(entries: readonly Entry[]): Choice[] {
  return entries.map((entry) => {
    const { id, operation, state, profile, created_at } = entry;
    const about = [operation, subjectOf(entry), state, profile && `profile ${profile}`, created_at.slice(0, 10)];
    return { value: id, hint: about.filter(Boolean).join(", ") };
  });
}

function subjectOf({ request_text, resource_id }: Entry): string | null {
  const { name, service_account_id } = JSON.parse(request_text || "{}") as Partial<Record<string, unknown>>;
  return [name, service_account_id].find((text) => typeof text === "string") ?? resource_id;
}

function accountChoices(entries: readonly Entry[]): Choice[] {
  const accounts = entries
    .filter(({ operation }) => operation === "oauth_client.create")
    .map(({ request_text }) => (JSON.parse(request_text) as { service_account_id?: unknown }).service_account_id)
    .filter((id) => typeof id === "string");
  return [...new Set(accounts)].map((value) => ({ value }));
}

async function itemChoices(text: string | undefined): Promise<Choice[]> {
  if (text === undefined) return [];
  const { itemNamesIn } = await import("../../policy/item-names.ts");
  return itemNamesIn(text).map(([value, hint]) => ({ value, hint }));
}

function resourceChoices(entries: readonly Entry[], operations: string): Choice[] {
  const revoked = new Set(entries.map((entry) => (entry.state === "replaced" ? entry.resource_id : revokedBy(entry))));
  const choices = new Map<string, Choice>();
  for (const entry of entries) {
    const { operation, resource_id: id, state, created_at, policy } = entry;
    if (!operation.startsWith(operations) || id === null || revoked.has(id) || choices.has(id)) continue;
    const subject = policy?.item ?? subjectOf(entry);
    const about = [subject === id ? "" : subject, operation, state, created_at.slice(0, 10)];
    choices.set(id, { value: id, hint: about.filter(Boolean).join(", ") });
  }
  return [...choices.values()];
}

export async function askEntry(
  context: Context,
  { question, states }: { readonly question: string; readonly states?: readonly EntryState[] },
): Promise<string | undefined> {
  const journal = await context.journal();
  const entries = states === undefined ? await newestEntries(journal) : await journal.select({ states });
  const choices = entryChoices(entries);
  return choices.length === 0 ? undefined : context.output.pick(question, { choices, flag: "<id>" });
}

export function askProfile(
  question: string,
  choicesFrom: (stored: readonly ProfileName[]) => Choice[] = profileChoices,
): (context: Context) => Promise<string | undefined> {
  return async ({ profiles, output }) => {
    const choices = choicesFrom(await profiles.names());
    return choices.length === 0 ? undefined : output.pick(question, { choices, flag: "<name>" });
  };
}
