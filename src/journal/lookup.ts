// How an entry is named and looked for: by a filter, by what it is about, by its id or the beginning of it. Pure.
import { isObject } from "./entry-destination.ts";
import { type Entry, type EntryAccount, isOfAccount, isSettled, type Operation, resourcesOf } from "./entry.ts";
import { Failure } from "../errors.ts";
import { shell, flags } from "../next-step.ts";

export interface EntryFilter {
  /** Settled ones too; if `states` are named, those alone. */
  readonly all?: boolean;
  /** Include the archive. An entry that is named by its id is found there anyway. */
  readonly archived?: boolean;
  readonly states?: readonly string[];
  readonly operation?: Operation;
  readonly profile?: string;
  /** Entries of one account, whatever their profiles are called. */
  readonly account?: EntryAccount;
  /** Who made a step of it: the user, the host, `user@host` or the address of the CI run. */
  readonly actor?: string;
  /** ISO 8601 UTC: touched then or later. */
  readonly since?: string;
  /** Entries admitted after the entry with that id. */
  readonly after?: string;
  readonly start?: string;
  readonly ids?: readonly string[];
  /** The steps of that entry. */
  readonly parent?: string;
  readonly replaces?: string;
  /** Entries that made, changed or revoked that client or key; a `client_id` counts too. */
  readonly resource?: string;
  /** Entries of the policy item with that name. */
  readonly item?: string;
  /** Entries that create or adopt a client of that service account. */
  readonly serviceAccount?: string;
  /** At most this many of them, the newest. */
  readonly limit?: number;
}

/** True if no settled entry can fit: those are not even read. */
export function isOfUnsettled({ all, states }: EntryFilter): boolean {
  return states ? !states.some(isSettled) : all !== true;
}

/** Whether the entry is one of them, as far as it says itself: who made its steps is in its records. */
export function fits(entry: Entry, filter: EntryFilter): boolean {
  const { states, account, since = "", after = "", start = "", ids } = filter;
  const { id, state, updated_at } = entry;
  if (states ? !states.includes(state) : filter.all !== true && isSettled(state)) return false;
  if (updated_at < since || id <= after || !id.startsWith(start) || (ids && !ids.includes(id))) return false;
  if (account !== undefined && !isOfAccount(entry, account)) return false;
  return aboutNames.every((name) => filter[name] === undefined || about[name](entry).includes(filter[name]));
}

const about = {
  operation: ({ operation }: Entry) => [operation],
  profile: ({ profile }: Entry) => [profile],
  parent: ({ parent }: Entry) => [parent],
  replaces: ({ replaces }: Entry) => [replaces],
  resource: resourcesOf,
  item: ({ policy }: Entry) => [policy?.item],
  serviceAccount: (entry: Entry) => [serviceAccountOf(entry)],
} satisfies Partial<Record<keyof EntryFilter, (entry: Entry) => readonly unknown[]>>;

const aboutNames = Object.keys(about) as (keyof typeof about)[];

/** The same in words: a column of a team's journal keeps them. */
export function aboutOf(entry: Entry): string[] {
  return aboutNames.flatMap((name) => {
    const values: readonly unknown[] = about[name](entry);
    return values.filter((value) => typeof value === "string").map((value) => `${name} ${value}`);
  });
}

export function wordsOf(filter: EntryFilter): string[] {
  return aboutNames.flatMap((name) => (filter[name] === undefined ? [] : `${name} ${filter[name]}`));
}

function serviceAccountOf({ operation, request_text }: Entry): string | undefined {
  if (operation !== "oauth_client.create" && operation !== "oauth_client.adopt") return undefined;
  try {
    const read: unknown = JSON.parse(request_text);
    return isObject(read) && typeof read.service_account_id === "string" ? read.service_account_id : undefined;
  } catch {
    return undefined;
  }
}

/** Crockford's base 32: no i, l, o or u, so that nothing is misread; its order is the order of ASCII. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 6;
const randomDigits = 4;
const randomSpan = 32 ** randomDigits;
/** 2025-01-01, in seconds: six digits of seconds last 34 years from here. */
const epochSeconds = 1_735_689_600;

export const idPattern = /^[0-9a-hjkmnp-tv-z]{10}$/;

/** The id of a whole number below 2^50. */
export function idOf(value: number): string {
  let text = "";
  for (let rest = value; text.length < timeDigits + randomDigits; rest = Math.floor(rest / 32))
    text = alphabet[rest % 32] + text;
  return text;
}

/**
 * A new id of ten characters: seconds, then chance, a whole number from 0 to 2^20 − 1. It is always above `newest` (the highest
 * id in the journal), even within one second or after the clock was set back, so that sorting ids sorts by admission.
 */
export function newEntryId(nowMs: number, options: { random: number; newest?: string }): string {
  const seconds = Math.max(0, Math.floor(nowMs / 1000) - epochSeconds);
  const wanted = seconds * randomSpan + (options.random % randomSpan);
  if (options.newest === undefined || !idPattern.test(options.newest)) return idOf(wanted);
  const least = [...options.newest].reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0) + 1;
  return idOf(wanted > least ? wanted : least + (options.random % 1024));
}

/** Normalizes a typed id: any case, o for 0, i and l for 1. */
export function normalizeId(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("o", "0").replaceAll(/[il]/g, "1");
}

export function entryNotFound(typed: string): Failure {
  return new Failure("not_found", `Journal entry ${JSON.stringify(typed)} not found.`, {
    nextCommand: shell`integ journal list ${flags.all}`,
  });
}

/** The entry that a person means by an id or the beginning of one. */
export function findEntry(known: readonly Entry[], typed: string): Entry {
  const wanted = normalizeId(typed);
  const fitting = wanted === "" ? [] : known.filter(({ id }) => id.startsWith(wanted));
  const found = fitting.length === 1 ? fitting[0] : fitting.find(({ id }) => id === wanted);
  if (found) return found;
  if (fitting.length === 0) throw entryNotFound(typed);
  const named = fitting.slice(0, 5).map(({ id, operation, state }) => `${id} (${operation}, ${state})`);
  const more = fitting.length > named.length ? `, and ${fitting.length - named.length} more` : "";
  throw new Failure("usage", `${JSON.stringify(typed)} fits ${fitting.length} entries: ${named.join(", ")}${more}.`, {
    hint: "Give more characters of the id.",
  });
}
