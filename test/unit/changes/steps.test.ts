// What every operation does, call by call: as asked and typed again, with each of its calls failing, with a crash at each of its
// points, and with a person who interrupts it, then what `journal recover` does about that. One folder for each operation in
// steps/; `npm run docs` prints them again.
import { join } from "node:path";
import { expect, it } from "vitest";
import { everyOf } from "../../support/sample.ts";
import type { AWorld, Setting } from "./a-world.ts";
import type { Fate } from "./an-account.ts";
import { ask, type Operation, operations, worldFor } from "./every-operation.ts";
import { Report, standing } from "./step-report.ts";

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

const settings: Readonly<Record<string, Setting>> = {
  "to a file": {},
  "to several destinations": { destination: "three" },
  "to standard output": { destination: "stdout" },
  "to a profile": { destination: "profile" },
  "without a secret in the response": { fates: { create: ["silent"], rotate: ["silent"] } },
  "with a response that is lost": { fates: { create: ["lost after"], rotate: ["lost after"], revoke: ["lost after"] } },
};

interface Case {
  readonly operation: Operation;
  readonly setting: Setting;
}

const worldOf = ({ operation, setting }: Case, more: Setting = {}): AWorld =>
  worldFor(operation, { ...structuredClone(setting), ...more });

async function failures(report: Report, one: Case): Promise<void> {
  const world = worldOf(one);
  report.add("as asked", [...(await report.lived(world, one.operation)), ...(await report.recovered(world))]);
  for (const call of await callsOf(one.operation, structuredClone(one.setting))) {
    const failing = worldOf(one, { failing: [call] });
    const lines = await report.lived(failing, one.operation);
    report.add(`failing: ${call}`, [...lines, ...(await report.recovered(failing))]);
  }
}

async function crashes(report: Report, one: Case): Promise<void> {
  // After a call nothing outside the process is other than before the next one: one point for both.
  for (let point = 1; ; point += 2) {
    const world = worldOf(one);
    world.crashAt = point;
    const end = await ask(world, one.operation);
    if (end.kind !== "crash") break;
    world.crashAt = Number.POSITIVE_INFINITY;
    report.add(`ended at ${point}`, await report.recovered(world));
  }
}

/** At each call, or in a wait. */
async function interruptions(report: Report, one: Case): Promise<void> {
  const calls = await callsOf(one.operation, structuredClone(one.setting));
  for (const [at, call] of calls.entries()) {
    const world = worldOf(one);
    world.interruptAt = at + 1;
    const lines = await report.lived(world, one.operation);
    world.interruptAt = Number.POSITIVE_INFINITY;
    report.add(`interrupted at ${call}`, [...lines, ...(await report.recovered(world))]);
  }
  const { sends } = one.operation;
  const fates: Fate[] = ["lost before", "pending", { refused: 429, retryAfterSeconds: 30 }];
  for (const fate of fates)
    for (const wait of [1, 2, 3]) {
      const world = worldOf(one, { fates: { [sends]: [fate, "lost before", "lost before"] } });
      let waited = 0;
      world.onSleep = () => {
        waited += 1;
        if (waited === wait) world.interrupt();
      };
      const lines = await report.lived(world, one.operation);
      world.onSleep = () => {};
      const name = typeof fate === "string" ? fate : `refused with ${fate.refused}`;
      report.add(`${name}, interrupted in wait ${wait}`, [...lines, ...(await report.recovered(world))]);
    }
}

/** With a key given by hand and without, after each failing call. */
async function again(report: Report, one: Case): Promise<void> {
  for (const key of [undefined, "k1"])
    for (const call of ["nothing 1", ...(await callsOf(one.operation, structuredClone(one.setting)))]) {
      const world = worldOf(one, { failing: [call] });
      const asked = key === undefined ? {} : { key };
      const first = await ask(world, one.operation, asked);
      world.now += 60_000;
      const lines = await report.lived(world, one.operation, asked);
      const name = `failing: ${call}, ${first.kind}, typed again${key === undefined ? "" : " with its key"}`;
      report.add(name, [...lines, `    left: ${standing(world)}`]);
    }
}

const parts: Readonly<Record<string, (report: Report, one: Case) => Promise<void>>> = {
  failing: failures,
  crashing: crashes,
  interrupted: interruptions,
  again,
};

/** Where the secret goes makes a difference to few of these. */
const everywhere = new Set(["failing"]);

const cases = Object.entries(operations).flatMap(([name, operation]) =>
  Object.entries(settings).flatMap(([what, setting]) =>
    Object.keys(parts)
      .filter((part) => everywhere.has(part) || (setting.destination ?? "file") === "file")
      // A revocation has no destination, and with an overlap a rotation is another one where it ends.
      .filter(() => setting.destination === undefined || operation.sends !== "revoke")
      .filter(() => what === "to a file" || !name.endsWith("overlap"))
      .map((part) => [name, what, part, { operation, setting }] as const),
  ),
);

it.each(everyOf(cases, 7))("the steps of %s, %s, %s", async (name, what, part, one) => {
  const report = new Report();
  await parts[part]!(report, one);
  const words = (text: string): string => text.replace(/^a /, "").replace("'s", "").replaceAll(/\W+/g, "-");
  const file = join(import.meta.dirname, "steps", words(name), `${words(what)}-${part}.txt`);
  await expect(String(report)).toMatchFileSnapshot(file);
});
