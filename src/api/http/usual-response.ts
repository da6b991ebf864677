// The usual response, read from its bytes: HTTP/1.1, a plain head, a length or plain chunks. Of anything else it says that it is
// unusual, and gives back what undici needs to read it from there.

/** What is called with a response, as undici calls it. */
export interface ResponseListener {
  onConnect(abort: () => void): void;
  /** @param raw names and values in turn */
  onHeaders(status: number, raw: readonly (Buffer | string)[]): boolean;
  onData(chunk: Buffer): boolean;
  onComplete(): void;
  onError(error: Error): void;
  /** The request was sent, or a connection is being made for it: nothing more is done before something comes. */
  onLeft?(): void;
  /** Where the next bytes are best received, head and body alike. */
  space?(): Buffer | undefined;
  /** Of the part of the program that reads what has come. */
  onLoad?(loading: Promise<unknown>): void;
}

/**
 * - `more`: it is not whole yet.
 * - `whole`: its last byte was the last one given.
 * - `surplus`: it is whole, and more came than it has.
 * - `unusual`: `replay` is a response that begins with what was not read; what was handed on of it is not repeated.
 * - `malformed`: it is not HTTP.
 */
export type Progress = "more" | "whole" | "surplus" | "unusual" | "malformed";

/** A longer head is undici's to judge, bytes. */
const mostHead = 16 * 1024;
/** So many digits of a chunk's size: a page has fewer. */
const mostDigits = 8;
const endOfHead = Buffer.from("\r\n\r\n");
const [carriageReturn, lineFeed] = [13, 10];

export class UsualResponse {
  readonly #listener: Pick<ResponseListener, "onHeaders" | "onData">;
  /** What came of the head; of a response in chunks it stays. */
  #head: Buffer | undefined;
  #isHeadTold = false;
  /** How long an idle connection stays usable after it, milliseconds, if the service says so. */
  #keptMs: number | undefined;
  #isChunked = false;
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0;
  #part: "size" | "data" | "after data" | "end" = "size";
  /** What came of the line between two chunks. */
  #line = "";
  #replay: Buffer | undefined;

  constructor(listener: Pick<ResponseListener, "onHeaders" | "onData">) {
    this.#listener = listener;
  }

  /** True until the first byte of it. */
  get isUntouched(): boolean {
    return this.#head === undefined && !this.#isHeadTold;
  }

  /** True once `onHeaders` was called. */
  get isHeadTold(): boolean {
    return this.#isHeadTold;
  }

  get keptMs(): number | undefined {
    return this.#keptMs;
  }

  /** Of an `unusual` response: its head, and its body from where it is unusual. */
  get replay(): Buffer {
    return this.#replay ?? Buffer.alloc(0);
  }

  /** @param bytes what came next; they are not kept */
  read(bytes: Buffer): Progress {
    if (this.#isHeadTold) return this.#body(bytes, 0);
    const seen = this.#head === undefined ? bytes : Buffer.concat([this.#head, bytes]);
    const end = seen.indexOf(endOfHead);
    if (end === -1 && seen.length <= mostHead && isUsualSoFar(seen.toString("latin1"))) {
      this.#head = Buffer.from(seen);
      return "more";
    }
    const head = end === -1 || end > mostHead ? undefined : headOf(seen.toString("latin1", 0, end));
    if (head === undefined) return this.#unusual(seen);
    const start = end + endOfHead.length;
    this.#keptMs = head.keptMs;
    this.#isChunked = head.length === undefined;
    this.#left = head.length ?? 0;
    if (this.#isChunked) this.#head = Buffer.from(seen.subarray(0, start));
    this.#isHeadTold = true;
    this.#listener.onHeaders(head.status, head.raw);
    return this.#body(seen, start);
  }

  /** The connection ended. @returns `unusual` if it did so within the head: whether that is one is undici's to say */
  cut(): "unusual" | "more" {
    if (this.#isHeadTold || this.#head === undefined) return "more";
    this.#replay = this.#head;
    return "unusual";
  }

  #unusual(...pieces: Buffer[]): Progress {
    this.#replay = Buffer.concat(pieces);
    return "unusual";
  }

  #body(bytes: Buffer, from: number): Progress {
    if (this.#isChunked) return this.#chunks(bytes, from);
    const after = this.#data(bytes, from);
    return this.#left > 0 ? "more" : this.#whole(bytes, after);
  }

  #whole(bytes: Buffer, after: number): Progress {
    return after === bytes.length ? "whole" : "surplus";
  }

  /** @returns the index after what belongs to the body or the chunk */
  #data(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#left);
    if (to > from) this.#listener.onData(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to));
    this.#left -= to - from;
    return to;
  }

  #chunks(bytes: Buffer, from: number): Progress {
    let at = from;
    while (at < bytes.length) {
      if (this.#part === "data") {
        at = this.#data(bytes, at);
        if (this.#left === 0) this.#part = "after data";
        continue;
      }
      const byte = bytes[at]!;
      at += 1;
      this.#line += String.fromCharCode(byte);
      const step = this.#part === "size" ? this.#size(byte) : this.#lineEnd();
      // Extensions and trailers are undici's to read.
      if (step === "unusual") return this.#unusual(this.#head!, Buffer.from(this.#line, "latin1"), bytes.subarray(at));
      if (step === "whole") return this.#whole(bytes, at);
      if (step === "malformed") return step;
    }
    return "more";
  }

  /** After a byte of the line with a chunk's size. */
  #size(byte: number): Progress {
    const { length } = this.#line;
    if (byte === lineFeed) {
      const size = /^([0-9a-fA-F]+)\r\n$/.exec(this.#line)?.[1];
      if (size === undefined) return "unusual";
      this.#left = Number.parseInt(size, 16);
      this.#part = this.#left === 0 ? "end" : "data";
      // Trailers would follow the line of the last chunk: undici reads that line with them.
      if (this.#left > 0) this.#line = "";
      return "more";
    }
    return byte === carriageReturn || length <= mostDigits ? "more" : "unusual";
  }

  /** After a byte of the line that ends a chunk, or all of them. */
  #lineEnd(): Progress {
    const isLast = this.#part === "end";
    const line = isLast ? this.#line.slice(this.#line.indexOf("\n") + 1) : this.#line;
    if (!"\r\n".startsWith(line)) return isLast ? "unusual" : "malformed";
    if (line.length < 2) return "more";
    if (isLast) return "whole";
    this.#line = "";
    this.#part = "size";
    return "more";
  }
}

interface Head {
  readonly status: number;
  /** Names and values in turn. */
  readonly raw: readonly string[];
  /** Absent: the body is in chunks. */
  readonly length: number | undefined;
  readonly keptMs: number | undefined;
}

/** A final status. */
const statusLine = /^HTTP\/1\.1 ([2-5]\d\d) [\t\x20-\x7e\x80-\xff]*$/;
const headerLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ?([!-~\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[!-~\x80-\xff])?)$/;

/** Pages of a walk often have the head of the page before, byte for byte. */
let last: { readonly text: string; readonly head: Head | undefined } | undefined;

/** @returns nothing if it is in any way unusual; the same head for the same text */
function headOf(text: string): Head | undefined {
  if (last?.text !== text) last = { text, head: readHead(text) };
  return last.head;
}

function readHead(text: string): Head | undefined {
  const lines = readLines(text.split("\r\n"));
  if (lines === undefined) return undefined;
  const { status, raw, framing } = lines;
  const { isChunked, isLast } = framing;
  // It has no body, and need not say so.
  const length = status === 204 ? (framing.length ?? 0) : framing.length;
  if (status === 204 && length !== 0) return undefined;
  const keptMs = isLast ? 0 : framing.keptMs;
  return (length === undefined) === (isChunked === undefined) ? undefined : { status, raw, length, keptMs };
}

/** @param lines whole ones @returns nothing if one is unusual */
function readLines([first = "", ...lines]: readonly string[]):
  | { readonly status: number; readonly raw: string[]; readonly framing: Framing }
  | undefined {
  const status = Number(statusLine.exec(first)?.[1] ?? 0);
  if (status === 0 || status === 304) return undefined;
  const raw: string[] = [];
  const framing: Framing = {};
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? [];
    if (name === undefined || value === undefined || !isUsual(name.toLowerCase(), value, framing)) return undefined;
    raw.push(name, value);
  }
  return { status, raw, framing };
}

/** Whether the beginning of a head may become one that is usual: for one that is not HTTP no one waits. */
function isUsualSoFar(text: string): boolean {
  const lines = text.split("\r\n");
  const open = lines.pop() ?? "";
  if (lines.length > 0) return openHeader.test(open) && readLines(lines) !== undefined;
  return open.length < statusStart.length
    ? statusStart.startsWith(open)
    : open.startsWith(statusStart) && openStatus.test(open.slice(statusStart.length));
}

const statusStart = "HTTP/1.1 ";
const openStatus = /^(?:[2-5]\d{0,2}|[2-5]\d\d [\t\x20-\x7e\x80-\xff]*)?\r?$/;
const openHeader = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?::[\t\x20-\x7e\x80-\xff]*)?)?\r?$/;

interface Framing {
  length?: number;
  isChunked?: boolean;
  keptMs?: number;
  /** The connection is not used again. */
  isLast?: boolean;
}

/** A service that closes the connection says so, and is asked to behind a change. */
function isConnectionUsual(value: string, framing: Framing): boolean {
  if (value === "close") framing.isLast = true;
  return value === "close" || value === "keep-alive";
}

/** Notes what a header says of the framing. @returns false if that is unusual */
function isUsual(name: string, value: string, framing: Framing): boolean {
  switch (name) {
    case "content-length":
      if (framing.length !== undefined || !/^\d{1,12}$/.test(value)) return false;
      framing.length = Number(value);
      return true;
    case "transfer-encoding":
      if (framing.isChunked || value.toLowerCase() !== "chunked") return false;
      return (framing.isChunked = true);
    case "connection":
      return isConnectionUsual(value.toLowerCase(), framing);
    case "keep-alive":
      framing.keptMs = Number(/timeout=(\d{1,6})/.exec(value)?.[1] ?? Number.NaN) * 1000;
      if (Number.isNaN(framing.keptMs)) delete framing.keptMs;
      return true;
    case "upgrade":
    case "proxy-connection":
      return false;
    default:
      return true;
  }
}
