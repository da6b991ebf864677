// What the service's response to the revocation of a key means together with its list (§4.4), and what is believed of a list
// before anything is revoked for it.
import { describe, expect, it } from "vitest";
import type { Attempt } from "../../../src/api/call/attempt.ts";
import type { AccessKey } from "../../../src/api/access-keys.ts";
import type { Rows } from "../../../src/api/json/unknown-list.ts";
import {
  finishRevocation,
  keyRevocationIntent,
  listedStatus,
  revokeAccessKey,
  statusBeforeRevocation,
} from "../../../src/operations/revocation.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { AWorld, type Ended } from "./a-world.ts";

type Listed = Record<string, unknown>[] | Attempt<Rows>;

function answered<T>(value: T): Attempt<T> {
  return { kind: "answered", status: 200, value, body: Buffer.from(JSON.stringify(value)), requestId: "r" };
}

function refused(status: number): Attempt<never> {
  return { kind: "refused", status, problem: { status } };
}

const lost: Attempt<never> = { kind: "unknown", reason: "closed", detail: "the connection closed" };
const unsent: Attempt<never> = { kind: "not_sent", reason: "refused", detail: "nobody listens" };

function listOf(rows: Record<string, unknown>[], saysMore = false): Attempt<Rows> {
  const value = { rows: rows.map((one) => ({ value: one })), wrappedIn: undefined, saysMore };
  return answered(value as unknown as Rows);
}

const own = { id: "ak_own", status: "active" };

interface Said {
  /** Responses to DELETE, the last one repeated. */
  readonly revoke: readonly Attempt<AccessKey>[];
  readonly list?: Listed;
  readonly before?: Partial<Entry>;
  readonly retryForMs?: number;
}

/** Revokes a key of a service that says this. */
async function revoking({
  revoke,
  list = [own],
  before,
  retryForMs = 0,
}: Said): Promise<{ world: AWorld; end: Ended<unknown>; sent: string[] }> {
  const world = new AWorld({ retryForMs });
  const sent: string[] = [];
  const left = [...revoke];
  const end = await world.run(async (given) => {
    const { accessKeys } = given.account.service;
    const service = {
      ...given.account.service,
      accessKeys: {
        ...accessKeys,
        revoke: async () => (sent.push("revoke"), left.length > 1 ? left.shift()! : left[0]!),
        list: async () => (sent.push("list"), Array.isArray(list) ? listOf(list) : list),
      },
    };
    const bench = { ...given, account: { ...given.account, service } };
    if (before === undefined) return revokeAccessKey(bench, "old");
    const { lease } = await bench.journal.admit(keyRevocationIntent(bench, "old"));
    await lease.record(before);
    await lease.release();
    return finishRevocation(bench, await bench.journal.lease(lease.entry.id));
  });
  return { world, end, sent };
}

interface Row extends Said {
  readonly ends: object;
  readonly sends: readonly string[];
  readonly state: Entry["state"];
}

const seen = { receipt: '{"id":"old","status":"revoked"}', seen: true };

const rows: Record<string, Row> = {
  "a receipt that says revoked is believed": {
    revoke: [answered({ id: "old", status: "revoked" })],
    ends: { kind: "done", value: seen },
    sends: ["revoke"],
    state: "done",
  },
  "so is one that names no key": {
    revoke: [answered({ status: "revoked" })],
    ends: { kind: "done", value: { receipt: '{"status":"revoked"}', seen: true } },
    sends: ["revoke"],
    state: "done",
  },
  "one of another key is not: the list has it revoked": {
    revoke: [answered({ id: "other", status: "revoked" })],
    list: [own, { id: "old", status: "revoked" }],
    ends: { kind: "done", value: seen },
    sends: ["revoke", "list"],
    state: "done",
  },
  "nor where the list has it active": {
    revoke: [answered({ id: "other", status: "revoked" })],
    list: [own, { id: "old", status: "active" }],
    ends: { kind: "outcome_unknown", failure: { message: expect.stringContaining("another key (other)") } },
    sends: ["revoke", "list"],
    state: "unknown",
  },
  "one that still says active, and a list that leaves the key out": {
    revoke: [answered({ id: "old", status: "active" })],
    ends: { kind: "done", value: seen },
    sends: ["revoke", "list"],
    state: "done",
  },
  "one that still says active, and a list that cannot be read": {
    revoke: [answered({ id: "old", status: "active" })],
    list: refused(403),
    ends: { kind: "outcome_unknown", failure: { message: expect.stringContaining('status is still "active"') } },
    sends: ["revoke", "list"],
    state: "unknown",
  },
  "one that says nothing, and a list that says nothing": {
    revoke: [answered({})],
    list: [],
    ends: { kind: "done", value: { receipt: '{"id":"old"}', seen: false } },
    sends: ["revoke", "list"],
    state: "done",
  },
  "one that says nothing, and a list that is not whole": {
    revoke: [answered({})],
    list: listOf([own], true),
    ends: { kind: "done", value: { receipt: '{"id":"old"}', seen: false } },
    sends: ["revoke", "list"],
    state: "done",
  },
  "409, and a list that has it revoked": {
    revoke: [refused(409)],
    list: [own, { id: "old", status: "revoked" }],
    ends: { kind: "done", value: seen },
    sends: ["revoke", "list"],
    state: "done",
  },
  "409, and a list that leaves it out": {
    revoke: [refused(409)],
    ends: { kind: "done", value: seen },
    sends: ["revoke", "list"],
    state: "done",
  },
  "409, and a list that has it active": {
    revoke: [refused(409)],
    list: [own, { id: "old", status: "active" }],
    ends: { kind: "conflict" },
    sends: ["revoke", "list"],
    state: "refused",
  },
  "404 at first: the list is not asked": {
    revoke: [refused(404)],
    ends: { kind: "not_found" },
    sends: ["revoke"],
    state: "refused",
  },
  "404 after an attempt that may have arrived": {
    revoke: [lost, refused(404)],
    retryForMs: 60_000,
    ends: { kind: "done", value: seen },
    sends: ["revoke", "revoke", "list"],
    state: "done",
  },
  "404 after an attempt that was not sent": {
    revoke: [unsent, refused(404)],
    retryForMs: 60_000,
    ends: { kind: "not_found" },
    sends: ["revoke", "revoke"],
    state: "refused",
  },
  "404 of an entry whose earlier attempt is unknown": {
    revoke: [refused(404)],
    before: { state: "unknown" },
    ends: { kind: "done", value: seen },
    sends: ["revoke", "list"],
    state: "done",
  },
  "404 of an entry that was sent before": {
    revoke: [refused(404)],
    before: { attempts: 1, detail: { key_id: "old", in_flight: true } },
    ends: { kind: "done", value: seen },
    sends: ["revoke", "list"],
    state: "done",
  },
  "404 of an entry that was never sent": {
    revoke: [refused(404)],
    before: { attempts: 0 },
    ends: { kind: "not_found" },
    sends: ["revoke"],
    state: "refused",
  },
  "403 of an entry that was sent before settles nothing": {
    revoke: [refused(403)],
    before: { attempts: 1, detail: { key_id: "old", in_flight: true } },
    ends: { kind: "outcome_unknown" },
    sends: ["revoke"],
    state: "unknown",
  },
};

describe("the revocation of a key:", () => {
  it.each(Object.entries(rows))("%s", async (_name, { ends, sends, state, ...said }) => {
    const { world, end, sent } = await revoking(said);
    expect(end).toMatchObject(ends);
    expect(sent).toEqual(sends);
    expect(world.entries[0]).toMatchObject({
      state,
      attempts: (said.before?.attempts ?? 0) + sends.filter((one) => one === "revoke").length,
    });
  });

  it("is unknown in the journal from the moment that an attempt may have arrived", async () => {
    const states: string[] = [];
    const world = new AWorld({ retryForMs: 60_000 });
    world.onSleep = () => states.push(`${world.entries[0]!.state}: ${world.entries[0]!.last_error?.kind}`);
    world.account.has("key", "old");
    world.account.fates.revoke = ["not sent", "lost before"];
    expect((await world.run((bench) => revokeAccessKey(bench, "old"))).kind).toBe("done");
    expect(states).toEqual(["open: undefined", "unknown: outcome_unknown"]);
    expect(world.entries[0]).toMatchObject({ state: "done", last_error: null });
  });
});

describe("a list that cannot be read", () => {
  const asked = async (status: number, ask: typeof listedStatus): Promise<unknown> => {
    const world = new AWorld({ retryForMs: 0 });
    world.account.fates.list = [{ refused: status }];
    const end = await world.run((bench) => ask(bench, { id: "old", service: bench.account.service }));
    return end.kind === "done" ? end.value : end.kind;
  };

  it.each([401, 403, 404, 429, 500])("says nothing of a key after its revocation: %i", async (status) => {
    expect(await asked(status, listedStatus)).toBeUndefined();
  });

  it.each([
    [401, undefined],
    [403, undefined],
    [404, undefined],
    [429, "rate_limited"],
    [500, "failed"],
  ])("ends before anything is revoked for it, unless the credential may never read it: %i", async (status, ends) => {
    expect(await asked(status, statusBeforeRevocation)).toBe(ends);
  });

  it.each([listedStatus, statusBeforeRevocation])("hides no defect of the program", async (ask) => {
    const world = new AWorld();
    const service = { accessKeys: { list: () => Promise.reject(new Error("a bug")) } } as never;
    await expect(world.run((bench) => ask(bench, { id: "old", service }))).rejects.toThrow("a bug");
  });
});
