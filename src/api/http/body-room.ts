// Owns: the memory that a body is received into. Whoever reads many bodies one after the other hands the same room in
// again: a body of its own for every page would pile up to 64 MB before V8 looks at what is not on its heap.
// Must not know: HTTP, what the bytes mean.

/** Holds one body at a time. */
export class BodyRoom {
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

  /** What was taken since `clear`: the room's own memory, not a copy. */
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
