import { type AccessKeyRecord, byId, type Region, type RegionState, type ServiceAccount } from "./state.ts";

/** A fault's effects on the service; `FaultEffects` has those on the response and the connection too. */
export interface ServiceEffects {
  /** The creation stays pending for this many inspections. */
  readonly pending?: number;
  /** `withheld`: the completing response has no secret; `replay`: only a replay completes a pending creation. */
  readonly secret?: "withheld" | "replay";
  /** What a faulty response leaves: nothing, everything, an idempotency key without a client, or a pending creation. */
  readonly effect?: "none" | "kept" | "abandoned" | "uncertain";
  /** `early`: a pending client already has its client id. */
  readonly clientId?: "early";
  /** Of issued tokens, in milliseconds. */
  readonly lifetime?: number;
  readonly rows?: "repeated" | "changed";
  /** Remote cleanup after a revocation: confirmed after this many milliseconds, or only by a control request. */
  readonly cleanup?: number | "open";
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly parts: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly region: Region;
  readonly baseUrl: string;
  readonly contractVersions: readonly string[];
  readonly settings: { readonly entities: number; readonly seed: number };
  readonly here: RegionState;
  readonly now: number;
  readonly effects: ServiceEffects;
}

/** Each request reads the permissions again (§5.1 rule 5, §5.2 rule 4). */
export interface V1Caller {
  readonly account: ServiceAccount;
  readonly permissions: ReadonlySet<string>;
  readonly version: string;
}

/** True if `id` is a service account of the caller's organization. */
export function isOwn(call: Pick<Call, "here">, given: { caller: V1Caller; id: string }): boolean {
  const account = byId(call.here.serviceAccounts, given.id);
  return account !== undefined && account.organizationId === given.caller.account.organizationId;
}

export interface LegacyCaller {
  readonly accessKey: AccessKeyRecord;
}

/** The service discards the changes of a handler that throws a `Problem`, and keeps those of one that returns it. */
export type Handler<Caller> = (call: Call, caller: Caller) => Answer | Problem | Promise<Answer>;

export function headerOf(call: Pick<Call, "headers">, name: string): string | undefined {
  const value = call.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
}

export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** `{docs_url}` of §7, on a host that does not exist. */
const docsUrl = "https://docs.sandbox.invalid";

/** @assumed all codes except `invalid_request` and `idempotency_key_reuse` (§7 "not shown beyond status") */
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

/**
 * @assumed the code is `not_found` for every reason (§7 "not shown beyond status")
 * @param detail must reveal nothing of other organizations
 */
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

export function problemOfStatus(status: number, detail: string): Problem {
  return new Problem(status, codeByStatus[status] ?? (status < 500 ? "invalid_request" : "internal_error"), detail);
}

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
