import type { NextStep } from "./next-step.ts";

/** Scripts rely on these exit codes. */
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

/** The error object of a response (§7). */
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
  /** The consequence for the user. */
  readonly meaning?: string;
  /** Journal entry that the next step recovers. */
  readonly recovers?: string | undefined;
  /** The service's error, whose text is untrusted: only `output/` may print it. */
  readonly problem?: Problem;
  /** Place of the failure, such as `profile prod (eu)`. */
  readonly where?: string;
  /** The failed request, if it may have been sent, such as `POST /v1/oauth_clients`. */
  readonly request?: string | undefined;
  /** Journal entry of the failed change. */
  readonly entry?: string;
  /** True if no byte of the last request was sent, so the service has no trace of it. */
  readonly unsent?: boolean;
  /** True if the command has already reported the failure; only its exit code is needed. */
  readonly isReported?: true;
  /** True if the list cannot continue: its next page token leads back to an earlier page (§4.3). */
  readonly endsList?: true;
  readonly cause?: unknown;
}

/** The user can act on a failure, so it is reported without a stack. Most other errors are bugs. */
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

/** These kinds suggest that nothing was done, which would mislead after a part of a change was done. */
export function saysNothingWasDone({ kind }: Failure): boolean {
  return kind === "usage" || kind === "failed" || kind === "unreachable";
}

/** A canceled question counts as an interruption, too. */
export function isInterruption({ kind }: Failure): boolean {
  return kind === "interrupted" || kind === "terminated";
}

export function withRequestId(failure: Failure, requestId: string | undefined): Failure {
  const { kind, message, details } = failure;
  if (requestId === undefined || details.problem?.request_id !== undefined) return failure;
  return new Failure(kind, message, { ...details, problem: { ...details.problem, request_id: requestId } });
}

/** Of several failures, the worst one decides the exit code. Other kinds rank after these. */
const worstFirst: readonly FailureKind[] = [
  "outcome_unknown",
  "undelivered",
  "secret_lost",
  "pending",
  "unusable",
  "auth",
  "rate_limited",
  "unreachable",
  "conflict",
  "not_found",
  "failed",
];

/** `isSkipped`: the task was optional, and integ could not try it. */
interface Ended {
  readonly failure?: Failure;
  readonly isSkipped?: boolean;
}

export function worstOf(results: readonly Ended[]): Failure | undefined {
  const tried = results.filter(({ isSkipped }) => isSkipped !== true);
  const failures = (tried.length > 0 ? tried : results).flatMap(({ failure }) => (failure ? [failure] : []));
  const rank = (failure: Failure): number =>
    (worstFirst.indexOf(failure.kind) + worstFirst.length + 1) % (worstFirst.length + 1);
  return failures.sort((a, b) => rank(a) - rank(b))[0];
}

export function onFailure<T>(instead: (failure: Failure) => T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Failure) return instead(error);
    throw error;
  };
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A reason that is a sentence follows a full stop; any other reason follows a colon. */
export function withReason(what: string, error: unknown): string {
  const reason = reasonOf(error);
  return /^\p{Lu}/u.test(reason) ? `${what}. ${reason}` : `${what}: ${reason}`;
}

/**
 * Failure for an invalid option, argument, variable or member of a file. `what` names it. `value` is undefined if it
 * may be a secret or is too long. `why` is omitted if the hint lists the valid values.
 */
export function invalidValue(
  what: string,
  value: string | undefined,
  { why, ...details }: FailureDetails & { readonly why?: string },
): Failure {
  const shown = value === undefined ? "" : ` "${value}"`;
  return new Failure("usage", `Invalid ${what}${shown}${why === undefined ? "" : `: ${why}`}.`, details);
}

export function validationMessage(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return onFailure(({ message }) => message)(error);
  }
}
