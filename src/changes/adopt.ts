// A client or key that exists comes under a policy: an entry that is done from its start. Nothing is sent.
import type { AccessKey } from "../api/access-keys.ts";
import type { OAuthClient } from "../api/oauth-clients.ts";
import type { Entry } from "../journal/entry.ts";
import type { Intent } from "../journal/journal.ts";
import { madeFor, type Workbench } from "./workbench.ts";

export function clientAdoption(
  { account }: Workbench,
  { client, name }: { readonly client: OAuthClient; readonly name: string },
): Intent {
  const { id, service_account_id, scopes, client_id } = client;
  return {
    ...madeFor(account),
    operation: "oauth_client.adopt",
    request_text: JSON.stringify({ id, service_account_id, scopes }),
    fingerprint: JSON.stringify([id, name]),
    idempotent: false,
    detail: { policy_name: name, client_id },
  };
}

export function keyAdoption(
  { account }: Workbench,
  { key, name }: { readonly key: AccessKey & { readonly id: string }; readonly name: string },
): Intent {
  const { id, name: called, keyType, scopes, expiresAt } = key;
  return {
    ...madeFor(account),
    operation: "access_key.adopt",
    request_text: JSON.stringify({ id, name: called, keyType, scopes }),
    fingerprint: JSON.stringify([id, name]),
    idempotent: false,
    detail: { policy_name: name, key_id: id, expiry: expiresAt ?? null },
  };
}

/** @param id of the client or key */
export async function adopt({ journal }: Workbench, intent: Intent, id: string): Promise<Entry> {
  const { lease } = await journal.admit(intent, { fresh: true });
  try {
    return await lease.record({ state: "done", resource_id: id });
  } finally {
    await lease.release();
  }
}
