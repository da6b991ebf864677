import { isTime } from "../../api/json/iso-time.ts";
import { invalidValue } from "../../errors.ts";
import { parseLifetime } from "./global.ts";

const hint = "Write a duration (7d, 36h) or a time (2026-11-01T00:00:00Z).";

/** @returns ISO 8601 UTC. @throws Failure `usage` unless the value is a time with a zone or a duration above 0 */
export function sinceOf(typed: string, now: number): string {
  if (isTime(typed)) return new Date(typed).toISOString();
  if (/^\d{4}-/.test(typed))
    throw invalidValue("--since", typed, {
      why: "it is not a time with a zone",
      hint: "Write it like --since 2026-11-01T00:00:00Z.",
    });
  if (!/^[\dP.]/i.test(typed.trim()))
    throw invalidValue("--since", typed, { why: "it is neither a duration nor a time with a zone", hint });
  const ms = parseLifetime(typed, "--since");
  if (ms === 0) throw invalidValue("--since", typed, { why: "it is not before now", hint });
  return new Date(now - ms).toISOString();
}
