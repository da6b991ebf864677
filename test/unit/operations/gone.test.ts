// Immediately before a rotation revokes the old credential, it checks the destinations of the new secret again.
import { describe, expect, it } from "vitest";
import { rotateOAuthClient } from "../../../src/operations/client-rotation.ts";
import { rotateAccessKey } from "../../../src/operations/in-place.ts";
import { severalDestinations } from "../../../src/secrets/several.ts";
import type { AWorld, DestinationKind } from "./a-world.ts";
import { perform, operations, worldFor } from "./every-operation.ts";

const rotations = ["a client's rotation with an overlap", "a key's replacement with an overlap"] as const;

const losses: Readonly<Partial<Record<DestinationKind, (world: AWorld) => () => void>>> = {
  file: (world) => removeFrom(world.files, "/secret"),
  profile: (world) => removeFrom(world.profiles, "target"),
  store: (world) => {
    const stored = world.stored as string[];
    stored.push("another's");
    return () => void stored.pop();
  },
  three: (world) => removeFrom(world.files, "/secret"),
};

function removeFrom<T>(from: Map<string, T>, name: string): () => void {
  const had = from.get(name)!;
  from.delete(name);
  return () => void from.set(name, had);
}

function setProof({ entries }: AWorld, proof: string | undefined): void {
  for (const [index, entry] of entries.entries())
    if (entry.destination?.kind === "store")
      entries[index] = { ...entry, destination: { ...entry.destination, proof } };
}

const oldOf = ({ account }: AWorld) => [...account.clients, ...account.keys].find(({ id }) => id === "old");
const statusOfOld = (world: AWorld): string | undefined => oldOf(world)?.status;

async function rotated(name: (typeof rotations)[number], destination: DestinationKind): Promise<AWorld> {
  const world = worldFor(operations[name]!, { destination });
  const first = await perform(world, operations[name]!);
  expect(first.kind, first.failure?.message).toBe("done");
  return world;
}

async function endOverlap(world: AWorld): Promise<string | undefined> {
  world.now += 24 * 3_600_000;
  world.messages.length = 0;
  const { value } = await world.recover({ mayRevokeUnproven: async () => true });
  return value?.map(({ failure }) => failure?.kind ?? "done").join();
}

/** Destinations that integ cannot check again. */
const unseen: readonly (readonly [string, DestinationKind, (world: AWorld) => void])[] = [
  ["standard output", "stdout", () => {}],
  ["a command", "command", () => {}],
  ["a file of another machine", "file", ({ machine }: AWorld) => void (machine.id = "2")],
  ["a store that shows only its time of change", "store", (world: AWorld) => setProof(world, "after 1")],
  ["a store without a recorded proof", "store", (world: AWorld) => setProof(world, undefined)],
];

describe.each(rotations)("%s", (name) => {
  it.each(Object.keys(losses) as DestinationKind[])(
    "keeps the old one if the secret is missing from: %s",
    async (kind) => {
      const world = await rotated(name, kind);
      const undo = losses[kind]!(world);
      expect([await endOverlap(world), statusOfOld(world)]).toEqual(["pending", "active"]);
      expect(await endOverlap(world)).toBe("pending");
      undo();
      expect([await endOverlap(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    },
  );

  it.each(Object.keys(losses) as DestinationKind[])("reports nothing if the secret is in: %s", async (kind) => {
    const world = await rotated(name, kind);
    expect([await endOverlap(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    expect(world.messages.filter((text) => text.startsWith("Unverified"))).toEqual([]);
  });

  it.each(unseen)("reports that it cannot check: %s", async (_what, kind, change) => {
    const world = await rotated(name, kind);
    change(world);
    expect([await endOverlap(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    expect(world.messages.filter((text) => text.startsWith("Unverified"))).toHaveLength(1);
  });
});

describe.each(["a client's rotation", "a key's replacement"])("%s without an overlap", (name) => {
  const operation = operations[name]!;

  it.each(Object.keys(losses) as DestinationKind[])(
    "keeps the old one if the secret disappears after its proof or during a wait from: %s",
    async (destination) => {
      for (const [moment, revoke] of [
        ["exchange", []],
        ["wait", [{ refused: 429, retryAfterSeconds: 5 }]],
        ["wait", ["lost before"]],
      ] as const) {
        const world = worldFor(operation, { destination, fates: { revoke: [...revoke] } });
        const { account } = world;
        let undo: (() => void) | undefined;
        const lose = (): void => void (undo ??= losses[destination]!(world));
        const { onRequest } = account;
        account.onRequest = (what, about) => {
          if (what === moment) lose();
          onRequest(what, about);
        };
        if (moment === "wait") world.onSleep = lose;
        expect([(await perform(world, operation)).kind, statusOfOld(world)]).toEqual(["pending", "active"]);
        expect(account.requests.filter((one) => one === "revoke old")).toHaveLength(moment === "wait" ? 1 : 0);
        if (moment === "wait") undo!();
        else oldOf(world)!.status = "revoked";
        expect([await endOverlap(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
      }
    },
  );
});

it.each(["disabled", "revoked"])("a client that is %s while a person accepts that it is unproven", async (status) => {
  const operation = operations["a client's rotation"]!;
  const world = worldFor(operation, { destination: "stdout", proves: false });
  const old = { id: "old", service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
  const mayRevokeUnproven = async () => {
    world.account.live("client").at(-1)!.status = status;
    return true;
  };
  const options = { mayRevokeUnproven, destination: world.destination() };
  const ended = await world.run((bench) => rotateOAuthClient(bench, { old, overlapMs: 0, keepOld: false }, options));
  expect([ended.kind, statusOfOld(world)]).toEqual(["unusable", "active"]);
});

describe("the old key stays valid if the secret of the new one no longer works", () => {
  it.each(["file", "store", "command"] as const)("after a rotation in place: %s", async (destination) => {
    const world = await rotated("a key's replacement with an overlap", destination);
    const { id } = world.account.live("key").at(-1)!;
    const ended = await world.run((bench) =>
      rotateAccessKey(bench, { id, updateProfile: false }, { destination: world.single("stdout") }),
    );
    expect([ended.kind, await endOverlap(world), statusOfOld(world)]).toEqual(["done", "pending", "active"]);
  });

  it("after a change that the journal does not know", async () => {
    const world = await rotated("a key's replacement with an overlap", "file");
    world.account.live("key").at(-1)!.secret = "changed";
    expect([await endOverlap(world), statusOfOld(world)]).toEqual(["pending", "active"]);
  });
});

it.each(["active", "revoked"] as const)("a later client of the item that is %s", async (status) => {
  const world = await rotated("a client's rotation with an overlap", "store");
  const { id } = world.account.live("client").at(-1)!;
  const old = { id, service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
  const second = await world.run((bench) =>
    rotateOAuthClient(bench, { old, overlapMs: 48 * 3_600_000, keepOld: false }, { destination: world.destination() }),
  );
  expect(second.kind, second.failure?.message).toBe("done");
  world.account.live("client").at(-1)!.status = status;
  expect([await endOverlap(world), statusOfOld(world)]).toEqual(
    status === "active" ? ["done,done", "revoked"] : ["pending,unusable", "active"],
  );
});

it("a later client's secret that disappears while its status is asked for", async () => {
  const world = await rotated("a client's rotation with an overlap", "store");
  const old = { id: world.account.live("client").at(-1)!.id, service_account_id: "sa_1", scopes: [], status: "active" };
  const options = { destination: world.destination() };
  await world.run((bench) => rotateOAuthClient(bench, { old, overlapMs: 48 * 3_600_000, keepOld: false }, options));
  const later = world.account.live("client").at(-1)!;
  world.account.onRequest = (what, { id }) => what === "get" && id === later.id && losses.store!(world);
  expect([(await endOverlap(world))?.split(",")[0], statusOfOld(world)]).toEqual(["pending", "active"]);
});

describe("the new client was rotated again without an overlap before the first overlap ends", () => {
  it.each([
    ["to the same destination", "store", ["store"], "done", "revoked"],
    ["to the same and another destination", "store", ["store", "command"], "done", "revoked"],
    ["to the same command", "command", ["command"], "done", "revoked"],
    ["to another destination", "store", ["command"], "unusable", "active"],
    ["to one of its destinations", "three", ["store"], "unusable", "active"],
    ["to standard output", "stdout", ["stdout"], "unusable", "active"],
  ] as const)("%s", async (_what, first, second, end, status) => {
    const world = await rotated("a client's rotation with an overlap", first);
    const { id } = world.account.live("client").at(-1)!;
    world.revocable.add(id);
    const old = { id, service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
    const [place] = second;
    const several = () => severalDestinations(second.map((kind) => world.single(kind)));
    const destination = second.length > 1 ? several() : world.single(place);
    const options = { mayRevokeUnproven: async () => true, destination };
    const ended = await world.run((bench) => rotateOAuthClient(bench, { old, overlapMs: 0, keepOld: false }, options));
    expect(ended.kind, ended.failure?.message).toBe("done");
    expect([await endOverlap(world), statusOfOld(world)]).toEqual([end, status]);
  });

  it.each([
    ["may be revoked if the acting profile has the later one", "the later one", "done", "revoked"],
    ["stays if the acting profile has another one", "ak_own", "pending", "active"],
  ])("and the old one %s", async (_what, has, end, status) => {
    const world = await rotated("a client's rotation with an overlap", "store");
    const { id } = world.account.live("client").at(-1)!;
    world.revocable.add(id);
    const profile = { kind: "profile", name: "p", profileId: "p1" } as const;
    world.entries[0] = { ...world.entries[0]!, destination: profile };
    const old = { id, service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
    const options = { mayRevokeUnproven: async () => true, destination: world.destination() };
    await world.run((bench) => rotateOAuthClient(bench, { old, overlapMs: 0, keepOld: false }, options));
    world.keyId = has === "ak_own" ? has : world.account.live("client").at(-1)!.id;
    expect([await endOverlap(world), statusOfOld(world)]).toEqual([end, status]);
  });

  it("and its secret is no longer at the common destination", async () => {
    const world = await rotated("a client's rotation with an overlap", "store");
    const { id } = world.account.live("client").at(-1)!;
    world.revocable.add(id);
    const old = { id, service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
    const options = { mayRevokeUnproven: async () => true, destination: world.destination() };
    await world.run((bench) => rotateOAuthClient(bench, { old, overlapMs: 0, keepOld: false }, options));
    const stored = world.stored as string[];
    stored.push(stored.at(-2)!);
    expect([await endOverlap(world), statusOfOld(world)]).toEqual(["pending", "active"]);
  });
});
