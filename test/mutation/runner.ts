// Runs the tests of each mutant in one process: their functions are called again and again, whole suites are entered once.
import { appendFileSync, readFileSync } from "node:fs";
import { inspect } from "node:util";
import { TestRunner } from "vitest";
import type { RunnerTestCase, RunnerTestFile, RunnerTestSuite } from "vitest";

interface Question {
  active: number;
  uses: number;
  most: number;
  seen: Set<number> | undefined;
}

/** What is known of a test that passes without a mutant: where it stands, what it covers, how long it takes. */
interface Learned {
  readonly path: string;
  /** Its place among the tests of its file. */
  readonly at: number;
  readonly covers: readonly number[];
  readonly ms: number;
  /** Of the processor. */
  readonly workMs: number;
}

interface Known extends Pick<Learned, "path" | "at" | "ms" | "workMs"> {
  readonly test: RunnerTestCase;
}

/** A file that is mutated, and the number of its first mutant. */
interface Mutated {
  readonly path: string;
  readonly first: number;
}

/** What a process is given to do: to learn what the tests of some files cover, or to try mutants. */
type Work =
  | { readonly learn: readonly string[] }
  | { readonly learned: readonly Learned[]; readonly numbers: readonly number[]; readonly files: readonly Mutated[] };

/** How many mutants of a file a test was tried with, and how many it killed. */
interface TrackRecord {
  tries: number;
  kills: number;
}

/** The one test that vitest runs; it runs the others. */
const driver = "mutants";

interface Verdict {
  readonly state: "killed" | "survived" | "timeout" | "spoilt" | "cut short";
  /** The test that failed, and its file. */
  readonly by?: string;
  readonly path?: string;
  /** How many tests cover it. */
  readonly tests?: number;
}

type Hook = (...words: unknown[]) => unknown;

/** Made by question.ts, which is loaded after this file. */
let question: Question;
const { INTEG_MUTATION_WORK: work = "" } = process.env;

/** Processor time for the tests of one mutant. One for which they are cut short counts as not noticed. */
const mostWorkMs = 1500;

/** So much of the processor all quick tests of a mutant take, the last of them twice: what is silent longer has no end. */
const longestMs = 6000;

/** Without a mutant a loop asks less often than this. */
const mostUses = 200_000;

/** So many tests may take too long before the others of a mutant are left out. */
const mostExpired = 2;

function report(line: object): void {
  appendFileSync(`${work}.out`, `${JSON.stringify(line)}\n`);
}

class Expired extends Error {}

/** As they are before a test plays the time. */
const { setTimeout, clearTimeout } = globalThis;

function within<T>(ms: number, running: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Expired("too slow")), ms);
  });
  return Promise.race([running, expiry]).finally(() => clearTimeout(timer));
}

export default class MutationRunner extends TestRunner {
  /** By file, in their order. */
  #tests = new Map<string, RunnerTestCase[]>();
  #entered = new Map<RunnerTestSuite, Promise<Hook[]>>();
  /** Tests that fail without a mutant by now: one that was tried has left something behind. */
  readonly #spoilt = new Set<RunnerTestCase>();
  /** What killed a mutant, by its number: its neighbours die of the same. */
  readonly #killers = new Map<number, Known>();
  /** Of the mutants of a file, by its path. */
  readonly #records = new Map<string, Map<RunnerTestCase, TrackRecord>>();
  #files: readonly Mutated[] = [];

  onCollected(files: RunnerTestFile[]): void {
    for (const suite of files.flatMap(({ tasks }) => tasks))
      if (suite.type === "suite") this.#tests.set(suite.name, testsIn(suite));
    // Nothing but the driver is run by vitest itself.
    for (const task of files.flatMap(({ tasks }) => tasks)) if (task.name !== driver) task.mode = "skip";
  }

  async runTask(self: RunnerTestCase): Promise<void> {
    question = (globalThis as unknown as { $mutation: Question }).$mutation;
    const todo = JSON.parse(readFileSync(`${work}.in`, "utf8")) as Work;
    report({ state: "begun", pid: process.pid, forMs: 120_000 });
    if ("learn" in todo) for (const path of todo.learn) await this.#learn(self, path);
    else await this.#tryAll(self, todo);
    report({ state: "over" });
  }

  /** Runs every test of a file once without a mutant. One that fails by itself covers nothing. */
  async #learn(self: RunnerTestCase, path: string): Promise<void> {
    const learned: Learned[] = [];
    for (const [at, test] of (this.#tests.get(path) ?? []).entries()) {
      report({ state: "trying", forMs: 120_000 });
      question.seen = new Set();
      const started = performance.now();
      const start = process.cpuUsage();
      const error = await this.#try(self, test, 120_000);
      const ms = Math.round(performance.now() - started);
      if (error !== undefined) report({ state: "failing test", path, name: test.name, error: inspect(error) });
      if (error === undefined)
        learned.push({ path, at, covers: [...question.seen], ms, workMs: Math.round(workSince(start)) });
      question.seen = undefined;
    }
    report({ state: "learned", path, learned });
  }

  async #tryAll(self: RunnerTestCase, todo: Extract<Work, { readonly learned: unknown }>): Promise<void> {
    this.#files = todo.files;
    const wanted = new Set(todo.numbers);
    const covering = new Map<number, Known[]>();
    // What is quick and about little else first.
    for (const { path, at, covers, ms, workMs } of todo.learned.toSorted(
      (a, b) => a.workMs * a.covers.length - b.workMs * b.covers.length,
    )) {
      const known: Known = { test: this.#tests.get(path)![at]!, path, at, ms, workMs };
      for (const number of covers) {
        if (!wanted.has(number)) continue;
        const those = covering.get(number) ?? [];
        those.push(known);
        covering.set(number, those);
      }
    }
    for (const number of todo.numbers) {
      report({ number, state: "started", forMs: longestMs });
      report({ number, ...(await this.#verdict(self, number, covering.get(number) ?? [])) });
    }
  }

  /** First what killed the nearest mutants, then what kills most in this file for what it costs; its own tests are given credit. */
  #likelyFirst(number: number, covering: readonly Known[]): readonly Known[] {
    const nearest = [...this.#killers.keys()]
      .filter((other) => Math.abs(other - number) < 60)
      .toSorted((a, b) => Math.abs(a - number) - Math.abs(b - number))
      .map((other) => this.#killers.get(other)!);
    const near = [...new Set(nearest)].filter((known) => covering.includes(known)).slice(0, 6);
    const { path } = this.#fileOf(number);
    const mirror = mirrorOf(path);
    const worth = new Map(
      covering.map((known) => {
        const { tries, kills } = this.#recordOf(path, known.test);
        const credit = known.path.endsWith(mirror) ? 0.3 : 0.1;
        return [known, (kills + credit) / (tries + 1) / (known.workMs + 5)];
      }),
    );
    return [...new Set([...near, ...covering.toSorted((a, b) => worth.get(b)! - worth.get(a)!)])];
  }

  #fileOf(number: number): Mutated {
    return this.#files.findLast(({ first }) => first <= number)!;
  }

  #recordOf(path: string, test: RunnerTestCase): TrackRecord {
    const records = this.#records.get(path) ?? new Map<RunnerTestCase, TrackRecord>();
    this.#records.set(path, records);
    const record = records.get(test) ?? { tries: 0, kills: 0 };
    records.set(test, record);
    return record;
  }

  async #verdict(self: RunnerTestCase, number: number, covering: readonly Known[]): Promise<Verdict> {
    const start = process.cpuUsage();
    let expired: Verdict | undefined;
    let expiries = 0;
    let isCutShort = false;
    for (const known of this.#likelyFirst(number, covering)) {
      const { test, path, ms, workMs } = known;
      const spentMs = workSince(start);
      if (spentMs > mostWorkMs) return expired ?? { state: "cut short", tests: covering.length };
      if (this.#spoilt.has(test)) continue;
      // A slow test runs only where it is the first, or its time is left.
      if (spentMs > mostWorkMs / 100 && spentMs + workMs > mostWorkMs) {
        isCutShort = true;
        continue;
      }
      const forMs = ms * 5 + 2000;
      if (ms > 1000) report({ state: "trying", forMs: forMs * 2 + longestMs });
      Object.assign(question, { active: number, uses: 0, most: mostUses });
      const record = this.#recordOf(this.#fileOf(number).path, test);
      record.tries += 1;
      const error = await this.#try(self, test, forMs);
      const isEndless = question.uses > mostUses;
      question.active = 0;
      if (error === undefined && !isEndless) continue;
      if (isEndless || error instanceof Expired) {
        expired = { state: "timeout", by: test.name, path };
        expiries += 1;
        if (expiries === mostExpired) return expired;
        continue;
      }
      // What fails without the mutant too was spoilt: by this one, or by one before it.
      if (!(await this.#passes(self, test, forMs))) {
        this.#spoilt.add(test);
        continue;
      }
      this.#killers.set(number, known);
      record.kills += 1;
      return { state: "killed", by: test.name, path };
    }
    if (expired) return expired;
    if (isCutShort) return { state: "cut short", tests: covering.length };
    const by = covering.find(({ test }) => this.#spoilt.has(test));
    return by ? { state: "spoilt", by: by.test.name, path: by.path } : { state: "survived", tests: covering.length };
  }

  /** Without a mutant; with what its suites share made anew, if need be. */
  async #passes(self: RunnerTestCase, test: RunnerTestCase, forMs: number): Promise<boolean> {
    if ((await this.#try(self, test, forMs)) === undefined) return true;
    for (const suite of suitesAround(test).toReversed()) await this.#leave(suite);
    return (await this.#try(self, test, forMs)) === undefined;
  }

  /** @returns what the test failed with */
  async #try(self: RunnerTestCase, test: RunnerTestCase, ms: number): Promise<unknown> {
    const around = suitesAround(test);
    const context = test.context as unknown as object;
    const cleanups: Hook[] = [];
    try {
      for (const suite of around) await this.#enter(suite);
      this.onBeforeTryTask(test);
      for (const suite of around)
        for (const hook of TestRunner.getSuiteHooks(suite).beforeEach ?? []) {
          const cleanup = await within(ms, Promise.resolve((hook as Hook)(context, suite)));
          if (typeof cleanup === "function") cleanups.push(cleanup as Hook);
        }
      await within(ms, Promise.resolve((TestRunner.getTestFn(test) as Hook)()));
      return undefined;
    } catch (error) {
      return isSkip(error) ? undefined : error;
    } finally {
      question.active = 0;
      await this.#after(self, { around, context, cleanups });
    }
  }

  async #after(
    self: RunnerTestCase,
    left: { readonly around: readonly RunnerTestSuite[]; readonly context: object; readonly cleanups: readonly Hook[] },
  ): Promise<void> {
    const { around, context, cleanups } = left;
    const hooks = around
      .toReversed()
      .flatMap((suite) =>
        (TestRunner.getSuiteHooks(suite).afterEach ?? []).map((hook) => () => (hook as Hook)(context, suite)),
      );
    // The global onTestFinished speaks of the test that vitest runs: this one.
    const finished = (self as { onFinished?: Hook[] }).onFinished?.splice(0) ?? [];
    for (const step of [...hooks, ...cleanups.toReversed(), ...finished.toReversed().map((one) => () => one(context))])
      try {
        await within(10_000, Promise.resolve(step()));
      } catch {
        // What a mutant left may not be there to be removed.
      }
  }

  /** Once: what the tests of a suite share stays. */
  #enter(suite: RunnerTestSuite): Promise<Hook[]> {
    const entering = this.#entered.get(suite) ?? enter(suite);
    this.#entered.set(suite, entering);
    return entering;
  }

  async #leave(suite: RunnerTestSuite): Promise<void> {
    const entered = this.#entered.get(suite);
    if (entered === undefined) return;
    this.#entered.delete(suite);
    const steps = [...(TestRunner.getSuiteHooks(suite).afterAll ?? []), ...(await entered.catch(() => []))];
    for (const step of steps)
      try {
        await within(10_000, Promise.resolve((step as Hook)(suite)));
      } catch {
        // A mutant may have left nothing to be removed.
      }
  }
}

/** How the path of a file's own tests ends: they may stand in the folder above. */
function mirrorOf(path: string): string {
  return path.replace(/^.*(\/[^/]+)\.ts$/, "$1.test.ts");
}

/** Milliseconds of the processor. */
function workSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** @returns what is to be called at its end */
async function enter(suite: RunnerTestSuite): Promise<Hook[]> {
  const ends: Hook[] = [];
  for (const hook of TestRunner.getSuiteHooks(suite).beforeAll ?? []) {
    const end = await (hook as unknown as Hook)(suite);
    if (typeof end === "function") ends.push(end as Hook);
  }
  return ends;
}

/** The outermost first. */
function suitesAround(test: RunnerTestCase): RunnerTestSuite[] {
  const around: RunnerTestSuite[] = [];
  for (let suite = test.suite; suite; suite = suite.suite) around.unshift(suite);
  return around;
}

function testsIn(suite: RunnerTestSuite): RunnerTestCase[] {
  return suite.tasks.flatMap((task) => {
    if (task.mode !== "run" && task.mode !== "queued") return [];
    return task.type === "suite" ? testsIn(task) : [task];
  });
}

function isSkip(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "VITEST_PENDING";
}
