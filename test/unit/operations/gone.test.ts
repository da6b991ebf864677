// An overlap ends hours after the delivery: the destinations are checked again before the old credential is revoked.
import { describe, expect, it } from "vitest";
import type { AWorld, DestinationKind } from "./a-world.ts";
import { perform, operations, worldFor } from "./every-operation.ts";

const rotations = ["a client's rotation with an overlap", "a key's replacement with an overlap"] as const;

/** A loss at each kind of destination during the overlap, and its repair. */
const losses: Readonly<Partial<Record<DestinationKind, (world: AWorld) => () => void>>> = {
  file: (world) => removeFrom(world.files, "/secret"),
  profile: (world) => removeFrom(world.profiles, "target"),
  store: (world) => {
    const stored = world.stored as string[];
    stored.push("another's");
    return () => void stored.pop();
  },
  // From only one of the three destinations.
  three: (world) => removeFrom(world.files, "/secret"),
};

function removeFrom<T>(from: Map<string, T>, name: string): () => void {
  const had = from.get(name)!;
  from.delete(name);
  return () => void from.set(name, had);
}

const statusOfOld = (world: AWorld): string | undefined =>
  [...world.account.clients, ...world.account.keys].find(({ id }) => id === "old")?.status;

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

  it.each(["stdout", "command"] as const)("reports that it cannot check: %s", async (kind) => {
    const world = await rotated(name, kind);
    expect([await endOverlap(world), statusOfOld(world)]).toEqual(["done", "revoked"]);
    expect(world.messages.filter((text) => text.startsWith("Unverified"))).toHaveLength(1);
  });
});
