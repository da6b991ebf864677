// Owns: the error object of §7 and the answers that carry it.
// Must not know: which rule was broken.

/** What goes back over the wire. `body` is the whole text; undefined sends none. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Address of the documentation, `{docs_url}` of §7. It leads nowhere: the sandbox has no such site. */
const docsUrl = "https://docs.sandbox.invalid";

/**
 * Titles by code. `invalid_request` and `idempotency_key_reuse` are the document's.
 * @assumed every other code (§7 «not shown beyond status»)
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

/** A request that is refused: thrown by whoever finds the reason. */
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

/** @assumed one 404 for all reasons (§7 «not shown beyond status»), so that nothing is told about what the caller does not own */
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

/** The error object (§7); `param` is there only where one applies. */
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
