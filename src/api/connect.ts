// Owns: the service as one thing: its resources, each loaded when first asked for, over one transport, as one account.
// Must not know: profiles, files, the environment: all that varies is handed in.
import type { AccessKeys } from "./access-keys.ts";
import { createLegacyAuthorization, createV1Authorization } from "./auth/authorization.ts";
import type { Cohorts } from "./cohorts.ts";
import type { Contract } from "./contract.ts";
import { contractVersion } from "./contract-version.ts";
import type { Credential, LegacyCredential, TokenEndpoint } from "./auth/credential.ts";
import type { Entities } from "./entities.ts";
import type { Transport } from "./http/exchange.ts";
import type { Legacy } from "./legacy.ts";
import type { OAuthClients } from "./oauth-clients.ts";
import type { People } from "./people.ts";
import type { Raw } from "./raw.ts";
import type { Tokens } from "./auth/tokens.ts";
import type { V1 } from "./v1.ts";

export interface ConnectOptions {
  readonly transport: Transport;
  /** Logical base URL: the transport knows where it is. */
  readonly baseUrl: string;
  /** Needed by the legacy contract alone. */
  readonly organizationId?: string;
  /** `YYYY-MM-DD`; the one that this program was written for where none is given. */
  readonly serviceVersion?: string;
  /** Asked once, when a request needs it. @throws Failure where there is none */
  readonly credential: () => Promise<Credential>;
  readonly legacyCredential: () => Promise<LegacyCredential>;
  /** The token endpoint that new clients are proven at, where the organization has one. */
  readonly tokenEndpoint?: TokenEndpoint;
  readonly now: () => number;
}

/** Every method is one attempt, unless it says otherwise; none retries, none decides. */
export interface Service {
  readonly oauthClients: OAuthClients;
  readonly entities: Entities;
  readonly cohorts: Cohorts;
  readonly accessKeys: AccessKeys;
  readonly people: People;
  readonly contract: Contract;
  readonly raw: Raw;
  readonly tokens: Tokens;
  /** Ends idle connections. */
  close(): void;
}

/** Nothing is sent, read or loaded before a method is called. */
export function connect(options: ConnectOptions): Service {
  const { transport, baseUrl, serviceVersion = contractVersion, organizationId, now } = options;
  const v1Authorization = createV1Authorization(options.credential, options);
  const legacyAuthorization = createLegacyAuthorization(options.legacyCredential, options);
  const v1 = once(async () =>
    (await import("./v1.ts")).createV1({ transport, baseUrl, serviceVersion, authorization: v1Authorization, now }),
  );
  const legacy = once(async () =>
    (await import("./legacy.ts")).createLegacy({
      transport,
      baseUrl,
      organizationId,
      authorization: legacyAuthorization,
      now,
    }),
  );
  const both = { v1: v1Authorization, legacy: legacyAuthorization };
  const contract = once(async () =>
    (await import("./contract.ts")).createContract({ transport, baseUrl, authorization: both.v1, now }),
  );
  const raw = once(async () =>
    (await import("./raw.ts")).createRaw({ transport, baseUrl, serviceVersion, organizationId, now, ...both }),
  );
  const tokens = once(async () => (await import("./auth/tokens.ts")).createTokens(options));
  return {
    ...v1Resources(v1),
    ...legacyResources(legacy),
    contract: { published: async (version) => (await contract()).published(version) },
    raw: { send: async (request) => (await raw()).send(request) },
    tokens: {
      exchangeClient: async (client) => (await tokens()).exchangeClient(client),
      exchangeAccessKey: async (secret) => (await tokens()).exchangeAccessKey(secret),
      compareIssuer: async () => (await tokens()).compareIssuer(),
    },
    close: () => transport.close(),
  };
}

function v1Resources(v1: () => Promise<V1>): Pick<Service, "oauthClients" | "entities" | "cohorts"> {
  const oauthClients = once(async () => (await import("./oauth-clients.ts")).createOAuthClients(await v1()));
  const entities = once(async () => (await import("./entities.ts")).createEntities(await v1()));
  const cohorts = once(async () => (await import("./cohorts.ts")).createCohorts(await v1()));
  return {
    oauthClients: {
      create: async (bodyText, idempotencyKey) => (await oauthClients()).create(bodyText, idempotencyKey),
      get: async (id) => (await oauthClients()).get(id),
      revoke: async (id) => (await oauthClients()).revoke(id),
    },
    entities: { page: async (request) => (await entities()).page(request) },
    cohorts: { membersPage: async (cohortId, request) => (await cohorts()).membersPage(cohortId, request) },
  };
}

function legacyResources(legacy: () => Promise<Legacy>): Pick<Service, "accessKeys" | "people"> {
  const accessKeys = once(async () => (await import("./access-keys.ts")).createAccessKeys(await legacy()));
  const people = once(async () => (await import("./people.ts")).createPeople(await legacy()));
  return {
    accessKeys: {
      create: async (bodyText) => (await accessKeys()).create(bodyText),
      list: async () => (await accessKeys()).list(),
      rotate: async (id) => (await accessKeys()).rotate(id),
      revoke: async (id) => (await accessKeys()).revoke(id),
    },
    people: {
      search: async (request) => (await people()).search(request),
      membership: async (personId) => (await people()).membership(personId),
    },
  };
}

/** Made by whoever asks first. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
