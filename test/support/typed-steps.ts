// Types next steps where they were printed. When a command prints a step, `noteSteps` copies the home and the services'
// states. After the test, `typeSteps` runs the step in the copy, without the test's faults. The step must not fail like the
// command that printed it.
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { runHere } from "./program-here.ts";
import type { Ended, Home, RunOptions } from "./program.ts";
import { kindOf, stepsIn, withoutNames } from "./record-steps.ts";
import { isFull } from "./sample.ts";

const { INTEG_TEST_STEPS: folder } = process.env;

/** Patterns of steps that are not typed, by reason. The first match decides. */
const reasons: Readonly<Record<string, RegExp>> = {
  "another program's command": /^(?!integ )/,
  "starts a server, or deletes the sandbox": /^integ sandbox (?:start|reset|tour)\b/,
  "asks for a secret on standard input": /--[a-z-]+-stdin\b/,
  "a line of a shell": /[|<>;&]/,
};

interface PrintedStep {
  readonly kind: string;
  readonly folder: string;
  readonly copy: string;
  readonly states: ReadonlyMap<string, string>;
  readonly home: Home;
  readonly typed: readonly string[];
  readonly options: RunOptions;
  readonly code: number;
  readonly message: string;
  readonly next: string;
}

export interface WatchedService {
  readonly file: string;
  readonly control: (method: string) => Promise<unknown>;
}

const known = new Set<string>();
const services = new Set<WatchedService>();
let printed: PrintedStep[] = [];

/**
 * Lets typed steps use the service, whose state is restored after each step. @returns a function that removes the service
 */
export function watchService(service: WatchedService): () => void {
  services.add(service);
  return () => void services.delete(service);
}

/** @returns the error's message, and `isFirst` true if a `Fix:` sentence says what to do before the next step */
function readError({ stderr }: Pick<Ended, "stderr">): { message: string; isFirst: boolean } {
  const [, message] = /^Error: (.*)$/m.exec(stderr) ?? [];
  if (message !== undefined) return { message, isFirst: /^ *Fix: /m.test(stderr) };
  const last = stderr.trimEnd().split("\n").at(-1) ?? "";
  if (!last.startsWith('{"error"')) return { message: "", isFirst: false };
  const { error } = JSON.parse(last) as { error: { message: string; hint?: string } };
  return { message: error.message, isFirst: error.hint !== undefined };
}

function note(line: object): void {
  appendFileSync(join(folder!, `${process.pid}.typed.ndjson`), `${JSON.stringify(line)}\n`);
}

/** For each new kind of printed step, copies the home or records why the step is not typed. */
export function noteSteps(
  home: Home,
  end: Ended,
  [typed, options]: [typed: readonly string[], options: RunOptions],
): void {
  if (!folder || end.code === null) return;
  const { code } = end;
  for (const next of stepsIn(end)) {
    const kind = kindOf({ code, next });
    const variant = isFull ? `${typed.slice(0, 2).join(" ")} ${kind}` : kind;
    if (known.has(variant)) continue;
    const { message, isFirst } = readError(end);
    const reason =
      Object.keys(reasons).find((name) => reasons[name]!.test(next)) ??
      (isFirst ? "a sentence says what a person does first" : undefined) ??
      (process.env.INTEG_TEST_TYPES ? undefined : "printed where connections are cut or processes killed");
    if (reason !== undefined) {
      known.add(variant);
      note({ kind, next, reason });
      continue;
    }
    if (!existsSync(home.folder)) continue;
    known.add(variant);
    const copy = join(mkdtempSync(join(tmpdir(), "integ-step-")), basename(home.folder));
    // `cp -a` copies a pipe or socket without opening it.
    spawnSync("cp", ["-a", home.folder, copy]);
    const there = [...services].filter(({ file }) => existsSync(file));
    const states = new Map(there.map(({ file }) => [file, readFileSync(file, "utf8")]));
    printed.push({ kind, folder: home.folder, copy, states, home, typed, options, code, message, next });
  }
}

export async function typeSteps(): Promise<void> {
  const ready = printed;
  printed = [];
  if (ready.length === 0) return;
  const wrong: string[] = [];
  const now = new Map<string, string>();
  for (const { file, control } of services) {
    // Removes the test's remaining faults and recorded requests.
    await control("DELETE");
    if (existsSync(file)) now.set(file, readFileSync(file, "utf8"));
  }
  for (const step of ready) {
    // If the test continues with the home, the home may depend on things outside the copy: only a full run requires success.
    const isOver = !existsSync(step.folder) && services.size > 0;
    const why = await inCopy(step, () => typeStep(step));
    if (why !== undefined && (isOver || isFull)) wrong.push(why);
    for (const [file, state] of now) putBack(file, state);
  }
  for (const { control } of services) await control("DELETE");
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
}

/** Moves the copy to the home's path during the action, because the journal contains paths. */
async function inCopy<T>({ folder: home, copy, states }: PrintedStep, action: () => Promise<T>): Promise<T> {
  const aside = existsSync(home) ? `${home}.aside` : undefined;
  if (aside !== undefined) renameSync(home, aside);
  renameSync(copy, home);
  for (const [file, state] of states) if (existsSync(file)) putBack(file, state);
  try {
    return await action();
  } finally {
    rmSync(home, { recursive: true, force: true });
    if (aside !== undefined) renameSync(aside, home);
    rmSync(dirname(copy), { recursive: true, force: true });
  }
}

function putBack(file: string, state: string): void {
  writeFileSync(`${file}.next`, state, { mode: 0o600 });
  renameSync(`${file}.next`, file);
}

async function typeStep({ kind, home, typed, options, code, message, next }: PrintedStep): Promise<string | undefined> {
  const { stdout } = spawnSync("/bin/sh", ["-c", `integ() { printf '%s\\0' "$@"; }; ${next}`], { encoding: "utf8" });
  const words = stdout.split("\0").slice(0, -1);
  const run = runHere(home, words, { env: options.env, cwd: options.cwd, limitMs: 5000 });
  if (run === undefined) {
    note({ kind, next, reason: "another command of the test runs" });
    return undefined;
  }
  const end = await run;
  const now = readError(end);
  const isSame = code !== 0 && end.code === code && withoutNames(now.message) === withoutNames(message);
  // In a full run, a step that a successful command printed must not be a usage error, unless only `--yes` is missing.
  const isMistyped = isFull && code === 0 && end.code === 2 && !/--yes/.test(end.stderr);
  note({ kind, typed, next, after: code, code: end.code, message: now.message, isSame, isMistyped });
  if (!isSame && !isMistyped) return undefined;
  return `${next}\n  after integ ${typed.join(" ")}\n  ends ${isSame ? "as that did" : "so"}: ${now.message}`;
}
