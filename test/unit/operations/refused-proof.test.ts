// A refused proof is final: later consent does not override it, and the old client or key stays until a person revokes it.
import { describe, expect, it } from "vitest";
import { client } from "../../../src/operations/client.ts";
import { key } from "../../../src/operations/key.ts";
import { tryFirst } from "../../../src/operations/rotation.ts";
import { continueDelivery } from "../../../src/operations/secret-delivery.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import type { OneTimeSecret } from "../../../src/secrets/destination.ts";
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

  it.each(["policy", "person"] as const)(
    "keeps the old one if the kept secret is refused later: claim by a %s",
    async (by) => {
      const world = worldFor(operations[name]!, { destination: "command", failing: ["deliver"] });
      expect((await perform(world, operations[name]!)).kind).toBe("undelivered");
      world.account.fates.exchange = Array.from({ length: 3 }, () => ({ refused: 401 }));
      const [entry] = world.entries.filter(({ id }) => world.kept.has(id));
      const { prove } = entry!.operation === "access_key.create" ? key : client;
      const claim = async (bench: Workbench): Promise<unknown> => {
        const lease = await bench.journal.lease(entry!.id);
        const again = (secret: OneTimeSecret) => () => prove(bench, world.entries[0]!, lease.entry, secret);
        const tried = async (secret: OneTimeSecret) => void (await tryFirst(bench, lease, again(secret)));
        return continueDelivery({ bench, lease, destination: world.destination(), claimedBy: "person", prove: tried });
      };
      if (by === "person") await world.run(claim);
      for (let night = 0; night < 3; night++) {
        world.now += 24 * 3_600_000;
        const { value } = await world.recover({ claimedBy: by });
        expect(value!.map(({ failure }) => failure?.kind)).toEqual(["pending"]);
        expect([old(world), world.kept.size]).toEqual(["active", 0]);
      }
    },
  );

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
