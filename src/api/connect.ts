// Connects to one account. The code of each resource is loaded on first use.
import type { AccessKeys } from "./access-keys.ts";
import { createLegacyAuthorization, createV1Authorization } from "./auth/authorization.ts";
import type { Credential, LegacyCredential, TokenEndpoint } from "./auth/credential.ts";
import type { Tokens } from "./auth/token-exchange.ts";
import type { Contract } from "./contract.ts";
import { contractVersion, organizationHeader, versionHeader } from "./call/request.ts";
import type { Cohorts, Entities } from "./entities-and-cohorts.ts";
import { type Authorization, Caller } from "./call/caller.ts";
import type { Exchange, Transport } from "./http/exchange.ts";
import { parseHttpDate } from "./call/retry.ts";
import type { OAuthClients } from "./oauth-clients.ts";
import type { People } from "./people.ts";
import type { Raw } from "./raw.ts";

export interface ConnectOptions {
  readonly transport: Transport;
  readonly baseUrl: string;
  /** A UUID, for the legacy contract (§4.4). */
  readonly organizationId?: string;
  /** `YYYY-MM-DD`, or `none` for the service account's version (§9). */
  readonly serviceVersion?: string;
  /** Called on demand. @throws Failure if there is none */
  readonly credential: () => Promise<Credential>;
  readonly legacyCredential: () => Promise<LegacyCredential>;
  readonly tokenEndpoint?: TokenEndpoint;
  readonly now: () => number;
}

export interface Service {
  readonly oauthClients: OAuthClients;
  readonly entities: Entities;
  readonly cohorts: Cohorts;
  readonly accessKeys: AccessKeys;
  readonly people: People;
  readonly contract: Contract;
  readonly raw: Raw;
  readonly tokens: Tokens;
  authorize(contract: "v1" | "legacy"): ReturnType<Caller["authorize"]>;
  /** How far the clock of the API or token endpoint is ahead of this machine's, in ms, by the latest `Date`. */
  clockOffset(): number | undefined;
}

const anonymous: Authorization = {
  header: async () => undefined,
  dropToken: () => false,
};

export function connect(options: ConnectOptions): Service {
  const { transport, baseUrl, serviceVersion = contractVersion, organizationId, now } = options;
  const { timed, onExchange, clockOffset } = watchClock(options);
  const authorization = createV1Authorization(options.credential, { ...options, transport: timed });
  const common = { transport, baseUrl, now, onExchange };
  const v1 = new Caller({ ...common, authorization, headers: () => versionHeader(serviceVersion) });
  const legacy = new Caller({
    ...common,
    authorization: createLegacyAuthorization(options.legacyCredential, { ...options, transport: timed }),
    headers: () => organizationHeader(organizationId),
  });
  const oauthClients = once(async () => (await import("./oauth-clients.ts")).createOAuthClients(v1));
  const lists = once(async () => {
    const { createEntities, createCohorts } = await import("./entities-and-cohorts.ts");
    return { entities: createEntities(v1), cohorts: createCohorts(v1) };
  });
  const contract = once(async () => {
    const callerAs = (who: Authorization): Caller => new Caller({ ...common, authorization: who, headers: () => ({}) });
    return (await import("./contract.ts")).createContract([callerAs(anonymous), callerAs(authorization)]);
  });
  const raw = once(async () => (await import("./raw.ts")).createRaw({ v1, legacy }));
  const tokens = once(async () =>
    (await import("./auth/token-exchange.ts")).createTokens({ ...options, transport: timed }),
  );
  return {
    oauthClients: {
      create: async (bodyText, idempotencyKey) => (await oauthClients()).create(bodyText, idempotencyKey),
      get: async (id) => (await oauthClients()).get(id),
      revoke: async (id) => (await oauthClients()).revoke(id),
    },
    entities: { page: async (request) => (await lists()).entities.page(request) },
    cohorts: { membersPage: async (id, request) => (await lists()).cohorts.membersPage(id, request) },
    ...legacyResources(legacy),
    contract: { published: async (version) => (await contract()).published(version) },
    raw: { send: async (request) => (await raw()).send(request) },
    tokens: {
      exchangeClient: async (client) => (await tokens()).exchangeClient(client),
      exchangeAccessKey: async (secret, endpoint) => (await tokens()).exchangeAccessKey(secret, endpoint),
      compareIssuer: async () => (await tokens()).compareIssuer(),
    },
    authorize: (contract) => (contract === "v1" ? v1 : legacy).authorize(),
    clockOffset,
  };
}

/** Reads the `Date` of each response: a `Caller` calls `onExchange`, and `timed` is the transport of token requests. */
function watchClock({ transport, now }: ConnectOptions): Pick<Service, "clockOffset"> & {
  readonly onExchange: (exchange: Exchange) => void;
  readonly timed: Transport;
} {
  let offset: number | undefined;
  const onExchange = (exchange: Exchange): void => {
    const { date } = (exchange.kind === "response" ? exchange.headers : exchange.partial?.headers) ?? {};
    if (date === undefined) return;
    const receivedAt = now();
    const served = parseHttpDate(date, receivedAt);
    if (served !== undefined) offset = served - receivedAt;
  };
  const timed: Transport = {
    async exchange(request) {
      const exchange = await transport.exchange(request);
      onExchange(exchange);
      return exchange;
    },
    close: () => transport.close(),
  };
  return { clockOffset: () => offset, onExchange, timed };
}

function legacyResources(legacy: Caller): Pick<Service, "accessKeys" | "people"> {
  const accessKeys = once(async () => (await import("./access-keys.ts")).createAccessKeys(legacy));
  const people = once(async () => (await import("./people.ts")).createPeople(legacy));
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

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
