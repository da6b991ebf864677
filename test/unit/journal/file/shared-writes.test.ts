// What changes of one process write in one turn: one lock, one sync, and to each its own result.
import { describe, expect, it } from "vitest";
import type { JournalFile } from "../../../../src/journal/file/journal-file.ts";
import { Busy, type FileLock, type JournalLocks, SharedWrites } from "../../../../src/journal/file/locks.ts";

const broken = new Error("the disk is broken");

interface Answers {
  /** In turn: what a try for the lock gives. */
  readonly tries?: readonly ("held" | "busy" | "fails")[];
  /** The same of one that waits. */
  readonly holds?: readonly ("held" | "fails")[];
  readonly syncFails?: boolean;
}

function made({ tries = [], holds = [], syncFails = false }: Answers = {}) {
  const calls: unknown[] = [];
  const busy = new Busy("the journal", undefined);
  let appended = 0;
  const lock: FileLock = { fd: undefined, release: () => void calls.push("release") };
  const answers = { tries: [...tries], holds: [...holds] };
  const answer = (which: "held" | "busy" | "fails" | undefined): FileLock | Busy => {
    if (calls.length > 50) throw new Error("without end");
    if (which === "fails") throw broken;
    return which === "busy" ? busy : lock;
  };
  const locks = {
    tryFile: () => (calls.push("try"), answer(answers.tries.shift())),
    holdFile: (options: unknown) => (calls.push(["hold", options]), answer(answers.holds.shift())),
  };
  const file = {
    inOneSync: (work: (count: () => number) => void) => {
      calls.push("begin");
      work(() => appended);
      calls.push("sync");
      if (syncFails) throw broken;
    },
  };
  const writes = new SharedWrites(file as unknown as JournalFile, locks as unknown as JournalLocks);
  return {
    calls,
    busy,
    /** Work that says its name, with a record or without. */
    change(name: string, { records = 1, error, meaning }: { records?: number; error?: Error; meaning?: string } = {}) {
      return saidOf(
        writes.do({
          work: () => {
            calls.push(name);
            if (error) throw error;
            appended += records;
            return `result of ${name}`;
          },
          undo: (value) => void calls.push(`undo ${value}`),
          ...(meaning === undefined ? {} : { waits: { meaning } }),
        }),
      );
    },
  };
}

/** What came of it after a few turns of the event loop. */
async function saidOf(promise: Promise<unknown>): Promise<unknown> {
  let said: unknown = "nothing";
  promise.then(
    (value) => (said = value),
    (error: unknown) => (said = { error }),
  );
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => void setImmediate(resolve));
  return said;
}

describe("changes of one turn", () => {
  it.each([1, 2, 3])("%i of them have one lock and one sync, in their order", async (count) => {
    const { calls, change } = made();
    const names = ["a", "b", "c"].slice(0, count);
    expect(await Promise.all(names.map((name) => change(name)))).toEqual(names.map((name) => `result of ${name}`));
    expect(calls).toEqual(["try", "begin", ...names, "sync", "release"]);
  });

  it("of the next turn have their own", async () => {
    const { calls, change } = made();
    const one = change("a");
    await new Promise((resolve) => void setImmediate(resolve));
    expect([await one, await change("b")]).toEqual(["result of a", "result of b"]);
    expect(calls).toEqual(["try", "begin", "a", "sync", "release", "try", "begin", "b", "sync", "release"]);
  });

  it("fail each for itself", async () => {
    const { calls, change } = made();
    const error = new Error("not this one");
    expect(await Promise.all([change("a"), change("b", { error }), change("c")])).toEqual([
      "result of a",
      { error },
      "result of c",
    ]);
    expect(calls).toEqual(["try", "begin", "a", "b", "c", "sync", "release"]);
  });

  it("are all told that someone else has the lock, and do nothing", async () => {
    const { calls, change, busy } = made({ tries: ["busy"] });
    expect(await Promise.all([change("a"), change("b")])).toEqual([busy, busy]);
    expect(calls).toEqual(["try"]);
  });

  it("are all told that the lock cannot be had", async () => {
    const { calls, change } = made({ tries: ["fails", "busy"] });
    expect(await Promise.all([change("a"), change("b")])).toEqual([{ error: broken }, { error: broken }]);
    expect(calls).toEqual(["try"]);
  });

  it("are taken back if they could not be synced, those that appended", async () => {
    const { calls, change } = made({ syncFails: true });
    const said = await Promise.all([change("a"), change("b", { records: 0 }), change("c", { records: 2 })]);
    expect(said).toEqual([{ error: broken }, "result of b", { error: broken }]);
    expect(calls).toEqual(["try", "begin", "a", "b", "c", "sync", "undo result of a", "undo result of c", "release"]);
  });

  it("have nothing to be taken back where they failed by themselves", async () => {
    const { calls, change } = made({ syncFails: true });
    const error = new Error("not this one");
    expect(await change("a", { error })).toEqual({ error });
    expect(calls).toEqual(["try", "begin", "a", "sync", "release"]);
  });
});

describe("a change that waits for the lock", () => {
  it.each([
    ["alone", ["first"]],
    ["with another", ["first", "second"]],
    ["with one that does not", ["first", undefined]],
    ["behind one that does not", [undefined, "first"]],
  ])("%s, says what it means if that takes too long", async (_what, meanings) => {
    const { calls, change } = made();
    const names = meanings.map((_meaning, at) => `${at}`);
    const work = names.map((name, at) => change(name, meanings[at] === undefined ? {} : { meaning: meanings[at] }));
    expect(await Promise.all(work)).toEqual(names.map((name) => `result of ${name}`));
    expect(calls).toEqual([["hold", { meaning: "first" }], "begin", ...names, "sync", "release"]);
  });

  it("is told that it took too long, and one beside it that does not wait has its try", async () => {
    const { calls, change } = made({ holds: ["fails"] });
    const work = [change("a", { meaning: "m" }), change("b"), change("c", { meaning: "n" })];
    expect(await Promise.all(work)).toEqual([{ error: broken }, "result of b", { error: broken }]);
    expect(calls).toEqual([["hold", { meaning: "m" }], "try", "begin", "b", "sync", "release"]);
  });

  it("is told so alone, and that is all", async () => {
    const { calls, change } = made({ holds: ["fails"] });
    expect(await change("a", { meaning: "m" })).toEqual({ error: broken });
    expect(calls).toEqual([["hold", { meaning: "m" }]]);
  });
});
