// The memory that a connection's bytes are read into: the same for all of them once they were read. Node would
// allocate 64 KiB for each read, and V8 lets such memory pile up.
import type { Socket } from "node:net";

const spaceBytes = 64 * 1024;

/** What `net.connect` and `tls.connect` take as `onread`. */
interface OnRead {
  readonly buffer: () => Uint8Array;
  readonly callback: (bytesRead: number, buffer: Uint8Array) => boolean;
}

/**
 * The space of the sockets of one connection, of which one is open at a time. undici calls `read` of its socket for the bytes
 * that have come; here they stand in the space.
 */
export class ReceiveSpace {
  readonly onread: OnRead;
  #space = Buffer.allocUnsafeSlow(spaceBytes);
  #socket: Socket | undefined;
  /** What has come and was not asked for yet. */
  #arrived: Buffer | null = null;
  #isHeadWhole: () => boolean = () => false;

  constructor() {
    this.onread = { buffer: () => this.#next(), callback: (length) => this.#receive(length) };
  }

  /** @param isHeadWhole whether the head of the answer that comes next was read: until then undici keeps pieces of the space */
  expect(isHeadWhole: () => boolean): void {
    this.#isHeadWhole = isHeadWhole;
  }

  /** @param socket made with `onread` of this space */
  serve(socket: Socket): void {
    this.#socket = socket;
    this.#arrived = null;
    const read = socket.read.bind(socket);
    socket.read = (size?: number): unknown => {
      const arrived = this.#socket === socket && size !== 0 ? this.#arrived : null;
      if (arrived === null) return read(size);
      this.#arrived = null;
      return arrived;
    };
  }

  #receive(length: number): boolean {
    const bytes = this.#space.subarray(0, length);
    this.#arrived = this.#arrived === null ? bytes : Buffer.concat([this.#arrived, bytes]);
    this.#socket?.emit("readable");
    // Not read yet: the space is used again before it is.
    if (this.#arrived?.buffer === this.#space.buffer) this.#arrived = Buffer.from(this.#arrived);
    return true;
  }

  #next(): Buffer {
    if (!this.#isHeadWhole()) this.#space = Buffer.allocUnsafeSlow(spaceBytes);
    return this.#space;
  }
}
