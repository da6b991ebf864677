// An overlap ends hours after the delivery: the destinations are checked again before the old credential is revoked.
import { describe, expect, it } from "vitest";
import type { AWorld, DestinationKind } from "./a-world.ts";
import { ask, operations, worldFor } from "./every-operation.ts";

const rotations = ["a client's rotation with an overlap", "a key's replacement with an overlap"] as const;

/** A loss at each kind of destination during the overlap, and its repair. */
const losses: Readonly<Partial<Record<DestinationKind, (world: AWorld) => () => void>>> = {
  file: (world) => taken(world.files, "/secret"),
  profile: (world) => taken(world.profiles, "target"),
  store: (world) => {
    const stored = world.stored as string[];
    stored.push("another's");
    return () => void stored.pop();
  },
  // Only one of three.
  three: (world) => taken(world.files, "/secret"),
};

function taken<T>(from: Map<string, T>, name: string): () => void {
  const had = from.get(name)!;
  from.delete(name);
  return () => void from.set(name, had);
}

const statusOfOld = (world: AWorld): string | undefined =>
  [...world.account.clients, ...world.account.keys].find(({ id }) => id === "old")?.status;

async function begun(name: (typeof rotations)[number], destination: DestinationKind): Promise<AWorld> {
  const world = worldFor(operations[name]!, { destination });
  const first = await ask(world, operations[name]!);
  expect(first.kind, first.failure?.message).toBe("done");
  return world;
}

async function overlapEnds(world: AWorld): Promise<string | undefined> {
  world.now += 24 * 3_600_000;
  world.told.length = 0;
  const { value } = await world.recover({ mayRevokeUnproven: async () => true });
  return value?.map(({ failure }) => failure?.kind ?? "done").join();
}

describe.each(rotations)("%s", (name) => {
  it.each(Object.keys(losses) as DestinationKind[])(
    "keeps the old one if the secret is missing from: %s",
    async (kind) => {
      const world = await begun(name, kind);
      const undo = losses[kind]!(world);
      expect([await overlapEnds(world), statusOfOld(world)]).toEqual(["pending", "active"]);
      expect(await overlapEnds(world)).toBe("pending");
      undo();
      expect([await overlapEnds(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    },
  );

  it.each(Object.keys(losses) as DestinationKind[])("reports nothing if the secret is in: %s", async (kind) => {
    const world = await begun(name, kind);
    expect([await overlapEnds(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    expect(world.told.filter((text) => text.startsWith("Unverified"))).toEqual([]);
  });

  it.each(["stdout", "command"] as const)("reports that it cannot check: %s", async (kind) => {
    const world = await begun(name, kind);
    expect([await overlapEnds(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    expect(world.told.filter((text) => text.startsWith("Unverified"))).toHaveLength(1);
  });
});
