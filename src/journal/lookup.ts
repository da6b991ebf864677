// Matches entries with a filter or an id, and makes ids, without I/O.
import { type Entry, type EntryAccount, isOfAccount, isSettled, type Operation, resourcesOf } from "./entry.ts";
import { Failure } from "../errors.ts";
import { shell, flags } from "../next-step.ts";
import { isObject, tryParseJson } from "../json.ts";

export interface EntryFilter {
  /** Include finished entries. Ignored with `states`. */
  readonly all?: boolean;
  /** Include the archive, which is otherwise read only for ids that the journal lacks. */
  readonly archived?: boolean;
  readonly states?: readonly string[];
  readonly operation?: Operation;
  readonly profile?: string;
  /** Matches entries of this account under any profile name. */
  readonly account?: EntryAccount;
  /** A user, a host, `user@host` or the address of a CI run. */
  readonly actor?: string;
  /** The earliest time of the last change, ISO 8601 UTC. */
  readonly since?: string;
  /** Admitted after the entry with this id. */
  readonly after?: string;
  readonly start?: string;
  readonly ids?: readonly string[];
  readonly parent?: string;
  readonly replaces?: string;
  /** A client or key that the entry created, adopted, changed or revoked; also a `client_id`. */
  readonly resource?: string;
  readonly item?: string;
  /** The service account of a client that the entry creates or adopts. */
  readonly serviceAccount?: string;
  readonly limit?: number;
}

export function excludesFinished({ all, states }: EntryFilter): boolean {
  return states ? !states.some(isSettled) : all !== true;
}

/** Ignores `actor`, which only records contain. */
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

/** The words that a team's journal indexes: `<field of the filter> <value>`. */
export function wordsOfEntry(entry: Entry): string[] {
  return aboutNames.flatMap((name) => {
    const values: readonly unknown[] = about[name](entry);
    return values.filter((value) => typeof value === "string").map((value) => `${name} ${value}`);
  });
}

export function wordsOfFilter(filter: EntryFilter): string[] {
  return aboutNames.flatMap((name) => (filter[name] === undefined ? [] : `${name} ${filter[name]}`));
}

function serviceAccountOf({ operation, request_text }: Entry): string | undefined {
  if (operation !== "oauth_client.create" && operation !== "oauth_client.adopt") return undefined;
  const read = tryParseJson(request_text);
  return isObject(read) && typeof read.service_account_id === "string" ? read.service_account_id : undefined;
}

/** Crockford's base 32 in lower case. Its order is that of ASCII, so that ids sort as their numbers do. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 6;
const randomDigits = 4;
const randomSpan = 32 ** randomDigits;
/** 2025-01-01 in seconds since 1970. Six digits of seconds last 34 years. */
const epochSeconds = 1_735_689_600;

export const idPattern = /^[0-9a-hjkmnp-tv-z]{10}$/;

export function idOf(value: number): string {
  let text = "";
  for (let rest = value; text.length < timeDigits + randomDigits; rest = Math.floor(rest / 32))
    text = alphabet[rest % 32] + text;
  return text;
}

/**
 * Ten characters: six for the seconds, four random. The id is above `newest` even within one second or after the clock
 * was set back, so that ids sort by admission.
 */
export function newEntryId(nowMs: number, options: { random: number; newest?: string }): string {
  const seconds = Math.max(0, Math.floor(nowMs / 1000) - epochSeconds);
  const wanted = seconds * randomSpan + (options.random % randomSpan);
  if (options.newest === undefined || !idPattern.test(options.newest)) return idOf(wanted);
  const least = [...options.newest].reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0) + 1;
  return idOf(wanted > least ? wanted : least + (options.random % 1024));
}

export function normalizeId(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("o", "0").replaceAll(/[il]/g, "1");
}

export function entryNotFound(typed: string): Failure {
  return new Failure("not_found", `Journal entry ${JSON.stringify(typed)} not found.`, {
    nextCommand: shell`integ journal list ${flags.all}`,
  });
}

/** @param typed an id or its beginning. @throws Failure `not_found`, or `usage` if several entries match */
export function findEntry(entries: readonly Entry[], typed: string): Entry {
  const wanted = normalizeId(typed);
  const fitting = wanted === "" ? [] : entries.filter(({ id }) => id.startsWith(wanted));
  const found = fitting.length === 1 ? fitting[0] : fitting.find(({ id }) => id === wanted);
  if (found) return found;
  if (fitting.length === 0) throw entryNotFound(typed);
  const listed = fitting.slice(0, 5).map(({ id, operation, state }) => `${id} (${operation}, ${state})`);
  const more = fitting.length > listed.length ? `, and ${fitting.length - listed.length} more` : "";
  throw new Failure("usage", `${JSON.stringify(typed)} fits ${fitting.length} entries: ${listed.join(", ")}${more}.`, {
    hint: "Give more characters of the id.",
  });
}
