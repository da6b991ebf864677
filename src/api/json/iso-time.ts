// Reads ISO 8601 times, dates (§2.4, §9) and durations.

/** Refuses 30 February, which `Date.parse` reads as a day in March. */
export function isDate(text: string): boolean {
  const form = /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/.exec(text);
  return form !== null && Number(form[3]) <= new Date(Date.UTC(Number(form[1]), Number(form[2]), 0)).getUTCDate();
}

export function isTime(text: string): boolean {
  const form = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/.exec(text);
  return form !== null && isDate(form[1]!) && !Number.isNaN(Date.parse(text));
}

/** @returns the time as the service writes times: UTC with milliseconds. Other texts stay unchanged. */
export function fullTime(text: string): string {
  return isTime(text) ? new Date(text).toISOString() : text;
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const simple = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?$/;
/** Matches durations without years and months, whose length varies. */
const iso =
  /^P(?:(\d+)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?=\d)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const longestMs = 100 * 365 * 86_400_000;

/**
 * Reads `30s`, `36h`, `90d` or `PT30S`; a bare number is seconds. @returns undefined for other texts and above 100
 * years
 */
export function durationMs(text: string): number | undefined {
  const ms = simpleMs(text.trim().toLowerCase()) ?? isoMs(text.trim().toUpperCase());
  return ms === undefined || !(ms <= longestMs) ? undefined : Math.round(ms);
}

function simpleMs(text: string): number | undefined {
  const match = simple.exec(text);
  return match ? Number(match[1]) * (unitMs[match[2] ?? "s"] ?? 0) : undefined;
}

function isoMs(text: string): number | undefined {
  const match = iso.exec(text);
  if (!match || text === "P" || text.endsWith("T")) return undefined;
  const [, w, d, h, m, s] = match.map((part) => Number(part ?? 0));
  return ((((w ?? 0) * 7 + (d ?? 0)) * 24 + (h ?? 0)) * 60 + (m ?? 0)) * 60_000 + (s ?? 0) * 1000;
}
