// Starts processes of journal-driver.ts, and reads the lines that they print.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, onTestFinished } from "vitest";
import { fileJournal } from "../support/file-journal.ts";
import { bundleDriver } from "../support/bundle-driver.ts";
import { ada } from "../unit/journal/intent.ts";
import type { Journal } from "../../src/journal/journal.ts";
import type { Task } from "./journal-driver.ts";
import { isMissing } from "../support/tools.mjs";

export interface Line {
  readonly sent?: string;
  readonly key?: string;
  readonly body?: string;
  readonly kind?: string;
  readonly released?: string;
  readonly failed?: string;
  readonly exitCode?: number;
  readonly message?: string;
  readonly meaning?: string;
  readonly held?: boolean;
  readonly path?: string;
  readonly doubles?: number;
  readonly looks?: number;
  readonly removed?: number;
}

export function journalAt(path: string): Journal {
  return fileJournal(path, { now: Date.now, actor: ada });
}

export async function buildDriver(): Promise<string> {
  const { path, remove } = await bundleDriver(join(import.meta.dirname, "journal-driver.ts"));
  afterAll(remove);
  return path;
}

export interface Started {
  readonly child: ChildProcess;
  readonly lines: Line[];
  next(): Promise<Line | undefined>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

export function start(driver: string, task: Task): Started {
  const child = spawn(process.execPath, [driver, JSON.stringify(task)], { stdio: ["pipe", "pipe", "inherit"] });
  const lines: Line[] = [];
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
  const reader = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  onTestFinished(() => void child.kill("SIGKILL"));
  const next = async (): Promise<Line | undefined> => {
    const read = await reader.next();
    if (read.done) return undefined;
    const line: Line = JSON.parse(read.value);
    lines.push(line);
    return line;
  };
  return { child, lines, next, ended };
}

export async function runToEnd(driver: string, task: Task): Promise<Line[]> {
  const started = start(driver, task);
  while ((await started.next()) !== undefined);
  await started.ended;
  return started.lines;
}

export const hasStrace = !isMissing("strace");

export interface Traced {
  readonly lines: readonly Line[];
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** strace counts `when=<n>` per thread. That is exact here, because only the main thread makes the journal's calls. */
export function runTraced(driver: string, options: { task: Task; strace: readonly string[] }): Traced {
  const command = ["-f", "-qq", "-s", "300", ...options.strace, process.execPath, driver, JSON.stringify(options.task)];
  const run = spawnSync("strace", command, { encoding: "utf8", timeout: 60_000 });
  const lines: Line[] = run.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Line => JSON.parse(line));
  return { lines, signal: run.signal, stderr: run.stderr };
}
