// Owns: a bearer token that is fetched when needed and used until shortly before its end; one fetch at a time. It lives in
// memory and nowhere else: what is in no file cannot be read from one (quality.md, Security 14).
// Must not know: how it is fetched, what it is for. Time is handed in.
import type { TokenGrant } from "./token-exchange.ts";

export interface TokenSourceOptions {
  /** @throws Failure where there is none to be had */
  readonly fetch: () => Promise<TokenGrant>;
  readonly now: () => number;
}

/** A token is renewed so long before its end, or after three quarters of a short life. */
const marginMs = 30_000;
/** @assumed §5.2 rule 7 shows no answer: a token whose life is not told is used for a minute. */
const untoldLifeMs = 60_000;

interface BearerToken {
  readonly token: string;
  /** Milliseconds since 1970; it is renewed from then on. */
  readonly expiresAtMs: number;
}

export interface TokenSource {
  token(): Promise<string>;
  /** The token was not accepted: it is not used again. */
  drop(): void;
}

export function createTokenSource({ fetch, now }: TokenSourceOptions): TokenSource {
  let current: BearerToken | undefined;
  let coming: Promise<BearerToken> | undefined;

  const usable = (token: BearerToken | undefined): token is BearerToken =>
    token !== undefined && now() < token.expiresAtMs;

  async function next(): Promise<BearerToken> {
    const startedAt = now();
    const { token, expiresInSeconds } = await fetch();
    return { token, expiresAtMs: startedAt + usableMs(expiresInSeconds) };
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
      current = undefined;
    },
  };
}

function usableMs(expiresInSeconds: number | undefined): number {
  if (expiresInSeconds === undefined) return untoldLifeMs;
  const lifeMs = expiresInSeconds * 1000;
  return lifeMs - Math.min(marginMs, lifeMs / 4);
}
