import { hashOf, randomName } from "./credentials.ts";
import {
  type AccessKeyRecord,
  type ApiKey,
  type Region,
  type RegionState,
  type SeededCredentials,
  type State,
} from "./state.ts";

const defaultEntities = 120;
const defaultSeed = 1;
const publishedVersion = "2026-07-01";
/** The permissions that §5.1 rule 5 names. */
const knownPermissions = ["service_account:manage", "organization:read", "entity:read"] as const;

const organizationIds = {
  us: "5eed0000-0000-4000-8000-0000000000a5",
  eu: "5eed0000-0000-4000-8000-0000000000e5",
} as const;

const otherOrganizationIds = {
  us: "5eed0000-0000-4000-8000-0000000001a5",
  eu: "5eed0000-0000-4000-8000-0000000001e5",
} as const;

const dayMs = 86_400_000;

export interface NewWorld {
  readonly now: number;
  readonly entities?: number;
  readonly seed?: number;
}

/** Ids that users type are readable and constant. */
export function newState(world: NewWorld): State {
  return {
    settings: { entities: world.entities ?? defaultEntities, seed: world.seed ?? defaultSeed },
    contractVersions: [publishedVersion],
    us: newRegion("us", world.now),
    eu: newRegion("eu", world.now),
  };
}

function newRegion(region: Region, now: number): RegionState {
  const secretOf = (kind: string) => randomName(`sbx_${region}_${kind}_`);
  const seeded = {
    apiKey: secretOf("key"),
    secondApiKey: secretOf("key"),
    scopedApiKey: secretOf("key"),
    revokedApiKey: secretOf("key"),
    expiredApiKey: secretOf("key"),
    accessKeyId: `ak_${region}_automation`,
    accessKeySecret: secretOf("aks"),
    otherAccountApiKey: secretOf("key"),
    otherOrganizationApiKey: secretOf("key"),
  };
  const account = (name: string, permissions: readonly string[]) => ({
    id: `sa_${region}_${name}`,
    status: "active" as const,
    permissions: [...permissions],
    assignedVersion: publishedVersion,
  });
  const elsewhere = { ...account("elsewhere", knownPermissions), organizationId: otherOrganizationIds[region] };
  return {
    organizationId: organizationIds[region],
    signingKey: randomName(""),
    controlToken: randomName(""),
    seeded,
    oauthEnabled: true,
    serviceAccounts: [
      account("automation", knownPermissions),
      account("admin", knownPermissions),
      account("poor", ["entity:read"]),
      elsewhere,
    ],
    apiKeys: apiKeys(region, { seeded, now }),
    oauthClients: [],
    receipts: [],
    accessKeys: accessKeys(region, { secret: seeded.accessKeySecret, now }),
  };
}

function apiKeys(region: Region, given: { seeded: SeededCredentials; now: number }): ApiKey[] {
  const key = (name: string, field: keyof SeededCredentials, changes: Partial<ApiKey> = {}): ApiKey => ({
    id: `key_${region}_${name}`,
    keyHash: hashOf(given.seeded[field]),
    serviceAccountId: `sa_${region}_admin`,
    scopes: null,
    status: "active",
    expiresAt: null,
    ...changes,
  });
  return [
    key("first", "apiKey"),
    key("second", "secondApiKey"),
    key("scoped", "scopedApiKey", { scopes: ["entity:read"] }),
    key("revoked", "revokedApiKey", { status: "revoked" }),
    key("expired", "expiredApiKey", { expiresAt: given.now - dayMs }),
    key("other_account", "otherAccountApiKey", { serviceAccountId: `sa_${region}_automation` }),
    key("other_organization", "otherOrganizationApiKey", { serviceAccountId: `sa_${region}_elsewhere` }),
  ];
}

function accessKeys(region: Region, given: { secret: string; now: number }): AccessKeyRecord[] {
  const { now } = given;
  const key = (name: string, changes: Partial<AccessKeyRecord>): AccessKeyRecord => ({
    id: `ak_${region}_${name}`,
    name: `${name} (sandbox)`,
    keyType: "user_bound",
    boundEmail: `admin@${region}.sandbox.example`,
    createdByUserId: `user_${region}_admin`,
    scopes: ["*"],
    createdAt: now - 10 * dayMs,
    status: "active",
    lastUsedAt: now - dayMs,
    expiresAt: now + 80 * dayMs,
    secretHash: hashOf(randomName("")),
    generation: 0,
    ...changes,
  });
  return [
    key("forgotten", { createdAt: now - 400 * dayMs, lastUsedAt: null, expiresAt: null }),
    key("idle", { createdAt: now - 200 * dayMs, lastUsedAt: now - 120 * dayMs }),
    key("expired", { createdAt: now - 100 * dayMs, lastUsedAt: now - 12 * dayMs, expiresAt: now - 10 * dayMs }),
    key("retired", { createdAt: now - 90 * dayMs, status: "revoked" }),
    key("ending", { createdAt: now - 60 * dayMs, expiresAt: now + 7 * dayMs }),
    key("ingest", { keyType: "service_account", scopes: ["push-ingest:*"], boundEmail: serviceEmail(region) }),
    key("automation", { createdAt: now - 5 * dayMs, secretHash: hashOf(given.secret) }),
  ];
}

/** For keys without a user: §2.4 requires `boundEmail`. */
export function serviceEmail(region: Region): string {
  return `integrations@${region}.sandbox.example`;
}
