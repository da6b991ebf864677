import { describe, expect, it } from "vitest";
import { createOAuthClient } from "../../../../src/operations/client.ts";
import type { Outcome } from "../../../../src/operations/creation.ts";
import { AWorld, type Ended, type Setting } from "../a-world.ts";
import type { Fate } from "../an-account.ts";

function replace(world: AWorld): Promise<Ended<Outcome["kind"]>> {
  const request = { service_account_id: "sa_1", scopes: ["entity:read"] };
  return world.run(async (bench) => {
    const options = { destination: world.destination(), waitMs: 60_000, mayReplace: async () => true };
    return (await createOAuthClient(bench, request, options)).kind;
  });
}

const lostThen = (...fates: Fate[]): Setting => ({ fates: { create: ["silent", ...fates] } });

describe("a replacement", () => {
  it.each(["recovered", "after a claim"])("that was never sent ends if the lost secret is found, %s", async (how) => {
    const world = new AWorld({ ...lostThen(), failing: ["record 3"] });
    expect((await replace(world)).kind).toBe("secret_lost");
    const [lost, begun] = world.entries;
    expect([lost!.state, begun!.state, begun!.attempts]).toEqual(["secret_lost", "open", 0]);
    const [made] = world.account.clients;
    const id = made!.id;
    if (how === "recovered")
      world.kept.set(lost!.id, { kind: "oauth_client", secret: made!.secret, id, receipt: "{}" });
    else world.entries[0] = { ...lost!, state: "done" };
    await world.recover();
    expect(world.entries.map(({ state }) => state)).toEqual([how === "recovered" ? "undelivered" : "done", "refused"]);
    expect(world.account.live("client")).toEqual([made]);
    expect(world.account.requests).toEqual(["create"]);
    expect([...world.reserves]).toEqual([]);
  });

  it("whose destination cannot be prepared is refused: nothing is revoked, nothing stays reserved", async () => {
    const world = new AWorld({ ...lostThen(), failing: ["prepare 2"] });
    await replace(world);
    expect([world.entries[1]!.state, [...world.reserves], world.account.requests]).toEqual(["refused", [], ["create"]]);
    expect(world.calls.slice(world.calls.lastIndexOf("prepare"))).toContain("release");
  });

  it("revokes the lost client before it creates another, under another key", async () => {
    const world = new AWorld(lostThen());
    expect((await replace(world)).value).toBe("delivered");
    expect(world.account.requests).toEqual(["create", "revoke oc_1", "create"]);
    const [lost, made] = world.entries;
    expect([lost!.state, lost!.replaced_by, made!.state, made!.replaces]).toEqual([
      "replaced",
      made!.id,
      "done",
      lost!.id,
    ]);
    expect(made!.idempotency_key).not.toBe(lost!.idempotency_key);
    expect(made!.request_text).toBe(lost!.request_text);
  });

  it.each([
    [
      "its destination refuses the secret: nothing is revoked",
      { ...lostThen(), failing: ["prepare 2"] },
      "secret_lost",
      "secret_lost",
      1,
    ],
    [
      "the revocation is refused: no other is made",
      { fates: { create: ["silent"], revoke: [{ refused: 403 }] } },
      "auth",
      "secret_lost",
      1,
    ],
    [
      "the other is refused: the lost one is revoked, and recovery continues",
      { ...lostThen({ refused: 403 }) },
      "auth",
      "secret_lost",
      0,
    ],
    ["the other's secret is lost too", lostThen("silent"), "secret_lost", "replaced", 1],
  ] as const)("%s", async (_name, setting, ends, state, live) => {
    const world = new AWorld(setting as Setting);
    expect((await replace(world)).kind).toBe(ends);
    expect(world.entries[0]!.state).toBe(state);
    expect(world.account.live("client")).toHaveLength(live);
    expect(world.broken).toEqual([]);
    for (let round = 0; round < 3; round++) await world.recover();
    expect([world.unsettled(), world.account.live("client").length]).toEqual([[], 1]);
  });

  it("without consent revokes nothing", async () => {
    const world = new AWorld({ fates: { create: ["silent"], revoke: [{ refused: 403 }] } });
    await replace(world);
    const before = world.account.requests.length;
    // A started replacement has consent. A refused one does not count, so integ asks again.
    world.entries[1] = { ...world.entries[1]!, state: "refused" };
    const { value } = await world.recover({ mayReplace: async () => false });
    expect(value![0]!.failure?.kind).toBe("secret_lost");
    expect(world.account.requests).toHaveLength(before);
  });
});

describe("a client with a lost secret that was revoked meanwhile", () => {
  it.each(["revoked", "disabled", "expired"])("%s by someone else is not replaced", async (status) => {
    const world = new AWorld({ fates: { create: ["silent"], revoke: [{ refused: 403 }] } });
    await replace(world);
    world.entries.pop();
    world.entries[0] = { ...world.entries[0]!, detail: {} };
    world.account.clients[0]!.status = status;
    const { value } = await world.recover();
    expect([value![0]!.failure?.kind, value![0]!.entry.state]).toEqual(["unusable", "unusable"]);
    expect(value![0]!.failure?.message).toContain(`is ${status}, and integ did not revoke it`);
    expect([world.account.clients.length, world.unsettled()]).toEqual([1, []]);
  });

  it("by someone else, while the service is unreachable at first, is not replaced", async () => {
    const world = new AWorld({ fates: { create: ["silent"], revoke: [{ refused: 403 }] }, retryForMs: 0 });
    await replace(world);
    world.entries.pop();
    world.entries[0] = { ...world.entries[0]!, detail: {} };
    world.account.clients[0]!.status = "revoked";
    world.account.fates.get = ["lost before"];
    const { value } = await world.recover();
    expect(value![0]!.entry.state).toBe("secret_lost");
    await world.recover();
    expect([world.account.clients.length, world.entries[0].state]).toEqual([1, "unusable"]);
  });

  it.each(Array.from({ length: 14 }, (_value, index) => `record ${index + 1}`))(
    "by integ itself is replaced, even if the call %s failed",
    async (step) => {
      for (const create of [["silent"], ["silent", { refused: 403 }], ["silent", "lost before"]] as Fate[][]) {
        const world = new AWorld({ fates: { create }, failing: [step] });
        await replace(world);
        for (let round = 0; round < 3; round++) await world.recover();
        expect([world.broken, world.unsettled()]).toEqual([[], []]);
        // Without an entry or a client, the first request was not sent.
        if (world.entries.length > 0 && world.account.clients.length > 0)
          expect(world.entries.map(({ state }) => state)).not.toContain("unusable");
      }
    },
  );
});
