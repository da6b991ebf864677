export const regions = ["us", "eu"] as const;
export type Region = (typeof regions)[number];

export const clientStatuses = ["active", "pending", "revoked", "disabled", "expired"] as const;
type ClientStatus = (typeof clientStatuses)[number];

export interface ServiceAccount {
  readonly id: string;
  /** Default: the region's organization. */
  readonly organizationId?: string;
  status: "active" | "disabled";
  permissions: string[];
  /** The version for requests without `Service-Version` (§9 rule 1). */
  assignedVersion: string;
}

/** Sent with HTTP Basic (§5.1). With null `scopes`, the key has all permissions of its account. */
export interface ApiKey {
  readonly id: string;
  readonly keyHash: string;
  readonly serviceAccountId: string;
  scopes: string[] | null;
  status: "active" | "revoked" | "disabled";
  expiresAt: number | null;
}

export interface OAuthClientRecord {
  readonly id: string;
  readonly serviceAccountId: string;
  readonly scopes: string[];
  readonly createdAt: number;
  clientId: string | null;
  secretHash: string | null;
  status: ClientStatus;
  /** How a pending client completes; null if it is not pending, or if only a control request completes it. */
  pending: { inspectionsLeft: number; completedBy: "itself" | "replay" } | null;
  /** When remote cleanup is confirmed, in ms since 1970; `open`: when a control request confirms it. */
  cleanup: number | "open" | null;
}

/** The idempotency key and the request that used it (§4.2 rule 2). */
export interface Receipt {
  readonly idempotencyKey: string;
  readonly serviceAccountId: string;
  readonly scopes: string[];
  readonly managementPrincipal: string;
  readonly version: string;
  /** Null if the request created no client (§3.1). */
  oauthClientId: string | null;
}

/** The key of §2.4 without its secret. `generation` counts rotations: tokens of an earlier generation are invalid. */
export interface AccessKeyRecord {
  readonly id: string;
  readonly name: string;
  readonly keyType: "user_bound" | "service_account";
  readonly boundEmail: string;
  readonly createdByUserId: string;
  readonly scopes: string[];
  createdAt: number;
  status: "active" | "revoked";
  lastUsedAt: number | null;
  expiresAt: number | null;
  secretHash: string;
  generation: number;
}

/** In plain text, because `sandbox status` prints them. */
export interface SeededCredentials {
  readonly apiKey: string;
  readonly secondApiKey: string;
  readonly scopedApiKey: string;
  readonly revokedApiKey: string;
  readonly expiredApiKey: string;
  readonly accessKeyId: string;
  accessKeySecret: string;
  /** A key of `sa_<region>_automation`, which is another management principal. */
  readonly otherAccountApiKey: string;
  readonly otherOrganizationApiKey: string;
}

export interface RegionState {
  readonly organizationId: string;
  /** Signs page tokens and access tokens, so they are invalid in the other region. */
  readonly signingKey: string;
  readonly controlToken: string;
  readonly seeded: SeededCredentials;
  oauthEnabled: boolean;
  readonly serviceAccounts: ServiceAccount[];
  readonly apiKeys: ApiKey[];
  readonly oauthClients: OAuthClientRecord[];
  readonly receipts: Receipt[];
  readonly accessKeys: AccessKeyRecord[];
}

export interface State {
  readonly settings: { readonly entities: number; readonly seed: number };
  /** Valid values of `Service-Version`; the first is the current one. */
  readonly contractVersions: string[];
  readonly us: RegionState;
  readonly eu: RegionState;
}

export function byId<Thing extends { readonly id: string }>(
  things: readonly Thing[],
  id: string | null | undefined,
): Thing | undefined {
  return things.find((thing) => thing.id === id);
}

export function organizationOf(here: RegionState, account: ServiceAccount): string {
  return account.organizationId ?? here.organizationId;
}

/** The slot accounting of §3.1. */
export function usedSlots(here: RegionState, given: { serviceAccountId: string; now: number }): number {
  const { serviceAccountId, now } = given;
  return here.oauthClients.filter(
    (client) =>
      client.serviceAccountId === serviceAccountId && (client.status !== "revoked" || isCleanupOpen(client, now)),
  ).length;
}

function isCleanupOpen(client: OAuthClientRecord, now: number): boolean {
  if (client.cleanup === null) return false;
  return client.cleanup === "open" || client.cleanup > now;
}
