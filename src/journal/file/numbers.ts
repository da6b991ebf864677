/** Millions of numbers, eight bytes each. */
export class Numbers {
  #values = new Float64Array(1024);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(2 * this.#values.length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count] = value;
    this.#count += 1;
  }

  /** Those that were added more than once. */
  repeated(): Set<number> {
    const sorted = this.#values.subarray(0, this.#count).sort();
    const repeated = new Set<number>();
    for (let at = 1; at < sorted.length; at += 1) if (sorted[at] === sorted[at - 1]) repeated.add(sorted[at]!);
    return repeated;
  }
}
