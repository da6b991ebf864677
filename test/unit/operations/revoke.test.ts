import { describe, expect, it } from "vitest";
import { revokeNamed } from "../../../src/operations/revocation.ts";
import { revoke, type RevocationGrounds, type Successor } from "../../../src/operations/acts/revoke.ts";
import type { Service } from "../../../src/api/connect.ts";
import { Failure, type FailureKind } from "../../../src/errors.ts";
import type { Entry, EntryState } from "../../../src/journal/entry.ts";
import { accountFields } from "../../../src/operations/workbench.ts";
import { AWorld, type Ended, type Setting } from "./a-world.ts";

type What = "client" | "key";

function worldWith(what: What, setting: Setting = {}): AWorld {
  const world = new AWorld(setting);
  world.account.addExisting("key", "ak_own");
  world.account.addExisting(what, "old");
  return world;
}

function revokeOld(world: AWorld, what: What): Promise<Ended<unknown>> {
  return world.run((bench) => revokeNamed(bench, what, "old"));
}

type Ending = readonly [ends: FailureKind | "done", state: EntryState];
const revoked: Ending = ["done", "done"];
const unknown: Ending = ["outcome_unknown", "unknown"];

/** Each row has the outcomes of the requests, then the end of the command and its entry, for a client and for a key. */
type Row = [name: string, setting: Setting, client: Ending, key?: Ending];
const rows: readonly Row[] = [
  ["revoked", {}, revoked],
  ["lost once", { fates: { revoke: ["lost after"] } }, revoked],
  ["429, then revoked", { fates: { revoke: [{ refused: 429 }] } }, revoked],
  ["403", { fates: { revoke: [{ refused: 403 }] } }, ["auth", "refused"]],
  ["404", { fates: { revoke: [{ refused: 404 }] } }, ["not_found", "refused"]],
  // A 404 can have another cause (OAuth turned off). For a key the list decides, which still shows the key.
  ["lost, then 404", { fates: { revoke: ["lost before", { refused: 404 }] } }, unknown],
  ["lost after, then 404, a key listed", { fates: { revoke: ["lost after", { refused: 404 }] } }, unknown, revoked],
  ["lost, then 403", { fates: { revoke: ["lost before", { refused: 403 }] } }, unknown],
  ["lost, and no time", { fates: { revoke: ["lost before"] }, retryForMs: 0 }, unknown],
];

it.each(["client", "key"] as const)("a lost revocation of a %s with a failed disk stays unknown", async (what) => {
  const world = worldWith(what, { fates: { revoke: ["lost after"] }, failing: ["record 2"] });
  expect((await revokeOld(world, what)).kind).toBe("outcome_unknown");
  expect(world.entries[0]!.state).toBe("unknown");
});

describe("a revocation by name", () => {
  describe.each(["client", "key"] as const)("of a %s", (what) => {
    it.each<Row>(rows)("%s", async (_name, setting, client, key = client) => {
      const world = worldWith(what, structuredClone(setting));
      const { kind } = await revokeOld(world, what);
      expect([kind, world.entries[0]!.state]).toEqual(what === "client" ? client : key);
    });
  });

  it.each(["client", "key"] as const)("of a %s is not sent again before Retry-After", async (what) => {
    const world = worldWith(what, { fates: { revoke: [{ refused: 429, retryAfterSeconds: 9000 }] } });
    for (const state of ["open", "open"] as const) {
      expect((await revokeOld(world, what)).kind).toBe("rate_limited");
      expect((await world.recover()).value![0]!.failure?.kind).toBe("rate_limited");
      expect(world.entries.map((entry) => entry.state)).toEqual([state]);
    }
    expect(world.account.requests.filter((sent) => sent === "revoke old")).toHaveLength(1);
    world.now += 9_000_000;
    expect((await revokeOld(world, what)).kind).toBe("done");
  });

  it("that is killed during a wait is not sent again before Retry-After", async () => {
    const world = worldWith("client", { fates: { revoke: [{ refused: 429, retryAfterSeconds: 50 }] } });
    world.onSleep = () => {
      throw new Error("killed");
    };
    await expect(revokeOld(world, "client")).rejects.toThrow("killed");
    let waits = 0;
    world.onSleep = () => void (waits += 1);
    world.now = Date.parse(world.entries[0]!.updated_at) + 1000;
    expect((await revokeOld(world, "client")).kind).toBe("done");
    expect(waits).toBe(1);
  });
});

it.each(["client", "key"] as const)("an interrupted revocation of a %s is not recorded as sent", async (what) => {
  const world = worldWith(what);
  const { kind } = await world.run(async (bench) => {
    world.interrupt();
    return revokeNamed(bench, what, "old");
  });
  expect([kind, world.entries[0]!.attempts, world.account.requests]).toEqual(["interrupted", 0, []]);
});

it.each(["oauth_client.revoke", "oauth_client.rotate"] as const)(
  "a revocation by %s is on disk before it is sent",
  async (operation) => {
    const world = worldWith("client");
    world.revocable.add("old");
    const states: string[] = [];
    const { kind } = await world.run(async (bench) => {
      const { lease } = await bench.journal.admit({ ...accountFields(bench.account), ...revocation, operation });
      await lease.record({ state: "waiting" });
      const read = async (): Promise<Failure | string> => {
        expect(lease.entry).toMatchObject(onDisk[operation]);
        return states.push(lease.entry.state) === 1 ? new Failure("outcome_unknown", "?") : "gone";
      };
      await revoke(bench, { change: "revoke client", id: "old", grounds: { kind: "named" }, lease, read });
    });
    expect([kind, states[1]]).toEqual(["done", operation === "oauth_client.revoke" ? "unknown" : "pending"]);
  },
);

const onDisk = {
  "oauth_client.revoke": { resource_id: "old", detail: { in_flight: true } },
  "oauth_client.rotate": { state: "pending", detail: { revoking: true } },
};

const revocation = {
  operation: "oauth_client.revoke",
  request_text: '{"id":"old"}',
  fingerprint: "old",
  idempotent: false,
} as const;

describe("the evidence for a revocation", () => {
  const revokeWith = (grounds: RevocationGrounds, its: Entry["detail"] = {}): Promise<Ended<string>> =>
    new AWorld().run(async (bench) => {
      const { lease } = await bench.journal.admit({ ...accountFields(bench.account), ...revocation });
      await lease.record({ attempts: 1, detail: its });
      return revoke(bench, {
        grounds,
        lease,
        change: "revoke client",
        id: "old",
        read: async () => "gone",
      });
    });

  it("is looked at after every other request, before each attempt", async () => {
    const order: string[] = [];
    const by = { id: "oc_2", proof: "token exchange", missing: [], lostFrom: [] } as const;
    const world = worldWith("client", { fates: { revoke: ["lost before"] } });
    world.account.onRequest = (what) => void order.push(what);
    await world.run(async (bench) => {
      const { lease } = await bench.journal.admit({ ...accountFields(bench.account), ...revocation });
      const service = { ...bench.account.service, authorize: async () => void order.push("token") } as Service;
      const grounds = { kind: "replaced", look: async () => (order.push("look"), by) } as const;
      const about = { grounds, lease, service, change: "revoke client", id: "old" } as const;
      await revoke(bench, {
        ...about,
        read: async ({ kind }) => (kind === "answered" ? "" : new Failure("failed", "?")),
      });
    });
    expect(order).toEqual(["token", "look", "revoke", "token", "look", "revoke"]);
  });

  it.each([
    [undefined, "done"],
    [true, "done"],
    [false, "secret_lost"],
  ] as const)("refuses a client or key that may be another's (certain: %s)", async (orphan_certain, kind) => {
    expect((await revokeWith({ kind: "secret_lost" }, { orphan_certain })).kind).toBe(kind);
  });

  it.each<[string, Partial<Successor>, FailureKind | "done", string?]>([
    ["permits a successor with every piece", {}, "done"],
    ["stops a successor that is not proven", { proof: undefined }, "pending", "not known whether oc_2 works"],
    ["stops a successor without an id", { id: "" }, "failed", "not known"],
    ["stops a successor with a missing delivery", { missing: ["vault:a", "/b"] }, "undelivered", "vault:a, /b"],
    ["stops a successor whose secret is missing", { lostFrom: ["/b"] }, "pending", "delivered to /b"],
  ])("%s", async (_what, its, kind, words = "") => {
    const by = { id: "oc_2", proof: "token exchange", missing: [], lostFrom: [], ...its } as const;
    const ended = await revokeWith({ kind: "replaced", look: async () => by });
    expect([ended.kind, ended.value, ended.failure?.message ?? ""]).toEqual([
      kind,
      kind === "done" ? "gone" : undefined,
      expect.stringContaining(words),
    ]);
    // There must be no next step: if pasted, it would revoke the credential that the failure kept.
    expect(ended.failure?.details.nextCommand).toBeUndefined();
  });
});
