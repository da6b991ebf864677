// What a long file says, asked piece by piece of threads that are played here: which are started, what they are given, what is
// done without them, and that all of it ends.
import fs, { closeSync, openSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { join } from "node:path";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { rowsIn } from "../../../../src/journal/file/index/rows.ts";
import { factsOf, type PieceFacts } from "../../../../src/journal/file/piece-facts.ts";
import { type FilePart, PieceBuffer, readPiece, type Summaries } from "../../../../src/journal/file/scan.ts";
import { type PieceWork, shared, summarize, summaryOf, takePiece } from "../../../../src/journal/file/summaries.ts";
import { longJournal } from "../../../support/long-journal.ts";
import { folder } from "../intent.ts";

let text = "";
beforeAll(() => {
  text = longJournal(95, { padding: "x".repeat(60_000) }).join("");
});

function openPart(): FilePart {
  const path = join(folder(), "journal.ndjson");
  writeFileSync(path, text);
  const fd = openSync(path, "r");
  onTestFinished(() => closeSync(fd));
  return { fd, from: 0, size: statSync(path).size };
}

/** What a piece says, read here and now. */
function saidBy(part: FilePart, number: number, isVerified: boolean): unknown {
  const { bytes, offset } = readPiece(part, number);
  const facts = factsOf(bytes, { offset, isVerified })!;
  return plain({ ...facts, table: rowsIn(facts.table), names: rowsIn(facts.names) });
}

function plain(facts: PieceFacts | undefined): unknown {
  if (facts === undefined) return undefined;
  const { table, names, ...rest } = facts;
  return { ...rest, table: [table.count, table.page(0)], names: [names.count, names.page(0)] };
}

interface Played {
  readonly works: PieceWork[];
  readonly options: unknown[];
  readonly flags: string[];
  /** How often a message was looked for after a port was closed. */
  readonly closed: () => number;
  readonly waits: unknown[][];
}

/** Threads that do as `thread` says when they are started; `waiting` is called in place of a wait. */
function play({
  processors = 4,
  program = true,
  thread = () => {},
  waiting = () => "ok",
}: {
  processors?: number;
  program?: boolean;
  thread?: (work: PieceWork) => void;
  waiting?: () => string;
} = {}): Played {
  const real = { existsSync: fs.existsSync, availableParallelism: os.availableParallelism };
  const works: PieceWork[] = [];
  const options: unknown[] = [];
  const flags: string[] = [];
  let closed = 0;
  fs.existsSync = (path) => (String(path).endsWith("summary-thread.cjs") ? program : real.existsSync(path));
  os.availableParallelism = () => processors;
  syncBuiltinESMExports();
  const builtin = process.getBuiltinModule.bind(process);
  const modules = vi.spyOn(process, "getBuiltinModule").mockImplementation((name: string): object | undefined => {
    if (name === "node:v8") return { setFlagsFromString: (flag: string) => void flags.push(flag) };
    if (name !== "node:worker_threads") return builtin(name);
    class Worker {
      constructor(path: string, { workerData, ...rest }: { workerData: PieceWork }) {
        works.push(workerData);
        options.push({ path: path.replace(/^.*\//, ""), ...rest, transferList: undefined });
        workerData.port.on("close", () => (closed += 1));
        thread(workerData);
      }
      unref(): void {}
      on(): void {}
    }
    return { MessageChannel, receiveMessageOnPort, Worker };
  });
  const waits: unknown[][] = [];
  const wait = vi.spyOn(Atomics, "wait").mockImplementation(((...args: unknown[]) => {
    waits.push(args.slice(1));
    if (waits.length > 100) throw new Error("waits without end");
    return waiting();
  }) as unknown as typeof Atomics.wait);
  onTestFinished(() => {
    wait.mockRestore();
    modules.mockRestore();
    Object.assign(fs, { existsSync: real.existsSync });
    Object.assign(os, { availableParallelism: real.availableParallelism });
    syncBuiltinESMExports();
    for (const { port } of works) port.close();
  });
  return { works, options, flags, closed: () => closed, waits };
}

const begun = (part: FilePart, count: number, isVerified = false): Summaries => summarize(part, { count, isVerified })!;

describe("a file of few pieces", () => {
  it.each([1, 2, 15, 16])("of %i is read before a thread has started", (count) => {
    const { works, flags } = play();
    expect(summarize(openPart(), { count, isVerified: false })).toBeUndefined();
    expect([works, flags]).toEqual([[], []]);
  });

  it("of 17 is summarized", () => {
    play();
    expect(summarize(openPart(), { count: 17, isVerified: false })).toBeDefined();
  });
});

describe("threads", () => {
  it.each([
    [1, true, 0],
    [2, true, 2],
    [3, true, 3],
    [16, true, 3],
    [16, false, 0],
  ])("on %i processors, their program there: %s", (processors, program, count) => {
    const { works, options } = play({ processors, program });
    const part = openPart();
    begun(part, 20);
    expect(works).toHaveLength(count);
    for (const { counters, port, ...work } of works) {
      expect(work).toEqual({ ...part, isVerified: false, end: 19, ahead: 8 });
      expect([counters.length, [...counters], counters === works[0]!.counters]).toEqual([3, [1, 0, 0], true]);
      expect(port).toBeDefined();
    }
    expect(options).toEqual(
      works.map(() => ({
        path: "summary-thread.cjs",
        transferList: undefined,
        env: {},
        execArgv: [],
        resourceLimits: { maxYoungGenerationSizeMb: 12 },
      })),
    );
  });

  it.each([true, false])("give what the pieces say, in whatever order (verified: %s)", (isVerified) => {
    const part = openPart();
    const { works, waits } = play({
      processors: 2,
      thread: ({ port, counters }) => {
        if (works.length < 2) return;
        for (const number of [3, 1, 2]) {
          port.postMessage({ number, facts: summaryOf(part, { number, isVerified, buffer: new PieceBuffer() }) });
          Atomics.add(counters, shared.done, 1);
        }
        port.postMessage({ number: 4, facts: undefined });
      },
    });
    const summaries = begun(part, 20, isVerified);
    expect(works.map((work) => work.isVerified)).toEqual([isVerified, isVerified]);
    const notify = vi.spyOn(Atomics, "notify");
    onTestFinished(() => notify.mockRestore());
    for (const number of [1, 2, 3]) {
      expect(plain(summaries.get(number))).toEqual(saidBy(part, number, isVerified));
      expect(works[0]!.counters[shared.wanted]).toBe(number);
      expect(notify).toHaveBeenCalledWith(works[0]!.counters, shared.wanted);
    }
    expect(summaries.get(4)).toBeUndefined();
    expect(notify).toHaveBeenCalledTimes(4);
    expect(waits).toEqual([]);
  });

  it("are waited for, at most two seconds for a piece, and each piece is given once", () => {
    const part = openPart();
    let times = 0;
    const { works, waits, flags } = play({
      waiting: () => {
        times += 1;
        const { port, counters } = works[1]!;
        if (times === 2)
          port.postMessage({
            number: 1,
            facts: summaryOf(part, { number: 1, isVerified: false, buffer: new PieceBuffer() }),
          });
        Atomics.add(counters, shared.done, 1);
        return times > 2 ? "timed-out" : "ok";
      },
    });
    const summaries = begun(part, 20);
    expect(plain(summaries.get(1))).toEqual(saidBy(part, 1, false));
    expect(waits).toEqual([
      [shared.done, 0, 2000],
      [shared.done, 1, 2000],
    ]);
    expect(flags).toEqual(["--semi-space-growth-factor=1"]);
    // It is not there twice: the threads do not give it again, and the rest is done here.
    expect(plain(summaries.get(1))).toEqual(saidBy(part, 1, false));
    expect(waits).toHaveLength(3);
    expect(flags).toEqual(["--semi-space-growth-factor=1", "--semi-space-growth-factor=2"]);
    expect(plain(summaries.get(2))).toEqual(saidBy(part, 2, false));
    expect(waits).toHaveLength(3);
  });
});

describe("without threads", () => {
  it.each([true, false])("each piece is summarized when it is wanted (verified: %s)", (isVerified) => {
    play({ processors: 1 });
    const part = openPart();
    const summaries = begun(part, 20, isVerified);
    for (const number of [2, 1, 2]) expect(plain(summaries.get(number))).toEqual(saidBy(part, number, isVerified));
  });

  it("the piece with the end of the file is not, nor those behind it, nor what cannot be summarized", () => {
    const { works } = play({ processors: 1 });
    const part = openPart();
    const last = Math.ceil(part.size / 1024 / 1024) - 1;
    expect(last).toBeGreaterThan(2);
    const reads = vi.spyOn(fs, "readSync");
    const summaries = begun(part, 17);
    expect(summaries.get(last)).toBeUndefined();
    expect(summaries.get(16)).toBeUndefined();
    expect(summaries.get(17)).toBeUndefined();
    reads.mockRestore();
    expect(works).toEqual([]);
    expect(summaryOf(part, { number: last, isVerified: false, buffer: new PieceBuffer() })).toBeUndefined();
    expect(summaryOf({ ...part, from: 1 }, { number: 0, isVerified: false, buffer: new PieceBuffer() })).toBe(
      undefined,
    );
  });

  it("the last piece is not even looked at", () => {
    play({ processors: 1 });
    const part = openPart();
    const summaries = begun({ ...part, fd: -1 }, 17);
    expect(summaries.get(16)).toBeUndefined();
    expect(summaries.get(99)).toBeUndefined();
    expect(() => summaries.get(1)).toThrow(/"fd"|EBADF/);
  });
});

describe("the end", () => {
  it("leaves no piece to be taken, wakes who waits, and lets V8 grow as before", async () => {
    const { works, flags, closed } = play({ processors: 2 });
    const summaries = begun(openPart(), 20);
    const { counters } = works[0]!;
    counters[shared.wanted] = 5;
    const notify = vi.spyOn(Atomics, "notify");
    onTestFinished(() => notify.mockRestore());
    summaries.end();
    expect([...counters]).toEqual([19, 6, 0]);
    expect(notify.mock.calls).toEqual([[counters, shared.wanted]]);
    expect(flags).toEqual(["--semi-space-growth-factor=1", "--semi-space-growth-factor=2"]);
    await vi.waitFor(() => expect(closed()).toBe(2));
  });

  it("comes where none can be started", () => {
    const refused = Object.assign(new Error("restricted"), { code: "ERR_ACCESS_DENIED" });
    play({
      thread: () => {
        throw refused;
      },
    });
    const part = openPart();
    expect(plain(begun(part, 20).get(1))).toEqual(saidBy(part, 1, false));
  });

  it("is a defect where the error has no code", () => {
    const broken = new TypeError("a defect");
    play({
      thread: () => {
        throw broken;
      },
    });
    expect(() => begun(openPart(), 20)).toThrow(broken);
  });
});

describe("a piece that is taken", () => {
  const counters = (next: number): Int32Array => {
    const made = new Int32Array(new SharedArrayBuffer(4 * shared.length));
    made[shared.next] = next;
    return made;
  };
  it.each([
    [1, { end: 3, reach: 9 }, 1, 2],
    [2, { end: 3, reach: 9 }, 2, 3],
    [3, { end: 3, reach: 9 }, undefined, 3],
    [4, { end: 3, reach: 9 }, undefined, 4],
    [5, { end: 9, reach: 5 }, 5, 6],
    [6, { end: 9, reach: 5 }, undefined, 6],
  ])("of those from %i on, %j", (next, limits, taken, left) => {
    const shares = counters(next);
    expect(takePiece(shares, limits)).toBe(taken);
    expect(shares[shared.next]).toBe(left);
  });

  it("is another one where a thread was quicker", () => {
    const shares = counters(1);
    const exchange = vi.spyOn(Atomics, "compareExchange").mockImplementationOnce((() => {
      shares[shared.next] = 2;
      return 2;
    }) as unknown as typeof Atomics.compareExchange);
    onTestFinished(() => exchange.mockRestore());
    expect(takePiece(shares, { end: 9, reach: 9 })).toBe(2);
    expect(shares[shared.next]).toBe(3);
  });
});
