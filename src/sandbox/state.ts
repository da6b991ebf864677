export const regions = ["us", "eu"] as const;
export type Region = (typeof regions)[number];

export const clientStatuses = ["active", "pending", "revoked", "disabled", "expired"] as const;
type ClientStatus = (typeof clientStatuses)[number];

export interface ServiceAccount {
  readonly id: string;
  /** Default: the region's. */
  readonly organizationId?: string;
  status: "active" | "disabled";
  permissions: string[];
  /** For requests without `Service-Version` (§9 rule 1). */
  assignedVersion: string;
}

/** A management credential for HTTP Basic (§5.1). Null `scopes` mean all permissions of its service account. */
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
  /** How a pending creation completes; null if the client is not pending, or stays pending. */
  pending: { inspectionsLeft: number; completedBy: "itself" | "replay" } | null;
  /** When the cleanup is confirmed, ms since 1970; `open`: by a control request; null before the revocation. */
  cleanup: number | "open" | null;
}

/** The request that belongs to an idempotency key (§4.2 rule 2). */
export interface Receipt {
  readonly idempotencyKey: string;
  readonly serviceAccountId: string;
  readonly scopes: string[];
  readonly managementPrincipal: string;
  readonly version: string;
  /** Null for an abandoned creation (§3.1). */
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
  /** A key of the service account `sa_<region>_automation`, which is another management principal. */
  readonly otherAccountApiKey: string;
  readonly otherOrganizationApiKey: string;
}

export interface RegionState {
  readonly organizationId: string;
  /** Signs page tokens and access tokens, which are invalid in the other region. */
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
  /** Values of `Service-Version`, the published one first. */
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

/** §3.1 "Slot accounting". */
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
