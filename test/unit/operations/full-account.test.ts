import { expect, it } from "vitest";
import { createOAuthClient } from "../../../src/operations/client.ts";
import { AWorld, type Ended } from "./a-world.ts";

const full = { refused: 409, code: "invalid_request" } as const;

function create(world: AWorld, scope: string, account = "sa_1"): Promise<Ended<unknown>> {
  const request = { service_account_id: account, scopes: [scope] };
  const options = { waitMs: 0, destination: world.single("stdout") };
  return world.run((bench) => createOAuthClient(bench, request, { ...options, mayReplace: async () => false }));
}

async function worldWith(scopes: readonly string[], account = "sa_1"): Promise<AWorld> {
  const world = new AWorld();
  for (const scope of scopes) expect(await create(world, scope, account)).toMatchObject({ kind: "done" });
  return world;
}

it("the message lists the clients of the account, non-working ones first", async () => {
  const world = await worldWith(["a", "b", "c", "d"]);
  world.account.clients[1]!.status = "disabled";
  world.account.clients[2]!.status = "revoked";
  world.account.fates.create = [full];
  const { kind, failure } = await create(world, "e");
  expect(kind).toBe("conflict");
  expect(failure?.details).toMatchObject({
    meaning:
      "Nothing was revoked. If sa_1 has all 20 clients that it can have, you can revoke one of these: oc_2 (disabled), oc_4, oc_1.",
    hint: "Revoke one that no program uses with integ oauth-clients revoke, then run the command again.",
  });
  expect(failure?.details.nextCommand).toBeUndefined();
});

it("the message shows a client whose status cannot be read as not confirmed", async () => {
  const world = await worldWith(["a", "b"]);
  world.account.fates.create = [full];
  world.account.fates.get = ["lost before", { refused: 403 }];
  const { failure } = await create(world, "c");
  expect(failure?.details.meaning).toContain("one of these: oc_2 (not confirmed), oc_1 (not confirmed).");
});

it("the message omits clients of another account or address, and those known to be revoked or replaced", async () => {
  const world = await worldWith(["a", "b", "c"]);
  const [first, second, third] = world.entries;
  Object.assign(first!, { base_url: "https://other.example" });
  Object.assign(second!, { state: "replaced" });
  world.entries.unshift({ ...third!, id: "another", replaces: third!.id, state: "refused", resource_id: null });
  await create(world, "a", "sa_2");
  world.account.fates.create = [full];
  const before = world.account.requests.length;
  const { kind, failure } = await create(world, "d");
  expect(kind).toBe("conflict");
  expect(failure?.details.meaning ?? "").not.toContain("you can revoke one of these");
  expect(world.account.requests.slice(before)).toEqual(["create"]);
});

it.each([
  ["another code", { refused: 409, code: "idempotency_key_reuse" }],
  ["no code", { refused: 409 }],
  ["another status", { refused: 403, code: "invalid_request" }],
] as const)("the message lists no clients after a refusal with %s", async (_what, fate) => {
  const world = await worldWith(["a"]);
  world.account.fates.create = [fate];
  const { failure } = await create(world, "b");
  expect(failure?.details.meaning ?? "").not.toContain("you can revoke one of these");
});

it("the message lists at most as many clients as an account can have", async () => {
  const scopes = Array.from({ length: 22 }, (_, index) => `s${index}`);
  const many = await worldWith(scopes);
  many.account.fates.create = [full];
  const { failure } = await create(many, "last");
  const named = /one of these: (.*)\.$/.exec(failure?.details.meaning ?? "")?.[1]?.split(", ");
  expect(named).toEqual(Array.from({ length: 20 }, (_, index) => `oc_${22 - index}`));
});
