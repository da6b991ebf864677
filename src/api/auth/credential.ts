// What `profiles/` gives and this folder sends: it holds secrets, and is never logged and never shown.

/** A credential of the /v1 contract (§5.1, §5.2). */
export type Credential =
  | {
      readonly kind: "api_key";
      readonly key: string;
      /** §5.1 rule 1: user name `apikey` with the key as password, or the key as user name with an empty password. */
      readonly style: "apikey-user" | "key-as-user";
    }
  | ({ readonly kind: "client_credentials"; readonly clientId: string } & ClientProof & TokenEndpoint);

/**
 * How a client authenticates at the token endpoint: by its secret, by an assertion (a JWT, RFC 7523 §2.2) that is new
 * for each exchange, or by one that is signed here with its private key (`private_key_jwt`, OpenID Connect Core §9).
 * @assumed §5.2 rule 3 leaves the client authentication method to the organization's setup
 */
export type ClientProof =
  | { readonly clientSecret: string }
  | { readonly assertion: () => Promise<string> }
  /** In PEM. */
  | { readonly privateKey: string };

/** What the organization's setup gives for the token exchange (§5.2 rule 3). */
export interface TokenEndpoint {
  /** A whole address: its origin is a binding of its own. */
  readonly tokenEndpoint: string;
  readonly audience?: string;
  readonly issuer?: string;
  /** Scopes of the tokens, separated by spaces (RFC 6749 §3.3), if the endpoint needs them. */
  readonly scope?: string;
  /** How clients with a secret send it. */
  readonly clientAuth: "client_secret_basic" | "client_secret_post";
}

/** How to get the legacy contract's bearer token (§5.3). */
export type LegacyCredential =
  /** The token itself. */
  | { readonly kind: "access_token"; readonly token: string }
  | {
      readonly kind: "exchange_command";
      /** Absent if the profile has no API key: the command may know another way. */
      readonly secret?: string;
      /** A way of the person's own from the key's secret to a token. */
      run(secret: string): Promise<string>;
    }
  /** An endpoint that exchanges the key's secret; `exchangeAtEndpoint` shows the request. */
  | { readonly kind: "exchange_endpoint"; readonly url: string; readonly secret: string };

/** What the token endpoint gave. The attempt's `text` is its own response, with the token in it. */
export interface TokenGrant {
  readonly token: string;
  /** Nothing if the response does not say. */
  readonly expiresInSeconds: number | undefined;
}
