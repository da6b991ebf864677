// For support, an entry names the request id of every response, whatever its outcome.
import { describe, expect, it } from "vitest";
import type { Fate, Request } from "./an-account.ts";
import { perform, operations, worldFor } from "./every-operation.ts";

const changing: ReadonlySet<Request> = new Set(["create", "rotate", "revoke"]);

describe.each(Object.entries(operations))("%s", (_name, operation) => {
  it.each([
    ["done immediately", []],
    ["delayed twice", [{ refused: 429 }, { refused: 429 }]],
    ["answered with 500, then recovered", ["broken after"]],
    ["refused", [{ refused: 403 }]],
  ] satisfies [string, Fate[]][])("%s", async (_what, fates) => {
    const world = worldFor(operation, { fates: { [operation.sends]: [...fates] } });
    await perform(world, operation);
    await world.recover();
    const ids = world.account.answered.filter(([what]) => changing.has(what)).map(([, id]) => id);
    expect(world.entries.flatMap((entry) => entry.request_ids).sort()).toEqual(ids.sort());
    expect(ids.length).toBeGreaterThan(0);
  });
});
