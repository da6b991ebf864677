// Values of options that several commands read alike.
import { noVersion } from "../../api/contract-headers.ts";
import type { Context } from "../../context.ts";
import { isDate } from "../../api/json/iso-time.ts";
import { Failure } from "../../errors.ts";

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const simple = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?$/;
/** ISO 8601 durations without years and months, whose length is not fixed. */
const iso =
  /^P(?:(\d+)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?=\d)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const longestMs = 100 * 365 * 86_400_000;

/**
 * @param text what was typed
 * @param name the flag or variable, for the message
 * @returns whole milliseconds, 0 to a hundred years
 * @throws Failure `usage` for anything else
 */
export function parseDuration(text: string, name: string): number {
  return durationOf(text, { name, hint: `${forms}; a bare number is seconds.` });
}

const forms = "Write it like 500ms, 30s, 5m, 36h, 90d or PT30S";

function durationOf(text: string, { name, hint }: { readonly name: string; readonly hint: string }): number {
  const ms = simpleMs(text.trim().toLowerCase()) ?? isoMs(text.trim().toUpperCase());
  if (ms === undefined || !(ms <= longestMs))
    throw new Failure("usage", `${name}: "${text}" is not a duration.`, { hint });
  return Math.round(ms);
}

/**
 * A lifetime or an age: a bare number is none, since who writes 90 means days as often as seconds.
 * @throws Failure `usage` as `parseDuration` does, and for a number without a unit but 0
 */
export function parseLifetime(text: string, name: string): number {
  if (/^\d+(\.\d+)?$/.test(text.trim()) && Number(text) !== 0)
    throw new Failure("usage", `${name}: "${text}" has no unit.`, {
      meaning: `It could be seconds or days: write ${text.trim()}s or ${text.trim()}d.`,
      hint: `${name} ${text.trim()}d`,
    });
  return durationOf(text, { name, hint: `${forms}.` });
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

/**
 * What was named: by `--contract-version`, else by the version that requests are pinned to (`--service-version`,
 * `INTEG_SERVICE_VERSION`). A profile's own version names none: the current document is then what is asked for.
 * @returns undefined where none is named
 * @throws Failure `usage` where two different ones are
 */
export function documentVersion(
  { settings }: Context,
  { contractVersion }: { readonly contractVersion?: string },
): string | undefined {
  const serviceVersion = settings.serviceVersion === noVersion ? undefined : settings.serviceVersion;
  if (contractVersion !== undefined && serviceVersion !== undefined && contractVersion !== serviceVersion)
    throw new Failure(
      "usage",
      `--contract-version ${contractVersion} and the service version ${serviceVersion} name two documents.`,
      { hint: "Keep one of --contract-version, --service-version and INTEG_SERVICE_VERSION." },
    );
  if (contractVersion !== undefined && !isDate(contractVersion))
    throw new Failure("usage", `--contract-version: "${contractVersion}" is no date.`, {
      hint: "--contract-version 2026-07-01",
    });
  return contractVersion ?? serviceVersion;
}
