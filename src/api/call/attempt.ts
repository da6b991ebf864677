import { Failure, type FailureKind, type Problem } from "../../errors.ts";
import type { NetworkErrorReason } from "../http/exchange.ts";
import { type Advice, type NextCommand, type NextStep, shell, flags } from "../../next-step.ts";

/** Selects the advice after a 404 or 409. */
export type Resource = "oauth_client" | "access_key" | "oauth_token" | "service_account" | "specification";

/** A one-time secret from an unusable response. It must not be lost. */
export interface Salvage {
  readonly secret: string;
  readonly text: string;
}

/**
 * - `answered`: a success status and a valid body.
 * - `refused`: a complete 4xx response, except 408. This attempt changed nothing.
 * - `unknown`: the request may have arrived, and its response is missing, cut or invalid, or has any other status.
 * - `not_sent`: certainly no byte of the request was sent (DNS, refused connection, TLS, proxy, no credential).
 */
export type Attempt<T> =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly value: T;
      readonly body: Buffer;
      readonly requestId?: string;
    }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly problem: Problem;
      readonly retryAfterSeconds?: number;
      readonly resource?: Resource;
    }
  | {
      readonly kind: "unknown";
      readonly status?: number;
      readonly problem?: Problem;
      readonly reason: NetworkErrorReason | "status";
      readonly detail: string;
      readonly retryAfterSeconds?: number;
      readonly salvage?: Salvage;
    }
  | {
      readonly kind: "not_sent";
      readonly reason: NetworkErrorReason;
      readonly detail: string;
      /** What prevented the request; `failureOf` reports it instead of `detail`. */
      readonly failure?: Failure;
      /** True if a retry may succeed, even if `reason` is usually permanent. */
      readonly temporary?: boolean;
      readonly hint?: Advice;
      /** `Retry-After` of the token endpoint. */
      readonly retryAfterSeconds?: number;
    };

export function retryAfterOf(attempt: Attempt<unknown>): number | undefined {
  return attempt.kind === "answered" ? undefined : attempt.retryAfterSeconds;
}

export function requestIdOf(attempt: Attempt<unknown>): string | undefined {
  if (attempt.kind === "not_sent") return undefined;
  return attempt.kind === "answered" ? attempt.requestId : attempt.problem?.request_id;
}

/** Also true if the request was not sent because its credential is missing, invalid or refused. */
export function isCredentialRefused(answer: Attempt<unknown>): boolean {
  if (answer.kind === "refused") return answer.status === 401;
  return answer.kind === "not_sent" && answer.failure?.kind === "auth";
}

export type Answered<T> = Extract<Attempt<T>, { kind: "answered" }>;

export interface FailureContext {
  /** A verb phrase such as `create the OAuth client`, or a method and path. */
  readonly what: string;
  /** True if an `unknown` attempt leaves the outcome unknown (exit 7). */
  readonly change: boolean;
  readonly where?: string;
  readonly step?: NextStep;
}

/** An `answered` attempt here is a bug of the caller. */
export function failureOf(attempt: Attempt<unknown>, context: FailureContext): Failure {
  if (attempt.kind === "refused") return refusalFailure(attempt, context);
  if (attempt.kind === "unknown") return unknownFailure(attempt, context);
  if (attempt.kind === "not_sent") return unsentFailure(attempt, context);
  return new Failure("failed", `The service's response to "${context.what}" was not expected here.`, {
    where: context.where,
  });
}

function refusalFailure(
  attempt: Extract<Attempt<unknown>, { kind: "refused" }>,
  { what, where, step }: FailureContext,
): Failure {
  const { status, problem, retryAfterSeconds } = attempt;
  const [kind, words, statusStep] = refusalOf(attempt);
  const usualStep = problem.param === "page_token" ? restartStep : statusStep;
  return new Failure(kind, `The service refused to ${what}: ${words} (${status}${codeWords(problem)}).`, {
    problem,
    where,
    ...(step ?? (status === 429 ? waitStep(retryAfterSeconds) : usualStep)),
  });
}

/** @returns a space and the service's code; empty without a code, or if the code is not a plain word */
export function codeWords({ code }: Problem): string {
  return code !== undefined && /^[a-z0-9_.-]{1,64}$/i.test(code) ? ` ${code}` : "";
}

function waitStep(retryAfterSeconds: number | undefined): NextStep {
  if (retryAfterSeconds === undefined)
    return {
      hint: "Wait a while, then run the command again; or let integ wait longer.",
      nextCommand: { add: [flags.retryFor, "10m"] },
    };
  const seconds = Math.ceil(retryAfterSeconds);
  // No command should wait longer than a day.
  const days = Math.ceil(seconds / 86_400);
  if (days > 1) return { hint: `Wait ${days} days, as the service asks, then run the command again.` };
  const minutes = Math.max(10, Math.ceil(seconds / 60) + 2);
  return {
    hint: `Wait ${seconds} s, as the service asks, then run the command again; or let integ wait.`,
    nextCommand: { add: [flags.retryFor, `${minutes}m`] },
  };
}

type Refusal = readonly [kind: FailureKind, words: string, step?: NextStep];

/** A page token is valid only with the same organization, service account, version and filters (§4.3 rule 2). */
const restartStep: NextStep = {
  hint: "Start again without a page token.",
  nextCommand: { without: [`${flags.pageToken} <token>`] },
};

function refusalOf({ status, problem, resource }: Extract<Attempt<unknown>, { kind: "refused" }>): Refusal {
  if (status === 404) return notFound(resource);
  if (status === 409) return problem.code === "idempotency_key_reuse" ? keyReuse : conflict(resource);
  return (
    refusals[status] ?? [
      "failed",
      "the request is not accepted",
      { hint: "Correct the value that the service rejected, then run the command again." },
    ]
  );
}

const refusals: Readonly<Record<number, Refusal>> = {
  401: [
    "auth",
    "the credential is not accepted",
    { hint: "Check the credential, and that it belongs to the profile's region.", nextCommand: shell`integ doctor` },
  ],
  403: [
    "auth",
    "a permission or entitlement is missing",
    {
      hint: "Check that the permission or scope exists and that the credential's service account has it, or use another profile.",
      nextCommand: shell`integ doctor`,
    },
  ],
  429: ["rate_limited", "too many requests"],
};

const keyReuse: Refusal = [
  "conflict",
  "the idempotency key was already used for a different request",
  { hint: `Leave ${flags.idempotencyKey} out, or send the request that the key was first used for.` },
];

const commandAfterNotFound: Readonly<Partial<Record<Resource, NextCommand>>> = {
  oauth_client: shell`integ oauth-clients list`,
  access_key: shell`integ keys list`,
  oauth_token: shell`integ doctor`,
  service_account: shell`integ doctor`,
};

function notFound(resource: Resource | undefined): Refusal {
  const ofClient: Advice =
    "Check that the id is correct and belongs to this organization, that the profile's address and region match, and that OAuth access is enabled for the organization.";
  const hints: Readonly<Partial<Record<Resource, Advice>>> = {
    oauth_client: ofClient,
    oauth_token: ofClient,
    service_account:
      "Check that the service account's id is correct and belongs to this organization, that the profile's address and region match, and that OAuth access is enabled for the organization.",
    specification: `Use a published version, such as ${flags.contractVersion} 2026-07-01, or leave the option out for the current one.`,
  };
  const ofOther: Advice =
    "Check that the id or path is correct and belongs to this organization, and that the profile's address and region match.";
  const hint = (resource && hints[resource]) ?? ofOther;
  return ["not_found", "not found", { hint, nextCommand: resource && commandAfterNotFound[resource] }];
}

/** §4.2 documents a 409 for OAuth clients. The legacy contract documents none for access keys. */
function conflict(resource: Resource | undefined): Refusal {
  const ofAccount: NextStep = {
    hint: "Check the service account's status and permissions, and its limit of 20 clients: another idempotency key does not free a slot.",
  };
  const steps: Readonly<Partial<Record<Resource, NextStep>>> = {
    access_key: { nextCommand: shell`integ keys list` },
    oauth_client: ofAccount,
    service_account: ofAccount,
  };
  return ["conflict", "it conflicts with the current state", resource && steps[resource]];
}

function unknownFailure(attempt: Extract<Attempt<unknown>, { kind: "unknown" }>, context: FailureContext): Failure {
  const { what, change, where } = context;
  const { problem, reason, status } = attempt;
  const detail = reason === "status" ? `the service responded with status ${status}` : attempt.detail;
  if (change)
    return new Failure("outcome_unknown", `${gerundPhrase(what)} was interrupted: ${detail}.`, {
      problem,
      where,
      meaning: "The change may or may not have happened.",
      ...context.step,
    });
  const kind: FailureKind = reason === "status" ? "failed" : reason === "interrupted" ? "interrupted" : "unreachable";
  return new Failure(kind, `${gerundPhrase(what)} failed: ${detail}.`, {
    problem,
    where,
    ...(context.step ?? (problem?.retryable === false ? {} : steps[reason])),
  });
}

/** "Creating the OAuth client" for "create the OAuth client"; an HTTP method stays unchanged. */
export function gerundPhrase(what: string): string {
  const [verb = "", ...rest] = what.split(" ");
  if (!/^[a-z]+$/.test(verb)) return what;
  const stem = verb === "get" ? "gett" : verb.replace(/e$/, "");
  return [`${stem[0]?.toUpperCase()}${stem.slice(1)}ing`, ...rest].join(" ");
}

function unsentFailure(attempt: Extract<Attempt<unknown>, { kind: "not_sent" }>, context: FailureContext): Failure {
  const { failure } = attempt;
  const details = { where: context.where, unsent: true, meaning: context.change ? "Nothing was sent." : undefined };
  if (failure !== undefined) return new Failure(failure.kind, failure.message, { ...details, ...failure.details });
  if (attempt.reason === "interrupted")
    return new Failure("interrupted", `Interrupted before "${context.what}" was sent.`, details);
  return new Failure("unreachable", `Cannot ${context.what}: ${attempt.detail}.`, {
    ...details,
    ...(context.step ?? (attempt.hint === undefined ? steps[attempt.reason] : { hint: attempt.hint })),
  });
}

const checkAddress: NextStep = {
  hint: "Check the address of the profile.",
  nextCommand: shell`integ profiles show`,
};
const repeatStep: NextStep = { hint: "Run the command again.", nextCommand: {} };

const steps: Readonly<Partial<Record<NetworkErrorReason | "status", NextStep>>> = {
  dns: checkAddress,
  refused: checkAddress,
  redirect: checkAddress,
  malformed: checkAddress,
  tls: {
    hint: "Check the address: the server may not speak TLS at this port.",
    nextCommand: shell`integ profiles show`,
  },
  proxy: { hint: "Check HTTPS_PROXY and NO_PROXY." },
  timeout: {
    hint: "Run the command again, with more time for one attempt.",
    nextCommand: { add: [flags.timeout, "2m"] },
  },
  closed: repeatStep,
  status: repeatStep,
  too_large: {
    hint: `Check which program responds at the address of the profile; for a list use ${flags.limit} 100.`,
    nextCommand: shell`integ doctor`,
  },
};
