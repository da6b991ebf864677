import { describe, expect, it } from "vitest";
import { rotateAccessKey } from "../../../src/operations/in-place.ts";
import { assertPrecedence } from "../../../src/operations/rotation.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import type { Failure } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry, EntryState } from "../../../src/journal/entry.ts";
import type { EntryLease, Journal } from "../../../src/journal/journal.ts";
import { type EntryFilter, fits } from "../../../src/journal/lookup.ts";
import { hasHolder, laterRotation, rotationsOf, activeEarlierRotation } from "../../../src/journal/rotations.ts";
import { intent } from "./intent.ts";
import { AWorld, type Ended, type Setting } from "../operations/a-world.ts";

type Mode = "in_place" | "replacement" | "client";

const details = {
  in_place: { mode: "in_place", key_id: "old" },
  replacement: { mode: "replacement", old_key: "old" },
  client: { old_client: "old" },
} as const;

const [below, own, above] = ["1000000001", "1000000002", "1000000003"] as const;

function rotation(mode: Mode, about: Partial<Entry> = {}): Entry {
  const operation = mode === "client" ? "oauth_client.rotate" : "access_key.rotate";
  const entry = newEntry(intent({ operation, detail: details[mode] } as never), { id: own, key: null, at: "" });
  return { ...entry, sequence: 1, ...about };
}

interface Other extends Partial<Entry> {
  readonly mode?: Mode;
  readonly isHeld?: boolean;
  /** The changes to the entry after this process has waited once; null if the entry no longer exists. */
  readonly next?: Partial<Entry> | null;
}

interface Meeting {
  readonly mode?: Mode;
  readonly other: Other;
  readonly isShared?: boolean;
  readonly fresh?: boolean;
  readonly wasActive?: boolean;
  readonly before?: boolean;
}

async function outcomeOf({ mode = "in_place", other, isShared = false, ...about }: Meeting) {
  const { mode: otherMode = mode, isHeld = false, next, ...changes } = other;
  const first = rotation(otherMode, { id: below, ...changes });
  const entries = [rotation(mode), first];
  let waited = 0;
  const bench = {
    journal: {
      isShared,
      select: async (filter: EntryFilter) => entries.filter((entry) => fits(entry, filter)),
      tryLease: async () => (isHeld ? null : { release: async () => {} }),
      holders: async () => new Map(isHeld ? [[first.id, {}]] : []),
    },
    clock: {
      elapsed: () => waited,
      sleep: async (ms: number) => {
        waited += ms;
        if (next === null) entries.splice(1);
        else if (next !== undefined) entries[1] = { ...first, ...next };
      },
    },
    secrets: { place: "here" },
  } as unknown as Workbench;
  const lease = {
    entry: entries[0]!,
    record: async (change: Partial<Entry>) => (entries[0] = { ...entries[0]!, ...change }),
  } as unknown as EntryLease;
  const settledBefore = new Set(about.before ? [first.id] : []);
  const { fresh, wasActive = false } = about;
  const ahead = assertPrecedence(bench, lease, { wasActive, settledBefore, fresh });
  const failure = (await ahead.catch((error: unknown) => error)) as Failure | undefined;
  expect(entries[0]!.state, "refused in the journal").toBe(failure === undefined ? "open" : "refused");
  if (failure !== undefined) expect(failure.kind).toBe("conflict");
  return { end: failure === undefined ? "continues" : failure.message, failure, waited };
}

const now = "Another process rotates the key old at this moment.";
const replaced = `The key old is being replaced: the rotation ${below} is unfinished.`;
const just = "Another process has just rotated the key old.";

describe("of two simultaneous rotations", () => {
  it.each<[string, Meeting, string]>([
    ["one in place stops if a replacement waits", { other: { mode: "replacement", state: "waiting" } }, replaced],
    ["one in place stops if another was admitted before", { other: { id: below } }, now],
    ["one in place continues if another was admitted after it", { other: { id: above } }, "continues"],
    ["one in place stops if a later one has started", { other: { id: above, sequence: 2 } }, now],
    ["one in place stops if another ended meanwhile", { other: { state: "done" } }, just],
    ["one in place stops if another ended with an odd receipt meanwhile", { other: { state: "unusable" } }, just],
    [
      "one by replacement ignores another that failed",
      { mode: "replacement", other: { state: "unusable" }, wasActive: true },
      "continues",
    ],
    ["one in place may follow a finished one", { other: { state: "done" }, before: true }, "continues"],
    ["a refused one is ignored", { other: { state: "refused" } }, "continues"],
    ["one by replacement stops", { mode: "replacement", other: { id: below } }, now],
    [
      "one by replacement stops if another revoked the old key after the look at it",
      { mode: "replacement", other: { state: "done" }, wasActive: true, before: true },
      just,
    ],
    [
      "one by replacement may follow a finished one in place",
      { mode: "replacement", other: { mode: "in_place", state: "done" }, wasActive: true, before: true },
      "continues",
    ],
    [
      "one by replacement stops if one in place ended in the meantime",
      { mode: "replacement", other: { mode: "in_place", state: "done" }, wasActive: true },
      just,
    ],
    [
      "one by replacement stops if one in place runs",
      { mode: "replacement", other: { mode: "in_place", isHeld: true } },
      now,
    ],
    [
      "one by replacement may follow an abandoned one in place",
      { mode: "replacement", other: { mode: "in_place", state: "unknown", sequence: 3 } },
      "continues",
    ],
    ["one in place stops for a replacement", { other: { mode: "replacement", isHeld: true, sequence: 4 } }, replaced],
    [
      "a new one in place stops if a replacement runs",
      { other: { mode: "replacement", isHeld: true, sequence: 4 }, fresh: true },
      now,
    ],
    [
      "a new one in place continues next to a waiting replacement",
      { other: { mode: "replacement", state: "waiting" }, fresh: true },
      "continues",
    ],
    ["a new one in place ignores abandoned ones", { other: { state: "unknown" }, fresh: true }, "continues"],
    ["a new one in place stops if another runs", { other: { isHeld: true }, fresh: true }, now],
    [
      "two new ones by replacement both continue",
      { mode: "replacement", other: { isHeld: true }, fresh: true },
      "continues",
    ],
    [
      "a new one by replacement stops if one in place runs",
      { mode: "replacement", other: { mode: "in_place", isHeld: true }, fresh: true },
      now,
    ],
    [
      "a client's stops",
      { mode: "client", other: { id: below } },
      "Another process rotates the client old at this moment.",
    ],
    [
      "a client that is kept may be rotated again",
      {
        mode: "client",
        other: { state: "done", detail: { old_client: "old", keep_old: true } },
        wasActive: true,
        before: true,
      },
      "continues",
    ],
    ["another account's is ignored", { other: { base_url: "https://us.example.com" } }, "continues"],
    ["another key's is ignored", { other: { detail: { mode: "in_place", key_id: "other" } } }, "continues"],
  ])("%s", async (_what, meeting, end) => {
    for (const isShared of [false, true]) {
      // In a team's journal, a rotation waits for a rotation that was admitted later: see below.
      if (isShared && meeting.other.id === above) continue;
      expect((await outcomeOf({ ...meeting, isShared })).end, isShared ? "team" : "file").toBe(end);
    }
  });

  it.each<[string, Other, string, number]>([
    ["refuses itself", { next: { state: "refused", sequence: 2 } }, "continues", 50],
    ["starts", { next: { sequence: 2 } }, now, 50],
    ["ends", { next: { state: "done", sequence: 4 } }, just, 50],
    ["is pruned", { next: null }, "continues", 50],
    ["records nothing", {}, now, 5000],
    ["had started", { sequence: 2 }, now, 0],
  ])("in a team's journal, one waits for a higher id until that %s", async (_what, other, end, waited) => {
    expect(await outcomeOf({ other: { id: above, ...other }, isShared: true })).toMatchObject({ end, waited });
  });

  it.each<[Mode, Mode, RegExp]>([
    ["in_place", "in_place", /^Nothing was sent: two rotations would make the secret of one of them useless\.$/],
    ["replacement", "in_place", /useless/],
    ["in_place", "replacement", /the replacement revokes this key at its end\. --new rotates it anyway\.$/],
    ["replacement", "replacement", /^Nothing was sent: one rotation creates one new key, and the other process/],
    ["client", "client", /^Nothing was sent: one rotation creates one new client/],
  ])("%s next to %s explains why, and what to check", async (mode, other, meaning) => {
    const { failure } = await outcomeOf({ mode, other: { mode: other, isHeld: true } });
    expect(failure!.details).toMatchObject({
      meaning: expect.stringMatching(meaning),
      nextCommand: `integ journal show ${below}`,
    });
  });
});

it.each([
  ["a file journal that a running process holds is worked on", false, "held", true],
  ["a file journal that no process holds is free", false, "free", false],
  ["a team's journal that a process holds is worked on", true, "held", true],
  ["a team's journal that no process holds is free", true, "free", false],
])("an entry in %s", async (_what, isShared, id, expected) => {
  let released = 0;
  const journal = {
    isShared,
    holders: async () => new Map([["held", {}]]),
    tryLease: async (wanted: string) => (wanted === "held" ? null : { release: async () => void (released += 1) }),
  };
  expect(await hasHolder(journal as unknown as Journal, id)).toBe(expected);
  expect(released).toBe(!isShared && id === "free" ? 1 : 0);
});

it.each<[string, Partial<Entry>, boolean]>([
  ["an earlier one that a process works on", { id: below, state: "unknown" }, true],
  ["a later one", { id: above, state: "unknown" }, false],
  ["an earlier finished one", { id: below, state: "done" }, false],
  ["one that no process works on", { id: "0000000001", state: "unknown" }, false],
  ["another key's", { id: below, detail: { mode: "in_place", key_id: "other" } }, false],
])("in progress next to a rotation: %s", async (_what, about, expected) => {
  const journal = {
    isShared: true,
    select: async () => [rotation("in_place"), rotation("replacement", about)],
    holders: async () => new Map([below, own, above].map((id) => [id, {}])),
  } as unknown as Journal;
  expect((await activeEarlierRotation(journal, rotation("in_place")))?.id).toBe(expected ? below : undefined);
});

describe("the later rotation of a key", () => {
  const states: EntryState[] = [
    ...(["open", "unknown", "pending", "waiting", "secret_lost", "undelivered"] as const),
    ...(["done", "refused", "unusable", "replaced", "abandoned"] as const),
  ];
  const later = async (mode: Mode, state: EntryState, how: { kept: boolean; first?: EntryState; id?: string }) => {
    const entries = [rotation(mode, { id: how.id ?? above, state })];
    const journal = { select: async () => entries } as unknown as Journal;
    const found = await laterRotation(journal, rotation("in_place", { state: how.first ?? "unknown" }), {
      isKept: () => how.kept,
    });
    return found !== undefined;
  };

  it.each<[Mode, boolean, readonly EntryState[]]>([
    ["in_place", false, ["open", "unknown", "pending", "waiting", "secret_lost", "undelivered", "done", "unusable"]],
    ["replacement", false, ["open", "unknown", "pending", "waiting", "secret_lost", "undelivered", "done"]],
    ["in_place", true, ["secret_lost", "undelivered", "done"]],
    ["replacement", true, ["done"]],
  ])("(%s) counts, if the earlier one's secret is kept (%s), in the states %s", async (mode, kept, counting) => {
    for (const state of states) {
      expect(await later(mode, state, { kept }), state).toBe(counting.includes(state));
      expect(await later(mode, state, { kept: false, first: kept ? "undelivered" : "open" }), state).toBe(
        counting.includes(state),
      );
      expect(await later(mode, state, { kept, id: below }), "an earlier one").toBe(false);
    }
  });
});

it("the rotations of a key are those of both kinds at the key's API address", async () => {
  const all = [rotation("in_place"), rotation("replacement"), rotation("in_place", { base_url: "https://other" })];
  const journal = { select: async () => all } as unknown as Journal;
  expect(await rotationsOf(journal, rotation("replacement"))).toEqual(all.slice(0, 2));
});

it.each<[string, Setting]>([
  ["whose response was lost", { fates: { rotate: ["lost after"] } }],
  ["whose secret is kept", { failing: ["deliver"] }],
])("a later rotation makes recovery end a rotation in place %s", async (_name, setting) => {
  const world = new AWorld(setting);
  for (const id of ["ak_own", "ak_old"]) world.account.addExisting("key", id);
  const rotated = (fresh: boolean): Promise<Ended<unknown>> =>
    world.run((bench) =>
      rotateAccessKey(bench, { id: "ak_old", updateProfile: false }, { destination: world.destination(), fresh }),
    );
  expect((await rotated(false)).kind).not.toBe("done");
  expect((await rotated(true)).kind).toBe("done");
  const { secret } = world.account.keys[1]!;
  expect((await world.recover()).kind).toBe("done");
  expect(world.account.keys[1]!.secret, "nothing was sent").toBe(secret);
  expect(world.isSafe(secret)).toBe(true);
  const [first, second] = world.entries;
  expect([first!.state, first!.replaced_by, second!.state]).toEqual(["replaced", second!.id, "done"]);
});
