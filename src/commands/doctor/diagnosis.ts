// A finding of `integ doctor` must contain no secret, because people paste findings into tickets.
import type { Service } from "../../api/connect.ts";
import type { Advice, NextCommand, NextStep } from "../../next-step.ts";
import type { Context } from "../../context.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";

export interface Diagnosis {
  readonly check: string;
  readonly status: "ok" | "warning" | "problem";
  readonly message: string;
  readonly next: NextCommand | null;
  readonly hint: Advice | null;
}

/** The profile under test. A method loads its result on the first call and keeps it. */
export interface Subject {
  readonly context: Context;
  profile(): Promise<ActiveProfile>;
  service(): Promise<Service>;
}

export interface Check {
  readonly name: string;
  /** integ skips the check if the `service` check shows that this address or credential does not work. */
  readonly needs?: "address" | "credential";
  readonly run: (subject: Subject) => Promise<readonly Diagnosis[]>;
}

function diagnosed(status: Diagnosis["status"]) {
  return (check: string, message: string, { nextCommand, hint }: NextStep = {}): Diagnosis => {
    return { check, status, message, next: typeof nextCommand === "string" ? nextCommand : null, hint: hint ?? null };
  };
}

export const ok = diagnosed("ok");
export const warning = diagnosed("warning");
export const problem = diagnosed("problem");
