// Runs the built program as a user does, with its own folders and a clean environment.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { checkOutput, checkRecorded } from "./check-output.ts";
import { runHere } from "./program-here.ts";
import { recordSteps } from "./record-steps.ts";
import { isFull } from "./sample.ts";
import { teamJournal } from "./team-journal.ts";
import { noteSteps } from "./typed-steps.ts";

/** Gives up only after a minute, because some machines are very slow. */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isTrue()); tries += 1) {
    if (tries > 3000) throw new Error(`waited in vain: ${what}`);
    await sleep(20);
  }
}

/** @returns the id of another user as whom the command succeeds, if there is one */
export function anotherUser([file, ...words]: readonly [string, ...string[]]): number | undefined {
  return spawnSync(file, words, { uid: 65_534, gid: 65_534 }).status === 0 ? 65_534 : undefined;
}

export const root = resolve(import.meta.dirname, "../..");

/** If set, tests run this binary instead of the built package. */
export const binary: string | undefined = process.env.INTEG_TEST_BINARY && resolve(process.env.INTEG_TEST_BINARY);

export const program: readonly [file: string, ...words: string[]] = binary
  ? [binary]
  : [process.execPath, join(root, "bin", "integ.js")];

/** @param what what another binary leaves untested, for a warning. @returns true if the test must be skipped */
export function isOtherBinary(what: string): boolean {
  if (binary) console.warn(`skipped with INTEG_TEST_BINARY: ${what}`);
  return binary !== undefined;
}

/** Preloads a recorder, so that the sandbox of every process records its responses (recorded-answers.ts). */
const { INTEG_TEST_ANSWERS: answers } = process.env;
const recording: Readonly<Record<string, string>> = answers
  ? { NODE_OPTIONS: `"--require=${join(answers, "record-answers.cjs")}"` }
  : {};

/** Disables Node's compile cache: filling it takes disk calls, which some tests count. */
const ofNode: Readonly<Record<string, string>> = { ...recording, NODE_DISABLE_COMPILE_CACHE: "1" };

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
  /** Words before the program, such as `["strace", "-f"]`. */
  readonly under?: readonly string[];
  readonly timeoutMs?: number;
  /** If set, standard output of a command in this process is a terminal of this width. */
  readonly columns?: number;
}

let staysHere = false;

/** Makes later commands run in this process if possible, even in a full run. */
export function stayInThisProcess(): void {
  staysHere = true;
}

export class Home {
  readonly folder: string;
  readonly env: Record<string, string>;
  /** True if the home's journal is in PostgreSQL and its tables do not exist yet. */
  #isWithoutTables: boolean;

  constructor(env: Readonly<Record<string, string>> = {}) {
    this.folder = mkdtempSync(join(tmpdir(), "integ-test-"));
    const team = teamJournal();
    this.env = {
      PATH: process.env.PATH ?? "",
      HOME: this.folder,
      LANG: "C.UTF-8",
      INTEG_CONFIG_DIR: join(this.folder, "config"),
      INTEG_STATE_DIR: join(this.folder, "state"),
      ...ofNode,
      ...team,
      ...env,
    };
    this.#isWithoutTables = team !== undefined && this.env.INTEG_JOURNAL === team.INTEG_JOURNAL;
  }

  path(...names: string[]): string {
    return join(this.folder, ...names);
  }

  start(words: readonly string[], options: RunOptions = {}): ReturnType<typeof spawn> {
    this.#makeTables();
    const [first = "", ...rest] = [...(options.under ?? []), ...program, ...words];
    const env = { ...this.env, ...options.env };
    // Under strace, the calls of the preloaded recorder would be counted. Only a sandbox needs the recorder.
    const isCounted = options.under !== undefined && !words.some((word) => word.startsWith("sandbox"));
    if (isCounted && env.NODE_OPTIONS === recording.NODE_OPTIONS) delete env.NODE_OPTIONS;
    const { cwd = this.folder } = options;
    return Object.assign(spawn(first, rest, { cwd, env, stdio: ["pipe", "pipe", "pipe"] }), { words, env });
  }

  /**
   * Runs a command in this process if possible. With another binary, and in a full run without `stayInThisProcess`, the
   * command has its own process.
   */
  async integ(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
    if (this.#isWithoutTables) {
      const made = runHere(this, ["journal", "init"], {});
      if (made !== undefined) this.#isWithoutTables = (await made).code !== 0;
    }
    const isOwn =
      (isFull && !staysHere) || binary || needsProcess(words, { ...options, env: { ...this.env, ...options.env } });
    const here = isOwn ? undefined : await runHere(this, words, options);
    if (here === undefined) return this.spawned(words, options);
    noteSteps(this, here, [words, options]);
    return here;
  }

  async spawned(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const end = await ended(this.start(words, options), options);
    noteSteps(this, end, [words, options]);
    return end;
  }

  #makeTables(): void {
    if (!this.#isWithoutTables) return;
    this.#isWithoutTables = false;
    const [file, ...words] = program;
    execFileSync(file, [...words, "journal", "init"], { env: this.env, stdio: "pipe" });
  }

  /** @returns the words that start the program in a shell or a terminal; `remove` compares its JSON with the schemas */
  recorded(): readonly string[] {
    const [node, ...script] = program;
    if (script.length === 0) return program;
    const recorder = join(`${this.folder}.said`, "record-said.cjs");
    mkdirSync(dirname(recorder), { recursive: true });
    copyFileSync(join(import.meta.dirname, "record-said.cjs"), recorder);
    return [node, "--require", recorder, ...script];
  }

  /** @returns the added folder, which contains a script `integ` */
  addToPath(): string {
    const folder = this.path("bin");
    mkdirSync(folder, { recursive: true });
    const words = this.recorded().map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    writeFileSync(join(folder, "integ"), `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`);
    chmodSync(join(folder, "integ"), 0o755);
    this.env.PATH = `${folder}:${this.env.PATH}`;
    return folder;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
    checkRecorded(`${this.folder}.said`);
  }
}

function needsProcess([noun]: readonly string[], { under, timeoutMs, env = {} }: RunOptions): boolean {
  const isOwn = noun === "--version" || noun === "-V" || noun === "sandbox";
  const isNode = Object.keys(env).some((name) => name.startsWith("NODE_") && env[name] !== ofNode[name]);
  const isPgpass = env.PGPASSFILE !== undefined;
  return isOwn || isNode || isPgpass || under !== undefined || timeoutMs !== undefined;
}

/** A full run takes longer, because its commands wait for a processor of a shared machine. */
const longestMs = isFull ? 900_000 : 50_000;

/** Kills the process after a timeout, so that a hang fails the test and does not block the run. */
export function ended(child: ReturnType<typeof spawn>, options: RunOptions = {}): Promise<Ended> {
  const { words = [], env = {} } = child as Partial<Pick<Home, "env"> & { readonly words: readonly string[] }>;
  let stdout = "";
  let stderr = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin!.on("error", () => {});
  child.stdin!.end(options.input ?? "");
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? longestMs);
  return new Promise<Ended>((done, failed) => {
    child.on("error", failed);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      done({ code, signal, stdout, stderr });
    });
  }).then((end) => {
    if (end.code === null) return end;
    recordSteps(words, end);
    checkOutput(words, env, end);
    return end;
  });
}
