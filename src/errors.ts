// The kinds of failures, with their exit codes.
import type { NextStep } from "./next-step.ts";

/** Exit code of each kind of failure: a promise to scripts. */
export const exitCodes = {
  failed: 1,
  usage: 2,
  auth: 3,
  not_found: 4,
  conflict: 5,
  rate_limited: 6,
  outcome_unknown: 7,
  pending: 8,
  secret_lost: 9,
  findings: 10,
  unreachable: 11,
  undelivered: 12,
  unusable: 13,
  interrupted: 130,
  terminated: 143,
} as const;

export type FailureKind = keyof typeof exitCodes;

/** The error object of a response (§7); each field may be missing. */
export interface Problem {
  readonly status?: number;
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly param?: string;
  readonly request_id?: string;
  readonly doc_url?: string;
  readonly retryable?: boolean;
}

export interface FailureDetails extends NextStep {
  /** What it means for the person: one sentence, no full stop needed at the end of a command. */
  readonly meaning?: string;
  /** Id of the journal entry that `nextCommand` recovers, if that is what it does. */
  readonly recovers?: string | undefined;
  /** The service's own words. They are untrusted text: only `output/` may show them. */
  readonly problem?: Problem;
  /** Where it happened, such as `profile prod (eu)`. */
  readonly where?: string;
  /** The request that it was about, if it may have left this machine: `POST /v1/oauth_clients`. */
  readonly request?: string | undefined;
  /** The journal entry that keeps the work. */
  readonly entry?: string;
  /** `Retry-After` of the response (429). */
  readonly retryAfterSeconds?: number | undefined;
  /** Proven that no byte of the last request left this machine: the service has no trace of it. */
  readonly unsent?: boolean;
  /** The command has said it already: the exit code alone is left. */
  readonly isSaid?: true;
  /** A walk cannot continue: its next page token leads back to an earlier page (§4.3). */
  readonly endsWalk?: true;
  readonly cause?: unknown;
}

/**
 * A failure that a person can do something about: it is reported in words, never with a stack. Anything else that is
 * thrown is a bug and ends with exit code 1.
 */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly kind: FailureKind;
  readonly details: FailureDetails;

  constructor(kind: FailureKind, message: string, details: FailureDetails = {}) {
    super(message, { cause: details.cause });
    this.kind = kind;
    this.details = details;
  }

  get exitCode(): number {
    return exitCodes[this.kind];
  }
}

/** For `catch`: what a Failure becomes. Anything else stays the defect that it is. */
export function onFailure<T>(instead: (failure: Failure) => T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Failure) return instead(error);
    throw error;
  };
}

/**
 * A value that is not valid, in one notation for options, arguments, variables and members of files.
 * @param what the option or variable, or its words: `--limit`, `output format`
 * @param value undefined if it could be a secret, or is too long to show
 * @param details.why what is wrong with the value; leave it out if the hint lists what is valid
 */
export function invalidValue(
  what: string,
  value: string | undefined,
  { why, ...details }: FailureDetails & { readonly why?: string } = {},
): Failure {
  const shown = value === undefined ? "" : ` "${value}"`;
  return new Failure("usage", `Invalid ${what}${shown}${why === undefined ? "" : `: ${why}`}.`, details);
}

/** The message of the Failure that a check throws; undefined if it passes. */
export function validationMessage(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return onFailure(({ message }) => message)(error);
  }
}
