// Owns: a destination that remembers, in memory alone, the secret that it delivered: for a proof right afterwards.
// Must not know: where the secret goes, what proves it.
import type { Entry } from "../journal/entry.ts";
import type { Destination, DestinationRecord, OneTimeSecret } from "../secrets/destination.ts";

/** Keeps the secret in memory for the proof, after it was delivered. */
export class WatchedDestination implements Destination {
  secret: OneTimeSecret | undefined;
  readonly isStdout: boolean;
  readonly #inner: Destination;

  constructor(inner: Destination) {
    this.#inner = inner;
    this.isStdout = inner.isStdout;
  }

  check(): Promise<DestinationRecord> {
    return this.#inner.check();
  }

  prepare(work: string): Promise<DestinationRecord> {
    return this.#inner.prepare(work);
  }

  async deliver(secret: OneTimeSecret): Promise<void> {
    await this.#inner.deliver(secret);
    this.secret = secret;
  }

  release(): Promise<void> {
    return this.#inner.release();
  }
}

/** True where the secret came in this process and no overlap has passed since: what was just made works. */
export function isOfThisMoment({ detail }: Entry, watched: WatchedDestination): boolean {
  return watched.secret !== undefined && (detail.overlap_ms ?? 0) === 0;
}
