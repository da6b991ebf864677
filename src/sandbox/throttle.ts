// Owns: token buckets, one a credential. They live in memory: a new process starts with full ones.
// Must not know: who a credential is.

export interface Rate {
  readonly capacity: number;
  readonly perSecond: number;
}

/** @assumed numeric limits (§8 «not shown»): wide enough for a walk at full speed, met by a loop that does nothing else */
export const everydayRate: Rate = { capacity: 5_000, perSecond: 2_500 };

const mostBuckets = 10_000;

export class Throttle {
  readonly #rate: Rate;
  readonly #buckets = new Map<string, { level: number; at: number }>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Takes one token of `credential`'s bucket. @returns 0, or whole seconds until one is there again */
  take(credential: string, now: number): number {
    const { capacity, perSecond } = this.#rate;
    const bucket = this.#buckets.get(credential) ?? { level: capacity, at: now };
    bucket.level = Math.min(capacity, bucket.level + (Math.max(0, now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    if (this.#buckets.size >= mostBuckets) this.#buckets.clear();
    this.#buckets.set(credential, bucket);
    if (bucket.level < 1) return Math.ceil((1 - bucket.level) / perSecond);
    bucket.level -= 1;
    return 0;
  }
}
