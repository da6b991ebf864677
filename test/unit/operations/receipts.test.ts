// An answer is compared with what was asked for before it counts: operation × field × what the answer says instead. Whatever
// differs, nothing is revoked, a secret that came is delivered or kept, and a second recovery changes nothing.
import { describe, expect, it } from "vitest";
import { createAccessKey } from "../../../src/operations/key.ts";
import { replaceAccessKey } from "../../../src/operations/key-rotation.ts";
import { rotateAccessKey } from "../../../src/operations/in-place.ts";
import { createOAuthClient } from "../../../src/operations/client.ts";
import { rotateOAuthClient } from "../../../src/operations/client-rotation.ts";
import { revokeAccessKey, revokeOAuthClient } from "../../../src/operations/revocation.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { AWorld, type DestinationKind } from "./a-world.ts";

const yes = async (): Promise<boolean> => true;
const client = { service_account_id: "sa_1", scopes: ["entity:read"] };
const keyRequest = { name: "ci", scopes: ["push-ingest:*"], expiresAt: "2027-01-31T00:00:00.000Z" };

type Work = (bench: Workbench, world: AWorld) => Promise<unknown>;

const clientWork: Record<string, Work> = {
  "oauth-clients create": (bench, world) =>
    createOAuthClient(bench, client, {
      destination: world.destination(),
      waitMs: 0,
      mayReplace: async () => false,
    }),
  "oauth-clients rotate": (bench, world) =>
    rotateOAuthClient(
      bench,
      { old: { id: "oc_old", ...client, status: "active" }, request: { overlapMs: 0, keepOld: false } },
      { destination: world.destination(), waitMs: 0, mayReplace: yes, mayRevokeUnproven: yes },
    ),
};

const keyWork: Record<string, Work> = {
  "keys create": (bench, world) =>
    createAccessKey(bench, { request: keyRequest, marked: false }, { destination: world.destination() }),
  "keys rotate --by-replacement": (bench, world) =>
    replaceAccessKey(
      bench,
      { oldId: "ak_old", creation: { request: keyRequest, marked: false }, overlapMs: 0, updateProfile: false },
      { destination: world.destination(), mayReplace: yes, mayRevokeUnproven: yes, waitMs: 0 },
    ),
};

const inPlace: Record<string, Work> = {
  "keys rotate": (bench, world) =>
    rotateAccessKey(bench, { id: "ak_old", updateProfile: false }, { destination: world.destination() }),
};

const clientLies: Record<string, Readonly<Record<string, unknown>>> = {
  "another service account": { service_account_id: "sa_2" },
  "a wider scope": { scopes: ["entity:read", "organization:read"] },
  "a narrower scope": { scopes: [] },
  "another scope": { scopes: ["cohort:read"] },
  "a client that is revoked": { status: "revoked", client_secret: null },
  "a status that is not documented": { status: "provisioning" },
};
const rotationLies = { ...clientLies, "the id of the old client": { id: "oc_old" } };

const keyLies: Record<string, Readonly<Record<string, unknown>>> = {
  "another name": { name: "other" },
  "another type": { keyType: "service_account" },
  "a wider scope": { scopes: ["*"] },
  "one scope more": { scopes: ["push-ingest:*", "*"] },
  "no expiry": { expiresAt: null },
  "a later expiry": { expiresAt: "2028-01-31T00:00:00.000Z" },
  "a key that is revoked": { status: "revoked" },
  "the id of the key that asks": { id: "ak_own" },
};
const replacementLies = { ...keyLies, "the id of the old key": { id: "ak_old" } };
const inPlaceLies = {
  "a key that is revoked": { status: "revoked" },
  "another key that is revoked": { id: "ak_9", status: "revoked" },
};

const table = [
  ...product(clientWork, "oauth-clients create", clientLies),
  ...product(clientWork, "oauth-clients rotate", rotationLies),
  ...product(keyWork, "keys create", keyLies),
  ...product(keyWork, "keys rotate --by-replacement", replacementLies),
  ...product(inPlace, "keys rotate", inPlaceLies),
];

interface Cell {
  readonly operation: string;
  readonly says: string;
  readonly work: Work;
  readonly lies: Readonly<Record<string, unknown>>;
  readonly destination: DestinationKind;
  readonly fate: "answered" | "silent";
}

function product(works: Record<string, Work>, operation: string, lies: typeof clientLies): Cell[] {
  return (["file", "command", "stdout"] as const).flatMap((destination) =>
    (["answered", "silent"] as const).flatMap((fate) =>
      Object.entries(lies).map(([says, fields]) => ({
        operation,
        says,
        work: works[operation]!,
        lies: fields,
        destination,
        fate,
      })),
    ),
  );
}

function worldOf({ operation, destination, fate, lies }: Cell): AWorld {
  const post = operation === "keys rotate" ? "rotate" : "create";
  const world = new AWorld({ destination, fates: fate === "silent" ? { [post]: ["silent"] } : {} });
  world.account.has("client", "oc_old");
  world.account.has("key", "ak_own");
  world.account.has("key", "ak_old");
  world.account.lies = lies;
  return world;
}

/** What the answer to a revocation says instead of `revoked`. (Another client's id: the API's own reader, test/contract.) */
const revocationLies: Record<string, Readonly<Record<string, unknown>>> = {
  "a client that is active": { status: "active" },
  "a client that is disabled": { status: "disabled" },
  "a client that has expired": { status: "expired" },
  "a client that is pending": { status: "pending" },
  "a status in capitals": { status: "REVOKED" },
};
const keyRevocationLies: Record<string, Readonly<Record<string, unknown>>> = {
  "a key that is active": { status: "active" },
  "another key that is revoked": { id: "ak_9", status: "revoked" },
  "a status that is not documented": { status: "disabled" },
  "a status in capitals": { status: "REVOKED" },
  "no status": { status: undefined },
  nothing: { id: undefined, status: undefined },
};
const revocations: Record<string, Work> = {
  "oauth-clients revoke": (bench) => revokeOAuthClient(bench, "oc_old"),
  "keys revoke": (bench) => revokeAccessKey(bench, "ak_old"),
};
const rotations = { ...clientWork, ...keyWork };
const revocationTable = [
  ...Object.entries(revocationLies).flatMap(([says, lies]) => [
    { operation: "oauth-clients revoke", says, lies, work: revocations["oauth-clients revoke"]! },
    { operation: "oauth-clients rotate", says, lies, work: rotations["oauth-clients rotate"]! },
  ]),
  ...Object.entries(keyRevocationLies).flatMap(([says, lies]) => [
    { operation: "keys revoke", says, lies, work: revocations["keys revoke"]! },
    { operation: "keys rotate --by-replacement", says, lies, work: rotations["keys rotate --by-replacement"]! },
  ]),
];

describe("a receipt of a revocation that is not what was asked for", () => {
  it.each(revocationTable)("$operation with $says is not over, and is finished later", async ({ work, lies }) => {
    const world = new AWorld({ retryForMs: 0 });
    world.account.has("client", "oc_old");
    world.account.has("key", "ak_own");
    world.account.has("key", "ak_old");
    world.account.revocationLies = lies;
    const ended = await world.run<unknown>((bench) => work(bench, world));
    expect(["outcome_unknown", "pending"]).toContain(ended.kind);
    expect(ended.failure!.message).not.toContain("undefined");
    await world.recover();
    expect(world.unsettled()).not.toEqual([]);
    world.account.revocationLies = undefined;
    await world.recover();
    const old = [...world.account.clients, ...world.account.keys].filter(({ id }) => id.endsWith("_old"));
    expect(old.filter(({ status }) => status === "revoked")).toHaveLength(1);
    expect([world.unsettled(), world.broken]).toEqual([[], []]);
  });

  it.each(Object.entries(revocationLies))(
    "of a client whose secret is lost, with %s: nothing is made in its place before it is revoked",
    async (_says, lies) => {
      const world = new AWorld({ fates: { create: ["silent"] }, retryForMs: 0 });
      world.account.revocationLies = lies;
      const ended = await world.run((bench) => {
        const options = { destination: world.destination(), waitMs: 0, mayReplace: yes };
        return createOAuthClient(bench, client, options);
      });
      expect(ended.kind).toBe("outcome_unknown");
      expect(world.account.requests.filter((request) => request === "create")).toHaveLength(1);
      world.account.revocationLies = undefined;
      await world.recover();
      expect(world.account.live("client")).toHaveLength(1);
      expect([world.unsettled(), world.broken]).toEqual([[], []]);
    },
  );
});

describe("a receipt that is not what was asked for", () => {
  it.each(table)("$operation to $destination, $fate with $says", async (cell) => {
    const world = worldOf(cell);
    const ended = await world.run((bench) => cell.work(bench, world));
    expect(ended.kind).toBe("unusable");
    expect(ended.failure!.message).not.toContain("undefined");
    for (const end of ["now", "recovered", "recovered twice"]) {
      expect({ end, revoked: world.account.requests.filter((request) => request.startsWith("revoke")) }).toEqual({
        end,
        revoked: [],
      });
      await world.recover();
    }
    expect(
      world.account.requests.filter((request) => request === "create" || request.startsWith("rotate")),
    ).toHaveLength(1);
    expect(world.unsettled()).toEqual([]);
    const made = [...world.account.clients, ...world.account.keys].at(cell.operation.startsWith("oauth") ? -3 : -1)!;
    const came = cell.fate === "answered" && !("client_secret" in cell.lies);
    if (came && cell.operation !== "keys rotate") expect(world.isSafe(made.secret)).toBe(true);
    expect(world.broken).toEqual([]);
  });

  it.each(
    Object.entries({ ...clientLies, "the id of the lost client": { id: "oc_1" } }).flatMap(([says, lies]) =>
      (["answered", "silent"] as const).map((fate) => ({ says, lies, fate })),
    ),
  )("of a replacement of a lost secret, $fate with $says: nothing more is revoked", async ({ lies, fate }) => {
    const world = new AWorld({ fates: { create: fate === "silent" ? ["silent", "silent"] : ["silent"] } });
    const ended = await world.run((bench) => {
      const options = { destination: world.destination(), waitMs: 0 };
      return createOAuthClient(bench, client, {
        ...options,
        mayReplace: async () => {
          world.account.lies = lies;
          return true;
        },
      });
    });
    expect(ended.kind).toBe("unusable");
    for (let round = 0; round < 3; round++) {
      expect(world.account.requests.filter((request) => request.startsWith("revoke"))).toEqual(["revoke oc_1"]);
      await world.recover({ mayReplace: async () => false });
    }
    const [, made] = world.account.clients;
    if (fate === "answered" && !("client_secret" in lies)) expect(world.isSafe(made!.secret)).toBe(true);
    expect(world.account.requests.filter((request) => request === "create")).toHaveLength(2);
    expect(world.broken).toEqual([]);
  });

  it.each([
    ["oauth-clients rotate", "oc_old", "client"],
    ["keys rotate --by-replacement", "ak_old", "key"],
  ] as const)("that names the old one, of %s, is never believed after a crash", async (name, old, kind) => {
    const work = { ...clientWork, ...keyWork }[name]!;
    for (const destination of ["stdout", "file"] as const)
      for (let crashAt = 1, hasCrashed = true; hasCrashed; crashAt += 1) {
        const world = new AWorld({ destination });
        world.account.has(kind, old);
        world.account.lies = { id: old };
        world.crashAt = crashAt;
        hasCrashed = (await world.run((bench) => work(bench, world))).kind === "crash";
        world.crashAt = Number.POSITIVE_INFINITY;
        for (let round = 0; round < 3; round += 1) await world.recover({ mayReplace: async () => false });
        const believed = world.entries.filter(({ state, resource_id }) => state === "done" && resource_id === old);
        expect(believed, `${destination}, crash at ${crashAt}`).toEqual([]);
        expect(world.account.requests.filter((request) => request.startsWith("revoke"))).toEqual([]);
      }
  });

  // §4.4 shows no response to a rotation: another id is no other key.
  it.each(["file", "command", "stdout"] as const)(
    "of a rotation in place with another id is delivered to %s, and the id reported",
    async (destination) => {
      const world = new AWorld({ destination });
      world.account.has("key", "ak_own");
      const old = world.account.has("key", "ak_old");
      world.account.lies = { id: "ak_9" };
      const { kind } = await world.run((bench) => inPlace["keys rotate"]!(bench, world));
      expect([kind, world.entry("access_key.rotate")]).toMatchObject(["done", { state: "done", resource_id: "ak_9" }]);
      expect(world.isSafe(old.secret)).toBe(true);
      expect(world.told.join()).toContain(
        "shows the key ak_9: the new secret is that key's. Whether ak_old still works",
      );
      expect(world.broken).toEqual([]);
    },
  );

  it("is what was asked for if only the order of scopes or the form of a time differs", async () => {
    for (const [work, lies] of [
      [clientWork["oauth-clients create"]!, { scopes: ["entity:read", "entity:read"] }],
      [keyWork["keys create"]!, { expiresAt: "2027-01-31T01:00:00+01:00", status: "Active", keyType: "user_bound" }],
    ] as const) {
      const world = new AWorld();
      world.account.lies = lies;
      expect((await world.run((bench) => work(bench, world))).kind).toBe("done");
    }
  });
});
