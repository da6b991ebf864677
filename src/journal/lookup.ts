// How an entry is named and looked for: by a filter, by what it is about, by its id or the beginning of it. Pure.
import { isActor } from "./actor.ts";
import { isObject } from "./entry-destination.ts";
import { type Entry, type EntryAccount, isOfAccount, isSettled, type Operation, resourcesOf } from "./entry.ts";
import type { Step } from "./record.ts";
import { Failure } from "../errors.ts";
import { shell, flags } from "../next-step.ts";

export interface EntryFilter {
  /** Settled ones too; if `states` are named, those alone. */
  readonly all?: boolean;
  readonly states?: readonly string[];
  readonly operation?: Operation;
  readonly profile?: string;
  /** Those of one account, whatever the profiles are called that made them. */
  readonly account?: EntryAccount;
  /** Who made a step of it: the user, the host, `user@host` or the address of the CI run. */
  readonly actor?: string;
  /** ISO 8601 UTC: touched then or later. */
  readonly since?: string;
  /** Those that were admitted after the entry with that id. */
  readonly after?: string;
  /** Those with these whole ids. */
  readonly ids?: readonly string[];
  /** The steps of that entry. */
  readonly parent?: string;
  /** Those that replace that entry. */
  readonly replaces?: string;
  /** Those that made, changed or revoked that client or key; a `client_id` counts too. */
  readonly resource?: string;
  /** Those that are work for the item of a policy with that name. */
  readonly item?: string;
  /** Those that create or adopt a client of that service account. */
  readonly serviceAccount?: string;
  /** At most this many of them, the newest. */
  readonly limit?: number;
}

/** True if no settled entry can fit: those are not even read. */
export function isOfUnsettled({ all, states }: EntryFilter): boolean {
  return states ? !states.some(isSettled) : all !== true;
}

/** @param history asked only if nothing else has excluded the entry */
export function fits(entry: Entry, filter: EntryFilter, history: () => readonly Step[]): boolean {
  const { states, operation, profile, actor, since } = filter;
  if (states ? !states.includes(entry.state) : filter.all !== true && isSettled(entry.state)) return false;
  if (operation !== undefined && entry.operation !== operation) return false;
  if (profile !== undefined && entry.profile !== profile) return false;
  if (filter.account !== undefined && !isOfAccount(entry, filter.account)) return false;
  if (since !== undefined && entry.updated_at < since) return false;
  if (filter.after !== undefined && entry.id <= filter.after) return false;
  if (!isRelated(entry, filter)) return false;
  return actor === undefined || history().some((step) => step.actor !== null && isActor(step.actor, actor));
}

function isRelated(entry: Entry, { ids, parent, replaces, resource, item, serviceAccount }: EntryFilter): boolean {
  return (
    (ids === undefined || ids.includes(entry.id)) &&
    (parent === undefined || entry.parent === parent) &&
    (replaces === undefined || entry.replaces === replaces) &&
    (resource === undefined || resourcesOf(entry).includes(resource)) &&
    (item === undefined || entry.detail.policy_name === item) &&
    (serviceAccount === undefined || serviceAccountOf(entry) === serviceAccount)
  );
}

// What an entry is looked for by, besides its id: each as one text, so that an engine needs one index for all.

export const keyName = (baseUrl: string, key: string): string => `key ${JSON.stringify([baseUrl, key])}`;
const parentName = (id: string): string => `parent ${id}`;
const replacesName = (id: string): string => `replaces ${id}`;
const resourceName = (id: string): string => `resource ${id}`;
const serviceAccountName = (id: string): string => `service account ${id}`;
export const itemName = (name: string): string => `item ${name}`;

export function namesOf(entry: Entry): string[] {
  const { base_url, idempotency_key: key, parent, replaces, detail } = entry;
  const names = resourcesOf(entry).map(resourceName);
  if (key !== null) names.push(keyName(base_url, key));
  if (parent !== null) names.push(parentName(parent));
  if (replaces !== null) names.push(replacesName(replaces));
  if (detail.policy_name !== undefined) names.push(itemName(detail.policy_name));
  const serviceAccount = serviceAccountOf(entry);
  if (serviceAccount !== undefined) names.push(serviceAccountName(serviceAccount));
  return names;
}

/** Whose client a creation or an adoption is about. */
function serviceAccountOf({ operation, request_text }: Entry): string | undefined {
  if (operation !== "oauth_client.create" && operation !== "oauth_client.adopt") return undefined;
  try {
    const read: unknown = JSON.parse(request_text);
    return isObject(read) && typeof read.service_account_id === "string" ? read.service_account_id : undefined;
  } catch {
    return undefined;
  }
}

/**
 * 53 bits of a name. It may stand for several: what it leads to is looked at. So it needs no strength, and must be fast: a
 * journal has several names for each entry.
 */
export function digestOfName(name: string): number {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < name.length; at += 1) {
    const code = name.charCodeAt(at);
    one = Math.imul(one ^ code, 0x9e3779b1);
    other = Math.imul(other ^ code, 0x5f356495);
  }
  one = Math.imul(one ^ (one >>> 16), 0x85ebca6b) ^ Math.imul(other ^ (other >>> 13), 0xc2b2ae35);
  other = Math.imul(other ^ (other >>> 16), 0x85ebca6b) ^ Math.imul(one ^ (one >>> 13), 0xc2b2ae35);
  return 2 ** 32 * (other & 0x1fffff) + (one >>> 0);
}

/** A name that everything that fits has; undefined if nothing that has one is asked for. */
export function nameIn({ parent, replaces, resource, item, serviceAccount }: EntryFilter): string | undefined {
  if (parent !== undefined) return parentName(parent);
  if (replaces !== undefined) return replacesName(replaces);
  if (resource !== undefined) return resourceName(resource);
  if (item !== undefined) return itemName(item);
  return serviceAccount === undefined ? undefined : serviceAccountName(serviceAccount);
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
 * A new id of ten characters: seconds, then chance. It is always above `newest` (the highest id in the journal), even
 * within one second or after the clock was set back, so that sorting ids sorts by admission.
 * @param nowMs milliseconds since 1970.
 * @param options.random whole number from 0 to 2^20 − 1.
 */
export function newEntryId(nowMs: number, options: { random: number; newest?: string | undefined }): string {
  const seconds = Math.max(0, Math.floor(nowMs / 1000) - epochSeconds);
  const wanted = seconds * randomSpan + (options.random % randomSpan);
  if (options.newest === undefined || !idPattern.test(options.newest)) return idOf(wanted);
  const least = numberOf(options.newest) + 1;
  return idOf(wanted > least ? wanted : least + (options.random % 1024));
}

/** The whole number that an id spells: below 2^50. */
export function numberOf(id: string): number {
  let value = 0;
  for (const digit of id) value = value * 32 + alphabet.indexOf(digit);
  return value;
}

/** The numbers of all ids that begin so, from the lowest to the highest; undefined if no id does. */
export function numbersBeginning(start: string): readonly [number, number] | undefined {
  const length = timeDigits + randomDigits;
  const lowest = start.padEnd(length, "0");
  return idPattern.test(lowest) ? [numberOf(lowest), numberOf(start.padEnd(length, "z"))] : undefined;
}

/** What was typed, as an id is spelt: any case, o for 0, i and l for 1. */
export function normalizeId(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("o", "0").replaceAll(/[il]/g, "1");
}

/** Where entries are looked up. */
interface KnownIds {
  get(id: string): Entry | undefined;
  /** The highest first. */
  beginning(start: string): readonly string[];
}

export function findEntry(entries: readonly Entry[], typed: string): Entry {
  return entryMeant(typed, {
    get: (id) => entries.find((entry) => entry.id === id),
    beginning: (start) => entries.filter(({ id }) => id.startsWith(start)).map(({ id }) => id),
  });
}

/**
 * The entry that a person means by an id or the beginning of one.
 * @throws Failure `not_found`, or `usage` if the beginning fits several entries, which it names.
 */
export function entryMeant(typed: string, known: KnownIds): Entry {
  const wanted = normalizeId(typed);
  const whole = known.get(wanted);
  if (whole) return whole;
  const fits = wanted === "" ? [] : known.beginning(wanted);
  const entries = fits.slice(0, 5).flatMap((id) => known.get(id) ?? []);
  const [first] = entries;
  if (first && fits.length === 1) return first;
  if (first === undefined) {
    throw new Failure("not_found", `Journal entry ${JSON.stringify(typed)} not found.`, {
      nextCommand: shell`integ journal list ${flags.all}`,
    });
  }
  const named = entries.map((entry) => `${entry.id} (${entry.operation}, ${entry.state})`);
  const more = fits.length > named.length ? `, and ${fits.length - named.length} more` : "";
  throw new Failure("usage", `${JSON.stringify(typed)} fits ${fits.length} entries: ${named.join(", ")}${more}.`, {
    hint: "Give more characters of the id.",
  });
}
