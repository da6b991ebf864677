// What comes over a connection: bytes in one piece of memory, and all that came in response to a change.
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/** Collects bytes in one piece of memory: each chunk by itself would keep alive the larger one that it is a part of. */
export class ByteBuffer {
  #memory = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Takes a copy. */
  append(chunk: Uint8Array): void {
    this.reserve(this.#length + chunk.length);
    this.#memory.set(chunk, this.#length);
    this.#length += chunk.length;
  }

  /** @param total how many bytes are expected altogether */
  reserve(total: number): void {
    if (total <= this.#memory.length) return;
    // Doubled, so that bytes that come one by one are not copied for each of them.
    const larger = Buffer.allocUnsafeSlow(Math.max(total, 2 * this.#memory.length));
    larger.set(this.bytes());
    this.#memory = larger;
  }

  /** What was appended; not a copy. */
  bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }
}

/** After a refused response the peer may be silent for so long, milliseconds. */
const silenceMs = 1000;
/** Nothing but interim responses: the final one is still to come. */
const interim = /^(?:HTTP\/1\.[01] 1(?!01)\d\d[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+$/;
const longestInterim = 4096;

/**
 * Keeps every byte that comes in response to a change. undici ends a connection with the first thing that it refuses,
 * such as a `100 Continue` that was not asked for. The one-time secret may come behind it, so the socket is read on.
 */
export class Recording {
  readonly #bytes = new ByteBuffer();
  readonly #most: number;
  #isOver = false;
  #ended: Promise<unknown> | undefined;

  /** @param most how many bytes are kept; more end the connection */
  constructor(most: number) {
    this.#most = most;
  }

  bytes(): Buffer {
    return this.#bytes.bytes();
  }

  /** @returns what undici is given in place of the socket; destroying it leaves the socket open */
  record(socket: Socket): Duplex {
    const stream = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
      writev: (chunks, done) => void socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done),
    });
    socket.on("data", (chunk: Buffer) => {
      if (this.#bytes.length + chunk.length > this.#most) return void socket.destroy();
      this.#bytes.append(chunk);
      if (!stream.destroyed) stream.push(chunk);
    });
    socket.once("end", () => stream.push(null));
    socket.once("error", (error) => stream.destroy(error));
    socket.once("close", () => stream.destroy());
    this.#ended = new Promise((resolve) => {
      const end = (): void => resolve((this.#isOver = true));
      socket.once("end", end).once("close", end);
    });
    return stream;
  }

  /** Waits until the connection has ended, or the peer was silent for a while. */
  async rest(): Promise<void> {
    for (let before = -1; !this.#isOver && (before < this.#bytes.length || this.#isInterim()); ) {
      before = this.#bytes.length;
      await Promise.race([this.#ended, sleep(silenceMs, undefined, { ref: false })]);
    }
  }

  #isInterim(): boolean {
    return this.#bytes.length <= longestInterim && interim.test(this.bytes().toString("latin1"));
  }
}
