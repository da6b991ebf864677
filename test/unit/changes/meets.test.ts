// What recovery does call by call where an operation ended in one way and the next request meets another: one folder for each
// operation in meets/. A plain run looks at a sample; `npm run docs` prints them again.
import { join } from "node:path";
import { expect, it } from "vitest";
import { everyOf } from "../../support/sample.ts";
import type { AWorld, Setting } from "./a-world.ts";
import type { Fate, Request } from "./an-account.ts";
import { ask, type Operation, operations, worldFor } from "./every-operation.ts";
import { Report, standing } from "./step-report.ts";

/** How the first process ends. */
const firsts: Readonly<
  Record<string, (operation: Operation) => { setting: Setting; after?: (world: AWorld) => void }>
> = {
  "without a response": ({ sends }) => ({ setting: { fates: { [sends]: ["lost after"] }, retryForMs: 0 } }),
  "before the request arrived": ({ sends }) => ({ setting: { fates: { [sends]: ["lost before"] }, retryForMs: 0 } }),
  "with a cut response": ({ sends }) => ({ setting: { fates: { [sends]: ["cut"] }, retryForMs: 0 } }),
  "too early": ({ sends }) => ({
    setting: { fates: { [sends]: [{ refused: 429, retryAfterSeconds: 30 }] }, retryForMs: 0 },
  }),
  "with a pending client": () => ({ setting: { fates: { create: ["pending", "lost before"] }, retryForMs: 0 } }),
  "with a secret that is lost": () => ({ setting: { fates: { create: ["silent"], rotate: ["silent"] } } }),
  "with a secret that is kept": () => ({ setting: { failing: ["write"] } }),
  "with a secret that is kept, for several": () => ({ setting: { destination: "three", failing: ["write store"] } }),
  "with a secret that is kept elsewhere": () => ({
    setting: { failing: ["write"] },
    after: (world) => {
      world.kept.clear();
      world.place = "there:/state";
    },
  }),
  "with a secret that was delivered unseen": () => ({ setting: { failing: ["record 3", "record 4", "record 5"] } }),
};

const fates: readonly Fate[] = [
  "lost before",
  "lost after",
  "cut",
  "silent",
  "pending",
  "revoked",
  "disabled",
  "broken after",
  { refused: 403 },
  { refused: 404 },
  { refused: 409, code: "idempotency_key_reuse" },
  { refused: 429, retryAfterSeconds: 30 },
];
const wordOf = (fate: Fate): string => (typeof fate === "string" ? fate : `${fate.refused} ${fate.code ?? ""}`.trim());

/** What the next process meets: usual answers, or one other. */
const seconds: readonly (readonly [string, Partial<Record<Request, Fate[]>>])[] = [
  ["as usual", {}],
  ...(["create", "rotate", "revoke"] as const).flatMap((what) =>
    fates.map((fate) => [`${what}: ${wordOf(fate)}`, { [what]: [fate] }] as const),
  ),
  ...(["get", "list", "exchange"] as const).flatMap((what) =>
    (["lost before", { refused: 403 }, { refused: 404 }] as const).map(
      (fate) => [`${what}: ${wordOf(fate)}`, { [what]: [fate] }] as const,
    ),
  ),
];

const cases = Object.entries(operations)
  .filter(([name]) => !name.endsWith("overlap"))
  .flatMap(([name, operation]) =>
    Object.entries(firsts).flatMap(([first, made]) =>
      [true, false].map((isYes) => [name, first, isYes, operation, made] as const),
    ),
  )
  // A revocation has no secret.
  .filter(([, first, , { sends }]) => sends !== "revoke" || !/secret|client|cut/.test(first));

it.each(everyOf(cases, 19))(
  "how %s is recovered that ended %s, agreed to: %s",
  async (name, first, isYes, operation, made) => {
    const report = new Report();
    for (const [second, meets] of seconds) {
      const { setting, after } = made(operation);
      const world = worldFor(operation, structuredClone(setting));
      await ask(world, operation);
      after?.(world);
      world.now += 3_600_000;
      for (const what of Object.keys(world.account.fates)) delete world.account.fates[what as Request];
      Object.assign(world.account.fates, structuredClone(meets));
      const line = await report.once(world, isYes);
      expect(world.broken).toEqual([]);
      report.add(second, [line, `    left: ${standing(world)}`]);
    }
    const words = (text: string): string => text.replace(/^a /, "").replace("'s", "").replaceAll(/\W+/g, "-");
    const file = join(import.meta.dirname, "meets", words(name), `${words(first)}-${isYes ? "yes" : "no"}.txt`);
    await expect(String(report)).toMatchFileSnapshot(file);
  },
);
