// The checks of `integ doctor` and their findings. No secret is in a finding: people paste it into tickets.
import type { Service } from "../../api/connect.ts";
import type { Advice, NextCommand, NextStep } from "../../next-step.ts";
import type { Context } from "../../context.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";

export interface Diagnosis {
  readonly check: string;
  readonly status: "ok" | "warning" | "problem";
  readonly message: string;
  /** What to do about it: never the doctor again. */
  readonly next: NextCommand | null;
  readonly hint: Advice | null;
}

/** The profile that is looked at, and the service as it. Nothing of them is read before a check asks for it. */
export interface Subject {
  readonly context: Context;
  profile(): Promise<ActiveProfile>;
  service(): Promise<Service>;
}

export interface Check {
  readonly name: string;
  /** What of the service it needs: it is not made if that was found missing. */
  readonly needs?: "address" | "credential";
  readonly run: (subject: Subject) => Promise<readonly Diagnosis[]>;
}

export function ok(check: string, message: string): Diagnosis {
  return { check, status: "ok", message, ...todo({}) };
}

export function todo({ nextCommand, hint }: NextStep): Pick<Diagnosis, "next" | "hint"> {
  return { next: typeof nextCommand === "string" ? nextCommand : null, hint: hint ?? null };
}
