import { legacyToken } from "./credentials.ts";
import { cohortIds } from "./entities.ts";
import { controlPrefix } from "./host.ts";
import { accessTokenPath } from "./routes.ts";
import { audienceOf, tokenPath } from "./token-endpoint.ts";
import { type AccessKeyRecord, byId, type Region, type RegionState, type State } from "./state.ts";

export interface Addresses {
  readonly us: string | null;
  readonly eu: string | null;
}

/** If the seeded key is unusable, the token belongs to another key with full access. */
function accessToken(here: RegionState, now: number): string {
  const isUsable = (key: AccessKeyRecord) =>
    key.status === "active" && key.scopes.includes("*") && (key.expiresAt === null || key.expiresAt > now);
  const seeded = byId(here.accessKeys, here.seeded.accessKeyId);
  const key = seeded && isUsable(seeded) ? seeded : (here.accessKeys.find(isUsable) ?? seeded!);
  return legacyToken(here, { id: key.id, generation: key.generation, now });
}

function describeRegion(region: Region, given: { here: RegionState; address: string | null; now: number }) {
  const { here, address, now } = given;
  const at = (path: string) => (address === null ? null : address + path);
  const { seeded } = here;
  const elsewhere = here.serviceAccounts.find(({ organizationId }) => organizationId !== undefined)!;
  return {
    base_url: address,
    organization_id: here.organizationId,
    token_endpoint: at(tokenPath),
    issuer: address,
    audience: audienceOf(region),
    access_token_endpoint: at(accessTokenPath),
    /** Has all known permissions. */
    service_account_id: `sa_${region}_automation`,
    /** Owns the API keys, except those named `other_`. */
    caller_service_account_id: `sa_${region}_admin`,
    /** Has only `entity:read`. */
    poor_service_account_id: `sa_${region}_poor`,
    api_key: seeded.apiKey,
    /** A second key of the same service account, as during a rotation. */
    second_api_key: seeded.secondApiKey,
    /** A key of the account `service_account_id`, which is another management principal. */
    other_account_api_key: seeded.otherAccountApiKey,
    /** Another organization in the same region. Each gets 404 for the other's resources. */
    other_organization_id: elsewhere.organizationId!,
    other_organization_service_account_id: elsewhere.id,
    other_organization_api_key: seeded.otherOrganizationApiKey,
    /** Has only `entity:read`. */
    scoped_api_key: seeded.scopedApiKey,
    revoked_api_key: seeded.revokedApiKey,
    expired_api_key: seeded.expiredApiKey,
    access_token: accessToken(here, now),
    access_key_id: seeded.accessKeyId,
    access_key_secret: seeded.accessKeySecret,
    cohort_ids: cohortIds(region),
    control_url: at(controlPrefix + here.controlToken),
  };
}

export type SandboxDescription = ReturnType<typeof describe>;

export function describe(state: State, given: { addresses: Addresses; now: number }) {
  const one = (region: Region) =>
    describeRegion(region, { here: state[region], address: given.addresses[region], now: given.now });
  return { object: "sandbox" as const, us: one("us"), eu: one("eu") };
}
