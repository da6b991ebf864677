import { expect, test, vi } from "vitest";
import { secretKeepingOf } from "../../../../src/commands/running/change.ts";
import type { Context } from "../../../../src/context.ts";

test("a local reserve stays while the secret is only in the team's journal", async () => {
  const release = vi.fn<(entry: string) => Promise<void>>(async () => {});
  const context = {
    secrets: { undelivered: async () => ({ place: "here", release, isKept: () => false }) },
    journal: async () => ({ escrow: { ids: async () => ["e1"] } }),
  } as unknown as Context;
  const keeping = await secretKeepingOf(context);
  expect([keeping.isKept("e1"), keeping.isKept("e2")]).toEqual([true, false]);
  for (const entry of ["e1", "e2"]) await keeping.release(entry);
  expect(release.mock.calls).toEqual([["e2"]]);
});
