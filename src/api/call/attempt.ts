import { Failure, type FailureKind, type Problem } from "../../errors.ts";
import type { NetworkErrorReason } from "../http/exchange.ts";
import { type Advice, type NextCommand, type NextStep, shell, flags } from "../../next-step.ts";

/** What a request was about, as far as that changes what to do about a refusal. */
export type Resource = "oauth_client" | "access_key" | "oauth_token";

/** A one-time secret read from a response that breaks the contract: it must not be lost for that. */
export interface Salvage {
  readonly secret: string;
  /** What was read from the response. It holds the secret. */
  readonly text: string;
}

/**
 * The outcome of one attempt.
 * - `answered`: a success status and a body that keeps to the contract. `body` is exactly what came: a page is large and rarely needed as a string.
 * - `refused`: a complete 4xx response: this attempt changed nothing.
 * - `unknown`: bytes left this machine and no usable response came back (5xx, cut, timeout, broken body).
 * - `not_sent`: proven that no byte of the request left (DNS, refused, TLS handshake, proxy, interrupted before, or there
 *   was no credential to send it with).
 * For a read the difference between the last two is only in the words.
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
      /** Only if the operation yields a one-time secret and one could be read. */
      readonly salvage?: Salvage;
    }
  | {
      readonly kind: "not_sent";
      readonly reason: NetworkErrorReason;
      readonly detail: string;
      /** Why there was nothing to send, in words for a person: `failureOf` ends with it. */
      readonly failure?: Failure;
      /** The same again may succeed although the reason usually stays (a name server that is busy). */
      readonly temporary?: boolean;
      /** What to do about this one, if more is known than the reason says. */
      readonly hint?: Advice;
      /** What the token endpoint asked for, if it was the one that gave no response. */
      readonly retryAfterSeconds?: number;
    };

/** How long the service, or the token endpoint before it, asked to be left alone (§8). */
export function retryAfterOf(attempt: Attempt<unknown>): number | undefined {
  return attempt.kind === "answered" ? undefined : attempt.retryAfterSeconds;
}

/** What the service calls the attempt, if it has responded. */
export function requestIdOf(attempt: Attempt<unknown>): string | undefined {
  if (attempt.kind === "not_sent") return undefined;
  return attempt.kind === "answered" ? attempt.requestId : attempt.problem?.request_id;
}

/** An attempt whose response is as the contract says. */
export type Answered<T> = Extract<Attempt<T>, { kind: "answered" }>;

export interface FailureContext {
  /** What was asked for, as it reads in a sentence: `create the OAuth client`. */
  readonly what: string;
  /** True if the request was to change something: then an unusable response leaves the outcome unknown (exit 7). */
  readonly change: boolean;
  /** `profile prod (eu) · POST /v1/oauth_clients` */
  readonly where?: string;
  /** Instead of the usual one. */
  readonly step?: NextStep;
}

/**
 * @param attempt one that was refused, unknown or not sent. One with a response here is a mistake of the caller and ends as
 * `failed`.
 */
export function failureOf(attempt: Attempt<unknown>, context: FailureContext): Failure {
  if (attempt.kind === "refused") return ofRefusal(attempt, context);
  if (attempt.kind === "unknown") return ofUnknown(attempt, context);
  if (attempt.kind === "not_sent") return ofNothingSent(attempt, context);
  return new Failure("failed", `The service's response to "${context.what}" was not expected here.`, {
    where: context.where,
  });
}

function ofRefusal(
  attempt: Extract<Attempt<unknown>, { kind: "refused" }>,
  { what, where, step }: FailureContext,
): Failure {
  const { status, problem, retryAfterSeconds } = attempt;
  const [kind, words, statusStep] = refusalOf(attempt);
  const usualStep = problem.param === "page_token" ? fromTheStart : statusStep;
  const name = problem.code !== undefined && /^[a-z0-9_.-]{1,64}$/i.test(problem.code) ? ` ${problem.code}` : "";
  return new Failure(kind, `The service refused to ${what}: ${words} (${status}${name}).`, {
    problem,
    where,
    retryAfterSeconds,
    ...(step ?? (status === 429 ? waitStep(retryAfterSeconds) : usualStep)),
  });
}

/** §8: the caller waits as long as `Retry-After` says. A wait that does not fit `--retry-for` was not started. */
function waitStep(retryAfterSeconds: number | undefined): NextStep {
  if (retryAfterSeconds === undefined)
    return {
      hint: "Wait a while, then run the command again; or let it wait longer.",
      nextCommand: { add: [flags.retryFor, "10m"] },
    };
  const seconds = Math.ceil(retryAfterSeconds);
  // No one lets a command wait for days, and `--retry-for` has an end.
  const days = Math.ceil(seconds / 86_400);
  if (days > 1) return { hint: `Wait ${days} days, as the service asks, then run the command again.` };
  const minutes = Math.max(10, Math.ceil(seconds / 60) + 2);
  return {
    hint: `Wait ${seconds} s, as the service asks, then run the command again; or let it wait.`,
    nextCommand: { add: [flags.retryFor, `${minutes}m`] },
  };
}

type Refusal = readonly [kind: FailureKind, words: string, step?: NextStep];

/** §4.3 rule 2: a token is refused under any other profile, version or filter than its own. */
const fromTheStart: NextStep = {
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

/** What shows which ids there are; no list shows why a token is not given. */
const listOf: Readonly<Record<Resource, NextCommand>> = {
  oauth_client: shell`integ oauth-clients list`,
  access_key: shell`integ keys list`,
  oauth_token: shell`integ doctor`,
};

/** §4.2: for OAuth clients 404 is also how an organization without OAuth access is reported. */
function notFound(resource: Resource | undefined): Refusal {
  const hint =
    resource === "oauth_client" || resource === "oauth_token"
      ? "Check that the id is correct and belongs to this organization, that the profile has the host of its region, and that OAuth access is enabled."
      : "Check that the id or path is correct and belongs to this organization, and that the profile has the host of its region.";
  return ["not_found", "not found", { hint, nextCommand: resource && listOf[resource] }];
}

/** §4.2 says what a conflict means for OAuth clients alone; of access keys it shows none (§3.2). */
function conflict(resource: Resource | undefined): Refusal {
  const steps: Readonly<Partial<Record<Resource, NextStep>>> = {
    access_key: { nextCommand: shell`integ keys list` },
    oauth_client: {
      hint: "Check the service account's status and permissions, and its limit of 20 clients: another idempotency key does not free a slot.",
    },
  };
  return ["conflict", "it conflicts with the current state", resource && steps[resource]];
}

function ofUnknown(attempt: Extract<Attempt<unknown>, { kind: "unknown" }>, context: FailureContext): Failure {
  const { what, change, where } = context;
  const { problem, reason, status } = attempt;
  const detail = reason === "status" ? `the service responded with status ${status}` : attempt.detail;
  if (change)
    return new Failure("outcome_unknown", `${asSubject(what)} was interrupted: ${detail}.`, {
      problem,
      where,
      meaning: "The change may or may not have happened.",
      ...context.step,
    });
  const kind: FailureKind = reason === "status" ? "failed" : reason === "interrupted" ? "interrupted" : "unreachable";
  return new Failure(kind, `${asSubject(what)} failed: ${detail}.`, {
    problem,
    where,
    ...(context.step ?? (problem?.retryable === false ? {} : steps[reason])),
  });
}

/** @returns "create the OAuth client" as the subject of a sentence: "Creating the OAuth client"; a method stays as it is */
export function asSubject(what: string): string {
  const [verb = "", ...rest] = what.split(" ");
  if (!/^[a-z]+$/.test(verb)) return what;
  const stem = verb === "get" ? "gett" : verb.replace(/e$/, "");
  return [`${stem[0]?.toUpperCase()}${stem.slice(1)}ing`, ...rest].join(" ");
}

function ofNothingSent(attempt: Extract<Attempt<unknown>, { kind: "not_sent" }>, context: FailureContext): Failure {
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
const runAgain: NextStep = { hint: "Run the command again.", nextCommand: {} };

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
  closed: runAgain,
  status: runAgain,
  too_large: {
    hint: `Check which program responds at the address of the profile; for a list use ${flags.limit} 100.`,
    nextCommand: shell`integ doctor`,
  },
};
