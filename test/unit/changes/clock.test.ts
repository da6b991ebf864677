// The clock of this machine may be wrong, or set to another time at any moment: how long is waited does not depend on it.
import { describe, expect, it } from "vitest";
import { ask, operations, worldFor } from "./every-operation.ts";
import type { Fate } from "./an-account.ts";

const day = 24 * 60 * 60_000;

describe.each(Object.entries(operations))("%s", (_name, operation) => {
  it.each([
    ["429", { refused: 429 }],
    ["nobody listens", "not sent"],
  ] satisfies [string, Fate][])(
    "%s: tried as long with a clock that is set back or forth at every wait",
    async (_what, fate) => {
      const tries = async (jump: number): Promise<[string, number]> => {
        const setting = { retryForMs: 60_000, fates: { [operation.sends]: Array.from({ length: 50 }, () => fate) } };
        const world = worldFor(operation, setting);
        world.onSleep = () => void (world.now += jump);
        const { kind } = await ask(world, operation);
        return [kind, world.account.requests.length];
      };
      const plain = await tries(0);
      expect(plain[1]).toBeGreaterThan(3);
      expect(await tries(-day)).toEqual(plain);
      expect(await tries(day)).toEqual(plain);
    },
  );
});
