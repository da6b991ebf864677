// Revokes a client or key (§3.1, §3.2, §4.2), alone or as a step of larger work. acts/revoke.ts sends the request.
import type { AccessKey } from "../api/access-keys.ts";
import { type Answered, type Attempt, failureOf } from "../api/call/attempt.ts";
import { segment } from "../api/call/request.ts";
import type { Service } from "../api/connect.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import { Failure, onFailure } from "../errors.ts";
import { mayHaveArrived } from "../journal/entry.ts";
import type { EntryLease, Intent } from "../journal/journal.ts";
import { revoke, type RevocationOptions } from "./acts/revoke.ts";
import { recordFailure, readUntilAnswered } from "./sending.ts";
import { withLease, accountFields, recordOrWarn, serviceTime, type Workbench } from "./workbench.ts";

export interface RevocationResult {
  /** JSON: the response if it shows the revocation, else the known fields. */
  readonly receipt: string;
  /** False if neither the response nor the list shows the status. */
  readonly isConfirmed: boolean;
}

export interface Credential {
  readonly noun: "client" | "key";
  /** @returns undefined if the service does not show the status. @throws Failure of the read */
  statusOf(bench: Workbench, id: string): Promise<string | undefined>;
  /** @returns words such as `is revoked` if the credential does not work; undefined if it may work */
  endOf(status: string | undefined): string | undefined;
  revoke(bench: Workbench, id: string, about: RevocationOptions): Promise<RevocationResult>;
}

export function revocationIntent({ account }: Workbench, noun: Credential["noun"], id: string): Intent {
  const [operation, path, detail] =
    noun === "client"
      ? (["oauth_client.revoke", "/v1/oauth_clients", {}] as const)
      : (["access_key.revoke", "/api/v1/access-keys", { key_id: id }] as const);
  return {
    ...accountFields(account),
    operation,
    method: "DELETE",
    path: `${path}/${segment(id, `${noun} id`)}`,
    request_text: JSON.stringify({ id }),
    fingerprint: JSON.stringify([id]),
    idempotent: false,
    detail,
  };
}

export async function revokeNamed(bench: Workbench, noun: Credential["noun"], id: string): Promise<RevocationResult> {
  const { lease } = await bench.journal.admit(revocationIntent(bench, noun, id));
  return withLease(lease, () => finishRevocation(bench, lease));
}

/** The entry becomes `done`, `unknown`, `open` (429) or `refused`. */
export async function finishRevocation(bench: Workbench, lease: EntryLease): Promise<RevocationResult> {
  const { operation, request_text } = lease.entry;
  const { id } = JSON.parse(request_text) as { id: string };
  const credential = operation === "access_key.revoke" ? keyCredential : clientCredential;
  const wasUnknown = mayHaveArrived(lease.entry);
  try {
    const end = await credential.revoke(bench, id, { grounds: { kind: "named" }, lease });
    await recordOrWarn(bench, lease, { state: "done", last_error: null });
    return end;
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    const { state, detail } = lease.entry;
    // After an attempt that may have arrived, a refusal can be its effect and does not settle the entry.
    const isUnknown = wasUnknown || state === "unknown" || failure.kind === "outcome_unknown";
    const stateBefore = isUnknown ? "unknown" : detail.put_off_until !== undefined ? "open" : undefined;
    throw await recordFailure(bench, lease, { stateBefore, failure });
  }
}

const readContext = { what: "get the OAuth client" };

export const clientCredential: Credential = {
  noun: "client",
  statusOf: async (bench, id) =>
    (await readUntilAnswered(bench, () => bench.account.service.oauthClients.get(id), readContext)).status,
  endOf: (status) => (status === undefined || status === "active" || status === "pending" ? undefined : `is ${status}`),
  revoke: (bench, id, about) => revoke(bench, { ...about, change: "revoke client", id, read: readRevokedClient }),
};

async function readRevokedClient(answer: Attempt<OAuthClient>): Promise<RevocationResult | Failure> {
  if (answer.kind !== "answered") return failureOf(answer, { what: "revoke the OAuth client", change: true });
  const { status } = answer.value;
  if (status === "revoked") return { receipt: answer.body.toString(), isConfirmed: true };
  return new Failure("outcome_unknown", `The service responded with "${status}" to the revocation, not "revoked".`);
}

const endWords: ReadonlyMap<string | undefined, string> = new Map([
  ["revoked", "is revoked"],
  ["absent", "is missing from the list of keys"],
  ["expired", "has expired"],
]);

export const keyCredential: Credential = {
  noun: "key",
  statusOf: (bench, id) => statusInList(bench, id).catch(unlessHidden),
  endOf: (status) => endWords.get(status),
  revoke: revokeKey,
};

/**
 * Counts the key as revoked if a response or the list shows it as revoked, or if the list no longer has it.
 * @assumed §4.4 and §3.2 do not show the operation: repeating it is safe (RFC 9110 §9.2.2), and a 409, or a 404 after an attempt
 * that may have arrived, can mean that it succeeded; then the list decides.
 */
function revokeKey(bench: Workbench, id: string, about: RevocationOptions): Promise<RevocationResult> {
  const { grounds, lease, service = bench.account.service } = about;
  const { detail } = lease.entry;
  const listed = (): Promise<string | undefined> => statusInList(bench, id, service).catch(onFailure(() => undefined));
  const wasSent = grounds.kind === "secret_lost" || detail.revoking === true || mayHaveArrived(lease.entry);
  const read = async (
    answer: Attempt<AccessKey>,
    earlier: readonly Attempt<unknown>[],
  ): Promise<RevocationResult | Failure> => {
    if (answer.kind === "answered") return confirmRevocation(answer, { id, listed });
    const mayBeOver =
      answer.kind === "refused" &&
      (answer.status === 409 || (answer.status === 404 && (wasSent || earlier.some(({ kind }) => kind === "unknown"))));
    if (mayBeOver && isRevoked(await listed())) return revokedResult(id);
    return failureOf(answer, { what: "revoke the access key", change: true });
  };
  return revoke(bench, { change: "revoke key", id, service, read, grounds, lease });
}

const isRevoked = (status: string | undefined): boolean => status === "revoked" || status === "absent";

function revokedResult(id: string): RevocationResult {
  return { receipt: JSON.stringify({ id, status: "revoked" }), isConfirmed: true };
}

/** Unless a 2xx response shows this key as revoked, the list decides. */
async function confirmRevocation(
  answer: Answered<AccessKey>,
  { id, listed }: { readonly id: string; readonly listed: () => Promise<string | undefined> },
): Promise<RevocationResult> {
  const { id: shown = id, status } = answer.value;
  if (shown === id && status === "revoked") return { receipt: answer.body.toString(), isConfirmed: true };
  const now = await listed();
  if (isRevoked(now)) return revokedResult(id);
  if (shown !== id)
    throw new Failure("outcome_unknown", `The service responded to the revocation with another key (${shown}).`);
  const still = now ?? status;
  if (still === undefined) return { receipt: JSON.stringify({ id }), isConfirmed: false };
  const message = `The service accepted the revocation, and the key's status is still "${still}".`;
  throw new Failure("outcome_unknown", message);
}

/** For `catch`: after `auth` or `not_found`, the client or key is hidden from this credential. @throws any other error */
export function unlessHidden(error: unknown): undefined {
  if (error instanceof Failure && (error.kind === "auth" || error.kind === "not_found")) return undefined;
  throw error;
}

/** @returns the key's listed status, `expired` after its expiry, `absent` if the complete list lacks the key, else undefined */
async function statusInList(bench: Workbench, id: string, service?: Service): Promise<string | undefined> {
  const { key, isWhole } = await keyInList(bench, id, service);
  if (key === undefined) return isWhole ? "absent" : undefined;
  // The list may show an expired key as active.
  const hasExpired = typeof key.expiresAt === "string" && Date.parse(key.expiresAt) <= serviceTime(bench);
  return hasExpired ? "expired" : key.status;
}

async function keyInList(bench: Workbench, id: string, service = bench.account.service) {
  const limits = { clock: bench.clock, retryForMs: Math.min(bench.retryForMs, 10_000) };
  const list = await readUntilAnswered(limits, () => service.accessKeys.list(), { what: "list access keys" });
  const { readKeys } = await import("../api/access-keys.ts");
  const { keys, isWhole } = readKeys(list);
  return { key: keys.find((found) => found.id === id), isWhole };
}

/** @returns the time of the last use; null if never used; undefined if the list does not show it or may not be read */
export async function lastUseOf(bench: Workbench, id: string): Promise<string | null | undefined> {
  const found = await keyInList(bench, id).catch(unlessHidden);
  return found?.key?.lastUsedAt;
}
