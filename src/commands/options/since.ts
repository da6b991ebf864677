// `--since`: a time, or a duration before now.
import { isTime } from "../../api/json/iso-time.ts";
import { invalidValue } from "../../errors.ts";
import { parseLifetime } from "./global.ts";

/** Converts the value to ISO 8601 UTC. @throws Failure `usage` if it is neither a time nor a duration */
export function sinceOf(typed: string, now: number): string {
  if (isTime(typed)) return new Date(typed).toISOString();
  if (/^\d{4}-/.test(typed))
    throw invalidValue("--since", typed, {
      why: "it is not a time with a zone",
      hint: "Write it like --since 2026-11-01T00:00:00Z.",
    });
  if (!/^[\dP.]/i.test(typed.trim()))
    throw invalidValue("--since", typed, {
      why: "it is neither a duration nor a time with a zone",
      hint: "Write a duration (7d, 36h) or a time (2026-11-01T00:00:00Z).",
    });
  return new Date(now - parseLifetime(typed, "--since")).toISOString();
}
