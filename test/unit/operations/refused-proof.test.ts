// A refused proof is final: later consent does not override it, and the old client or key stays until a person revokes it.
import { describe, expect, it } from "vitest";
import type { AWorld } from "./a-world.ts";
import { perform, operations, worldFor } from "./every-operation.ts";

const rotations = [
  "a client's rotation",
  "a client's rotation with an overlap",
  "a key's replacement",
  "a key's replacement with an overlap",
] as const;
const destinations = ["stdout", "command", "file", "store", "profile", "three"] as const;

const old = (world: AWorld): string | undefined =>
  [...world.account.clients, ...world.account.keys].find(({ id }) => id === "old")?.status;

describe.each(rotations)("%s", (name) => {
  it.each(destinations)("to %s keeps the old one, whatever consent follows", async (destination) => {
    const world = worldFor(operations[name]!, {
      destination,
      fates: { exchange: Array.from({ length: 9 }, () => ({ refused: 401 })) },
    });
    const first = await perform(world, operations[name]!);
    expect([first.kind, first.failure?.exitCode]).toEqual(["pending", 8]);
    for (let night = 0; night < 3; night++) {
      world.now += 24 * 3_600_000;
      const { value } = await world.recover();
      expect(value!.map(({ failure }) => failure?.kind)).toEqual(["pending"]);
      expect(old(world)).toBe("active");
    }
    expect(world.unsettled()).toHaveLength(1);
    expect(world.broken).toEqual([]);
    // Once a person has revoked the old client or key, recovery finishes the rotation.
    for (const made of [...world.account.clients, ...world.account.keys])
      if (made.id === "old") made.status = "revoked";
    await world.recover();
    expect(world.unsettled()).toEqual([]);
  });

  it("whose secret can be tried again continues once it is accepted", async () => {
    const world = worldFor(operations[name]!, { destination: "file", fates: { exchange: [{ refused: 401 }] } });
    await perform(world, operations[name]!);
    for (let night = 0; night < 2; night++) {
      world.now += 24 * 3_600_000;
      await world.recover({ mayRevokeUnproven: async () => false });
    }
    expect([old(world), world.unsettled()]).toEqual(["revoked", []]);
  });
});
