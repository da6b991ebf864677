// Next steps are typed where they were printed: after a test, when its faults are over, each command that an error of it
// advised is run in the same home, and must not end as that error did. The services are put back afterwards.
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runHere } from "./program-here.ts";
import type { Ended, Home, RunOptions } from "./program.ts";

const { INTEG_TEST_STEPS: folder } = process.env;

/** A step that was advised, and what it followed. */
interface Advised {
  readonly home: Home;
  readonly typed: readonly string[];
  readonly how: RunOptions;
  readonly said: Said;
}

interface Said {
  readonly code: number | null;
  readonly message: string;
  readonly next: string;
}

/** What stands for a service of a file of tests. */
export interface Watched {
  /** Where its state is. */
  readonly file: string;
  readonly control: (method: string) => Promise<unknown>;
}

const known = new Set<string>();
const removed = new Set<Home>();
const services = new Set<Watched>();
let advised: Advised[] = [];

/** Its state is put back after steps were typed. @returns what ends that */
export function watchService(service: Watched): () => void {
  services.add(service);
  return () => void services.delete(service);
}

/** Ids, folders and ports differ from run to run. */
function kindOf(text: string): string {
  return text.replaceAll(/[\w./:-]*\d[\w./:-]*/g, "#");
}

/** The message of an error and its command; nothing if a sentence says what has to be done before or instead. */
function readError({ code, stderr }: Ended): Said | undefined {
  const [, message] = /^Error: (.*)$/m.exec(stderr) ?? [];
  if (message !== undefined) {
    const [, next] = /^ *Next: (.+)$/m.exec(stderr) ?? [];
    return next === undefined || /^ *Fix: /m.test(stderr) ? undefined : { code, message, next };
  }
  const last = stderr.trimEnd().split("\n").at(-1) ?? "";
  if (!last.startsWith('{"error"')) return undefined;
  const { error } = JSON.parse(last) as { error: { message: string; next_command?: string; hint?: string } };
  return error.next_command && !error.hint ? { code, message: error.message, next: error.next_command } : undefined;
}

/** Keeps the step of an error, one of each kind in a file of tests. */
export function noteStep(home: Home, end: Ended, [typed, how]: [typed: readonly string[], how: RunOptions]): void {
  if (!folder || end.code === 0 || end.code === null) return;
  const said = readError(end);
  if (said === undefined || !said.next.startsWith("integ ") || /[|<>;&]|^integ (help|sandbox|mcp)\b/.test(said.next))
    return;
  const kind = kindOf(`${said.code} ${said.next}`);
  if (known.has(kind)) return;
  known.add(kind);
  advised.push({ home, typed, how, said });
}

/** @returns whether a home stays until its steps were typed */
export function staysForSteps(home: Home): boolean {
  const stays = advised.some((step) => step.home === home);
  if (stays) removed.add(home);
  return stays;
}

/** After a test: types what was advised in the homes that it has removed. @throws Error if a step ends as what advised it */
export async function typeSteps(): Promise<void> {
  const ready = advised.filter(({ home }) => removed.has(home));
  advised = advised.filter(({ home }) => !removed.has(home));
  const wrong: string[] = [];
  try {
    const states = ready.length === 0 ? undefined : await calmStates();
    if (states === undefined) return;
    for (const step of ready) {
      const why = await typeStep(step);
      if (why !== undefined) wrong.push(why);
      for (const [file, state] of states) putBack(file, state);
    }
    for (const { control } of services) await control("DELETE");
  } finally {
    for (const home of removed) rmSync(home.folder, { recursive: true, force: true });
    removed.clear();
  }
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
}

/** What the services hold; nothing while a fault or a request of the test is left, or where no service is known. */
async function calmStates(): Promise<Map<string, string> | undefined> {
  const states = new Map<string, string>();
  for (const { file, control } of services) {
    const { faults, requests } = (await control("GET")) as Record<"faults" | "requests", readonly unknown[]>;
    if (faults.length > 0 || requests.length > 0 || !existsSync(file)) return undefined;
    states.set(file, readFileSync(file, "utf8"));
  }
  return states.size === 0 ? undefined : states;
}

function putBack(file: string, state: string): void {
  writeFileSync(`${file}.next`, state, { mode: 0o600 });
  renameSync(`${file}.next`, file);
}

async function typeStep({ home, typed, how, said }: Advised): Promise<string | undefined> {
  const { stdout } = spawnSync("/bin/sh", ["-c", `integ() { printf '%s\\0' "$@"; }; ${said.next}`], {
    encoding: "utf8",
  });
  const words = stdout.split("\0").slice(0, -1);
  const run = runHere(home, words, { env: how.env, cwd: how.cwd, limitMs: 5000 });
  if (run === undefined) return undefined;
  const end = await run;
  const now = readError(end) ?? { message: /^Error: (.*)$/m.exec(end.stderr)?.[1] ?? "" };
  const isSame = end.code !== 0 && end.code === said.code && kindOf(now.message) === kindOf(said.message);
  const line = { typed, next: said.next, after: said.code, code: end.code, message: now.message, isSame };
  appendFileSync(join(folder!, `${process.pid}.typed.ndjson`), `${JSON.stringify(line)}\n`);
  return isSame ? `${said.next}\n  after integ ${typed.join(" ")}\n  ends as that did: ${said.message}` : undefined;
}
