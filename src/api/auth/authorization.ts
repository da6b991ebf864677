// Creates the `Authorization` headers of both contracts (§5).
import { flags } from "../../next-step.ts";
import { Failure, type FailureDetails } from "../../errors.ts";
import { type Attempt, failureOf, retryAfterOf } from "../call/attempt.ts";
import { type Authorization, NoToken } from "../call/caller.ts";
import { mayRetryRead } from "../call/retry.ts";
import type { Credential, LegacyCredential, TokenGrant } from "./credential.ts";
import type { ExchangeOptions } from "./token-exchange.ts";

/** Follows §5.1 rule 1 and RFC 7617. @throws Failure `auth` for an empty key, or one that the header cannot carry */
export function basicHeader(key: string, style: "apikey-user" | "key-as-user"): string {
  if (key === "" || /[\u0000-\u001f\u007f]/.test(key))
    throw new Failure("auth", "The API key is empty or contains a control character.", {
      hint: `Store the key again in the profile with ${flags.apiKeyStdin}.`,
    });
  if (style === "key-as-user" && key.includes(":"))
    throw new Failure("auth", "An API key with a colon cannot be sent as a user name.", {
      hint: `Use the other style: ${flags.basicStyle} apikey-user of the profile.`,
    });
  const pair = style === "apikey-user" ? `apikey:${key}` : `${key}:`;
  return `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
}

/**
 * @assumed the access token of an OAuth client is sent as `Bearer` (RFC 6750): §4.1 names Basic only, and §5.2 rule 7
 * does not show how a token is used.
 * @param credential called on demand; throws `Failure` if there is none
 */
export function createV1Authorization(credential: () => Promise<Credential>, options: ExchangeOptions): Authorization {
  const prepare = async (): Promise<Prepared> => {
    const found = await credential();
    if (found.kind === "api_key") return { header: basicHeader(found.key, found.style) };
    return {
      source: createTokenSource({
        now: options.now,
        async fetch() {
          const { exchangeClientCredentials } = await import("./token-exchange.ts");
          const attempt = await exchangeClientCredentials(found, options);
          // After a 404, this resource selects the advice about the client id and OAuth access.
          const about = attempt.kind === "refused" ? { ...attempt, resource: "oauth_token" as const } : attempt;
          return grantOf(
            about,
            "get an OAuth access token",
            attempt.claims === undefined ? {} : { meaning: attempt.claims },
          );
        },
      }),
    };
  };
  return authorization(prepare);
}

export function createLegacyAuthorization(
  credential: () => Promise<LegacyCredential>,
  options: ExchangeOptions,
): Authorization {
  const prepare = async (): Promise<Prepared> => {
    const found = await credential();
    if (found.kind === "access_token") return { header: bearerHeader(found.token) };
    return { source: createTokenSource({ now: options.now, fetch: () => grantFor(found, options) }) };
  };
  return authorization(prepare);
}

interface Prepared {
  readonly header?: string;
  readonly source?: TokenSource;
}

function authorization(prepare: () => Promise<Prepared>): Authorization {
  let pending: Promise<Prepared> | undefined;
  let source: TokenSource | undefined;
  return {
    async header() {
      pending ??= prepare().catch((error: unknown) => {
        pending = undefined;
        throw error;
      });
      const prepared = await pending;
      source = prepared.source;
      return prepared.header ?? bearerHeader(await prepared.source!.token());
    },
    dropToken: () => source?.drop() ?? false,
  };
}

async function grantFor(
  found: Exclude<LegacyCredential, { kind: "access_token" }>,
  options: ExchangeOptions,
): Promise<TokenGrant> {
  if (found.kind === "exchange_command")
    return { token: await found.run(found.secret ?? ""), expiresInSeconds: undefined };
  const { exchangeAtEndpoint } = await import("./token-exchange.ts");
  return grantOf(
    await exchangeAtEndpoint({ endpoint: found.url, secret: found.secret }, options),
    "get a bearer token",
    {
      hint: "Give the profile the secret of an access key: the commands integ keys and integ people do not work with other API keys.",
      ...(found.edit && { nextCommand: found.edit }),
    },
  );
}

function grantOf(attempt: Attempt<TokenGrant>, what: string, more: FailureDetails): TokenGrant {
  if (attempt.kind === "answered") return attempt.value;
  const failure = failureOf(attempt, { what, change: false });
  if (attempt.kind === "refused" && attempt.status !== 429)
    throw new Failure("auth", failure.message, {
      ...failure.details,
      ...more,
    });
  const reason = attempt.kind === "refused" || attempt.reason === "status" ? "unsendable" : attempt.reason;
  throw new NoToken(failure, { reason, temporary: mayRetryRead(attempt), retryAfterSeconds: retryAfterOf(attempt) });
}

function bearerHeader(token: string): string {
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token))
    throw new Failure("auth", "The access token contains a character that a bearer token cannot have.", {
      hint: "Check what the access token command prints: the token alone.",
    });
  return `Bearer ${token}`;
}

interface TokenSourceOptions {
  readonly fetch: () => Promise<TokenGrant>;
  readonly now: () => number;
}

/** A token is renewed this long before it expires, or after three quarters of a lifetime below two minutes. */
const marginMs = 30_000;
/** @assumed §5.2 rule 7 shows no response: integ uses a token without a lifetime for one minute. */
const unknownLifeMs = 60_000;

interface BearerToken {
  readonly token: string;
  readonly renewAtMs: number;
}

interface TokenSource {
  token(): Promise<string>;
  drop(): boolean;
}

/** Concurrent requests share one exchange. */
function createTokenSource({ fetch, now }: TokenSourceOptions): TokenSource {
  let current: BearerToken | undefined;
  let pending: Promise<BearerToken> | undefined;
  let uses = 0;

  const isUsable = (token: BearerToken | undefined): token is BearerToken =>
    token !== undefined && now() < token.renewAtMs;

  async function renew(): Promise<BearerToken> {
    const startedAt = now();
    const { token, expiresInSeconds } = await fetch();
    return { token, renewAtMs: startedAt + usableMs(expiresInSeconds) };
  }

  return {
    async token() {
      uses += 1;
      if (isUsable(current)) return current.token;
      uses = 1;
      pending ??= renew().finally(() => {
        pending = undefined;
      });
      current = await pending;
      return current.token;
    },
    drop() {
      const isUsed = current !== undefined && uses > 1;
      current = undefined;
      return isUsed;
    },
  };
}

function usableMs(expiresInSeconds: number | undefined): number {
  if (expiresInSeconds === undefined) return unknownLifeMs;
  const lifeMs = expiresInSeconds * 1000;
  return lifeMs - Math.min(marginMs, lifeMs / 4);
}
