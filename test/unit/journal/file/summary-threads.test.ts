// Threads that summarize a long journal only save time: without them it is read by the thread that wants it.
import { expect, test, vi } from "vitest";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import { longJournal, writeJournal } from "../../../support/long-journal.ts";
import { ada, journalPath } from "../intent.ts";

// Built, the program of a thread lies beside the sources; other test files may have loaded them already.
vi.resetModules();
vi.doMock("../../../../src/journal/file/summary-program.ts", () => ({ summaryProgram: () => "a-thread.cjs" }));
const { summarize } = await import("../../../../src/journal/file/summaries.ts");
vi.doUnmock("../../../../src/journal/file/summary-program.ts");
// Other test files of this process are not to have what was made with it.
vi.resetModules();

const entries = 1000;
const lines = longJournal(entries, { padding: "x".repeat(17_000) });

test.each(["never answer", "cannot be started"])("threads that %s cost one wait", async (what) => {
  const real = process.getBuiltinModule.bind(process);
  const wait = vi.spyOn(Atomics, "wait").mockReturnValue("timed-out");
  const modules = vi.spyOn(process, "getBuiltinModule").mockImplementation(((name: string) => {
    const found: unknown = real(name);
    if (name !== "node:worker_threads") return found;
    class Worker {
      constructor() {
        if (what === "cannot be started") throw Object.assign(new Error("restricted"), { code: "ERR_ACCESS_DENIED" });
      }
      unref(): void {}
      on(): void {}
    }
    return { ...(found as object), Worker };
  }) as typeof process.getBuiltinModule);
  try {
    const path = journalPath();
    writeJournal(path, lines);
    expect(await new FileJournal(path, { now: Date.now, actor: ada, summarize }).count()).toBe(entries);
    expect(wait).toHaveBeenCalledTimes(what === "never answer" ? 1 : 0);
  } finally {
    modules.mockRestore();
    wait.mockRestore();
  }
});
