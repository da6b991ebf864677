// Checks and builds the creation of a client, and interprets the response (§4.2, §8). Has no heavy imports, because
// commands check their input with it.
import { Failure, invalidValue } from "../errors.ts";
import type { Attempt, Salvage } from "./call/attempt.ts";
import type { OAuthClient } from "./oauth-clients.ts";
import { type Advice, quotedWord, flags } from "../next-step.ts";

export interface CreationRequest {
  readonly service_account_id: string;
  readonly scopes: readonly string[];
}

const maxScopes = 100;
const maxScopeCharacters = 4096;

export function checkCreation(request: CreationRequest & { readonly idempotencyKey?: string | undefined }): void {
  const { service_account_id, scopes, idempotencyKey } = request;
  if (service_account_id === "")
    refuse("The service account's id is empty.", `Name the service account with ${flags.serviceAccount} <id>.`);
  if (scopes.length === 0) refuse("A client needs at least one scope.", `Add ${flags.scope} <scope>.`);
  if (scopes.length > maxScopes)
    refuse(`${scopes.length} scopes are too many: a client can have at most ${maxScopes}.`);
  for (const scope of scopes) checkScope(scope);
  const characters = scopes.reduce((sum, scope) => sum + Array.from(scope).length, 0);
  if (characters > maxScopeCharacters)
    refuse(`The scopes have ${characters} characters together: at most ${maxScopeCharacters} are allowed.`);
  if (idempotencyKey !== undefined) checkIdempotencyKey(idempotencyKey);
}

function checkScope(scope: string): void {
  if (scope.trim() === "")
    refuse("A scope is empty.", `Write ${flags.scope} <scope>, such as ${flags.scope} entity:read.`);
  const parts = scope.split(/[\s,;]+/).filter((part) => part !== "");
  if (parts.join("") !== scope || parts.length > 1)
    throw invalidValue("scope", scope, { why: "it is not one scope", hint: suggestedScopes(parts) });
  if (scope.includes("*"))
    throw invalidValue("scope", scope, {
      why: "it has a wildcard",
      hint: "Replace the wildcard by the full name of each scope, such as entity:read.",
    });
}

function suggestedScopes(parts: readonly string[]): Advice {
  return `Write ${parts.map((part) => `${flags.scope} ${quotedWord(part)}`).join(" ")}.`;
}

function checkIdempotencyKey(key: string): void {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw invalidValue("idempotency key", undefined, {
      why: "it must be 1 to 255 visible ASCII characters without spaces",
      hint: "Use a key like build-42.",
    });
}

function refuse(message: string, hint?: Advice): never {
  throw new Failure("usage", message, { hint });
}

/** The journal keeps this body, so that every attempt sends the same bytes. */
export function creationBody({ service_account_id, scopes }: CreationRequest): string {
  return JSON.stringify({ service_account_id, scopes: [...new Set(scopes)] });
}

/**
 * All receipts of an idempotency key show the same client (§4.2 rule 2).
 * @param known.id the client of earlier receipts
 * @param known.notIds clients that the new client replaces
 * @returns the differences in words, or undefined
 */
export function clientDifferences(
  client: Pick<OAuthClient, "id" | "service_account_id" | "scopes" | "status">,
  request: CreationRequest,
  known: { readonly id?: string | null; readonly notIds?: readonly string[] },
): string | undefined {
  const requested = new Set(request.scopes);
  const shown = new Set(client.scopes);
  return differencesIn([
    known.id && client.id !== known.id && `id is ${quotedValues([client.id])}, and was ${quotedValues([known.id])}`,
    known.notIds?.includes(client.id) && `id is ${quotedValues([client.id])}, the one to be replaced`,
    isUndocumented(client) && `status is ${quotedValues([client.status])}, which integ does not know`,
    client.service_account_id !== request.service_account_id &&
      `service_account_id is ${quotedValues([client.service_account_id])} instead of ${quotedValues([request.service_account_id])}`,
    ...scopeDifferences(requested, shown),
  ]);
}

export function scopeDifferences(requested: ReadonlySet<string>, shown: ReadonlySet<string>): (string | false)[] {
  const added = [...shown].filter((scope) => !requested.has(scope));
  const missing = [...requested].filter((scope) => !shown.has(scope));
  return [
    added.length > 0 && `scopes has ${quotedValues(added)}, which was not requested`,
    missing.length > 0 && `scopes lacks ${quotedValues(missing)}`,
  ];
}

export function differencesIn(all: readonly (string | false | null | undefined)[]): string | undefined {
  return all.filter(Boolean).join("; ") || undefined;
}

const maxShown = 3;

function quotedValues(values: readonly string[]): string {
  const shown = values.slice(0, maxShown).map((value) => JSON.stringify(Array.from(value).slice(0, 80).join("")));
  const more = values.length - shown.length;
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Clients that are being created or removed count too (§8). */
export const maxClients = 20;

/** The decision table of §4.2. */
export type CreationDecision =
  /** `active` or an undocumented status, with a secret: store the secret. */
  | { readonly kind: "store_secret"; readonly client: OAuthClient; readonly secret: string; readonly text: string }
  /** `active` without a secret: revoke the client, confirm that, and create a client under a new idempotency key. */
  | { readonly kind: "secret_lost"; readonly client: OAuthClient; readonly text: string }
  /** Keep the idempotency key and inspect the client. */
  | { readonly kind: "pending"; readonly client: OAuthClient }
  /** `revoked`, `disabled`, `expired`, or an undocumented status without a secret: do not use the client. */
  | { readonly kind: "unusable"; readonly client: OAuthClient }
  /** `409 idempotency_key_reuse`: the request differs from the stored one. */
  | { readonly kind: "key_reuse" }
  /** Another 4xx: this attempt created nothing. */
  | { readonly kind: "refused" }
  /** `429`: wait; keep the idempotency key and the request. */
  | { readonly kind: "wait" }
  /** 5xx, timeout, cut or invalid response: keep the idempotency key and the request, and recover the receipt. */
  | { readonly kind: "unknown"; readonly secret: Salvage | undefined }
  | { readonly kind: "not_sent" };

export function decideCreation(attempt: Attempt<OAuthClient>): CreationDecision {
  if (attempt.kind === "answered") return decideByClient(attempt.value, attempt.body.toString());
  if (attempt.kind === "refused") return decideByRefusal(attempt);
  if (attempt.kind === "not_sent") return { kind: "not_sent" };
  return { kind: "unknown", secret: attempt.salvage };
}

function decideByRefusal({ status, problem }: Extract<Attempt<unknown>, { kind: "refused" }>): CreationDecision {
  if (status === 429) return { kind: "wait" };
  return { kind: status === 409 && problem.code === "idempotency_key_reuse" ? "key_reuse" : "refused" };
}

const documented: ReadonlySet<string> = new Set(["active", "pending", "revoked", "disabled", "expired"]);

/** The service may add statuses (§9 rule 3). */
export function isUndocumented({ status }: Pick<OAuthClient, "status">): boolean {
  return !documented.has(status);
}

function decideByClient(client: OAuthClient, text: string): CreationDecision {
  const secret = client.client_secret;
  const hasSecret = typeof secret === "string" && secret !== "";
  if (isUndocumented(client) && client.client_id !== null && hasSecret)
    return { kind: "store_secret", client, secret, text };
  if (client.status === "active" && client.client_id !== null) {
    return hasSecret ? { kind: "store_secret", client, secret, text } : { kind: "secret_lost", client, text };
  }
  // The response breaks §2.3 or §3.1: this status allows no secret, or the client id is missing. Keep the secret, and
  // recover a valid receipt first.
  if (hasSecret) return { kind: "unknown", secret: { secret, text } };
  if (client.status === "active") return { kind: "unknown", secret: undefined };
  return { kind: client.status === "pending" ? "pending" : "unusable", client };
}

/** Reads ids that occur exactly once in an incomplete response. They may belong to another client than the secret. */
export function readableIds(text: string): { readonly id?: string; readonly clientId?: string } {
  const once = (field: string): string | undefined => {
    const found = [...text.matchAll(new RegExp(`"${field}"\\s*:\\s*"([^"\\\\]{1,200})"`, "g"))];
    return found.length === 1 ? found[0]![1] : undefined;
  };
  return { id: once("id"), clientId: once("client_id") };
}
