// Owns: noticing that a page token comes a second time, in bounded memory: a walk has no number of pages that is too many.
// Must not know: pages, HTTP.

/** So many of the last tokens are remembered one by one: a repetition among them is noticed at once. */
const remembered = 10_000;

/**
 * The tokens of a walk. A circle of up to 10,000 pages is noticed when it closes; a longer one by Brent's method, at the
 * latest when it was gone through three times.
 */
export class SeenTokens {
  readonly #recent = new Set<string>();
  /** A token that is compared with all later ones, replaced at each power of two. */
  #anchor: string | undefined;
  #count = 0;
  #next = 1;

  has(token: string): boolean {
    return this.#recent.has(token) || this.#anchor === token;
  }

  /** @returns false where the token was there before */
  add(token: string): boolean {
    if (this.has(token)) return false;
    this.#recent.add(token);
    if (this.#recent.size > remembered) this.#recent.delete(this.#recent.values().next().value!);
    if (++this.#count === this.#next) {
      this.#anchor = token;
      this.#next *= 2;
    }
    return true;
  }
}
