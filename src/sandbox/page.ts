// Owns: the list envelope and its page tokens (§2.1, §4.3 pagination rules).
// Must not know: what the rows are.
import type { Answer } from "./problem.ts";
import type { Call, V1Caller } from "./call.ts";
import { invalidRequest } from "./problem.ts";
import { seal, unseal } from "./signing.ts";

const defaultLimit = 25;
const greatestLimit = 500;

export interface Rows {
  /** The list and its filters, spelled so that equal filters have equal text: what a token is bound to. */
  readonly filters: string;
  readonly total: number;
  /** Rows from `start` up to, not including, `end`, each as JSON text. */
  readonly slice: (start: number, end: number) => string[];
  /** The most rows a page may have, whatever `limit` says (cohort members: 50). */
  readonly cap?: number;
}

function limitOf(call: Call): number {
  const text = call.query.get("limit");
  if (text === null) return defaultLimit;
  const limit = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > greatestLimit)
    throw invalidRequest(`limit must be a whole number from 1 to ${greatestLimit}.`, "limit");
  return limit;
}

/** Organization, service account, contract version and filters (§4.3 rule 2). */
function bindingOf(call: Call, given: { caller: V1Caller; rows: Rows }): string {
  const { caller, rows } = given;
  return JSON.stringify(["page", call.here.organizationId, caller.account.id, caller.version, rows.filters]);
}

function startOf(call: Call, binding: string): number {
  const token = call.query.get("page_token");
  if (token === null) return 0;
  const text = unseal(call.here.signingKey, { token, binding });
  if (text === undefined)
    throw invalidRequest(
      "page_token does not belong to this organization, credential, contract version and filters.",
      "page_token",
    );
  return Number(text);
}

/** One page of `rows` as the list envelope of §2.1. @throws Problem 400 for `limit` and `page_token` */
export function pageAnswer(call: Call, given: { caller: V1Caller; rows: Rows }): Answer {
  const { rows } = given;
  const limit = Math.min(limitOf(call), rows.cap ?? greatestLimit);
  const binding = bindingOf(call, given);
  const start = Math.min(startOf(call, binding), rows.total);
  const end = Math.min(start + limit, rows.total);
  const hasMore = end < rows.total;
  const token = hasMore ? JSON.stringify(seal(call.here.signingKey, { text: String(end), binding })) : "null";
  const data = rows.slice(start, end).join(",");
  return {
    status: 200,
    headers: { "Content-Type": "application/json" },
    body: `{"object":"list","data":[${data}],"next_page_token":${token},"has_more":${hasMore}}`,
  };
}
