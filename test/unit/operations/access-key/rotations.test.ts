// A lost response to a rotation in place can leave no working secret. In a replacement, one of two keys always works.
import { describe, expect, it } from "vitest";
import { replaceAccessKey } from "../../../../src/operations/key-rotation.ts";
import { earlierRotations, rotateAccessKey } from "../../../../src/operations/in-place.ts";
import type { AccessKeyRequest } from "../../../../src/api/access-keys.ts";
import type { FailureKind } from "../../../../src/errors.ts";
import type { EntryState } from "../../../../src/journal/entry.ts";
import type { Fate } from "../an-account.ts";
import { AWorld, type Ended, type Setting } from "../a-world.ts";

function worldWithKeys(setting: Setting = {}): AWorld {
  const world = new AWorld(setting);
  world.account.addExisting("key", "ak_own");
  world.account.addExisting("key", "ak_old");
  world.revocable.add("ak_old");
  return world;
}

interface Row {
  readonly setting?: Setting;
  readonly ends: FailureKind | "done";
  readonly state: EntryState;
  readonly recovered: EntryState;
  readonly rotations: number;
}

function rotateInPlace(world: AWorld, updateProfile = false): Promise<Ended<unknown>> {
  return world.run((bench) =>
    rotateAccessKey(bench, { id: "ak_old", updateProfile }, { destination: world.destination() }),
  );
}

describe("in place", () => {
  const lostOnce: Setting = { fates: { rotate: ["lost after"] } };
  const rows: Record<string, Row> = {
    delivered: { ends: "done", state: "done", recovered: "done", rotations: 1 },
    "429, then delivered": {
      setting: { fates: { rotate: [{ refused: 429 }] } },
      ends: "done",
      state: "done",
      recovered: "done",
      rotations: 1,
    },
    refused: {
      setting: { fates: { rotate: [{ refused: 403 }] } },
      ends: "auth",
      state: "refused",
      recovered: "refused",
      rotations: 0,
    },
    "a lost response: not sent again automatically": {
      setting: lostOnce,
      ends: "outcome_unknown",
      state: "unknown",
      recovered: "done",
      rotations: 2,
    },
    "cut: the secret is kept": {
      setting: { fates: { rotate: ["cut"] } },
      ends: "undelivered",
      state: "undelivered",
      recovered: "undelivered",
      rotations: 1,
    },
    "no secret in the response": {
      setting: { fates: { rotate: ["silent"] } },
      ends: "secret_lost",
      state: "secret_lost",
      recovered: "done",
      rotations: 2,
    },
  };

  it.each(Object.entries(rows))("%s", async (_name, { setting, ends, state, recovered, rotations }) => {
    const world = worldWithKeys(setting);
    expect((await rotateInPlace(world)).kind).toBe(ends);
    expect(world.entries[0]!.state).toBe(state);
    await world.recover();
    expect(world.entries[0]!.state).toBe(recovered);
    const key = world.account.keys[1]!;
    expect(key.secret.split("+")).toHaveLength(rotations + 1);
    if (rotations > 0) expect(world.isSafe(key.secret)).toBe(true);
  });

  it("an unknown outcome stays unknown without consent, and nothing is sent", async () => {
    const world = worldWithKeys(lostOnce);
    await rotateInPlace(world);
    const { value } = await world.recover({ mayReplace: async () => false });
    expect(value![0]!.failure?.details.recovers).toBe(world.entries[0]!.id);
    expect(world.account.requests.filter((one) => one.startsWith("rotate"))).toHaveLength(1);
    expect((await rotateInPlace(world)).kind).toBe("outcome_unknown");
  });
});

interface ReplacementOptions {
  readonly overlapMs?: number;
  readonly updateProfile?: boolean;
  readonly boundTo?: string;
  readonly scopes?: AccessKeyRequest["scopes"];
  readonly expiresAt?: string;
  readonly name?: string;
  readonly keyType?: AccessKeyRequest["keyType"];
  readonly marked?: boolean;
}

function replaceKey(
  world: AWorld,
  { overlapMs = 0, updateProfile = false, boundTo, marked = true, name = "new", ...request }: ReplacementOptions = {},
): Promise<Ended<unknown>> {
  return world.run((bench) =>
    replaceAccessKey(
      bench,
      {
        oldId: "ak_old",
        boundTo,
        creation: { request: { name, ...request }, marked },
        overlapMs,
        updateProfile,
      },
      {
        destination: world.destination(),
        waitMs: 60_000,
        mayReplace: async () => true,
        mayRevokeUnproven: async () => false,
      },
    ),
  );
}

describe("by replacement", () => {
  it.each([
    [{ scopes: ["push-ingest:*"] }, "--scope was * push-ingest:*, and is push-ingest:* now"],
    [{ expiresAt: "2027-01-01T00:00:00Z" }, "the expiry was never, and is 2027-01-01T00:00:00Z now"],
    [{ overlapMs: 60_000 }, "--overlap was 86400s, and is 60s now"],
    [{ updateProfile: true }, "--update-profile was false, and is true now"],
    [{ name: "other" }, "--name was new, and is other now"],
    [{ keyType: "service_account" }, "--type was user_bound, and is service_account now"],
    [{ marked: false }, "--marker was true, and is false now"],
  ] as const)("is refused with both values when resumed with %j", async (typed, message) => {
    const world = worldWithKeys();
    const started: ReplacementOptions = { overlapMs: 86_400_000, scopes: ["*", "push-ingest:*"] };
    await replaceKey(world, started);
    const requests = world.account.requests.length;
    const { kind, failure } = await replaceKey(world, { ...started, ...typed });
    expect([kind, failure?.message]).toEqual(["usage", expect.stringContaining(message)]);
    expect(failure?.details.meaning).toContain("--new");
    expect(world.account.requests).toHaveLength(requests);
  });

  const both = ["ak_old", "ak_3"];
  const rows: Record<
    string,
    { setting?: Setting; how?: ReplacementOptions; ends: FailureKind | "done"; state: EntryState; live: string[] }
  > = {
    "proven and revoked": { ends: "done", state: "done", live: ["ak_3"] },
    "a long overlap": { how: { overlapMs: 86_400_000 }, ends: "done", state: "waiting", live: both },
    "the proof is refused": {
      setting: { fates: { exchange: [{ refused: 401 }] } },
      ends: "pending",
      state: "pending",
      live: both,
    },
    "bound to another user": { how: { boundTo: "user_2" }, ends: "pending", state: "pending", live: both },
    "the creation refused": {
      setting: { fates: { create: [{ refused: 403 }] } },
      ends: "auth",
      state: "refused",
      live: ["ak_old"],
    },
    "the creation's response lost": {
      setting: { fates: { create: ["lost after"] } },
      ends: "outcome_unknown",
      state: "unknown",
      live: both,
    },
    "no delivery": { setting: { failing: ["deliver"] }, ends: "undelivered", state: "undelivered", live: both },
    "the profile's own, not accepted": {
      setting: { fates: { exchange: [{ refused: 401 }] }, destination: "profile" },
      how: { updateProfile: true },
      ends: "undelivered",
      state: "undelivered",
      live: both,
    },
    "the revocation refused": {
      setting: { fates: { revoke: [{ refused: 403 }] } },
      ends: "auth",
      state: "pending",
      live: both,
    },
  };

  it.each(Object.entries(rows))("%s", async (_name, { setting, how, ends, state, live }) => {
    const world = worldWithKeys(setting);
    expect((await replaceKey(world, how)).kind).toBe(ends);
    expect(world.account.live("key").map(({ id }) => id)).toEqual(["ak_own", ...live]);
    expect(world.entry("access_key.rotate")!.state).toBe(state);
    expect(world.broken).toEqual([]);
  });
});

it("the question about another user comes after the proof, and names the missing proof too", async () => {
  const world = worldWithKeys();
  const { failure } = await replaceKey(world, { boundTo: "user_2" });
  const words = "is bound to the user user_1, the old one to user_2";
  expect([failure?.message, world.account.requests]).toEqual([
    `The new key ak_3 ${words}.`,
    expect.arrayContaining(["exchange"]),
  ]);
  world.files.clear();
  const asked: unknown[] = [];
  await world.recover({ mayRevokeUnproven: async (_entry, ...about) => asked.push(about) === 0 });
  expect(asked).toEqual([[`cannot be proven: an earlier run delivered its secret, and ${words}`, false]]);
});

it("after the overlap, while the list is unavailable, the old key stays valid until the new one is known to work", async () => {
  const world = worldWithKeys({ retryForMs: 0 });
  await replaceKey(world, { overlapMs: 3_600_000 });
  const made = world.account.keys.at(-1)!;
  made.status = "revoked";
  world.now += 7_200_000;
  for (const list of [["lost before"], [{ refused: 429 }], []] as Fate[][]) {
    world.account.fates.list = list;
    await world.recover();
    expect(world.account.keys.find(({ id }) => id === "ak_old")?.status).toBe("active");
  }
  expect(world.entries[0]!.state).toBe("unusable");
  expect(world.broken).toEqual([]);
});

it.each([
  ["command", "revoked", "pending", ["ak_old"]],
  ["file", "revoked", "pending", ["ak_old"]],
  ["file", "active", undefined, ["ak_3"]],
] as const)(
  "after the overlap, while the list is forbidden, the new key in a %s is tried again: %s",
  async (destination, status, ends, live) => {
    const world = worldWithKeys({ destination });
    await replaceKey(world, { overlapMs: 3_600_000 });
    world.account.keys.at(-1)!.status = status;
    world.now += 7_200_000;
    world.account.fates.list = Array.from({ length: 9 }, () => ({ refused: 403 }));
    const { value } = await world.recover({ mayRevokeUnproven: async () => false });
    expect([value![0]!.failure?.kind, world.account.live("key").map(({ id }) => id)]).toEqual([
      ends,
      ["ak_own", ...live],
    ]);
  },
);

it("the old key stays valid if the proven new key was revoked before its kept secret was delivered", async () => {
  let tested = 0;
  for (let index = 1; index < 10; index += 1) {
    const world = worldWithKeys({ destination: "stdout", failing: [`record ${index}`] });
    await replaceKey(world);
    const rotation = world.entry("access_key.rotate")!;
    const made = world.account.keys.find(({ id }) => id === "ak_3");
    if (rotation.detail.proven === undefined || world.kept.size === 0 || made === undefined) continue;
    tested += 1;
    made.status = "revoked";
    const { value } = await world.recover({ destinationOf: async () => world.single("file") });
    expect([value![0]!.failure?.kind, world.account.live("key").map(({ id }) => id)]).toEqual([
      "unusable",
      ["ak_own", "ak_old"],
    ]);
  }
  expect(tested).toBeGreaterThan(0);
});

it("an answer does not cover a rotation that another process finished during the question", async () => {
  const world = worldWithKeys();
  const rotated = (settledBefore?: ReadonlySet<string>): Promise<Ended<unknown>> =>
    world.run((bench) => {
      const options = { destination: world.single("stdout"), settledBefore };
      return rotateAccessKey(bench, { id: "ak_old", updateProfile: false }, options);
    });
  const asked = await world.run((bench) => earlierRotations(bench, "ak_old"));
  expect((await rotated()).kind).toBe("done");
  const { secret } = world.account.keys[1]!;
  expect((await rotated(asked.value)).failure?.message).toBe("Another process has just rotated the key ak_old.");
  expect(world.account.keys[1]!.secret, "nothing was sent").toBe(secret);
  expect((await rotated()).kind).toBe("done");
});
