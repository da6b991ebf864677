// Owns: what a request to create an OAuth client may say (§4.2, §8), and its exact bytes. Pure, and light: the commands that
// create clients load it with their help.
// Must not know: how it is sent (oauth-clients.ts).
import { Failure } from "../errors.ts";

export interface CreationRequest {
  readonly service_account_id: string;
  readonly scopes: readonly string[];
}

/** §8 */
const maxScopes = 100;
const maxScopeCharacters = 4096;

/**
 * Everything that §4.2 and §8 limit, before anything is sent.
 * @throws Failure `usage`
 */
export function checkCreation(request: CreationRequest & { readonly idempotencyKey?: string | undefined }): void {
  const { service_account_id, scopes, idempotencyKey } = request;
  if (service_account_id === "") refuse("The service account's id is empty.", "--service-account <id>");
  if (scopes.length === 0) refuse("A client needs at least one scope.", "--scope <scope>");
  if (scopes.length > maxScopes) refuse(`${scopes.length} scopes are too many: at most ${maxScopes} a client (§8).`);
  for (const scope of scopes) checkScope(scope);
  const characters = scopes.reduce((sum, scope) => sum + Array.from(scope).length, 0);
  if (characters > maxScopeCharacters)
    refuse(`The scopes have ${characters} characters together: at most ${maxScopeCharacters} (§8).`);
  if (idempotencyKey !== undefined) checkIdempotencyKey(idempotencyKey);
}

function checkScope(scope: string): void {
  if (scope.trim() === "") refuse("A scope is empty.");
  if (scope.includes("*")) refuse(`The scope "${scope}" has a wildcard: scopes are named one by one (§4.2).`);
}

/** @throws Failure `usage` for anything but 1 to 255 visible ASCII characters (§4.2 rule 1) */
export function checkIdempotencyKey(key: string): void {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    refuse("The idempotency key must be 1 to 255 visible ASCII characters without spaces (§8).");
}

function refuse(message: string, hint?: string): never {
  throw new Failure("usage", message, { hint });
}

/**
 * The exact body of a creation. Made once, kept in the journal, and sent byte for byte ever after; scopes keep the order
 * they were given in, a scope given twice is sent once.
 */
export function creationBody({ service_account_id, scopes }: CreationRequest): string {
  return JSON.stringify({ service_account_id, scopes: [...new Set(scopes)] });
}
