import { Failure } from "../errors.ts";
import type { Entry } from "./entry.ts";
import { shell } from "../next-step.ts";

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

/** The numbers of all ids that begin so, from the lowest to the highest; undefined where no id does. */
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
    throw new Failure("not_found", `No journal entry ${JSON.stringify(typed)}.`, {
      nextCommand: shell`integ journal list --all`,
    });
  }
  const named = entries.map((entry) => `${entry.id} (${entry.operation}, ${entry.state})`);
  const more = fits.length > named.length ? `, and ${fits.length - named.length} more` : "";
  throw new Failure("usage", `${JSON.stringify(typed)} fits ${fits.length} entries: ${named.join(", ")}${more}.`, {
    hint: "Give more characters of the id.",
  });
}
