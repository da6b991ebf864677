// A creation that is refused because the service account may have all the clients that it can have (§8): integ revokes none
// of them, and names those that a person could revoke.
import type { CreationRequest } from "../../api/oauth-client-creation.ts";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import type { Workbench } from "../workbench.ts";
import { shell } from "../../next-step.ts";

/** §8: clients of one service account, with those that are being made or removed. */
const slots = 20;

/**
 * A conflict with the clients that hold slots, as far as this machine knows them; any other refusal as it is.
 * @param entry the creation
 * @param options.keep clients that are not to be revoked
 */
export async function noSlot(
  bench: Workbench,
  entry: Entry,
  { refusal, keep }: { readonly refusal: Failure; readonly keep: readonly string[] },
): Promise<Failure> {
  const { code, param } = refusal.details.problem ?? {};
  // §7: another code is about the key, and a parameter is named if it, not the number of clients, is in the way.
  if (refusal.kind !== "conflict" || code !== "invalid_request" || param !== undefined) return refusal;
  const { service_account_id: account } = JSON.parse(entry.request_text) as CreationRequest;
  const holders = await holdersOf(bench, entry, { account, keep });
  const [first] = holders;
  if (first === undefined) return refusal;
  const named = holders.map(({ id, status }) => (status === "active" ? id : `${id} (${status})`)).join(", ");
  return new Failure(refusal.kind, refusal.message, {
    ...refusal.details,
    meaning: `Nothing was revoked. If ${account} has all ${slots} clients that it can have, you can revoke one of these: ${named}.`,
    hint: undefined,
    nextCommand: shell`integ oauth-clients revoke ${first.id}`,
  });
}

interface Holder {
  readonly id: string;
  readonly status: string;
}

/** So many clients are asked for at most: most of a long journal's may be revoked. */
const mostAsked = 3 * slots;

/** Clients of the service account that the journal knows and the service shows, those that do not work first. */
async function holdersOf(
  { journal, account: { service } }: Workbench,
  { base_url }: Entry,
  { account, keep }: { readonly account: string; readonly keep: readonly string[] },
): Promise<Holder[]> {
  const asked = new Set<string>();
  const holders: Holder[] = [];
  for await (const other of journal.each({ all: true, operation: "oauth_client.create" })) {
    const { resource_id: id, state, detail, request_text } = other;
    const isCandidate =
      id !== null && !keep.includes(id) && state !== "replaced" && detail.revoked !== true && !asked.has(id);
    if (!isCandidate || other.base_url !== base_url) continue;
    if ((JSON.parse(request_text) as CreationRequest).service_account_id !== account) continue;
    asked.add(id);
    const answer = await service.oauthClients.get(id);
    const { status } = answer.kind === "answered" ? answer.value : { status: "not confirmed" };
    if (status !== "revoked") holders.push({ id, status });
    if (holders.length === slots || asked.size === mostAsked) break;
  }
  return [
    ...holders.filter(({ status }) => status !== "active"),
    ...holders.filter(({ status }) => status === "active"),
  ];
}
