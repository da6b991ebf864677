// Owns: the caller's decision table of §4.2: what an answer to a creation means. THE place for that rule. Pure.
// Must not know: how any of it is done: journal, retries, destinations.
import type { Attempt, Salvage } from "./http/attempt.ts";
import type { OAuthClient } from "./oauth-clients.ts";

export type CreationDecision =
  /** `active`, secret present: store the secret; proceed. */
  | { readonly kind: "store_secret"; readonly client: OAuthClient; readonly secret: string; readonly text: string }
  /** `active`, secret absent: revoke, confirm, replace under a new key. */
  | { readonly kind: "secret_lost"; readonly client: OAuthClient; readonly text: string }
  /** Keep the key; inspect the resource. */
  | { readonly kind: "pending"; readonly client: OAuthClient; readonly text: string }
  /** `revoked`, `disabled`, `expired`, or a status nobody knows: do not use the client. */
  | { readonly kind: "unusable"; readonly client: OAuthClient; readonly text: string }
  /** `409 idempotency_key_reuse`: the request differs from the one stored under the key. */
  | { readonly kind: "key_reuse"; readonly status: number }
  /** Any other 4xx: this attempt made nothing. */
  | { readonly kind: "refused"; readonly status: number }
  /** `429`: wait, keep key and request. */
  | { readonly kind: "wait"; readonly retryAfterSeconds: number | undefined }
  /** 5xx, time-out, cut or broken answer: keep key and inputs, recover the receipt first. */
  | { readonly kind: "unknown"; readonly secret: Salvage | undefined; readonly retryAfterSeconds: number | undefined }
  | { readonly kind: "not_sent" };

/** What the caller has to do after one attempt to create an OAuth client. */
export function decideCreation(attempt: Attempt<OAuthClient>): CreationDecision {
  if (attempt.kind === "answered") return ofClient(attempt.value, attempt.text);
  if (attempt.kind === "refused") return ofRefusal(attempt);
  if (attempt.kind === "not_sent") return { kind: "not_sent" };
  return { kind: "unknown", secret: attempt.salvage, retryAfterSeconds: attempt.retryAfterSeconds };
}

function ofRefusal(attempt: Extract<Attempt<unknown>, { kind: "refused" }>): CreationDecision {
  const { status, problem, retryAfterSeconds } = attempt;
  if (status === 429) return { kind: "wait", retryAfterSeconds };
  if (status === 409 && problem.code === "idempotency_key_reuse") return { kind: "key_reuse", status };
  return { kind: "refused", status };
}

function ofClient(client: OAuthClient, text: string): CreationDecision {
  const secret = client.client_secret;
  const hasSecret = typeof secret === "string" && secret !== "";
  if (client.status === "active" && client.client_id !== null) {
    return hasSecret ? { kind: "store_secret", client, secret, text } : { kind: "secret_lost", client, text };
  }
  // A secret where none can be, or one that no client id belongs to, breaks §2.3 and §3.1: it is kept, and nothing is
  // believed before a receipt makes sense.
  if (hasSecret) return { kind: "unknown", secret: { secret, text }, retryAfterSeconds: undefined };
  if (client.status === "active") return { kind: "unknown", secret: undefined, retryAfterSeconds: undefined };
  return client.status === "pending" ? { kind: "pending", client, text } : { kind: "unusable", client, text };
}

/**
 * The ids that can be read in an answer that is no whole one, each only where it stands there once: enough to show whom a
 * secret seems to belong to, no proof of it.
 */
export function readableIds(text: string): { readonly id?: string; readonly clientId?: string } {
  const once = (field: string): string | undefined => {
    const found = [...text.matchAll(new RegExp(`"${field}"\\s*:\\s*"([^"\\\\]{1,200})"`, "g"))];
    return found.length === 1 ? found[0]![1] : undefined;
  };
  return { id: once("id"), clientId: once("client_id") };
}
