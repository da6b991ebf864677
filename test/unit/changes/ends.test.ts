// How every operation ends, whatever becomes of its requests, its destination and its journal: what a person reads, what the
// journal says, what the account has, then the same after `journal recover` without and with a yes, or of the command typed
// again. One file for each operation in ends/; `npm run docs` prints them again.
import { join } from "node:path";
import { expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { AWorld, DestinationKind, Setting } from "./a-world.ts";
import type { Fate, Request } from "./an-account.ts";
import { ask, type Operation, operations, worldFor } from "./every-operation.ts";

const fatesOf: Readonly<Record<Request, readonly Fate[]>> = {
  create: making(["cut", "silent", "pending", "revoked", "disabled"]),
  rotate: making(["cut", "silent"]),
  revoke: making([]),
  get: ["lost before", { refused: 404 }],
  list: ["lost before", { refused: 403 }],
  exchange: ["lost before", { refused: 401 }, { refused: 429, retryAfterSeconds: 90 }],
};

function making(more: readonly Fate[]): readonly Fate[] {
  const statuses = [400, 401, 403, 404, 409, 422, 500].map((refused) => ({ refused }));
  return [
    ...["lost before", "lost after", "broken after", "not sent"].map((fate) => fate as Fate),
    ...more,
    ...statuses,
    { refused: 409, code: "idempotency_key_reuse" },
    { refused: 429, retryAfterSeconds: 30 },
    { refused: 429, retryAfterSeconds: 90_000 },
  ];
}

const failures: readonly (readonly [DestinationKind, readonly string[]])[] = [
  ["file", ["check"]],
  ["file", ["prepare"]],
  ["file", ["reserve"]],
  ["file", ["write"]],
  ["file", ["deliver"]],
  ["file", ["deliver", "keep"]],
  ["file", ["admit"]],
  ["file", ["record 1"]],
  ["file", ["record 2"]],
  ["file", ["record 3"]],
  ["file", ["release"]],
  ["stdout", []],
  ["stdout", ["deliver"]],
  ["profile", ["deliver"]],
  ["command", ["deliver"]],
  ["store", ["prepare store"]],
  ["store", ["write store"]],
  ["store", ["read store"]],
  ["three", []],
  ["three", ["deliver"]],
  ["three", ["write store"]],
];

interface Cell {
  readonly name: string;
  readonly setting: Setting;
}

function cellsOf({ before, sends }: Operation): Cell[] {
  const first: Cell = { name: "as asked", setting: {} };
  const fates = (["create", "rotate", "revoke", "get", "list", "exchange"] as const).flatMap((what) =>
    fatesOf[what].map((fate) => ({ name: `${what}: ${wordsOf(fate)}`, setting: { fates: { [what]: [fate] } } })),
  );
  const again = (["create", "rotate", "revoke"] as const).map((what) => {
    const fate: Fate[] = ["lost after", { refused: 409 }, { refused: 403 }];
    return { name: `${what}: lost after, then refused`, setting: { fates: { [what]: fate } } };
  });
  const places = failures.map(([destination, failing]) => ({
    name: `to ${destination}, failing: ${failing.join(", ") || "nothing"}`,
    setting: { destination, failing },
  }));
  const unproven = { name: "without a token endpoint", setting: { proves: false } };
  const hasty = (["lost before", { refused: 429, retryAfterSeconds: 30 }] as const).map((fate) => ({
    name: `${sends}: ${wordsOf(fate)}, without --retry-for`,
    setting: { fates: { [sends]: [fate] }, retryForMs: 0 },
  }));
  return sends === "revoke" && before
    ? [first, ...hasty, ...fates, ...again]
    : [first, unproven, ...hasty, ...fates, ...again, ...places];
}

function wordsOf(fate: Fate): string {
  if (typeof fate === "string") return fate;
  const { refused, code, retryAfterSeconds: after } = fate;
  return [`refused with ${refused}`, code, after && `after ${after} s`].filter(Boolean).join(", ");
}

/** The world's clock starts anew for each cell: a moment is how long after that it is. */
function withoutTimes(text: string): string {
  const start = Date.parse("2026-11-21T02:00:00.000Z");
  return text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => `<${Math.round((Date.parse(time) - start) / 1000)} s>`);
}

/** The details of a failure stand where it is first met. */
class Sayings {
  readonly #met = new Set<string>();

  of(failure: Failure | undefined): string[] {
    if (failure === undefined) return [];
    const { cause: _, ...details } = failure.details;
    const words = `    ${failure.kind}: ${failure.message}`;
    const whole = `${words} ${JSON.stringify(details)}`;
    if (this.#met.has(whole)) return [`${words} …`];
    this.#met.add(whole);
    return [whole];
  }
}

type Shown = Readonly<Record<string, unknown>>;

function shownOf({ id, operation, state, attempts, resource_id, last_error, detail, destination }: Entry): Shown {
  return {
    name: `${id} ${operation}`,
    state,
    attempts,
    resource_id,
    error: last_error?.kind,
    ...detail,
    sent_as: undefined,
    destination,
  };
}

function changesOf(entry: Shown, before: Shown = {}): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(entry)])].filter((name) => name !== "name");
  const changed = names.filter((name) => JSON.stringify(entry[name]) !== JSON.stringify(before[name]));
  const words = changed.map((name) => `${name} ${JSON.stringify(entry[name])}`);
  return words.length === 0 ? [] : [`    ${String(entry.name)}: ${words.join(", ")}`];
}

/** What has changed in the world since it was looked at before. */
class Look {
  readonly #world: AWorld;
  #entries: readonly Shown[] = [];
  #account = "";
  #told = 0;

  /** @param usual the entries of an operation that nothing disturbed: only what differs is shown */
  constructor(world: AWorld, usual: readonly Shown[] = []) {
    this.#world = world;
    this.#entries = usual;
    this.#account = this.#made();
  }

  get entries(): readonly Shown[] {
    return this.#entries;
  }

  #made(): string {
    const { clients, keys } = this.#world.account;
    return [...clients, ...keys]
      .filter(({ id }) => id !== "ak_own")
      .map(({ id, status, secret }) => `${id} ${status}${this.#world.isSafe(secret) ? ", secret safe" : ""}`)
      .join("; ");
  }

  lines(): string[] {
    const entries = this.#world.entries.map(shownOf);
    const account = this.#made();
    const lines = [
      ...this.#world.told.slice(this.#told).map((text) => `    told: ${text}`),
      ...entries.flatMap((entry, at) => changesOf(entry, this.#entries[at])),
      ...(account === this.#account ? [] : [`    account: ${account}`]),
      ...this.#world.broken.map((what) => `    BROKEN: ${what}`),
    ];
    this.#entries = entries;
    this.#account = account;
    this.#told = this.#world.told.length;
    return lines;
  }
}

class Ends {
  readonly #operation: Operation;
  readonly #then: "recovered" | "typed again";
  readonly #sayings = new Sayings();
  #usual: readonly Shown[] | undefined;

  constructor(operation: Operation, then: "recovered" | "typed again") {
    this.#operation = operation;
    this.#then = then;
  }

  async of({ name, setting }: Cell): Promise<string> {
    const world = worldFor(this.#operation, setting);
    const look = new Look(world, this.#usual);
    const first = await ask(world, this.#operation);
    const lines = [`${name}: ${first.kind}`, ...this.#sayings.of(first.failure), ...look.lines()];
    this.#usual ??= look.entries;
    if (this.#then === "recovered") return [...lines, ...(await this.#recovered(world, look))].join("\n");
    world.now += 60_000;
    const { kind, failure } = await ask(world, this.#operation);
    return [`${name}: ${first.kind}, then ${kind}`, ...this.#sayings.of(failure), ...look.lines()].join("\n");
  }

  async #recovered(world: AWorld, look: Look): Promise<string[]> {
    const all: string[] = [];
    for (const answer of ["no", "yes", "yes"]) {
      if (world.unsettled().length === 0) break;
      world.now += 3_600_000;
      const isYes = async (): Promise<boolean> => answer === "yes";
      const { value = [] } = await world.recover({ mayReplace: isYes, mayRevokeUnproven: isYes });
      const lines = [...value.flatMap(({ failure }) => this.#sayings.of(failure)), ...look.lines()];
      all.push(`  recovered, ${answer}:`, ...lines);
    }
    return all;
  }
}

/** A fate of a request that the operation does not send is as if there were none. */
function different(ends: readonly string[]): string[] {
  const bodyOf = (end: string): string => end.slice(end.indexOf(": ", end.indexOf(": ") + 1));
  const [plain = ""] = ends;
  return ends.filter((end, at) => at === 0 || bodyOf(end) !== bodyOf(plain));
}

const cases = Object.entries(operations).flatMap(([name, operation]) =>
  (["recovered", "typed again"] as const).map((then) => [name, then, operation] as const),
);

it.each(cases)("how %s ends, then %s", async (name, then, operation) => {
  const all = new Ends(operation, then);
  const ends: string[] = [];
  for (const one of cellsOf(operation)) ends.push(await all.of(one));
  const text = withoutTimes(different(ends).join("\n\n"));
  expect(text).not.toContain("BROKEN");
  const file = `${name.replace(/^a /, "").replace("'s", "")}, ${then}`.replaceAll(/\W+/g, "-");
  await expect(`${text}\n`).toMatchFileSnapshot(join(import.meta.dirname, "ends", `${file}.txt`));
});
