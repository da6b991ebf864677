// Credentials that `profiles/` supplies, and the tokens for them. They contain secrets: never log or show them.
import type { NextCommand } from "../../next-step.ts";

export type Credential =
  | {
      readonly kind: "api_key";
      readonly key: string;
      /** §5.1 rule 1: user name `apikey` with the key as password, or the key as user name with an empty password. */
      readonly style: "apikey-user" | "key-as-user";
    }
  | ({ readonly kind: "client_credentials"; readonly clientId: string } & ClientProof & TokenEndpoint);

/**
 * How a client authenticates at the token endpoint: with its secret, with a fresh assertion for each exchange (a JWT,
 * RFC 7523 §2.2), or with an assertion that integ signs (`private_key_jwt`, OpenID Connect Core §9).
 * @assumed §5.2 rule 3 leaves the client authentication method to the organization's setup
 */
export type ClientProof =
  | { readonly clientSecret: string }
  | { readonly assertion: () => Promise<string> }
  /** In PEM, without a password. */
  | { readonly privateKey: string };

/** The organization's settings for the token exchange (§5.2 rule 3). */
export interface TokenEndpoint {
  /** A real address, or a logical one such as `sandbox://us`, which the transport resolves. */
  readonly tokenEndpoint: string;
  readonly audience?: string;
  readonly issuer?: string;
  /** Scopes to request, separated by spaces (RFC 6749 §3.3). */
  readonly scope?: string;
  readonly clientAuth: "client_secret_basic" | "client_secret_post";
}

/** How to get the legacy contract's bearer token (§5.3). */
export type LegacyCredential =
  | { readonly kind: "access_token"; readonly token: string }
  | {
      readonly kind: "exchange_command";
      /** Absent if the profile has no API key. The command may not need one. */
      readonly secret?: string;
      run(secret: string): Promise<string>;
    }
  | {
      readonly kind: "exchange_endpoint";
      readonly url: string;
      readonly secret: string;
      /** Stores another secret in the profile. */
      readonly edit?: NextCommand;
    };

/** Never log the answered attempt: its `body` contains the token too. */
export interface TokenGrant {
  readonly token: string;
  readonly expiresInSeconds: number | undefined;
}
