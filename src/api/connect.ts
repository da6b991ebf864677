// Owns: the service as one thing: its resources, each loaded when first asked for, over one transport, as one account.
// Must not know: profiles, files, the environment: all that varies is handed in.
import type { AccessKeys } from "./access-keys.ts";
import { createLegacyAuthorization, createV1Authorization } from "./authorization.ts";
import type { Cohorts } from "./cohorts.ts";
import type { Contract } from "./contract.ts";
import type { Credential, LegacyCredential, TokenCache, TokenEndpoint } from "./credential.ts";
import type { Entities } from "./entities.ts";
import type { Transport } from "./exchange.ts";
import type { OAuthClients } from "./oauth-clients.ts";
import type { People } from "./people.ts";
import type { Raw } from "./raw.ts";
import type { Tokens } from "./tokens.ts";

export interface ConnectOptions {
  readonly transport: Transport;
  /** Logical base URL: the transport knows where it is. */
  readonly baseUrl: string;
  /** Needed by the legacy contract alone. */
  readonly organizationId?: string;
  readonly serviceVersion: string;
  /** Asked once, when a request needs it. @throws Failure where there is none */
  readonly credential: () => Promise<Credential>;
  readonly legacyCredential: () => Promise<LegacyCredential>;
  /** The token endpoint that new clients are proven at, where the organization has one. */
  readonly tokenEndpoint?: TokenEndpoint;
  readonly tokenCache?: TokenCache;
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
  const { transport, baseUrl, serviceVersion, organizationId, now } = options;
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
  const raw = {
    transport,
    baseUrl,
    serviceVersion,
    organizationId,
    now,
    v1: v1Authorization,
    legacy: legacyAuthorization,
  };
  return {
    oauthClients: lazy(["create", "get", "revoke"], async () =>
      (await import("./oauth-clients.ts")).createOAuthClients(await v1()),
    ),
    entities: lazy(["page"], async () => (await import("./entities.ts")).createEntities(await v1())),
    cohorts: lazy(["membersPage"], async () => (await import("./cohorts.ts")).createCohorts(await v1())),
    accessKeys: lazy(["create", "list", "rotate", "revoke"], async () =>
      (await import("./access-keys.ts")).createAccessKeys(await legacy()),
    ),
    people: lazy(["search", "membership"], async () => (await import("./people.ts")).createPeople(await legacy())),
    contract: lazy(["published"], async () =>
      (await import("./contract.ts")).createContract({ transport, baseUrl, authorization: v1Authorization, now }),
    ),
    raw: lazy(["send"], async () => (await import("./raw.ts")).createRaw(raw)),
    tokens: lazy(["exchangeClient", "exchangeAccessKey"], async () =>
      (await import("./tokens.ts")).createTokens(options),
    ),
    close: () => transport.close(),
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

type Methods<T> = { readonly [K in keyof T]: (...args: never[]) => Promise<unknown> };

/** A resource whose module is loaded by the first call of one of its methods. */
function lazy<T extends Methods<T>>(names: readonly (keyof T & string)[], load: () => Promise<T>): T {
  const loaded = once(load);
  const methods = names.map((name) => [
    name,
    async (...args: never[]): Promise<unknown> => {
      const resource = await loaded();
      return resource[name](...args);
    },
  ]);
  return Object.fromEntries(methods) as T;
}
