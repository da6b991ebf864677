const leastBytes = 256 * 1024;

/** Bytes one after the other, in memory that is used again once they were written. */
export class ByteWriter {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Makes a later `copy` or `byte` of so many bytes possible. Called before them. */
  reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length, leastBytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }

  /** So few bytes that a call of Node would cost more than the loop. */
  copy(from: Uint8Array, start: number, end: number): void {
    const bytes = this.#bytes;
    let at = this.#length;
    for (let index = start; index < end; index += 1) bytes[at++] = from[index]!;
    this.#length = at;
  }

  /** The same up to a byte that is marked in `stops`. @returns its index, or `end` */
  copyUntil(from: Uint8Array, { start, end, stops }: { start: number; end: number; stops: Uint8Array }): number {
    const bytes = this.#bytes;
    let at = this.#length;
    let index = start;
    for (; index < end; index += 1) {
      const byte = from[index]!;
      if (stops[byte] === 1) break;
      bytes[at++] = byte;
    }
    this.#length = at;
    return index;
  }

  append(from: Uint8Array): void {
    this.reserve(from.length);
    this.#bytes.set(from, this.#length);
    this.#length += from.length;
  }

  byte(value: number): void {
    this.#bytes[this.#length++] = value;
  }

  text(text: string): void {
    this.reserve(text.length * 3);
    this.#length += this.#bytes.write(text, this.#length);
  }

  /** Takes back what was written after that length. */
  cut(length: number): void {
    this.#length = length;
  }

  /** All of it; the memory is overwritten by what is written next. */
  take(): Buffer {
    const all = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return all;
  }
}
