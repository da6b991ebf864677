import { type AccessKeyRecord, byId, type Region, type RegionState, type ServiceAccount } from "./state.ts";

/** Effects of a fault within the service; its other effects happen on the wire. */
export interface Wishes {
  /** The creation stays pending for so many inspections. */
  readonly pending?: number;
  /** `withheld`: the response that completes carries no secret; `replay`: only a replay completes a pending creation. */
  readonly secret?: "withheld" | "replay";
  /** The result of a creation that fails: an abandoned reservation, or work with an unknown outcome. */
  readonly effect?: "none" | "kept" | "abandoned" | "uncertain";
  /** A pending client has its client_id already. */
  readonly clientId?: "early";
  /** How long an issued token is valid, in ms. */
  readonly lifetime?: number;
  /** What happens to rows between two pages of a walk. */
  readonly rows?: "repeated" | "changed";
  /** When remote cleanup after a revocation is confirmed: so many ms later, or only on request. */
  readonly cleanup?: number | "open";
}

export interface Call {
  readonly method: string;
  readonly path: string;
  /** Decoded `{name}` parts of the path. */
  readonly parts: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly region: Region;
  readonly baseUrl: string;
  /** Every supported value of `Service-Version`. */
  readonly contractVersions: readonly string[];
  readonly settings: { readonly entities: number; readonly seed: number };
  readonly here: RegionState;
  readonly now: number;
  readonly wishes: Wishes;
}

/** Who sent a `/v1` request, with the permissions that count now (§5.1 rule 5, §5.2 rule 4). */
export interface V1Caller {
  readonly account: ServiceAccount;
  readonly permissions: ReadonlySet<string>;
  readonly version: string;
}

/** Whether a service account belongs to the organization of the caller: what does not is 404 (§7). */
export function isOwn(call: Pick<Call, "here">, given: { caller: V1Caller; id: string }): boolean {
  const account = byId(call.here.serviceAccounts, given.id);
  return account !== undefined && account.organizationId === given.caller.account.organizationId;
}

/** Who sent a legacy request: the access key that the bearer token was issued for. */
export interface LegacyCaller {
  readonly accessKey: AccessKeyRecord;
}

/** A thrown refusal undoes the changes of the operation; a returned one keeps them. */
export type Handler<Caller> = (call: Call, caller: Caller) => Answer | Problem | Promise<Answer>;

/** A header's only value. */
export function headerOf(call: Pick<Call, "headers">, name: string): string | undefined {
  const value = call.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
}

/** ISO 8601, UTC, milliseconds. */
export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** What goes back over the wire. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Address of the documentation, `{docs_url}` of §7. It leads nowhere: the sandbox has no such site. */
const docsUrl = "https://docs.sandbox.invalid";

/**
 * Titles by code. `invalid_request` and `idempotency_key_reuse` are the document's.
 * @assumed every other code (§7 "not shown beyond status")
 */
const titles = {
  invalid_request: "Invalid request",
  idempotency_key_reuse: "Idempotency key reused",
  unauthenticated: "Credential not accepted",
  permission_denied: "Permission denied",
  not_found: "Not found",
  method_not_allowed: "Method not allowed",
  request_too_large: "Request too large",
  unsupported_media_type: "Unsupported media type",
  rate_limited: "Too many requests",
  internal_error: "Internal error",
  service_unavailable: "Service unavailable",
} as const;

export type ProblemCode = keyof typeof titles;

export interface ProblemDetails {
  readonly param?: string;
  readonly retryable?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that is refused: thrown where the reason is found. */
export class Problem extends Error {
  readonly status: number;
  readonly code: ProblemCode;
  readonly more: ProblemDetails;

  constructor(status: number, code: ProblemCode, detail: string, more: ProblemDetails = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.more = more;
  }
}

export function invalidRequest(detail: string, param?: string): Problem {
  return new Problem(400, "invalid_request", detail, param === undefined ? {} : { param });
}

/** @assumed one 404 for all reasons (§7 "not shown beyond status"), so that nothing is said about what the caller does not own */
export function notFound(detail: string): Problem {
  return new Problem(404, "not_found", detail);
}

const codeByStatus: Readonly<Record<number, ProblemCode>> = {
  400: "invalid_request",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  405: "method_not_allowed",
  409: "invalid_request",
  413: "request_too_large",
  415: "unsupported_media_type",
  429: "rate_limited",
  503: "service_unavailable",
};

/** The problem that a bare status stands for (faults, and what fails inside). */
export function problemOfStatus(status: number, detail: string): Problem {
  return new Problem(status, codeByStatus[status] ?? (status < 500 ? "invalid_request" : "internal_error"), detail);
}

/** The error object (§7); `param` is there only if one applies. */
export function problemAnswer(problem: Problem, requestId: string): Answer {
  const address = `${docsUrl}/developers/v1/errors/${problem.code}`;
  const body = {
    type: address,
    title: titles[problem.code],
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    ...(problem.more.param === undefined ? {} : { param: problem.more.param }),
    request_id: requestId,
    doc_url: address,
    retryable: problem.more.retryable ?? (problem.status === 429 || problem.status >= 500),
  };
  return {
    status: problem.status,
    headers: { "Content-Type": "application/json", ...problem.more.headers },
    body: JSON.stringify(body),
  };
}
