// A lease of a team's journal, and what is said when another process has it.
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../../src/errors.ts";
import { describeHolder, holderIn, isHolderGone } from "../../../../src/journal/postgres/holder.ts";
import { entryColumns, plain } from "../../../../src/journal/postgres/columns.ts";
import { Busy, takeAway, takeLease, waitForHolder } from "../../../../src/journal/postgres/taking.ts";
import { recordContent, recordHash } from "../../../../src/journal/record.ts";
import { ada } from "../intent.ts";
import { aLease, anEntry, ASession, heldRow, partsOf, type Responses } from "./a-session.ts";

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${String(error)}`);
}

/** A step that was recorded. */
const recorded = [{ position: 4 }];

describe("a step", () => {
  it("follows the one before it, of its own epoch alone", async () => {
    const server = new ASession([recorded, recorded]);
    const lease = aLease(partsOf(server));
    const before = lease.entry;
    const next = await lease.record({ state: "unknown" });
    expect([next.state, next.sequence, next.updated_at]).toEqual([
      "unknown",
      before.sequence + 1,
      "2026-11-21T02:00:00.000Z",
    ]);
    expect(lease.entry).toEqual(next);
    const content = recordContent(next, { by: ada, prev: "h3" });
    const [id, epoch, position, state, isSettled, , , written, hash, to, leaseMs, ...by] = server.asked[0]!.values;
    expect([id, epoch, position, to, state, isSettled]).toEqual([before.id, "7", 3, 4, "unknown", false]);
    expect([written, hash, leaseMs]).toEqual([content, recordHash(content), 45_000]);
    expect(by).toEqual(["ada", "desk", null]);
    const last = await lease.record({ state: "done" });
    const [, , from, , isDone, , , then, , after] = server.asked[1]!.values;
    expect([from, after, isDone]).toEqual([4, 5, true]);
    expect(then).toBe(recordContent(last, { by: ada, prev: recordHash(content) }));
  });

  it("is never before the one before it, whatever this machine's clock says", async () => {
    const lease = aLease(partsOf(new ASession([recorded])), {
      entry: anEntry({ updated_at: "2026-11-21T05:00:00.000Z" }),
    });
    expect((await lease.record({})).updated_at).toBe("2026-11-21T05:00:00.001Z");
  });

  it.each([
    ["its own record", (hash: unknown) => [{ hash }], true],
    ["another's record", () => [{ hash: "x" }], false],
    ["no record", () => [], false],
  ])("whose answer was lost has taken effect if %s is there", async (_what, there, isThere) => {
    const server = new ASession([recorded]);
    await aLease(partsOf(server)).record({});
    const found = await server.settled[0]!(async () => there(server.asked[0]!.values[8]));
    expect(found !== undefined).toBe(isThere);
  });

  it.each([
    [0, "unreachable"],
    [1, "outcome_unknown"],
  ] as const)("of a lease that another took is refused; after %i requests: %s", async (attempts, kind) => {
    const server = new ASession([[], [heldRow()]]);
    const lease = aLease(partsOf(server), { entry: anEntry({ attempts }) });
    const failure = await failureOf(lease.record({ state: "done" }));
    expect([failure.kind, failure.details.entry, failure.details.nextCommand]).toEqual([
      kind,
      "1rs6y1ys1e",
      "integ journal show 1rs6y1ys1e",
    ]);
    expect(failure.message).toContain("was taken over by process 4711 (bob on farm)");
    expect(failure.details.meaning).toBe("Nothing more is sent or recorded for it here.");
    expect(lease.entry.state).toBe("open");
  });

  it.each<[string, Responses, string]>([
    ["that no one has now", [[], [heldRow({ is_held: false })]], "was taken over by another process:"],
    ["that cannot be read", [[], new Error("gone")], "was taken over by another process:"],
    ["that was removed", [[], []], "is not as this process left it: the database was restored or edited."],
  ])("of an entry %s says why it failed", async (_what, responses, why) => {
    const { message } = await failureOf(aLease(partsOf(new ASession(responses))).record({}));
    expect(message).toContain(why);
  });

  it("that the server refuses leaves the entry as it was, and says so", async () => {
    const refused = Object.assign(new Error("no space"), { code: "53100", severity: "ERROR" });
    const lease = aLease(partsOf(new ASession([refused])));
    const failure = await failureOf(lease.record({ state: "done" }));
    expect([failure.kind, failure.details.meaning]).toEqual([
      "unreachable",
      "The journal still shows the entry as it was before this step.",
    ]);
    expect(lease.entry.state).toBe("open");
  });

  it("after the release is a bug", async () => {
    const lease = aLease(partsOf(new ASession()));
    await lease.release();
    await expect(lease.record({})).rejects.toThrow("1rs6y1ys1e is recorded after its release");
  });

  it("that is only noted is part of the next one", async () => {
    const lease = aLease(partsOf(new ASession([recorded])));
    lease.note({ attempts: 3 });
    expect(lease.entry.attempts).toBe(3);
    expect(await lease.record({ state: "unknown" })).toMatchObject({ attempts: 3, state: "unknown" });
  });
});

describe("a lease", () => {
  const ago = (ms: number) => ({ monotonic: performance.now() - ms, wall: Date.now() - ms });

  it.each([
    ["that was just taken", [0, 0], 30_000, true],
    ["that would end while a request is under way", [16_000, 16_000], 30_000, false],
    ["without the margin for an answer that is late", [14_900, 14_900], 30_000, false],
    ["of a machine that slept", [0, 60_000], 0, false],
    ["of a machine whose clock was set back", [60_000, 0], 0, false],
    ["that holds now", [40_000, 40_000], 0, true],
  ] as const)("%s", (_what, [elapsedMs, byClockMs], ms, lasts) => {
    const askedAt = { monotonic: performance.now() - elapsedMs, wall: Date.now() - byClockMs };
    expect(aLease(partsOf(new ASession()), { askedAt }).outlasts(ms)).toBe(lasts);
  });

  it("is extended only where it would not outlast a request", async () => {
    const server = new ASession([[{ id: "1rs6y1ys1e" }]]);
    await aLease(partsOf(server)).extend();
    expect(server.asked).toEqual([]);
    const old = aLease(partsOf(server), { askedAt: ago(20_000) });
    await old.extend();
    expect(server.asked[0]!.values).toEqual(["1rs6y1ys1e", "7", 45_000]);
    expect(old.outlasts(30_000)).toBe(true);
    await old.extend();
    expect(server.asked).toHaveLength(1);
  });

  it("that another took is not extended: nothing is sent", async () => {
    const lease = aLease(partsOf(new ASession([[], [heldRow()]])), { askedAt: ago(20_000) });
    expect((await failureOf(lease.extend())).message).toContain("process 4711 (bob on farm)");
    expect(lease.outlasts(30_000)).toBe(false);
  });

  it("that cannot be extended says that the request was not sent", async () => {
    const down = Object.assign(new Error("shutting down"), { code: "57P01", severity: "FATAL" });
    const { details } = await failureOf(aLease(partsOf(new ASession([down])), { askedAt: ago(20_000) }).extend());
    expect(details.meaning).toBe("The request was not sent.");
  });

  it("is released once, and whatever the server says", async () => {
    const server = new ASession([new Error("gone")]);
    const parts = partsOf(server);
    const lease = aLease(parts);
    expect(parts.held.has(lease)).toBe(true);
    await lease.release();
    await lease.release();
    expect(server.asked.map(({ values }) => values)).toEqual([["1rs6y1ys1e", "7"]]);
    expect(parts.held.size).toBe(0);
  });

  it.each([
    [undefined, undefined],
    [{ until: "2026-11-21T02:01:00.000Z", ms: 60_000 }, "2026-11-21T02:01:00.000Z"],
    [{ until: "2026-11-21T01:59:00.000Z", ms: 0 }, undefined],
  ])("whose earlier holder may still be heard %j is quiet until %s", (quiet, until) => {
    expect(aLease(partsOf(new ASession()), { quiet }).quietUntil).toBe(until);
  });
});

describe("an entry that another process has", () => {
  it("is not taken, and its holder is named once the time is over", async () => {
    const parts = partsOf(new ASession([[], [heldRow()]]));
    const busy = await takeLease(parts, "1rs6y1ys1e");
    expect(busy).toBeInstanceOf(Busy);
    let asked = 0;
    const attempt = async (): Promise<Busy> => {
      asked += 1;
      return busy as Busy;
    };
    const failure = await failureOf(waitForHolder({ waitMs: 30 }, attempt));
    expect(asked).toBeGreaterThan(1);
    expect(failure.kind).toBe("outcome_unknown");
    expect(failure.message).toBe(
      "Journal entry 1rs6y1ys1e is in use by process 4711 (bob on farm) since 2026-11-21T01:59:00.000Z; its lease ends at 2026-11-21T02:01:00.000Z; integ waited 0 s.",
    );
    expect([failure.details.nextCommand, failure.details.entry]).toEqual([
      "integ journal release 1rs6y1ys1e",
      "1rs6y1ys1e",
    ]);
  });

  it("of unknown name is another process's", async () => {
    const attempt = async (): Promise<Busy> => new Busy("1rs6y1ys1e", undefined);
    expect((await failureOf(waitForHolder({ waitMs: 0 }, attempt))).message).toBe(
      "Journal entry 1rs6y1ys1e is in use by another process; integ waited 0 s.",
    );
  });

  it("is had as soon as it is free", async () => {
    let round = 0;
    const attempt = async () => ((round += 1) < 3 ? new Busy("1rs6y1ys1e", heldRow()) : "mine");
    expect(await waitForHolder({ waitMs: 10_000 }, attempt)).toBe("mine");
  });

  const seen = holderIn(heldRow())!;
  it.each([
    ["is taken from the holder that was seen", [[heldRow()], [{ id: "x" }]], 2, undefined],
    ["is free if no one has it by now", [[heldRow({ is_held: false })]], 1, undefined],
    ["is gone if it was removed", [[]], 1, undefined],
    ["was taken by a lost answer", [[heldRow()], []], 2, undefined],
    ["has another holder since", [[heldRow({ since: "2026-11-21T01:59:30.000Z" })]], 1, "conflict"],
    [
      "has another process of that time",
      [[heldRow({ holder: '{"user":"bob","host":"farm","process":{"pid":4712}}' })]],
      1,
      "conflict",
    ],
    [
      "has that number on another host",
      [[heldRow({ holder: '{"user":"bob","host":"barn","process":{"pid":4711}}' })]],
      1,
      "conflict",
    ],
  ] as const)("%s", async (_what, responses, statements, kind) => {
    const server = new ASession([...responses]);
    const work = takeAway(partsOf(server), "1rs6y1ys1e", seen);
    if (kind === undefined) await work;
    else {
      const failure = await failureOf(work);
      expect([failure.kind, failure.details.meaning]).toEqual([kind, "Nothing changed."]);
      expect(failure.message).toContain("is held by process 471");
    }
    expect(server.asked).toHaveLength(statements);
    if (statements === 2) expect(server.asked[1]!.values).toEqual(["1rs6y1ys1e", "8"]);
    for (const settle of server.settled) expect(await settle(server.query)).toEqual([]);
  });
});

describe("a holder", () => {
  it.each([
    ["without a row's name", { holder: null }],
    ["without a user", { holder: '{"host":"farm","process":{"pid":1}}' }],
    ["without a process", { holder: '{"user":"bob","host":"farm"}' }],
    ["whose process is no number", { holder: '{"user":"bob","host":"farm","process":{"pid":"1"}}' }],
    ["whose lease is over", { is_held: false }],
  ])("%s is none", (_what, row) => {
    expect(holderIn(heldRow(row))).toBeUndefined();
  });

  it("of a CI run is named with it", () => {
    const holder = '{"user":"bob","host":"farm","run":"https://ci/1","process":{"pid":4711}}';
    expect(describeHolder(holderIn(heldRow({ holder }))!)).toBe("process 4711 (bob on farm, https://ci/1)");
  });
});

describe("a holder with the number of no process here", () => {
  const ended = spawnSync("true").pid;
  const of = (boot: string | null, host: string): unknown => ({ user: "bob", host, process: { pid: ended, boot } });
  const self = (boot: string | null) => ({ pid: 1, start: null, boot, space: null, host: "laptop" });
  it.each([
    ["of this boot has ended", "b", "b", "laptop", true],
    ["of another boot may run", "c", "b", "laptop", false],
    ["of a machine of this name that names no boot may run: another has that name too", null, null, "laptop", false],
    ["of a machine of another name may run", null, null, "desk", false],
  ])("%s", (_what, boot, here, host, isGone) => {
    expect(isHolderGone(heldRow({ holder: JSON.stringify(of(boot, host)) }), self(here))).toBe(isGone);
  });
});

describe("what a column keeps", () => {
  it.each([
    [null, null],
    [undefined, null],
    ["a", "a"],
    ["a\0b\0", "a\ufffdb\ufffd"],
  ])("of %j is %j", (text, kept) => {
    expect(plain(text)).toBe(kept);
  });

  it("names the clients and keys of an entry, and its item of a policy", () => {
    const bare = entryColumns(anEntry({ resource_id: "oc_1" })).resources;
    expect(bare).toContain("oc_1");
    const more = entryColumns(anEntry({ resource_id: "oc_1", detail: { policy_name: "nightly" } })).resources;
    expect(more).toHaveLength(bare.length + 1);
    expect(more.at(-1)).toContain("nightly");
  });
});
