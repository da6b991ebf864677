// Other threads summarize the pieces of a long file ahead of who reads it.
import { availableParallelism } from "node:os";
import type { MessagePort } from "node:worker_threads";
import { RowStore } from "./index/packed-rows.ts";
import { factsOf, type PieceFacts, type SentFacts } from "./piece-facts.ts";
import { type FilePart, PieceBuffer, readPiece, type Summaries, type Summarize } from "./scan.ts";
import { summaryProgram } from "./summary-program.ts";

/** Fewer pieces are read before a thread has started. */
const fewPieces = 16;
/** How far ahead of the one that is wanted pieces are summarized. */
const ahead = 8;
const mostThreads = 3;
/** For objects that live no longer than a piece: with less a thread is slower, with more hardly faster. */
const youngMegabytes = 12;
/** Threads that give nothing for so long are not waited for again: the rest is done here. */
const patienceMs = 2000;

/** What threads share: the next piece that no one has taken, the one that is wanted, and how many came back. */
export const shared = { next: 0, wanted: 1, done: 2, length: 3 } as const;

export interface PieceWork extends FilePart {
  readonly isVerified: boolean;
  readonly counters: Int32Array;
  readonly port: MessagePort;
  /** Pieces before this one are taken. */
  readonly end: number;
  readonly ahead: number;
}

export interface PieceMessage {
  readonly number: number;
  readonly facts: SentFacts | undefined;
}

/** See `Summarize`. */
export const summarize: Summarize = (part, about) =>
  about.count > fewPieces ? new SummariesAhead(part, about) : undefined;

/** Of the pieces of a file between the first and the last. */
class SummariesAhead implements Summaries {
  readonly #part: FilePart;
  readonly #isVerified: boolean;
  /** The last piece is not one of them. */
  readonly #end: number;
  readonly #counters = new Int32Array(new SharedArrayBuffer(4 * shared.length));
  readonly #known = new Map<number, PieceFacts | undefined>();
  readonly #rows = new RowStore();
  readonly #buffer = new PieceBuffer();
  #helpers: readonly Helper[];

  constructor(part: FilePart, { count, isVerified }: { readonly count: number; readonly isVerified: boolean }) {
    this.#part = part;
    this.#isVerified = isVerified;
    this.#end = count - 1;
    this.#counters[shared.next] = 1;
    const work = { ...part, isVerified, counters: this.#counters, end: this.#end, ahead };
    setYoungGrowth(1);
    this.#helpers = startHelpers(work);
  }

  get(number: number): PieceFacts | undefined {
    if (number >= this.#end) return undefined;
    Atomics.store(this.#counters, shared.wanted, number);
    Atomics.notify(this.#counters, shared.wanted);
    while (!this.#known.has(number)) {
      const done = Atomics.load(this.#counters, shared.done);
      this.#receive();
      if (this.#known.has(number)) break;
      if (this.#helpers.length === 0) this.#summarize(number);
      else if (Atomics.wait(this.#counters, shared.done, done, patienceMs) === "timed-out") this.#doWithoutHelpers();
    }
    const facts = this.#known.get(number);
    this.#known.delete(number);
    return facts;
  }

  #receive(): void {
    for (const helper of this.#helpers)
      for (let one = helper.receive(); one !== undefined; one = helper.receive())
        this.#known.set(one.number, one.facts && this.#kept(one.facts));
  }

  #kept(facts: SentFacts): PieceFacts {
    return { ...facts, table: this.#rows.keep(facts.table), names: this.#rows.keep(facts.names) };
  }

  #summarize(number: number): void {
    const about = { number, isVerified: this.#isVerified, buffer: this.#buffer };
    const facts = summaryOf(this.#part, about);
    this.#known.set(number, facts && this.#kept(facts));
  }

  #doWithoutHelpers(): void {
    this.end();
    this.#helpers = [];
  }

  /** No piece is taken any more. */
  end(): void {
    setYoungGrowth(2);
    Atomics.store(this.#counters, shared.next, this.#end);
    Atomics.add(this.#counters, shared.wanted, 1);
    Atomics.notify(this.#counters, shared.wanted);
    for (const helper of this.#helpers) helper.end();
  }
}

/**
 * By which factor V8 lets the space for young objects grow while some survive, in all threads. With its own, 2, the thread that
 * reads has up to 64 MB of them on Node 24, although it needs none for longer than a piece.
 */
function setYoungGrowth(factor: 1 | 2): void {
  process.getBuiltinModule("node:v8").setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}

/** @returns the number of a piece that no other thread works on; undefined if the next is too far */
export function takePiece(counters: Int32Array, { end, reach }: { end: number; reach: number }): number | undefined {
  for (;;) {
    const number = Atomics.load(counters, shared.next);
    if (number >= end || number > reach) return undefined;
    if (Atomics.compareExchange(counters, shared.next, number, number + 1) === number) return number;
  }
}

export function summaryOf(
  part: FilePart,
  about: { readonly number: number; readonly isVerified: boolean; readonly buffer: PieceBuffer },
): SentFacts | undefined {
  const { bytes, offset, isLast } = readPiece(part, about.number, about.buffer);
  return isLast ? undefined : factsOf(bytes, { offset, isVerified: about.isVerified });
}

interface Helper {
  receive(): PieceMessage | undefined;
  end(): void;
}

/** Threads that summarize; none if their program is not beside this one, or one processor has all the work. */
function startHelpers(work: Omit<PieceWork, "port">): Helper[] {
  const program = summaryProgram();
  const count = Math.min(availableParallelism(), mostThreads);
  if (count < 2 || program === undefined) return [];
  try {
    return Array.from({ length: count }, () => startHelper(program, work));
  } catch (error) {
    // Where Node may start none, as with --permission.
    if (!(error instanceof Error && "code" in error)) throw error;
    return [];
  }
}

function startHelper(program: string, work: Omit<PieceWork, "port">): Helper {
  const { MessageChannel, receiveMessageOnPort, Worker } = process.getBuiltinModule("node:worker_threads");
  const { port1, port2 } = new MessageChannel();
  const workerData: PieceWork = { ...work, port: port2 };
  const worker = new Worker(program, {
    workerData,
    transferList: [port2],
    env: {},
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: youngMegabytes },
  });
  worker.unref();
  worker.on("error", () => {}); // what it took is done here
  port1.unref();
  return {
    receive: () => receiveMessageOnPort(port1)?.message as PieceMessage | undefined,
    end: () => port1.close(),
  };
}
