// What every operation does, call by call: as asked, with each of its calls failing, with a crash at each of its points, and
// with a person who interrupts it, then what `journal recover` does about that. One file for each operation in steps/;
// `npm run docs` prints them again.
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Entry } from "../../../src/journal/entry.ts";
import type { AWorld, Ended, Setting } from "./a-world.ts";
import type { Fate } from "./an-account.ts";
import { ask, type Operation, operations, worldFor } from "./every-operation.ts";

const hour = 3_600_000;

function endOf({ kind, failure }: Ended<unknown>): string {
  return kind === "done" || kind === "crash" ? kind : `${kind} (${failure?.message})`;
}

/** How its entries stand. */
function standing({ entries }: AWorld): string {
  return entries
    .map(({ id, state, resource_id }: Entry) => `${Number(id) - 1e9} ${state} ${resource_id ?? "-"}`)
    .join("; ");
}

/** All steps that were ever made have a number; what is the same as under an earlier name stands there alone. */
class Report {
  readonly #numbers = new Map<string, number>();
  readonly #met = new Map<string, string>();
  readonly #lines: string[] = [];

  /** The numbers of the steps, those that follow on each other as a span. */
  #wordsOf(steps: readonly string[]): string {
    const spans: [number, number][] = [];
    for (const made of steps) {
      // A key that is made for a replacement has a mark in its name.
      const step = made.replaceAll(/new-[0-9a-f]{12}/g, "new-<mark>");
      const number = this.#numbers.get(step) ?? this.#numbers.size + 1;
      this.#numbers.set(step, number);
      const last = spans.at(-1);
      if (last !== undefined && number === last[1] + 1) last[1] = number;
      else spans.push([number, number]);
    }
    return spans.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(" ");
  }

  async lived(world: AWorld, operation: Operation): Promise<string[]> {
    const end = await ask(world, operation);
    return [`    ${endOf(end)}: ${this.#wordsOf(world.steps)}`];
  }

  async recovered(world: AWorld): Promise<string[]> {
    const lines: string[] = [];
    for (const answer of ["no", "yes"]) {
      if (world.unsettled().length === 0) break;
      world.now += hour;
      const isYes = async (): Promise<boolean> => answer === "yes";
      const { value = [] } = await world.recover({ mayReplace: isYes, mayRevokeUnproven: isYes });
      const ends = value.map(({ failure }) => failure?.kind ?? "done").join(", ");
      lines.push(`    recovered, ${answer}, ${ends}: ${this.#wordsOf(world.steps)}`);
    }
    return [...lines, `    left: ${standing(world)}`];
  }

  add(name: string, lines: readonly string[]): void {
    const text = lines.join("\n");
    const before = this.#met.get(text);
    this.#lines.push(before === undefined ? `${name}\n${text}` : `${name}: as ${before}`);
    if (before === undefined) this.#met.set(text, name);
  }

  toString(): string {
    const steps = [...this.#numbers].map(([step, number]) => `${number} ${step}`);
    return `${steps.join("\n")}\n\n${this.#lines.join("\n")}\n`;
  }
}

/** Every call of an operation that nothing disturbs, by its name and how often it came before. */
async function callsOf(operation: Operation, setting: Setting): Promise<string[]> {
  const world = worldFor(operation, setting);
  await ask(world, operation);
  const counts = new Map<string, number>();
  return world.calls.map((name) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return `${name} ${count}`;
  });
}

const settings: readonly (readonly [string, Setting])[] = [
  ["to a file", {}],
  ["to several destinations", { destination: "three" }],
  ["to standard output", { destination: "stdout" }],
  ["to a profile", { destination: "profile" }],
  ["without a secret in the response", { fates: { create: ["silent"], rotate: ["silent"] } }],
  [
    "with a response that is lost",
    { fates: { create: ["lost after"], rotate: ["lost after"], revoke: ["lost after"] } },
  ],
];

async function failuresOf(report: Report, operation: Operation): Promise<void> {
  for (const [what, setting] of settings) {
    const world = worldFor(operation, structuredClone(setting));
    report.add(what, [...(await report.lived(world, operation)), ...(await report.recovered(world))]);
    for (const call of await callsOf(operation, structuredClone(setting))) {
      const failing = worldFor(operation, { ...structuredClone(setting), failing: [call] });
      report.add(`${what}, failing: ${call}`, [
        ...(await report.lived(failing, operation)),
        ...(await report.recovered(failing)),
      ]);
    }
  }
}

async function crashesOf(report: Report, operation: Operation): Promise<void> {
  for (const [what, setting] of settings.filter(([, { destination = "file" }]) => destination === "file"))
    for (let point = 1; ; point += 1) {
      const world = worldFor(operation, structuredClone(setting));
      world.crashAt = point;
      const end = await ask(world, operation);
      if (end.kind !== "crash") break;
      world.crashAt = Number.POSITIVE_INFINITY;
      report.add(`${what}, ended at ${point}`, await report.recovered(world));
    }
}

async function interruptionsOf(report: Report, { sends, ...operation }: Operation): Promise<void> {
  const waits: Fate[] = ["lost before", "lost after", "pending", { refused: 429, retryAfterSeconds: 30 }];
  for (const fate of waits)
    for (const wait of [1, 2, 3]) {
      const world = worldFor({ sends, ...operation }, { fates: { [sends]: [fate, "lost before", "lost before"] } });
      let waited = 0;
      world.onSleep = () => {
        waited += 1;
        if (waited === wait) world.interrupt();
      };
      const lines = await report.lived(world, { sends, ...operation });
      world.onSleep = () => {};
      const name = typeof fate === "string" ? fate : `refused with ${fate.refused}`;
      report.add(`${name}, interrupted in wait ${wait}`, [...lines, ...(await report.recovered(world))]);
    }
}

const parts = { failing: failuresOf, crashing: crashesOf, interrupted: interruptionsOf };
const cases = Object.entries(operations).flatMap(([name, operation]) =>
  Object.entries(parts).map(([part, fill]) => [name, part, fill, operation] as const),
);

it.each(cases)("the steps of %s, %s", async (name, part, fill, operation) => {
  const report = new Report();
  await fill(report, operation);
  const file = `${name.replace(/^a /, "").replace("'s", "")}, ${part}`.replaceAll(/\W+/g, "-");
  await expect(String(report)).toMatchFileSnapshot(join(import.meta.dirname, "steps", `${file}.txt`));
});
