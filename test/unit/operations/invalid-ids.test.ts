// An id that no request can contain is refused before anything is written, because its entry could never be finished.
import { describe, expect, it } from "vitest";
import { revokeNamed } from "../../../src/operations/revocation.ts";
import { rotateAccessKey } from "../../../src/operations/in-place.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { AWorld } from "./a-world.ts";

const works: Record<string, (bench: Workbench, world: AWorld, id: string) => Promise<unknown>> = {
  "a client's revocation": (bench, _world, id) => revokeNamed(bench, "client", id),
  "a key's revocation": (bench, _world, id) => revokeNamed(bench, "key", id),
  "a key's rotation": (bench, world, id) =>
    rotateAccessKey(bench, { id, updateProfile: false }, { destination: world.destination() }),
};

describe.each(Object.entries(works))("%s", (_name, work) => {
  it.each(["", ".", "..", "\ud800"])("with id %j is refused", async (id) => {
    const world = new AWorld();
    const { kind, failure } = await world.run((bench) => work(bench, world, id));
    expect([kind, failure?.message]).toEqual(["usage", expect.stringContaining("Invalid ")]);
    expect([world.entries, world.account.requests]).toEqual([[], []]);
  });
});
