// Owns: what one HTTP exchange with the service can come to, before anybody decides what to do about it.
// Must not know: retries, the journal, exit codes.
import type { Failure, Problem } from "../../errors.ts";

/** How an exchange broke where no complete answer of the service came back. */
export type Break =
  | "dns"
  | "refused"
  | "tls"
  | "proxy"
  | "timeout"
  | "closed" // the connection ended before a whole answer was there
  | "malformed" // what came is no HTTP, or a body that breaks the contract (HTML, cut JSON, wrong types)
  | "too_large" // decoded size, nesting or encoding beyond the limits
  | "redirect" // 3xx: never followed (§5.1 rule 3)
  | "interrupted" // Ctrl-C or SIGTERM
  | "unsendable"; // no request could be made: no credential to be had, or a header that HTTP does not allow

/** A one-time secret read from an answer that is no proper one: it must not be lost for that. */
export interface Salvage {
  readonly secret: string;
  /** What came of the answer. It holds the secret. */
  readonly text: string;
}

/**
 * The outcome of one attempt.
 * - `answered`: a success status and a body that keeps to the contract. `text` is the body exactly as it came.
 * - `refused`: a complete 4xx answer: this attempt changed nothing.
 * - `unknown`: bytes left this machine and no usable answer came back (5xx, cut, time-out, broken body).
 * - `not_sent`: proven that no byte of the request left (DNS, refused, TLS handshake, proxy, interrupted before, or there
 *   was no credential to send it with).
 * For a read the difference between the last two is only in the words.
 */
export type Attempt<T> =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly value: T;
      readonly text: string;
      readonly requestId?: string;
    }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly problem: Problem;
      readonly retryAfterSeconds?: number;
    }
  | {
      readonly kind: "unknown";
      readonly status?: number;
      readonly problem?: Problem;
      readonly reason: Break | "status";
      readonly detail: string;
      readonly retryAfterSeconds?: number;
      /** Only where the operation yields a one-time secret and one could be read. */
      readonly salvage?: Salvage;
    }
  | {
      readonly kind: "not_sent";
      readonly reason: Break;
      readonly detail: string;
      /** Why there was nothing to send, in words for a person: `failureOf` ends with it. */
      readonly failure?: Failure;
      /** The same again may succeed although the reason usually stays (a name server that is busy). */
      readonly temporary?: boolean;
      /** What to do about this one, where more is known than the reason tells. */
      readonly hint?: string;
      /** What the token endpoint asked for, where it was the one that gave no answer. */
      readonly retryAfterSeconds?: number;
    };

/** How long the service, or the token endpoint before it, asked to be left alone (§8). */
export function retryAfterOf(attempt: Attempt<unknown>): number | undefined {
  return attempt.kind === "answered" ? undefined : attempt.retryAfterSeconds;
}

/** An attempt that the service answered as the contract says. */
export type Answered<T> = Extract<Attempt<T>, { kind: "answered" }>;
