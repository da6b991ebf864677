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
  ["revokes a client that no one adopted", "is revoked", "revoked"],
  [
    "leaves a client that another policy adopts before the answer",
    "stays: since the plan, the journal entry 1",
    "active",
  ],
  ["leaves a client that only an untrusted entry names", "stays: only an untrusted entry names it", "active"],
] as const)("%s", async (_what, words, status) => {
  const world = new AWorld({});
  world.account.addExisting("client", "old");
  world.revocable.add("old");
  const notes: string[] = [];
  const ended = await world.run(async (bench) => {
    const isNamed = ({ trusted = false }): boolean => !trusted || !words.includes("untrusted");
    const select = async (filter: { trusted?: boolean }) =>
      [{ id: "0" }, { id: "1" }]
        .slice(0, words.includes("plan") && notes.length > 0 ? 2 : 1)
        .filter(() => isNamed(filter));
    const journal = { ...bench.journal, select };
    const confirm = async () => notes.push("asked") > 0;
    const context = {
      output: { confirm, note: (text: string) => notes.push(text), warn: (text: string) => notes.push(text) },
    } as unknown as Context;
    await revokeUnmanaged(context, { ...bench, journal } as never, {
      unmanaged: [client],
      entriesAtPlan: new Set(["0"]),
    });
  });
  expect(ended.kind, ended.failure?.message).toBe("done");
  expect(world.account.clients.find(({ id }) => id === "old")?.status).toBe(status);
  expect(notes.at(-1)).toContain(`The client old ${words}`);
});
