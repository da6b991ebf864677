// A process that works on a journal, as the `Task` in its first argument (JSON) says. It writes each
// line of its report to stdout in one call, so that a kill leaves the test no incomplete line.
import * as fs from "node:fs";
import { Failure } from "../../src/errors.ts";
import { fileJournal } from "../support/file-journal.ts";
import type { Intent, Journal } from "../../src/journal/journal.ts";
import { loadKernelLock } from "../../src/disk/kernel-lock.ts";
import { type LockMeans, tryLock } from "../../src/disk/process-lock.ts";
import { identify } from "../../src/disk/lock-owner.ts";
import { requestOf } from "./journal-request.ts";

export interface Task {
  readonly work: "admit" | "together" | "hold" | "hold-file" | "contend" | "prune";
  readonly path: string;
  readonly nativeLocks: boolean;
  readonly fingerprint?: string;
  readonly key?: string;
  readonly fresh?: boolean;
  readonly times?: number;
  readonly waitMs?: number;
  readonly states?: readonly ("unknown" | "done" | "refused")[];
  readonly stubborn?: boolean;
  /** A missing file that the process looks up right before the work, which marks that moment in a trace. */
  readonly marker?: string;
}

function say(line: object): void {
  fs.writeSync(1, `${JSON.stringify(line)}\n`);
}

function sayFailure({ kind, message, exitCode, details }: Failure): void {
  say({ failed: kind, exitCode, message, meaning: details.meaning });
}

function intentOf({ fingerprint = "the same" }: Task): Intent {
  return requestOf(fingerprint, JSON.stringify({ service_account_id: fingerprint, scopes: ["entity:read"] }));
}

async function admit(journal: Journal, task: Task): Promise<void> {
  const options = { ...(task.fresh ? { fresh: true } : {}), ...(task.key === undefined ? {} : { key: task.key }) };
  for (let time = 0; time < (task.times ?? 1); time += 1) {
    const { kind, lease } = await journal.admit(intentOf(task), options);
    const { id, idempotency_key, request_text } = lease.entry;
    say({ sent: id, key: idempotency_key, body: request_text, kind });
    if (task.work === "hold") await new Promise((resolve) => setTimeout(resolve, 600_000));
    for (const state of task.states ?? []) {
      try {
        await lease.record({ state, attempts: lease.entry.attempts + 1 });
      } catch (error) {
        if (!task.stubborn || !(error instanceof Failure)) throw error;
        sayFailure(error);
      }
    }
    await lease.release();
    say({ released: id });
  }
}

async function together(journal: Journal, task: Task): Promise<void> {
  const each = Array.from({ length: task.times ?? 1 }, async (_, index) => {
    try {
      await admit(journal, { ...task, fingerprint: `request ${index}`, times: 1 });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      sayFailure(error);
    }
  });
  await Promise.all(each);
  say({ released: "all" });
}

async function contend(means: LockMeans): Promise<void> {
  const { createInterface } = await import("node:readline");
  for await (const path of createInterface({ input: process.stdin })) {
    let looks = 1;
    let attempt = tryLock(path, means);
    for (; !attempt.held; looks += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      attempt = tryLock(path, means);
    }
    let doubles = 0;
    try {
      fs.closeSync(fs.openSync(`${path}-held`, "wx"));
      const until = performance.now() + 0.3;
      while (performance.now() < until);
      fs.unlinkSync(`${path}-held`);
    } catch {
      doubles += 1;
    }
    attempt.held.release();
    say({ path, doubles, looks });
  }
}

async function run(task: Task): Promise<void> {
  const { path, nativeLocks } = task;
  const means = { self: identify(process.pid), kernel: nativeLocks ? loadKernelLock() : undefined };
  const journal = fileJournal(path, {
    now: Date.now,
    actor: { user: "ada", host: "desk" },
    locks: { means: () => means, waitMs: task.waitMs ?? 10_000 },
  });
  if (task.marker !== undefined) fs.existsSync(task.marker);
  if (task.work === "contend") return contend(means);
  if (task.work === "prune") return say(await journal.prune(0));
  if (task.work === "hold-file") {
    const attempt = tryLock(`${path}.lock`, means);
    say({ held: attempt.held !== undefined });
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  }
  return task.work === "together" ? together(journal, task) : admit(journal, task);
}

const [, , task = "{}"] = process.argv;
run(JSON.parse(task)).catch((error: unknown) => {
  process.exitCode = 1;
  if (!(error instanceof Failure)) throw error;
  sayFailure(error);
});
