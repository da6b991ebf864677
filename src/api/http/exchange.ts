import type { NetworkError, NetworkErrorReason } from "./network-error.ts";

export interface ExchangeRequest {
  readonly method: string;
  /** The logical base URL; the transport alone knows which origin stands behind it. */
  readonly baseUrl: string;
  /** From `/`, with the query; visible ASCII. Appended to the base URL's own path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Bound on the decoded body in bytes; default `maxBodyBytes`. */
  readonly maxBytes?: number;
  /** Instead of the transport's: the caller decides how long an answer is waited for after an interruption. */
  readonly signal?: AbortSignal;
  /** Further secrets of the request: nothing of an error answer may show them. */
  readonly secrets?: readonly string[];
  /** Where the body is received. It is whole until the buffer is handed in again; without one it stays. */
  readonly buffer?: BodyBuffer;
}

/**
 * How an exchange ended.
 * - `response`: whole, within the limits, decoded. Any status; a redirect is a response like any other, not followed.
 * - `broken`: no whole response. `sent` is exact on the careful side: `false` only if the request was never handed to
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
  | (NetworkError & {
      readonly kind: "broken";
      readonly sent: boolean;
      /** What had come: the response's head was whole, its body may be cut anywhere. It may hold a secret. */
      readonly partial?: { readonly status: number; readonly headers: Headers; readonly body: Buffer };
    });

export type Headers = Readonly<Record<string, string | undefined>>;

const mebibyte = 1024 * 1024;
/** The longest decoded body of a list page, bytes. */
export const maxPageBytes = 64 * mebibyte;
/** The longest decoded body of anything else, bytes. */
export const maxBodyBytes = mebibyte;

export interface Transport {
  /**
   * One request and what comes of it. Never retried, no redirect followed.
   * @throws Failure `usage` for a request that HTTP cannot carry, or an address it must not go to: nothing was sent
   */
  exchange(request: ExchangeRequest): Promise<Exchange>;
  /** Closes every idle connection. Safe to repeat. */
  close(): void;
}

/** What a debug log may see; made by redaction.ts. */
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
  /** Since the request was started. */
  readonly elapsedMs?: number;
  readonly sent?: boolean;
  readonly reason?: NetworkErrorReason;
  readonly detail?: string;
}

/**
 * The memory that a body is received into, one at a time. A caller that reads many bodies one after the other hands the same
 * buffer in again: memory of its own for every page would pile up to 64 MB before V8 looks at what is not on its heap.
 */
export class BodyBuffer {
  #memory: Buffer = Buffer.alloc(0);
  #length = 0;

  /** Empty again: what `bytes` gave before is overwritten from now on. */
  clear(): void {
    this.#length = 0;
  }

  /** Takes a copy of the bytes: they may be overwritten afterwards. */
  append(bytes: Buffer): void {
    const length = this.#length + bytes.length;
    if (length > this.#memory.length) this.#grow(length);
    bytes.copy(this.#memory, this.#length);
    this.#length = length;
  }

  /** What was taken since `clear`: the buffer's own memory, not a copy. */
  bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }

  /** Twofold, so that a body in many pieces is not copied for each; its first piece alone needs no more than itself. */
  #grow(least: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(least, 2 * this.#memory.length));
    this.#memory.copy(larger, 0, 0, this.#length);
    this.#memory = larger;
  }
}
