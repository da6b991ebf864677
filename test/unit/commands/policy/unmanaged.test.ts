// `apply --revoke-unmanaged`: the account can change while the question is open.
import { expect, it } from "vitest";
import { revokeUnmanaged } from "../../../../src/commands/policy/unmanaged.ts";
import type { Context } from "../../../../src/context.ts";
import type { Unmanaged } from "../../../../src/policy/plan.ts";
import { AWorld } from "../../operations/a-world.ts";

const client: Unmanaged = {
  kind: "oauth_client",
  id: "old",
  name: null,
  service_account_id: "sa_1",
  state: "active",
  created_at: null,
  ownership: "other",
};

it.each([
  ["revokes what nobody adopted", false, "revoked"],
  ["leaves a client that another policy adopts before the answer", true, "active"],
] as const)("%s", async (_what, isAdopted, status) => {
  const world = new AWorld({});
  world.account.addExisting("client", "old");
  world.revocable.add("old");
  const notes: string[] = [];
  const ended = await world.run(async (bench) => {
    const journal = { ...bench.journal, select: async () => (isAdopted && notes.length > 0 ? [{ id: "1" }] : []) };
    const confirm = async () => notes.push("asked") > 0;
    const context = { output: { confirm, note: (text: string) => notes.push(text) } } as unknown as Context;
    await revokeUnmanaged(context, { ...bench, journal } as never, { unmanaged: [client], entriesAtPlan: new Set() });
  });
  expect(ended.kind, ended.failure?.message).toBe("done");
  expect(world.account.clients.find(({ id }) => id === "old")?.status).toBe(status);
  expect(notes.at(-1)).toContain(
    isAdopted ? "The client old stays: since the plan, the journal entry 1" : "is revoked",
  );
});
