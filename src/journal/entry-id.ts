import { Failure } from "../errors.ts";
import type { Entry } from "./entry.ts";
import { shell } from "../next-step.ts";

/** Crockford's base 32: no i, l, o or u, so that nothing is misread; its order is the order of ASCII. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 6;
const randomDigits = 4;
const randomSpan = 32n ** BigInt(randomDigits);
/** 2025-01-01, in seconds: six digits of seconds last 34 years from here. */
const epochSeconds = 1_735_689_600n;

export const idPattern = /^[0-9a-hjkmnp-tv-z]{10}$/;

function encode(value: bigint): string {
  let text = "";
  for (let rest = value; text.length < timeDigits + randomDigits; rest /= 32n)
    text = alphabet[Number(rest % 32n)] + text;
  return text;
}

function decode(id: string): bigint {
  let value = 0n;
  for (const digit of id) value = value * 32n + BigInt(alphabet.indexOf(digit));
  return value;
}

/**
 * A new id of ten characters: seconds, then chance. It is always above `newest` (the highest id in the journal), even
 * within one second or after the clock was set back, so that sorting ids sorts by admission.
 * @param nowMs milliseconds since 1970.
 * @param options.random whole number from 0 to 2^20 − 1.
 */
export function newEntryId(nowMs: number, options: { random: number; newest?: string | undefined }): string {
  const seconds = BigInt(Math.floor(nowMs / 1000)) - epochSeconds;
  const wanted = (seconds > 0n ? seconds : 0n) * randomSpan + (BigInt(options.random) % randomSpan);
  if (options.newest === undefined || !idPattern.test(options.newest)) return encode(wanted);
  const least = decode(options.newest) + 1n;
  return encode(wanted > least ? wanted : least + BigInt(options.random % 1024));
}

/** The whole number that an id spells: below 2^50. */
export function numberOf(id: string): number {
  return Number(decode(id));
}

/** What was typed, as an id is spelt: any case, o for 0, i and l for 1. */
export function normalizeId(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("o", "0").replaceAll(/[il]/g, "1");
}

/**
 * The entry that a person means by an id or the beginning of one.
 * @throws Failure `not_found`, or `usage` if the beginning fits several entries, which it names.
 */
export function findEntry(entries: readonly Entry[], typed: string): Entry {
  const wanted = normalizeId(typed);
  const fits = wanted === "" ? [] : entries.filter((entry) => entry.id.startsWith(wanted));
  const [first] = fits;
  const meant = fits.find((entry) => entry.id === wanted) ?? (fits.length === 1 ? first : undefined);
  if (meant) return meant;
  if (first === undefined) {
    throw new Failure("not_found", `No journal entry ${JSON.stringify(typed)}.`, {
      nextCommand: shell`integ journal list --all`,
    });
  }
  const named = fits.slice(0, 5).map((entry) => `${entry.id} (${entry.operation}, ${entry.state})`);
  const more = fits.length > named.length ? `, and ${fits.length - named.length} more` : "";
  throw new Failure("usage", `${JSON.stringify(typed)} fits ${fits.length} entries: ${named.join(", ")}${more}.`, {
    hint: "Give more characters of the id.",
  });
}
