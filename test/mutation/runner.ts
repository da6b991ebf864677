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

/** A test that passes without a mutant. */
interface Known {
  readonly test: RunnerTestCase;
  readonly covers: ReadonlySet<number>;
  readonly ms: number;
}

interface Learned {
  readonly covers: readonly number[];
  readonly ms: number;
}

/** What a process is given to do: to learn which test covers what, or to try mutants. */
interface Work {
  readonly learned?: readonly Learned[];
  readonly numbers: readonly number[];
}

/** The one test that vitest runs; it runs the others. */
const driver = "mutants";

interface Verdict {
  readonly state: "killed" | "survived" | "not covered" | "timeout" | "spoilt" | "cut short";
  /** The test that failed. */
  readonly by?: string;
  /** How many tests cover it. */
  readonly tests?: number;
}

type Hook = (...words: unknown[]) => unknown;

/** Made by question.ts, which is loaded after this file. */
let question: Question;
const { INTEG_MUTATION_WORK: work = "" } = process.env;

/** Processor time for the tests of one mutant. One that is cut short counts as not noticed. */
const mostWorkMs = 15_000;

/** Without a mutant a loop asks less often than this. */
const mostUses = 200_000;

function report(line: object): void {
  appendFileSync(`${work}.out`, `${JSON.stringify(line)}\n`);
}

class Expired extends Error {}

function within<T>(ms: number, running: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Expired("too slow")), ms);
  });
  return Promise.race([running, expiry]).finally(() => clearTimeout(timer));
}

export default class MutationRunner extends TestRunner {
  #tests: RunnerTestCase[] = [];
  #entered = new Map<RunnerTestSuite, Promise<void>>();

  onCollected(files: RunnerTestFile[]): void {
    this.#tests = files.flatMap((file) => testsIn(file)).filter(({ name }) => name !== driver);
    // Nothing but the driver is run by vitest itself.
    for (const task of files.flatMap(({ tasks }) => tasks)) if (task.name !== driver) task.mode = "skip";
  }

  async runTask(self: RunnerTestCase): Promise<void> {
    question = (globalThis as unknown as { $mutation: Question }).$mutation;
    const { learned, numbers } = JSON.parse(readFileSync(`${work}.in`, "utf8")) as Work;
    if (learned === undefined) return this.#learn(self);
    const known = learned
      .map(({ covers, ms }, index) => ({ test: this.#tests[index]!, covers: new Set(covers), ms }))
      .filter(({ covers }) => covers.size > 0)
      // What is quick and about little else first.
      .toSorted((a, b) => a.ms * a.covers.size - b.ms * b.covers.size);
    for (const number of numbers) {
      report({ number, state: "started" });
      const verdict = await this.#verdict(
        self,
        number,
        known.filter(({ covers }) => covers.has(number)),
      );
      report({ number, ...verdict });
      if (verdict.state === "spoilt") return;
    }
    report({ state: "over" });
  }

  /** Runs every test once without a mutant. One that fails by itself covers nothing. */
  async #learn(self: RunnerTestCase): Promise<void> {
    const learned: Learned[] = [];
    for (const test of this.#tests) {
      question.seen = new Set();
      const started = performance.now();
      const error = await this.#try(self, test, 120_000);
      if (error !== undefined) report({ state: "failing test", name: test.name, error: inspect(error) });
      const covers = error === undefined ? [...question.seen] : [];
      learned.push({ covers, ms: performance.now() - started });
    }
    report({ state: "learned", learned });
  }

  async #verdict(self: RunnerTestCase, number: number, covering: readonly Known[]): Promise<Verdict> {
    const start = process.cpuUsage();
    for (const { test, ms } of covering) {
      const { user, system } = process.cpuUsage(start);
      if ((user + system) / 1000 > mostWorkMs) return { state: "cut short", tests: covering.length };
      Object.assign(question, { active: number, uses: 0, most: mostUses });
      const error = await this.#try(self, test, ms * 10 + 5000);
      const isEndless = question.uses > mostUses;
      question.active = 0;
      if (error === undefined && !isEndless) continue;
      if (isEndless || error instanceof Expired) return { state: "timeout", by: test.name };
      // What fails without the mutant too was spoilt by another one.
      const isSpoilt = (await this.#try(self, test, ms * 10 + 5000)) !== undefined;
      return { state: isSpoilt ? "spoilt" : "killed", by: test.name };
    }
    return { state: covering.length === 0 ? "not covered" : "survived", tests: covering.length };
  }

  /** @returns what the test failed with */
  async #try(self: RunnerTestCase, test: RunnerTestCase, ms: number): Promise<unknown> {
    const around: RunnerTestSuite[] = [];
    for (let suite = test.suite; suite; suite = suite.suite) around.unshift(suite);
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
  #enter(suite: RunnerTestSuite): Promise<void> {
    const entering = this.#entered.get(suite) ?? enter(suite);
    this.#entered.set(suite, entering);
    return entering;
  }
}

async function enter(suite: RunnerTestSuite): Promise<void> {
  for (const hook of TestRunner.getSuiteHooks(suite).beforeAll ?? []) await (hook as unknown as Hook)(suite);
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
