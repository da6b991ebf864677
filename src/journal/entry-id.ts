// Owns: the short names of entries: typable, sorted by time, and what a person may type for one. Pure.
// Must not know: files, records.

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

/** What was typed, as an id is spelt: any case, o for 0, i and l for 1. */
export function normalizeId(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("o", "0").replaceAll(/[il]/g, "1");
}
