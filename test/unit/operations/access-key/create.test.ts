import { describe, expect, it } from "vitest";
import { markedName } from "../../../../src/api/access-keys.ts";
import { createAccessKey, keyCreationIntent } from "../../../../src/operations/key.ts";
import { Failure } from "../../../../src/errors.ts";
import { dueAt, type Entry } from "../../../../src/journal/entry.ts";
import { plainDigests } from "../../../model/in-memory.ts";
import { AWorld, type Ended, type Setting } from "../a-world.ts";

function create(world: AWorld, marked = false): Promise<Ended<unknown>> {
  return world.run((bench) =>
    createAccessKey(bench, { request: { name: "ci" }, marked }, { destination: world.destination() }),
  );
}

function worldWithOwnKey(setting: Setting = {}): AWorld {
  const world = new AWorld(setting);
  world.account.addExisting("key", "ak_own");
  return world;
}

describe("a creation", () => {
  it("after 429 continues as the same entry, by recovery or when typed again, and not before Retry-After", async () => {
    const early = { refused: 429, retryAfterSeconds: 9000 } as const;
    const world = worldWithOwnKey({ fates: { create: [early] } });
    expect((await create(world)).kind).toBe("rate_limited");
    expect(Date.parse(dueAt(world.entries[0]!)!) - world.now).toBeCloseTo(9_000_000, -2);
    expect((await create(world)).kind).toBe("rate_limited");
    expect((await world.recover()).value![0]!.failure?.kind).toBe("rate_limited");
    expect(world.account.requests).toEqual(["create"]);
    world.now += 9_000_000;
    expect((await create(world)).kind).toBe("done");
    expect([world.entries.length, world.account.requests]).toEqual([1, ["create", "create"]]);
  });

  it.each(["prepare", "reserve", "record 1"])("is not sent if %s fails", async (step) => {
    const world = worldWithOwnKey({ failing: [step] });
    expect((await create(world)).kind).toBe("failed");
    expect(world.account.requests).toEqual([]);
  });

  it("keeps its copy if the journal cannot record done, so that recovery never takes the key for an orphan", async () => {
    const world = worldWithOwnKey({ failing: ["record 3"] });
    expect((await create(world)).kind).toBe("done");
    expect([world.kept.size, world.files.size]).toEqual([1, 1]);
    expect(world.messages.join()).toContain("journal could not be updated");
    await world.recover();
    expect(world.entries[0]).toMatchObject({ state: "done", resource_id: "ak_2" });
    expect([world.kept.size, world.account.live("key").length]).toEqual([0, 2]);
  });

  it.each([
    ["with a marker in its name, the list identifies it", true, undefined, "done"],
    ["even after it was used", true, "used", "done"],
    ["without a marker, integ does not guess which key it is", false, undefined, "unknown"],
    ["a key revoked since is not replaced", true, "revoked", "unusable"],
    ["a key revoked a moment ago leaves the outcome unknown", true, "revoked a moment ago", "unknown"],
    ["claimed by a person to another place", true, "claimed", "done"],
  ] as const)("was delivered, but neither journal nor copy has its id: %s", async (_what, marked, since, state) => {
    const world = worldWithOwnKey({ failing: ["keep", "record 3"] });
    await create(world, marked);
    if (since !== "revoked a moment ago") world.now += 60_000;
    const made = world.account.keys.at(-1)!;
    if (since === "used") made.lastUsedAt = new Date(world.now).toISOString();
    if (since?.startsWith("revoked")) made.status = "revoked";
    if (since === "claimed") {
      world.files.clear();
      world.entries[0] = { ...world.entries[0]!, detail: { ...world.entries[0]!.detail, secret_claimed: true } };
    }
    const [recovered] = (await world.recover({ waitMs: since?.endsWith("ago") ? 0 : 60_000 })).value!;
    expect(world.entries).toMatchObject([{ state, resource_id: state === "done" ? "ak_2" : null }]);
    expect(recovered!.failure?.message ?? "").toContain(state === "unknown" ? "which key" : "");
    if (state === "unknown") expect((await create(world, marked)).kind).toBe("outcome_unknown");
    expect(world.account.requests.filter((one) => !one.startsWith("list"))).toEqual(["create"]);
  });

  it("whose secret is undelivered, and whose copy's folder was deleted, is replaced", async () => {
    const world = worldWithOwnKey({ failing: ["deliver"], destination: "stdout" });
    expect((await create(world)).kind).toBe("undelivered");
    world.kept.clear();
    await world.recover();
    expect(world.entries.map((entry) => entry.state)).toEqual(["replaced", "done"]);
  });

  it("sends nothing more after a disk error, even if the service asks for a retry", async () => {
    // The second record says that the first request changed nothing.
    const world = worldWithOwnKey({ fates: { create: [{ refused: 429 }] }, failing: ["record 2"] });
    expect((await create(world)).kind).toBe("failed");
    expect(world.account.requests).toEqual(["create"]);
  });

  it("typed again after an unknown outcome creates no second key", async () => {
    const world = worldWithOwnKey({ fates: { create: ["lost after"] } });
    await create(world);
    expect((await create(world)).kind).toBe("outcome_unknown");
    expect(world.account.requests).toEqual(["create"]);
  });

  it("keeps the copy first, and destroys it after the journal recorded done", async () => {
    const world = worldWithOwnKey();
    await create(world);
    const order = world.calls.filter((call) =>
      ["reserve", "record", "create", "keep", "deliver", "destroy", "release kept"].includes(call),
    );
    // Space for the copy is reserved before the request: the disk may be full when the response arrives.
    const ending = ["deliver", "release kept", "record", "destroy", "release kept"];
    expect(order).toEqual(["reserve", "record", "create", "keep", "record", ...ending]);
  });
});

describe("recovery of a key that may have been created", () => {
  const lost: Setting = { fates: { create: ["lost after"] } };

  it("revokes nothing for a destination that cannot take a secret", async () => {
    const world = worldWithOwnKey(lost);
    await create(world, true);
    await world.recover({ mayReplace: async () => false });
    const destinationOf = async () =>
      Object.assign(world.destination("store"), {
        prepare: async () => Promise.reject(new Failure("usage", "The store takes nothing.")),
      });
    const { value } = await world.recover({ destinationOf });
    expect([value![0]!.failure?.kind, value![0]!.entry.state]).toEqual(["secret_lost", "secret_lost"]);
    expect(world.account.requests).not.toContain("revoke ak_2");
    await world.recover();
    expect(world.entries.map(({ state }) => state)).toEqual(["replaced", "refused", "done"]);
  });

  it("revokes no key that was used after it was reported lost", async () => {
    const world = worldWithOwnKey({ fates: { create: ["lost after"] } });
    await create(world, true);
    await world.recover({ mayReplace: async () => false });
    world.account.keys.at(-1)!.lastUsedAt = new Date(world.now).toISOString();
    const { value } = await world.recover();
    expect(value![0]!.failure?.message).toContain("its secret is in use");
    expect(world.account.live("key")).toHaveLength(2);
  });
});

describe("the intent", () => {
  it("has the same fingerprint for the same key: scopes compare as a set, the expiry as typed, without the marker", async () => {
    await new AWorld().run(async (bench) => {
      const of = (scopes: string[], expiresAt: string, mark: string) =>
        keyCreationIntent(
          bench,
          { request: { name: "n", scopes, expiresAt }, expiry: "in 1 ms", marked: true },
          { mark },
        );
      const one = of(["*", "push-ingest:*"], "2027-01-01T00:00:00Z", "-a");
      expect(one.fingerprint).toBe(of(["push-ingest:*", "*", "*"], "2027-01-02T00:00:00Z", "-b").fingerprint);
      expect(JSON.parse(one.request_text)).toMatchObject({ name: "n-a" });
      expect(keyCreationIntent(bench, { request: { name: "n" }, marked: false }).fingerprint).not.toBe(one.fingerprint);
    });
  });

  it("has a marker within 255 characters or is refused; astral characters count once", () => {
    expect(markedName("🔑".repeat(250), "-1234")).toHaveLength(505);
    expect(() => markedName("x".repeat(251), "-1234")).toThrow(Failure);
  });
});

describe("two creations with one name, one of them on another machine", () => {
  /** The first creation created no key; the key of the second exists, and its secret is kept on the other machine. */
  async function twoUnfinished(): Promise<AWorld> {
    const world = worldWithOwnKey({ fates: { create: ["lost before", "cut"] } });
    await create(world);
    world.place = "there:/state";
    await world.run((bench) =>
      createAccessKey(
        bench,
        { request: { name: "ci" }, marked: false },
        { destination: world.destination("command"), fresh: true },
      ),
    );
    const [first, second] = world.entries;
    // Simulates a crash before the journal recorded that the secret is kept.
    world.entries[1] = { ...second!, state: "open", resource_id: null, detail: { ...second!.detail, in_flight: true } };
    expect([first!.state, world.kept.size]).toEqual(["unknown", 1]);
    return world;
  }

  it.each<[string, string, (world: AWorld, second: Entry) => Entry | undefined]>([
    ["runs", "a running process works on", (world, { id }) => void world.running.add(id)],
    ["may keep its secret on the other machine", "its secret may be kept there", () => undefined],
    [
      "was claimed",
      "was delivered",
      (_, second) => ({ ...second, detail: { ...second.detail, secret_claimed: true } }),
    ],
    [
      "was delivered",
      "was delivered",
      (world, second) => {
        const { secret } = world.account.keys.at(-1)!;
        world.files.set("/there", { inode: "9", secret });
        const proof = plainDigests.of(secret);
        return { ...second, destination: { kind: "file", path: "/there", as: "raw", proof } };
      },
    ],
    [
      "ends during the recovery",
      "has finished meanwhile",
      (world, second) => {
        const { id } = world.account.keys.at(-1)!;
        world.onTryLease = () => void (world.entries[1] = { ...second, state: "done", resource_id: id });
      },
    ],
  ])("the key may belong to the other creation, which %s: nothing is reported lost", async (_what, says, change) => {
    const world = await twoUnfinished();
    world.kept.clear();
    world.place = "here:/state";
    const [first, second] = world.entries as [Entry, Entry];
    world.entries[1] = change(world, second) ?? second;
    const { value } = await world.recover({ mayReplace: async () => false });
    const { entry, failure } = value!.find((one) => one.entry.id === first.id)!;
    expect([entry.state, failure?.details.meaning]).toEqual(["unknown", expect.stringContaining(says)]);
  });

  it.each([
    ["has another name", { request_text: '{"name":"other"}' }],
    ["is at another address", { base_url: "https://other.example" }],
    ["is not a creation", { operation: "access_key.revoke" }],
    ["was never sent", { state: "open", detail: { in_flight: false, attempted_at: ["there:/state"] } }],
    ["has a known key", { resource_id: "ak_9" }],
    ["is finished", { state: "refused" }],
    ["was requested only on this machine", { detail: { in_flight: true, attempted_at: ["here:/state"] } }],
  ] as const)("do not affect each other if the second one %s", async (_what, about) => {
    const world = await twoUnfinished();
    world.kept.clear();
    world.place = "here:/state";
    const [first, second] = world.entries;
    world.entries.splice(0, 2, first!, { ...second!, ...about } as never);
    const { value } = await world.recover({ mayReplace: async () => false });
    expect(value!.find(({ entry }) => entry.id === first!.id)!.entry.state).toBe("secret_lost");
  });
});
