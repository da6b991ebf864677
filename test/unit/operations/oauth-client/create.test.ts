// A creation follows the decision table of §4.2. These tests check the records on disk before a request, and the result
// if a step fails or the process ends.
import { describe, expect, it } from "vitest";
import { createOAuthClient } from "../../../../src/operations/client.ts";
import type { Destination, RecordOf } from "../../../../src/secrets/destination.ts";
import { AWorld, type Ended } from "../a-world.ts";

const request = { service_account_id: "sa_1", scopes: ["entity:read"] };

function create(
  world: AWorld,
  more: { key?: string; fresh?: boolean; waitMs?: number; destination?: Destination } = {},
): Promise<Ended<string>> {
  return world.run(async (bench) => {
    const made = await createOAuthClient(bench, request, {
      destination: world.destination(),
      waitMs: 60_000,
      ...more,
      mayReplace: async () => false,
    });
    return made.kind;
  });
}

describe("the decision table", () => {
  it("a pending client that becomes active is replayed under its key and delivered", async () => {
    const world = new AWorld({ fates: { create: ["pending"] } });
    expect((await create(world)).kind).toBe("pending");
    world.account.clients[0]!.status = "active";
    expect((await create(world)).value).toBe("delivered");
    expect(world.account.clients).toHaveLength(1);
  });

  it("a pending client that was revoked meanwhile is unusable", async () => {
    const world = new AWorld({ fates: { create: ["pending"] } });
    await create(world);
    world.account.clients[0]!.status = "revoked";
    expect([(await create(world)).kind, world.entries[0]!.state]).toEqual(["unusable", "unusable"]);
  });

  it("Ctrl-C during a wait leaves the outcome unknown after an attempt that may have arrived, and the entry open after 429", async () => {
    for (const [fate, state] of [
      ["lost before", "unknown"],
      [{ refused: 429 }, "open"],
    ] as const) {
      const world = new AWorld({ fates: { create: [fate] } });
      world.account.onRequest = () => world.interrupt();
      await create(world);
      expect(world.entry("oauth_client.create")!.state).toBe(state);
    }
  });
});

describe("the same creation again", () => {
  it.each([
    ["unknown", "lost before", "outcome_unknown"],
    ["pending", "pending", "pending"],
  ] as const)("is not sent before Retry-After if an earlier attempt left it %s", async (state, fate, kind) => {
    const world = new AWorld({ fates: { create: [fate, { refused: 429, retryAfterSeconds: 9000 }] }, retryForMs: 0 });
    await create(world);
    for (const client of world.account.clients) client.status = "active";
    for (const sent of [2, 2]) {
      expect((await create(world)).kind).toBe(kind);
      expect(world.entry("oauth_client.create")!.state).toBe(state);
      expect((await world.recover()).value![0]!.failure?.kind).toBe(kind);
      expect(world.account.requests.filter((what) => what === "create")).toHaveLength(sent);
    }
    world.now += 9_000_000;
    expect((await create(world)).value).toBe("delivered");
  });

  it("is not sent after the secret of a broken response could not be kept because the disk failed", async () => {
    const world = new AWorld({ fates: { create: ["cut"] }, failing: ["keep"] });
    expect((await create(world)).kind).toBe("outcome_unknown");
    expect(world.account.requests).toEqual(["create"]);
  });

  it("after 429 continues under the same key, by recovery or when typed again, and ends with a refusal", async () => {
    const early = { refused: 429, retryAfterSeconds: 9000 } as const;
    const world = new AWorld({ fates: { create: [early, early] } });
    expect((await create(world)).kind).toBe("rate_limited");
    // integ sends no request, because the requested wait is longer than --retry-for.
    expect((await create(world)).kind).toBe("rate_limited");
    expect((await world.recover()).value![0]!.failure?.kind).toBe("rate_limited");
    expect(world.account.requests).toHaveLength(1);
    world.now += 9_000_000;
    expect((await world.recover()).value![0]!.failure?.kind).toBe("rate_limited");
    // After the clock was set back, the remaining time is unknown, so integ sends the request again.
    world.now -= 20_000_000;
    expect((await create(world)).value).toBe("delivered");
    expect([world.entries.length, world.account.requests.length]).toEqual([1, 3]);
    const refused = new AWorld({ fates: { create: [{ refused: 429 }, { refused: 403 }] }, retryForMs: 0 });
    await create(refused);
    await create(refused);
    expect(refused.entry("oauth_client.create")!.state).toBe("refused");
  });

  it("is resumed under the same key; --new starts another; an explicit key returns the same client", async () => {
    const world = new AWorld({ fates: { create: ["lost before"] }, retryForMs: 0, destination: "stdout" });
    expect((await create(world)).kind).toBe("outcome_unknown");
    expect((await create(world)).value).toBe("delivered");
    expect(world.entries).toHaveLength(1);
    expect((await create(world, { fresh: true })).value).toBe("delivered");
    expect((await create(world, { key: world.entries[0]!.idempotency_key! })).value).toBe("delivered_before");
    expect([world.entries.length, world.account.clients.length]).toEqual([2, 2]);
  });

  it("accepts the file of an interrupted run, and refuses someone else's file", async () => {
    const world = new AWorld();
    world.crashAt = Number.POSITIVE_INFINITY;
    await create(world);
    const { entries, files } = world;
    entries[0] = { ...entries[0]!, state: "unknown" };
    expect((await create(world)).value).toBe("delivered_before");
    files.set("/secret", { inode: "another", secret: "x" });
    expect((await create(world)).kind).toBe("usage");
    expect(world.account.clients).toHaveLength(1);
  });
});

describe("a credential that changed since the first attempt (§4.2 rule 2)", () => {
  const lost = (): AWorld => new AWorld({ fates: { create: ["lost after"] }, retryForMs: 0 });

  it("is reported before the request is sent, and named if the service refuses the key for another request", async () => {
    const world = lost();
    expect((await create(world)).kind).toBe("outcome_unknown");
    world.account.credential = "second";
    const failure = (await world.recover()).value![0]!.failure!;
    expect(world.messages.join()).toContain("another credential than at the first attempt");
    expect([failure.kind, failure.details.hint]).toEqual([
      "outcome_unknown",
      expect.stringMatching(
        /^Give profile p the credential of the first attempt .* changed since. Then run integ journal/,
      ),
    ]);
    expect(JSON.stringify(failure.details)).not.toContain("--idempotency-key");
    world.account.credential = "first";
    expect((await world.recover()).kind).toBe("done");
    expect(world.account.clients.filter(({ status }) => status === "active").length).toBeLessThanOrEqual(1);
  });

  it("is not reported if it is the same, or if the service delayed the attempt", async () => {
    const same = lost();
    await create(same);
    await same.recover();
    const early = new AWorld({ fates: { create: [{ refused: 429 }] }, retryForMs: 0 });
    await create(early);
    early.account.credential = "second";
    expect((await create(early)).value).toBe("delivered");
    expect([...same.messages, ...early.messages].join()).not.toContain("another credential");
  });

  it("is not blamed for the conflict of an explicit key", async () => {
    const reuse = { refused: 409, code: "idempotency_key_reuse" } as const;
    const typed = new AWorld({ fates: { create: [reuse] } });
    expect((await create(typed, { key: "k" })).failure!.details.hint).toContain("--idempotency-key");
    const own = new AWorld({ fates: { create: [reuse] } });
    expect((await create(own)).failure!.details.hint).not.toContain("--");
  });
});

describe("a step that fails", () => {
  it.each(["check", "prepare", "reserve", "admit", "record 1"])("%s: nothing is sent", async (step) => {
    const world = new AWorld({ failing: [step] });
    expect((await create(world)).kind).toBe("failed");
    expect(world.account.requests).toEqual([]);
  });

  it.each([
    [["deliver"], "undelivered", 1],
    [["deliver", "keep"], "secret_lost", 0],
  ] as const)("%j: %s", async (failing, state, kept) => {
    const world = new AWorld({ failing });
    expect((await create(world)).kind).toBe(state);
    expect(world.entry("oauth_client.create")!.state).toBe(state);
    expect(world.kept.size).toBe(kept);
    // A secret that is neither delivered nor kept is complete in its reserved file.
    expect(world.isSafe(world.account.clients[0]!.secret)).toBe(true);
  });

  it.each([
    ["file", 0],
    ["stdout", 1],
  ] as const)("done cannot be recorded, for a %s: reported, delivered, and a copy stays", async (destination, kept) => {
    const world = new AWorld({ destination, failing: ["record 2"] });
    expect((await create(world)).value).toBe("delivered");
    expect(world.messages.join()).toContain("journal could not be updated");
    expect(world.kept.size).toBe(kept);
    await world.recover();
    expect(world.account.live("client")).toHaveLength(1);
  });

  it("on a full disk, the space reserved for a copy is free before the delivery is recorded", async () => {
    const world = new AWorld({ destination: "file" });
    await create(world);
    expect(world.calls.indexOf("release kept")).toBeLessThan(world.calls.lastIndexOf("record"));
    expect(world.calls).toContain("release kept");
  });

  it.each(["secret_lost", "undelivered"] as const)(
    "an entry recorded as %s whose secret is at its destination: nothing is revoked",
    async (state) => {
      const world = new AWorld();
      await create(world);
      world.entries[0] = { ...world.entries[0]!, state };
      await world.recover();
      expect(world.entries.map((entry) => entry.state)).toEqual(["done"]);
      expect(world.account.requests).toEqual(["create"]);
    },
  );

  it("an undelivered secret whose copy's folder was deleted is replaced", async () => {
    const world = new AWorld({ failing: ["deliver"], destination: "stdout" });
    expect((await create(world)).kind).toBe("undelivered");
    world.kept.clear();
    await world.recover();
    expect(world.entries.map((entry) => entry.state)).toEqual(["replaced", "done"]);
  });
});

describe("a secret that only one of several destinations has, without a kept copy", () => {
  async function partlyDelivered(): Promise<AWorld> {
    const world = new AWorld({ destination: "three", failing: ["write store"] });
    expect((await create(world)).kind).toBe("undelivered");
    const [entry] = world.entries;
    world.kept.delete(entry!.id);
    world.profiles.clear();
    const destination = entry!.destination as RecordOf<"several">;
    const places = destination.places.map((place) =>
      place.at.kind === "file" ? place : { ...place, state: "pending" as const },
    );
    world.entries[0] = { ...entry!, state: "unknown", destination: { ...destination, places } };
    return world;
  }

  it("is delivered to the others by recovery", async () => {
    const world = await partlyDelivered();
    await world.recover();
    expect([world.entries[0]!.state, world.allHaveSameSecret()]).toEqual(["done", true]);
    expect(world.kept.size).toBe(0);
  });

  it("is not lost if the command is typed again with another destination", async () => {
    const world = await partlyDelivered();
    expect((await create(world, { destination: world.single("command") })).kind).toBe("undelivered");
    expect([...world.kept.values()].map(({ secret }) => secret)).toEqual([world.account.clients[0]!.secret]);
  });
});
