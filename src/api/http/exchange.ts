// Owns: the shape of one HTTP exchange: what is asked, what comes back, and how much of it.
// Must not know: undici, credentials, what the bytes mean.
import type { Break } from "./attempt.ts";
import type { BodyRoom } from "./body-room.ts";

export interface ExchangeRequest {
  readonly method: string;
  /** The logical base URL; the transport alone knows which origin stands behind it. */
  readonly baseUrl: string;
  /** From `/`, with the query; visible ASCII. Appended to the base URL's own path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** On a connection of its own, closed afterwards. Default: true for all but GET and HEAD. */
  readonly fresh?: boolean;
  /** Bound on the decoded body in bytes; default `limits.bodyBytes`. */
  readonly maxBytes?: number;
  /** Instead of the transport's: the caller decides how long an answer is waited for after an interruption. */
  readonly signal?: AbortSignal;
  /** Where the body is received. It is whole until the room is handed in again; without one it stays. */
  readonly room?: BodyRoom;
}

/**
 * How an exchange ended.
 * - `response`: whole, within the limits, decoded. Any status; a redirect is a response like any other, not followed.
 * - `broken`: no whole response. `sent` is exact on the careful side: `false` only where the request was never handed to
 *   a connection.
 */
export type Exchange =
  | {
      readonly kind: "response";
      readonly status: number;
      /** Names in lower case, no prototype; values of a repeated header joined by `, `. */
      readonly headers: Headers;
      readonly body: Buffer;
    }
  | {
      readonly kind: "broken";
      readonly sent: boolean;
      readonly reason: Break;
      /** Words for the end of a sentence, without full stop, without a secret. */
      readonly detail: string;
      /** See attempt.ts. */
      readonly temporary?: boolean;
      /** See attempt.ts. */
      readonly hint?: string;
      /** What had come: the response's head was whole, its body may be cut anywhere. It may hold a secret. */
      readonly partial?: { readonly status: number; readonly headers: Headers; readonly body: Buffer };
    };

export type Headers = Readonly<Record<string, string | undefined>>;

export interface Limits {
  /** Decoded body of a list page, bytes. */
  readonly pageBytes: number;
  /** Decoded body of anything else, bytes. */
  readonly bodyBytes: number;
  /** All header names and values of a response, bytes. */
  readonly headerBytes: number;
}

export const defaultLimits: Limits = { pageBytes: 64 * 1024 * 1024, bodyBytes: 1024 * 1024, headerBytes: 32 * 1024 };

export interface Transport {
  /**
   * One request and what comes of it. Never retried, no redirect followed.
   * @throws Failure `usage` for a request that HTTP cannot carry, or an address it must not go to: nothing was sent
   */
  exchange(request: ExchangeRequest): Promise<Exchange>;
  readonly limits: Limits;
  /** Closes every idle connection. Safe to repeat. */
  close(): void;
}

/** What a debug log may see; made by exchange-log.ts. */
export interface DebugEvent {
  readonly kind: "request" | "response" | "broken";
  /** Pairs a request with what came of it. */
  readonly id: number;
  /** Which try of the same request of this process it is, from 1. */
  readonly attempt: number;
  readonly method: string;
  /** Values of query parameters whose names speak of secrets are masked. */
  readonly url: string;
  readonly headers?: Headers;
  readonly status?: number;
  /** Length of the decoded body. */
  readonly bytes?: number;
  /** Since the request was begun. */
  readonly elapsedMs?: number;
  readonly sent?: boolean;
  readonly reason?: Break;
  readonly detail?: string;
}

/** A bound on a size as a person reads it: `64 MiB`, exact. @param bytes 0 or more */
export function sizeInWords(bytes: number): string {
  const mebibyte = 1024 * 1024;
  if (bytes >= mebibyte && bytes % mebibyte === 0) return `${bytes / mebibyte} MiB`;
  return bytes >= 1024 && bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`;
}
