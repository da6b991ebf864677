export const regions = ["us", "eu"] as const;
export type Region = (typeof regions)[number];

export const clientStatuses = ["active", "pending", "revoked", "disabled", "expired"] as const;
/** §3.1 */
export type ClientStatus = (typeof clientStatuses)[number];

export interface ServiceAccount {
  readonly id: string;
  /** Absent: the region's own organization. */
  readonly organizationId?: string;
  status: "active" | "disabled";
  permissions: string[];
  /** Contract version used if a request pins none (§9 rule 1). */
  assignedVersion: string;
}

/** A management credential for Basic (§5.1). `scopes` null: everything its service account may do. */
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
  /** How a pending creation continues; null if nothing completes it by itself. */
  pending: { inspectionsLeft: number; completedBy: "itself" | "replay" } | null;
  /** Remote cleanup after revocation: epoch ms when it is confirmed, `open` until a request confirms it; null before revocation. */
  cleanup: number | "open" | null;
}

/** What an idempotency key stands for: the retry identity of §4.2 rule 2 (the region is the file's section). */
export interface Receipt {
  readonly idempotencyKey: string;
  readonly serviceAccountId: string;
  readonly scopes: string[];
  readonly managementPrincipal: string;
  readonly version: string;
  /** Null: the reservation was abandoned before provider work began; the key still belongs to it (§3.1). */
  oauthClientId: string | null;
}

/** §2.4, without its secret. `generation` counts rotations, so that tokens of an older secret die with it. */
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

/** Credentials made with the state; stored in clear text, since `sandbox status` prints them. */
export interface SeededCredentials {
  readonly apiKey: string;
  readonly secondApiKey: string;
  readonly scopedApiKey: string;
  readonly revokedApiKey: string;
  readonly expiredApiKey: string;
  readonly accessKeyId: string;
  accessKeySecret: string;
  /** Of the service account that may be granted everything: another management principal. */
  readonly otherAccountApiKey: string;
  /** Of the second organization's service account. */
  readonly otherOrganizationApiKey: string;
}

export interface RegionState {
  readonly organizationId: string;
  /** Key of every signature made here: page tokens and access tokens of one region mean nothing in the other. */
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
  /** Supported values of `Service-Version`; the first is the published one. */
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

/** The organization of a service account. */
export function organizationOf(here: RegionState, account: ServiceAccount): string {
  return account.organizationId ?? here.organizationId;
}

/** Clients of a service account that hold a slot at `now` (§3.1 "Slot accounting"). */
export function slotsHeld(here: RegionState, held: { serviceAccountId: string; now: number }): number {
  const { serviceAccountId, now } = held;
  return here.oauthClients.filter(
    (client) =>
      client.serviceAccountId === serviceAccountId && (client.status !== "revoked" || isCleanupOpen(client, now)),
  ).length;
}

function isCleanupOpen(client: OAuthClientRecord, now: number): boolean {
  if (client.cleanup === null) return false;
  return client.cleanup === "open" || client.cleanup > now;
}
