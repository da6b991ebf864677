// Owns: a bearer token that is fetched when needed and used until shortly before its end; one fetch at a time.
// Must not know: how it is fetched, what it is for. Time is handed in.
import type { BearerToken, TokenCache } from "./credential.ts";
import type { TokenGrant } from "./token-exchange.ts";

export interface TokenSourceOptions {
  /** @throws Failure where there is none to be had */
  readonly fetch: () => Promise<TokenGrant>;
  readonly now: () => number;
  /** Between processes; in memory alone where there is none. */
  readonly cache?: TokenCache;
  readonly cacheKey?: string;
}

/** A token is renewed so long before its end, or after three quarters of a short life. */
const marginMs = 30_000;
/** @assumed §5.2 rule 7 shows no answer: a token whose life is not told is used for a minute. */
const untoldLifeMs = 60_000;

export interface TokenSource {
  token(): Promise<string>;
  /** The token was not accepted: it is not used again, by nobody. */
  drop(): void;
}

export function createTokenSource({ fetch, now, cache, cacheKey = "" }: TokenSourceOptions): TokenSource {
  let current: BearerToken | undefined;
  let coming: Promise<BearerToken> | undefined;
  let mayRead = cache !== undefined;

  const usable = (token: BearerToken | undefined): token is BearerToken =>
    token !== undefined && now() < token.expiresAtMs;

  async function next(): Promise<BearerToken> {
    if (mayRead) {
      mayRead = false;
      const kept = await cache!.read(cacheKey);
      if (usable(kept)) return kept;
    }
    const startedAt = now();
    const { token, expiresInSeconds } = await fetch();
    const fresh = { token, expiresAtMs: startedAt + usableMs(expiresInSeconds) };
    if (expiresInSeconds !== undefined && usable(fresh)) await cache?.write(cacheKey, fresh);
    return fresh;
  }

  return {
    async token() {
      if (usable(current)) return current.token;
      coming ??= next().finally(() => {
        coming = undefined;
      });
      current = await coming;
      return current.token;
    },
    drop() {
      if (current === undefined) return;
      current = undefined;
      mayRead = false;
      cache?.drop(cacheKey).catch(() => {});
    },
  };
}

function usableMs(expiresInSeconds: number | undefined): number {
  if (expiresInSeconds === undefined) return untoldLifeMs;
  const lifeMs = expiresInSeconds * 1000;
  return lifeMs - Math.min(marginMs, lifeMs / 4);
}
