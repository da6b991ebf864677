import { describe, expect, it } from "vitest";
import { client } from "../../../src/operations/client.ts";
import {
  completeDelivery,
  type SecretDelivery,
  continueDelivery,
  type ContinuedDelivery,
  undelivered,
} from "../../../src/operations/secret-delivery.ts";
import { key } from "../../../src/operations/key.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { Failure } from "../../../src/errors.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { SecretKeeping } from "../../../src/secrets/kept.ts";
import { AWorld, type DestinationKind, type Ended } from "./a-world.ts";
import { perform, operations, worldFor } from "./every-operation.ts";

const claims = ["a client's creation", "a key's creation", "a client's rotation", "a key's rotation in place"] as const;

async function worldKeeping(what: (typeof claims)[number]): Promise<AWorld> {
  const world = worldFor(operations[what]!, { failing: ["write"], retryForMs: 0 });
  expect((await perform(world, operations[what]!)).kind).toBe("undelivered");
  expect(world.kept.size).toBe(1);
  world.now += 3_600_000;
  return world;
}

function entryWithSecret(world: AWorld): Entry {
  return world.entries.find(({ id }) => world.kept.has(id))!;
}

interface Seen {
  readonly finished: number[];
}

interface Claim {
  readonly to?: DestinationKind;
  readonly seen?: Seen;
  readonly id?: string;
  readonly by?: SecretDelivery["claimedBy"];
}

function claim(
  world: AWorld,
  { to = "file", seen, id = entryWithSecret(world).id, by = "person" }: Claim = {},
): Promise<Ended<ContinuedDelivery | undefined>> {
  return world.run(async (given) => {
    const bench = watched(given, seen);
    const lease = await bench.journal.lease(id);
    return continueDelivery({ bench, lease, destination: world.destination(to), claimedBy: by });
  });
}

const done = { kind: "done", value: { secret: {} } };

function watched(bench: Workbench, seen: Seen | undefined): Workbench {
  const { clock } = bench;
  const finishing: Workbench["clock"]["finishing"] = async (work) => {
    seen?.finished.push(1);
    return clock.finishing(work);
  };
  return { ...bench, clock: { ...clock, finishing } };
}

describe.each(claims)("of %s,", (what) => {
  const isPart = what === "a client's rotation";

  it.each(["file", "profile", "command", "stdout", "store", "three"] as const)(
    "a kept secret is claimed to a destination of kind %s",
    async (to) => {
      const world = await worldKeeping(what);
      const [before, secret] = [entryWithSecret(world), [...world.kept.values()][0]!.secret];
      const seen: Seen = { finished: [] };
      expect(await claim(world, { to, seen })).toMatchObject(done);
      expect([world.isSafe(secret), world.kept.size]).toEqual([true, 0]);
      const after = world.entries.find(({ id }) => id === before.id)!;
      expect(after).toMatchObject({ state: "done", last_error: null, detail: { secret_claimed: true } });
      const kinds = after.destination?.kind === "several" ? after.destination.places.map(({ at }) => at.kind) : [];
      expect([after.destination?.kind, kinds]).toEqual(
        to === "three" ? ["several", ["file", "store", "profile"]] : [to, []],
      );
      expect([...world.reserves]).toEqual([]);
      expect(seen).toEqual({ finished: [1] });
      // After the claim, the rotation can continue.
      if (isPart) expect(world.entry("oauth_client.rotate")).toMatchObject({ state: "pending", last_error: null });
    },
  );

  it("nothing is delivered again if the destination already has the secret", async () => {
    const world = await worldKeeping(what);
    const { id, destination } = entryWithSecret(world);
    const secret = world.kept.get(id)!.secret;
    const inode = destination?.kind === "file" ? destination.inode! : "";
    world.files.set("/secret", { inode, secret });
    expect(await claim(world)).toEqual({ kind: "done", value: {} });
    expect(world.calls).not.toContain("deliver");
    expect([world.kept.size, world.files.get("/secret")!.secret]).toEqual([0, secret]);
  });

  it("a destination that refuses the secret leaves the copy unchanged", async () => {
    const world = await worldKeeping(what);
    const before = world.entries.map(({ state }) => state);
    const destination = { ...world.single("file"), deliver: async () => Promise.reject(new Error("not a failure")) };
    const { id } = entryWithSecret(world);
    world.files.set("/secret", { inode: "of someone else", secret: "theirs" });
    for (const [by, kind] of [
      ["policy", "undelivered"],
      ["person", "usage"],
    ] as const)
      expect(await claim(world, { by })).toMatchObject({
        kind,
        failure: { message: expect.stringContaining("/secret exists") },
      });
    expect([world.kept.size, world.files.get("/secret")!.secret]).toEqual([1, "theirs"]);
    expect(world.entries.map(({ state }) => state)).toEqual(before);
    expect([...world.reserves]).toEqual([]);
    world.files.clear();
    const end = await world.run(async (bench) =>
      continueDelivery({ bench, lease: await bench.journal.lease(id), destination, claimedBy: "person" }),
    );
    expect(end).toMatchObject({ kind: "undelivered", failure: { message: expect.stringContaining("not a failure") } });
    expect(world.kept.size).toBe(1);
  });

  it("nothing is delivered or reported as delivered without a copy", async () => {
    const world = await worldKeeping(what);
    const { id } = entryWithSecret(world);
    world.kept.clear();
    expect(await claim(world, { id })).toEqual({ kind: "done", value: undefined });
    expect(world.calls).not.toContain("deliver");
    expect(world.entries.find((entry) => entry.id === id)!.state).toBe("secret_lost");
  });
});

describe("the rotation of a claimed secret", () => {
  it("is left to the process that works on it", async () => {
    const world = await worldKeeping("a client's rotation");
    world.running.add(world.entry("oauth_client.rotate")!.id);
    expect(await claim(world)).toMatchObject(done);
    expect(world.entry("oauth_client.rotate")!.state).toBe("undelivered");
  });

  it("is not resumed if it does not wait for the secret", async () => {
    const world = await worldKeeping("a client's rotation");
    const at = world.entries.findIndex(({ operation }) => operation === "oauth_client.rotate");
    world.entries[at] = { ...world.entries[at]!, state: "done" };
    expect(await claim(world)).toMatchObject(done);
    expect(world.entries[at].state).toBe("done");
  });

  it("is finished by recovery after a crash at any call of the claim", async () => {
    for (let crashAt = 1; ; crashAt += 1) {
      const world = await worldKeeping("a client's rotation");
      world.crashAt = crashAt;
      if ((await claim(world)).kind !== "crash") break;
      world.crashAt = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 3 && world.kept.size > 0; round += 1) {
        await claim(world);
        await world.recover();
      }
      await world.recover();
      expect(world.broken, `crash at ${crashAt}`).toEqual([]);
      expect([world.entry("oauth_client.rotate")!.state, world.kept.size], `crash at ${crashAt}`).toEqual(["done", 0]);
    }
  });
});

async function runUnderLease(
  change: Partial<Entry>,
  work: (bench: Workbench, lease: EntryLease) => Promise<unknown>,
): Promise<{ world: AWorld; end: Ended<unknown>; checked: unknown[]; entry: Entry }> {
  const world = await worldKeeping("a key's creation");
  const { id } = entryWithSecret(world);
  const at = world.entries.findIndex((entry) => entry.id === id);
  world.entries[at] = { ...world.entries[at]!, ...change };
  const checked: unknown[] = [];
  const end = await world.run(async (bench) => {
    const completeDelivery: SecretKeeping["completeDelivery"] = async (record, about) => {
      checked.push(record.kind);
      return bench.secrets.completeDelivery(record, about);
    };
    return work({ ...bench, secrets: { ...bench.secrets, completeDelivery } }, await bench.journal.lease(id));
  });
  return { world, end, checked, entry: world.entries[at] };
}

const file = { kind: "file", path: "/secret", as: "raw", reserved: "/.r" } as const;
const profile = { kind: "profile", name: "target", profileId: "t1" } as const;

describe("a destination is checked for the secret", () => {
  it.each<[string, Partial<Entry>, unknown[]]>([
    ["a file", { destination: file, resource_id: "ak_2" }, ["file"]],
    ["a profile, whatever key it names", { destination: profile, resource_id: "ak_2" }, ["profile"]],
    ["none, if the entry has no destination", { destination: null, resource_id: "ak_9" }, []],
    ["none, if it is on another machine", { destination: { ...file, machine: "another" }, resource_id: "ak_2" }, []],
  ])("%s", async (_, change, expected) => {
    const { checked } = await runUnderLease(change, completeDelivery);
    expect(checked).toEqual(expected);
  });

  it("among several, those without the secret are checked, and the results are recorded once", async () => {
    const places = [
      { at: file, state: "delivered" },
      { at: { ...file, path: "/other", reserved: "/.o" }, state: "missing" },
    ] as const;
    const destination = { kind: "several", places } as unknown as Entry["destination"];
    const none = await runUnderLease({ destination, resource_id: "ak_2" }, completeDelivery);
    expect([none.end.value, none.checked.length, none.world.calls]).toEqual([
      false,
      1,
      ["read kept", "complete delivery"],
    ]);
    expect(none.entry.destination).toEqual(destination);
    const all = await runUnderLease({ destination, resource_id: "ak_2" }, async (bench, lease) => {
      const there = { ...bench.secrets, completeDelivery: async () => true };
      return completeDelivery({ ...bench, secrets: there }, lease);
    });
    expect([all.end.value, all.world.calls]).toEqual([true, ["read kept", "record"]]);
    const states =
      all.entry.destination?.kind === "several" ? all.entry.destination.places.map(({ state }) => state) : [];
    expect(states).toEqual(["delivered", "delivered"]);
    const whole = { kind: "several", places: [places[0], places[0]] } as unknown as Entry["destination"];
    const complete = await runUnderLease({ destination: whole, resource_id: "ak_2" }, completeDelivery);
    expect([complete.end.value, complete.checked, complete.world.calls]).toEqual([true, [], []]);
  });
});

describe("the step after a delivery to a profile that a person changed", () => {
  const profile = { kind: "profile", name: "q", profileId: "p-q" } as const;
  const refusal = { hint: "Name another destination, or add --force.", nextCommand: { add: ["--force"] } } as const;

  it.each(["access_key.create", "access_key.rotate", "oauth_client.create"])(
    "of %s consents to nothing",
    (operation) => {
      const entry = { id: "e1", operation, destination: profile, attempts: 1, detail: {} } as unknown as Entry;
      const because = new Failure("undelivered", "The profile has other content.", refusal);
      const { nextCommand, hint } = undelivered(entry, because, { isEscrowed: () => false }).details;
      expect([nextCommand, hint]).toEqual(["integ journal claim e1", refusal.hint]);
    },
  );
});

describe("a secret kept in another folder", () => {
  const elsewhere = { state: "undelivered", detail: { kept_at: "there:/state" } } as const;

  const replaced = { kept_at: "here:/state", attempted_at: ["here:/state"], attempted_by: ["another"] };

  it.each<[string, typeof client.continueDelivery, string, Entry["detail"]]>([
    ["before a client's creation continues", client.continueDelivery, "there:/state", elsewhere.detail],
    ["before a key's creation continues", key.continueDelivery, "there:/state", elsewhere.detail],
    ["if its folder was replaced", key.continueDelivery, "a state folder that was at here:/state", replaced],
  ])("is not lost: %s", async (_, takenUp, place, detail) => {
    const world = await worldKeeping("a key's creation");
    const { id } = entryWithSecret(world);
    world.kept.clear();
    world.entries[0] = { ...world.entries[0]!, ...elsewhere, detail, resource_id: null };
    const destination = world.destination();
    const end = await world.run(async (bench) =>
      takenUp({ bench, lease: await bench.journal.lease(id), destination, destinationOf: () => destination }),
    );
    expect(end).toMatchObject({
      kind: "undelivered",
      failure: {
        message: expect.stringContaining(`it is kept in ${place}, and this is here:/state.`),
        details: { nextCommand: undefined, hint: `Run integ journal claim ${id} there.` },
      },
    });
    expect(world.entries[0].state).toBe("undelivered");
  });

  it.each<[string, Partial<Entry>]>([
    ["but one recorded as lost stays lost", { ...elsewhere, state: "secret_lost" }],
    ["but one kept in this folder is lost with its copy", { state: "undelivered", detail: { kept_at: "here:/state" } }],
    ["but one kept in an unknown folder is lost with its copy", { state: "undelivered", detail: {} }],
  ])("%s", async (_, change) => {
    const { world, end, entry } = await runUnderLease({ ...change, destination: null }, async (bench, lease) => {
      const secrets = { ...bench.secrets, isKept: () => false };
      return continueDelivery({ bench: { ...bench, secrets }, lease, destination: new AWorld().destination() });
    });
    expect([end.value, entry.state]).toEqual([undefined, "secret_lost"]);
    expect(world.calls.filter((call) => call === "record")).toEqual(change.state === "secret_lost" ? [] : ["record"]);
  });
});
