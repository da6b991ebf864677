// Owns: proving a new secret by exchanging it for a token (§5.2, §5.3): one attempt, the token thrown away or shown.
// Must not know: why it is proven, what follows.
import type { Attempt } from "../http/attempt.ts";
import type { LegacyCredential, TokenEndpoint } from "./credential.ts";
import type { Transport } from "../http/exchange.ts";
import type { IssuerDifference } from "./issuer.ts";
import { exchangeAtEndpoint } from "./legacy-exchange.ts";
import { exchangeClientCredentials, type TokenGrant } from "./token-exchange.ts";

/** What a client or key is proven with. */
export interface Tokens {
  /**
   * One client credentials exchange (RFC 6749 §4.4) at the profile's token endpoint, or at the one given.
   * @returns nothing where no token endpoint is known: there is no proof
   */
  exchangeClient(client: {
    readonly clientId: string;
    readonly clientSecret: string;
    readonly at?: TokenEndpoint;
  }): Promise<Attempt<TokenGrant> | undefined>;
  /**
   * The exchange of an access key's secret for a bearer token, by the way the profile has.
   * @returns nothing where the profile has a token and no way to get one: there is no proof
   * @throws Failure of the person's own command
   */
  exchangeAccessKey(secret: string): Promise<Attempt<TokenGrant> | undefined>;
  /**
   * What the issuer of the tokens says of itself and the profile does not.
   * @returns nothing where no issuer is known
   */
  compareIssuer(): Promise<Attempt<readonly IssuerDifference[]> | undefined>;
}

export interface TokensOptions {
  readonly transport: Transport;
  readonly now: () => number;
  readonly tokenEndpoint?: TokenEndpoint;
  readonly legacyCredential: () => Promise<LegacyCredential>;
}

export function createTokens(options: TokensOptions): Tokens {
  return {
    async exchangeClient({ clientId, clientSecret, at = options.tokenEndpoint }) {
      return at && exchangeClientCredentials({ ...at, clientId, clientSecret }, options);
    },
    async exchangeAccessKey(secret) {
      const way = await options.legacyCredential();
      if (way.kind === "access_token") return undefined;
      if (way.kind === "exchange_endpoint") return exchangeAtEndpoint({ endpoint: way.url, secret }, options);
      const token = await way.run(secret);
      return { kind: "answered", status: 200, value: { token, expiresInSeconds: undefined }, text: token };
    },
    async compareIssuer() {
      const { tokenEndpoint } = options;
      if (tokenEndpoint?.issuer === undefined) return undefined;
      const { compareIssuer } = await import("./issuer.ts");
      return compareIssuer({ ...tokenEndpoint, issuer: tokenEndpoint.issuer }, options);
    },
  };
}
