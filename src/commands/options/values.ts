// Values of options that several commands read alike.
import { noVersion } from "../../api/contract-headers.ts";
import type { Context } from "../../context.ts";
import { durationMs, isDate } from "../../api/json/iso-time.ts";
import { Failure } from "../../errors.ts";
import type { Advice } from "../../next-step.ts";

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

function durationOf(text: string, { name, hint }: { readonly name: string; readonly hint: Advice }): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new Failure("usage", `${name}: "${text}" is not a duration.`, { hint });
  return ms;
}

/**
 * A lifetime or an age: a bare number is none, since who writes 90 means days as often as seconds.
 * @throws Failure `usage` as `parseDuration` does, and for a number without a unit but 0
 */
export function parseLifetime(text: string, name: string): number {
  if (/^\d+(\.\d+)?$/.test(text.trim()) && Number(text) !== 0)
    throw new Failure("usage", `${name}: "${text}" has no unit.`, {
      meaning: `It could be seconds or days: write ${text.trim()}s or ${text.trim()}d.`,
      hint: `Write ${name} ${text.trim()}d for days.`,
    });
  return durationOf(text, { name, hint: `${forms}.` });
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
      `--contract-version ${contractVersion} and the service version ${serviceVersion} name two versions.`,
      { hint: "Keep one of --contract-version, --service-version and INTEG_SERVICE_VERSION." },
    );
  if (contractVersion !== undefined && !isDate(contractVersion))
    throw new Failure("usage", `--contract-version: "${contractVersion}" is not a date.`, {
      hint: "Write it like --contract-version 2026-07-01.",
    });
  return contractVersion ?? serviceVersion;
}
