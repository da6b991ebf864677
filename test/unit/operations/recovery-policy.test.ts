// What recovery decides by itself: where the work on an entry begins, what its failure is called, which steps it tells of, and
// where a secret of a rotation goes.
import { describe, expect, it } from "vitest";
import {
  asEntryStands,
  recover,
  type Recovered,
  resumeWork,
  rootOf,
  worstOf,
} from "../../../src/operations/recovery.ts";
import { Failure, type FailureKind } from "../../../src/errors.ts";
import type { Entry, EntryProgress } from "../../../src/journal/entry.ts";
import type { Journal } from "../../../src/journal/journal.ts";
import { AWorld } from "./a-world.ts";
import { intent } from "../journal/intent.ts";

const states = ["open", "unknown", "pending", "secret_lost", "undelivered", "done", "waiting"] as const;
const kinds: readonly FailureKind[] = [
  "usage",
  "failed",
  "unreachable",
  "auth",
  "rate_limited",
  "interrupted",
  "terminated",
  "secret_lost",
  "conflict",
];

const entryOf = (changes: Partial<Entry>): Entry =>
  ({
    id: "e1",
    profile: "p",
    region: "us",
    method: "POST",
    path: "/v1/x",
    attempts: 0,
    detail: {},
    parent: null,
    replaces: null,
    state: "open",
    ...changes,
  }) as Entry;

/** As the design has it: the state decides, unless nothing was sent because it was too early, or a person ended it. */
function kindFor({ state, attempts, detail }: Entry, kind: FailureKind): FailureKind {
  const isEarly = state === "open" && (kind === "rate_limited" || (attempts > 0 && detail.in_flight !== true));
  const isPerson = kind === "interrupted" || kind === "terminated";
  if (state === "unknown") return "outcome_unknown";
  if (state === "open") {
    if (isEarly) return kind;
    return detail.in_flight === true || !isPerson ? "outcome_unknown" : kind;
  }
  const saysNothing = kind === "usage" || kind === "failed" || kind === "unreachable";
  return state === "secret_lost" && saysNothing ? "secret_lost" : kind;
}

describe("the failure of an entry", () => {
  const rows = states.flatMap((state) =>
    [0, 1, 2].flatMap((attempts) => [false, true].map((inFlight) => ({ state, attempts, inFlight }))),
  );
  it.each(rows)("$state after $attempts attempts, in flight: $inFlight", ({ state, attempts, inFlight }) => {
    const entry = entryOf({ state, attempts, detail: { in_flight: inFlight } });
    for (const kind of kinds) {
      const said = asEntryStands(entry, new Failure(kind, "It did not work.", { meaning: "m" }));
      expect([kind, said.kind]).toEqual([kind, kindFor(entry, kind)]);
      expect([said.message, said.details]).toEqual([
        "It did not work.",
        {
          meaning: "m",
          where: "profile p (us)",
          request: attempts === 0 ? undefined : "POST /v1/x",
          entry: "e1",
        },
      ]);
    }
  });

  it("is a common one where its kind has no exit code", () => {
    const said = asEntryStands(entryOf({ state: "done" }), new Failure("from elsewhere" as FailureKind, "x"));
    expect(said.kind).toBe("failed");
  });
});

describe("the worst of several", () => {
  const order: readonly FailureKind[] = [
    "outcome_unknown",
    "undelivered",
    "secret_lost",
    "pending",
    "unusable",
    "auth",
    "rate_limited",
    "unreachable",
    "conflict",
    "not_found",
    "failed",
    "usage",
  ];
  const of = (kind?: FailureKind, isSkipped = false): Recovered => ({
    entry: entryOf({}),
    ...(kind === undefined ? {} : { failure: new Failure(kind, kind) }),
    isSkipped,
  });
  it("is the first of them in their order, whatever comes first", () => {
    for (const [at, one] of order.entries())
      for (const other of order.slice(at + 1))
        for (const both of [
          [of(one), of(other)],
          [of(other), of(), of(one)],
        ])
          expect([one, other, worstOf(both)?.kind]).toEqual([one, other, one]);
  });
  it("is none of those that were skipped, unless all were", () => {
    expect(worstOf([of("outcome_unknown", true), of("usage")])?.kind).toBe("usage");
    expect(worstOf([of("outcome_unknown", true), of()])).toBeUndefined();
    expect(worstOf([of("auth", true), of("pending", true)])?.kind).toBe("pending");
    expect(worstOf([])).toBeUndefined();
  });
});

describe("the work on an entry begins", () => {
  const journalOf = (entries: readonly Entry[]): Journal & { asked: string[] } => {
    const asked: string[] = [];
    const found = (id: string): Entry => entries.find((one) => one.id === id)!;
    return {
      asked,
      find: async (id: string) => found(id),
      select: async ({ ids, all }: { ids: string[]; all?: boolean }) => {
        asked.push(ids.join(" "));
        return ids.map(found).filter(({ state }) => all === true || state !== "done");
      },
    } as never;
  };
  const one = (id: string, changes: Partial<Entry> = {}): Entry => entryOf({ id, state: "unknown", ...changes });
  it.each<[string, readonly Entry[], string, readonly string[]]>([
    ["with itself", [one("a")], "a", []],
    ["with itself, if it is settled", [one("a", { state: "done", parent: "p" }), one("p")], "a", []],
    ["with its rotation", [one("a", { parent: "p" }), one("p")], "p", ["p"]],
    ["with what it replaces", [one("a", { replaces: "l" }), one("l")], "l", ["l"]],
    [
      "with its rotation before what it replaces",
      [one("a", { parent: "p", replaces: "l" }), one("l"), one("p")],
      "p",
      ["p l"],
    ],
    [
      "with what it replaces, if its rotation is settled",
      [one("a", { parent: "p", replaces: "l" }), one("l"), one("p", { state: "done" })],
      "l",
      ["p l"],
    ],
    ["with itself, if all above is settled", [one("a", { parent: "p" }), one("p", { state: "done" })], "a", ["p"]],
    ["at the top", [one("a", { replaces: "l" }), one("l", { parent: "p" }), one("p")], "p", ["l", "p"]],
  ])("%s", async (_what, entries, root, asked) => {
    const journal = journalOf(entries);
    expect((await rootOf(journal, "a")).id).toBe(root);
    expect(journal.asked).toEqual(asked);
  });
});

describe("recovery", () => {
  interface Begun {
    readonly operation?: Entry["operation"];
    readonly parent?: string;
    readonly replaces?: string;
    readonly progress?: Partial<EntryProgress>;
    readonly at?: string;
  }
  async function worldWith(...begun: readonly Begun[]): Promise<AWorld> {
    const world = new AWorld();
    await world.run(async ({ journal, account }) => {
      for (const [number, { operation = "oauth_client.create", parent, replaces, progress = {} }] of begun.entries()) {
        const made = {
          profile: account.profile,
          profile_id: account.profileId,
          organization_id: null,
          region: account.region,
          base_url: account.baseUrl,
        };
        const { lease } = await journal.admit(
          intent({ ...made, operation, parent: parent ?? null, replaces: replaces ?? null, fingerprint: `n${number}` }),
          { fresh: true },
        );
        await lease.record({ state: "unknown", attempts: 1, ...progress });
        await lease.release();
      }
    });
    for (const [number, { at }] of begun.entries())
      if (at !== undefined) Object.assign(world.entries[number]!, { created_at: at });
    return world;
  }
  const idOf = (number: number): string => `1${String(number).padStart(9, "0")}`;

  it("tells when the work on each entry begins and how it ended, the oldest first", async () => {
    const world = await worldWith(
      { at: "2026-01-02" },
      { at: "2026-01-01" },
      { at: "2026-01-03", progress: { state: "done" } },
    );
    const events: unknown[] = [];
    const refused = new Failure("auth", "no profile");
    const { value } = await world.run((bench) =>
      recover(bench.journal, world.entries, {
        ...nothing,
        benchFor: async () => {
          throw refused;
        },
        watch: (id, event) => void events.push([id, event === "begin" ? event : (event.failure?.kind ?? "done")]),
      }),
    );
    expect(events).toEqual([
      [idOf(2), "begin"],
      [idOf(2), "outcome_unknown"],
      [idOf(1), "begin"],
      [idOf(1), "outcome_unknown"],
      [idOf(3), "begin"],
      [idOf(3), "done"],
    ]);
    expect(value!.map(({ entry, isSkipped }) => [entry.id, isSkipped])).toEqual([
      [idOf(2), false],
      [idOf(1), false],
      [idOf(3), undefined],
    ]);
  });

  const nothing = {
    destinationOf: async () => {
      throw new Failure("usage", "no destination");
    },
    mayReplace: async () => false,
    mayRevokeUnproven: async () => false,
    waitMs: 0,
    overlap: "leave",
  } as const;

  it.each([
    ["its account", true, true],
    ["its account", false, false],
    ["its destination", true, false],
  ] as const)(
    "of an entry where %s is not there (optional: %s) says that it was skipped: %s",
    async (what, optional, skipped) => {
      const world = await worldWith({});
      const { value } = await world.run((bench) =>
        recover(bench.journal, world.entries, {
          ...nothing,
          isOptional: () => optional,
          benchFor: async () => {
            if (what === "its account") throw new Failure("auth", "no profile");
            return bench;
          },
        }),
      );
      expect(value!.map(({ isSkipped, failure }) => [isSkipped, failure?.kind])).toEqual([
        [skipped, "outcome_unknown"],
      ]);
      // Nothing is held afterwards.
      expect((await world.run(({ journal }) => journal.lease(idOf(1)))).kind).toBe("done");
    },
  );

  it("hides no defect, and holds nothing after one", async () => {
    const world = await worldWith({});
    const broken = new TypeError("a defect");
    await world.run(async (bench) => {
      const options = {
        ...nothing,
        benchFor: async () => {
          throw broken;
        },
      };
      await expect(recover(bench.journal, world.entries, options)).rejects.toBe(broken);
      const lease = await bench.journal.lease(idOf(1));
      await lease.release();
    });
  });

  it("says of an entry that cannot be read any more what it was", async () => {
    const world = await worldWith({});
    const { value } = await world.run((bench) => {
      const [given] = world.entries;
      return recover(bench.journal, [given!], {
        ...nothing,
        benchFor: async () => {
          world.journalIsGone = true;
          throw new Failure("auth", "no profile");
        },
      });
    });
    expect(value!.map(({ entry, failure }) => [entry.id, failure?.kind, failure?.message])).toEqual([
      [idOf(1), "auth", "no profile"],
    ]);
    world.journalIsGone = false;
    const find: Journal["find"] = async () => {
      throw new TypeError("a defect");
    };
    await world.run(async (bench) => {
      let looks = 0;
      const journal = { ...bench.journal, find: (id: string) => (looks++ === 0 ? bench.journal.find(id) : find(id)) };
      const options = { ...nothing, benchFor: async () => bench };
      await expect(recover(journal, world.entries, options)).rejects.toThrow("a defect");
    });
  });

  it("sends nothing for a replacement where another one counts", async () => {
    const world = await worldWith(
      { progress: { state: "replaced", replaced_by: idOf(9), attempts: 1 } },
      { replaces: idOf(1), progress: { state: "open", attempts: 0 } },
    );
    const { value } = await world.recover();
    expect(value!.map(({ entry, failure }) => [entry.id, entry.state, failure])).toEqual([
      [idOf(2), "refused", undefined],
    ]);
    expect(world.told).toEqual([`Nothing was sent for ${idOf(2)}: ${idOf(9)} already replaces ${idOf(1)}.`]);
    expect(world.calls.slice(0, 2)).toEqual(["record", "release kept"]);
    expect(world.account.requests).toEqual([]);
  });

  it.each([
    ["is this one", { state: "replaced", replaced_by: idOf(2) }, 0],
    ["was sent already", { state: "replaced", replaced_by: idOf(9) }, 1],
    ["is none yet", { state: "secret_lost" }, 0],
  ] as const)("sends a replacement where the one that counts %s", async (_what, lost, attempts) => {
    const world = await worldWith(
      { progress: { attempts: 1, resource_id: "oc_0", ...lost } },
      { replaces: idOf(1), progress: { state: attempts > 0 ? "unknown" : "open", attempts } },
    );
    await world.run(async (bench) => {
      const lease = await bench.journal.lease(idOf(2));
      await resumeWork(bench, lease, { ...nothing, destinationOf: async () => world.destination("stdout") });
    });
    expect(world.account.requests).toEqual(["create"]);
  });

  it.each<[string, readonly Partial<EntryProgress>[], number]>([
    ["of its creation", [{ state: "unknown", destination: { kind: "stdout" } }], 2],
    [
      "of the newest that was not refused",
      [
        { state: "unknown", destination: { kind: "stdout" } },
        { state: "refused", destination: { kind: "stdout" } },
      ],
      2,
    ],
    [
      "of a refused one, if there is no other",
      [{ state: "refused", destination: { kind: "stdout" } }, { state: "unknown" }],
      2,
    ],
    ["of no step, if none has any", [{ state: "unknown" }], 1],
  ])("of a rotation asks for the destination %s", async (_what, steps, asked) => {
    const world = await worldWith(
      { operation: "oauth_client.rotate", progress: { detail: { old_client: "old" } } },
      ...steps.map((progress) => ({ parent: idOf(1), progress })),
    );
    const ids: string[] = [];
    await world.run(async (bench) => {
      const lease = await bench.journal.lease(idOf(1));
      const destinationOf = async ({ id }: Entry): Promise<never> => {
        ids.push(id);
        throw new Failure("usage", "no destination");
      };
      await resumeWork(bench, lease, { ...nothing, destinationOf });
    });
    expect(ids).toEqual([idOf(asked)]);
  });

  it("leaves an operation that it does not know", async () => {
    const world = await worldWith({});
    Object.assign(world.entries[0]!, { operation: "oauth_client.paint" });
    const { value } = await world.recover();
    expect(value!.map(({ failure }) => failure?.message)).toEqual(['This version cannot finish "oauth_client.paint".']);
    const { kind } = await world.run(async (bench) => resumeWork(bench, await bench.journal.lease(idOf(1)), nothing));
    expect(kind).toBe("failed");
  });
});
