// Recovery in another place, whole: every operation, ended at every one of its steps, is recovered in every dimension. What
// reaches the service and how it ends are those of a plain recovery, or the recovery refuses and says why.
// (What the command line makes of environment, flags, profiles and folders: test/e2e/recover-dimensions.test.ts.)
import { beforeAll, describe, expect, it } from "vitest";
import type { Recovered } from "../../../src/operations/recovery.ts";
import { type Account, madeAs, otherPlaces, type Workbench } from "../../../src/operations/workbench.ts";
import { mayBeMadeElsewhere, type Entry } from "../../../src/journal/entry.ts";
import type { AWorld } from "./a-world.ts";
import type { Fate } from "./an-account.ts";
import { ask, type Operation, operations, worldFor } from "./every-operation.ts";
import { recordFigure } from "../../support/figures.mjs";
import { isFull } from "../../support/sample.ts";

const day = 24 * 60 * 60_000;

interface Dimension {
  /** What is active when it is recovered. */
  readonly account?: Partial<Account> | ((world: AWorld) => Partial<Account>);
  /** What else is another by then. */
  readonly before?: (world: AWorld) => unknown;
  /** Operations in which a person agrees instead of a proof. */
  readonly unproven?: RegExp;
  /** Nothing is sent: why. */
  readonly refuses?: RegExp;
  /** It may end in doubt where a plain one ends. */
  readonly mayDoubt?: boolean;
}

const elsewhere = { token_endpoint: "https://other.example/token", client_auth: "client_secret_post" } as const;

const dimensions: Readonly<Record<string, Dimension>> = {
  "another service version": { account: { serviceVersion: "2020-01-01" } },
  "another region of the profile": { account: { region: "eu" } },
  "a renamed profile": { account: { profile: "renamed" } },
  "another token endpoint": {
    account: { proof: elsewhere },
    before: (world) => (world.proves.client = elsewhere.token_endpoint),
  },
  "no token endpoint": { account: { proof: null }, unproven: /client/ },
  "another exchange of keys": {
    account: { keyExchange: { kind: "endpoint", url: "https://other.example/exchange" } },
    before: (world) => (world.proves.key = "https://other.example/exchange"),
  },
  "no exchange of keys": { account: { keyExchange: null }, unproven: /key/ },
  "an own key that is another": { account: { keyId: "ak_somebody" }, mayDoubt: true },
  "an own key that is not known": { account: { keyId: undefined } },
  "an own key that is the newest": {
    account: (world) => ({ keyId: world.account.live("key").at(-1)?.id }),
    mayDoubt: true,
  },
  "another address": { account: { baseUrl: "https://other.example" }, refuses: /points at/ },
  "another organization": { account: { organizationId: "org_2" }, refuses: /another organization/ },
  "a profile added again": { account: { profileId: "p2" }, refuses: /another profile of the same name/ },
  "another clock, three days back": { before: (world) => setClock(world, -3 * day), mayDoubt: true },
  "another clock, three days ahead": { before: (world) => setClock(world, 3 * day), mayDoubt: true },
  "another host and state folder": {
    before: (world) => {
      world.place = "there:/state";
      world.kept.clear();
    },
    mayDoubt: true,
  },
};

/** This machine's clock is set to another time; the service's stays. */
function setClock(world: AWorld, ms: number): void {
  world.now += ms;
  world.account.aheadMs -= ms;
}

/** Where the first process ends: at a step of its own, or with an answer that it cannot use. */
type End = { readonly crashAt: number } | { readonly fate: Fate };

const answers: readonly Fate[] = ["lost before", "lost after", "broken after", "cut", "silent", { refused: 429 }];

interface Outcome {
  readonly sent: readonly string[];
  readonly states: readonly string[];
  readonly live: number;
  /** The same before it was recovered. */
  readonly liveBefore: number;
  /** Who every entry acts as, where, and under which version of the contract. */
  readonly madeAs: readonly string[];
  readonly broken: readonly string[];
  readonly failures: readonly string[];
}

/** Lives through one cell. @returns nothing if the first process came to its end without anything left to recover */
async function cell(operation: Operation, end: End, dimension: Dimension = {}): Promise<Outcome | undefined> {
  const fates = "fate" in end ? { [operation.sends]: [end.fate] } : {};
  const world = worldFor(operation, { retryForMs: 0, fates });
  world.crashAt = "crashAt" in end ? end.crashAt : Number.POSITIVE_INFINITY;
  const first = await ask(world, operation);
  if ("crashAt" in end && first.kind !== "crash") return undefined;
  world.crashAt = Number.POSITIVE_INFINITY;
  world.now += 3_600_000;
  dimension.before?.(world);
  const before = world.account.requests.length;
  const liveBefore = liveIn(world);
  const results = await recoverAs(world, dimension.account);
  return {
    sent: world.account.requests.slice(before),
    states: world.entries.map(({ state }) => state),
    live: liveIn(world),
    liveBefore,
    madeAs: world.entries.map((entry) => JSON.stringify(madeAs(entry))),
    broken: [...world.broken],
    failures: results.flatMap(({ failure }) => (failure ? [failure.message] : [])),
  };
}

function liveIn({ account }: AWorld): number {
  return account.live("client").length + account.live("key").length;
}

async function recoverAs(world: AWorld, as: Dimension["account"] = {}): Promise<readonly Recovered[]> {
  const account = typeof as === "function" ? as(world) : as;
  let bench: Workbench | undefined;
  const benchFor = async (): Promise<Workbench> => bench!;
  // As `--yes` agrees.
  const mayReplace = async (entry: Entry): Promise<boolean> =>
    !mayBeMadeElsewhere(entry) && otherPlaces(entry, world.place).length === 0;
  const { value } = await world.recover({ benchFor, mayReplace }, (given) => {
    bench = { ...given, account: { ...given.account, ...account } };
  });
  return value ?? [];
}

/** What is wrong with a cell, in words; nothing if it is as a plain one, or refused. */
function faultsOf(got: Outcome, plain: Outcome, { refuses, mayDoubt, unproven }: Dimension, name: string): string[] {
  const faults = [...got.broken];
  if (got.failures.some((why) => why.includes("existed before"))) faults.push("a new key is called an old one");
  if (refuses) {
    if (got.sent.length > 0) faults.push(`sent ${got.sent.join()}`);
    if (plain.states.length > 0 && plain.sent.length > 0 && !got.failures.some((why) => refuses.test(why)))
      faults.push(`not refused: ${got.failures.join()}`);
    return faults;
  }
  const isSame = JSON.stringify([got.states, got.live]) === JSON.stringify([plain.states, plain.live]);
  // While both are to work, a plain recovery has one more than there was.
  const isDoubt = mayDoubt === true && got.failures.length > 0 && got.live >= Math.min(plain.live, got.liveBefore);
  if (!isSame && !isDoubt)
    faults.push(`${got.states.join()} with ${got.live}, not ${plain.states.join()} with ${plain.live}`);
  const due = plain.sent.filter((what) => unproven?.test(name) !== true || what !== "exchange").join();
  if (isSame && !isDoubt && got.sent.join() !== due) faults.push(`sent ${got.sent.join()}, not ${due}`);
  // A step that recovery begins acts as the entry does, whatever is active.
  const others = got.madeAs.filter((as) => !plain.madeAs.includes(as));
  if (others.length > 0) faults.push(`an entry acts as ${others.join()}`);
  return faults;
}

let cells = 0;
let faulty = 0;

/** Every way in which an operation can end before recovery. */
async function endsOf(operation: Operation): Promise<End[]> {
  const ends: End[] = answers.map((fate) => ({ fate }));
  for (let crashAt = 1; await cell(operation, { crashAt }); crashAt++) ends.push({ crashAt });
  return ends;
}

describe.each(Object.entries(operations))("%s, ended at every step, recovered", (name, operation) => {
  // A crash at a step plays what came before it: each end, and what a plain recovery makes of it, once.
  const plain = new Map<End, Outcome>();

  beforeAll(async () => {
    for (const end of await endsOf(operation)) plain.set(end, (await cell(operation, end))!);
  });

  it("where nothing else changed", () => {
    for (const [end, { broken }] of plain) expect(broken, `${name} ${JSON.stringify(end)}`).toEqual([]);
  });

  it.each(Object.entries(dimensions))("with %s", async (what, dimension) => {
    const wrong: string[] = [];
    // A sample plays every fourth end, another fourth in the next dimension.
    const quarter = Object.keys(dimensions).indexOf(what) % 4;
    for (const [end, usual] of [...plain].filter((_cell, at) => isFull || at % 4 === quarter)) {
      cells += 1;
      const faults = faultsOf((await cell(operation, end, dimension))!, usual, dimension, name);
      if (faults.length > 0) wrong.push(`${name}, ended at ${JSON.stringify(end)}, ${what}: ${faults.join("; ")}`);
    }
    faulty += wrong.length;
    expect(wrong).toEqual([]);
  });
});

it("is all of it", () => {
  recordFigure("recovery table", { cells, wrong: faulty }, "in memory");
  expect(cells).toBeGreaterThan(isFull ? 3000 : 750);
});
