// A rotation of a client: at every moment one of the two works, whatever fails and wherever the process ends.
import { describe, expect, it } from "vitest";
import { rotateOAuthClient } from "../../../../src/operations/client-rotation.ts";
import type { Rotated } from "../../../../src/operations/rotation.ts";
import type { Account, Workbench } from "../../../../src/operations/workbench.ts";
import type { FailureKind } from "../../../../src/errors.ts";
import type { Entry, EntryState } from "../../../../src/journal/entry.ts";
import { AWorld, type Ended, type Setting } from "../a-world.ts";

interface How {
  readonly id?: string;
  readonly overlapMs?: number;
  readonly keepOld?: boolean;
  readonly agrees?: boolean;
  readonly status?: string;
}

function worldWithOld(setting: Setting = {}): AWorld {
  const world = new AWorld(setting);
  world.account.has("client", "oc_old");
  world.mayGo.add("oc_old");
  return world;
}

function rotate(
  world: AWorld,
  { id = "oc_old", overlapMs = 0, keepOld = false, agrees = false, status = "active" }: How = {},
): Promise<Ended<Rotated>> {
  const old = { id, service_account_id: "sa_1", scopes: ["entity:read"], status };
  return world.run((bench) =>
    rotateOAuthClient(
      bench,
      { old, request: { overlapMs, keepOld } },
      {
        destination: world.destination(),
        waitMs: 60_000,
        mayReplace: async () => agrees,
        mayRevokeUnproven: async () => agrees,
      },
    ),
  );
}

/** The account of whoever recovers: what is active then may be anything. */
async function asNow(world: AWorld, account: Partial<Account>): Promise<() => Promise<Workbench>> {
  let bench: Workbench | undefined;
  await world.run(async (given) => void (bench = given));
  return async () => ({ ...bench!, account: { ...bench!.account, ...account } });
}

interface Row {
  readonly setting?: Setting;
  readonly how?: How;
  readonly ends: FailureKind | "done";
  readonly state: EntryState;
  /** The clients that work afterwards. */
  readonly live: readonly string[];
}

const both = ["oc_old", "oc_2"];
const rows: Record<string, Row> = {
  "proven and revoked": { ends: "done", state: "done", live: ["oc_2"] },
  "--keep-old": { how: { keepOld: true }, ends: "done", state: "done", live: both },
  "no token endpoint": { setting: { proves: false }, ends: "pending", state: "pending", live: both },
  "no token endpoint, and a yes": {
    setting: { proves: false },
    how: { agrees: true },
    ends: "done",
    state: "done",
    live: ["oc_2"],
  },
  "a short overlap": { how: { overlapMs: 60_000 }, ends: "done", state: "done", live: ["oc_2"] },
  "a long overlap": { how: { overlapMs: 36 * 3_600_000 }, ends: "done", state: "waiting", live: both },
  "the proof is refused": {
    setting: { fates: { exchange: [{ refused: 401 }] } },
    ends: "pending",
    state: "pending",
    live: both,
  },
  "no delivery": { setting: { failing: ["deliver"] }, ends: "undelivered", state: "undelivered", live: both },
  "no new client": {
    setting: { fates: { create: [{ refused: 409 }] } },
    ends: "conflict",
    state: "refused",
    live: ["oc_old"],
  },
  "its secret lost, no consent": {
    setting: { fates: { create: ["silent"] } },
    ends: "secret_lost",
    state: "secret_lost",
    live: both,
  },
  "its secret lost, replaced": {
    setting: { fates: { create: ["silent"] } },
    how: { agrees: true },
    ends: "done",
    state: "done",
    live: ["oc_3"],
  },
  "an answer lost for good": {
    setting: { fates: { create: ["lost before"] }, retryForMs: 0 },
    ends: "outcome_unknown",
    state: "unknown",
    live: ["oc_old"],
  },
  "the revocation lost": {
    setting: { fates: { revoke: ["lost before"] }, retryForMs: 0 },
    ends: "outcome_unknown",
    state: "pending",
    live: both,
  },
  "the revocation lost once": {
    setting: { fates: { revoke: ["lost after"] } },
    ends: "done",
    state: "done",
    live: ["oc_2"],
  },
  "an old client that is disabled": {
    how: { status: "disabled" },
    ends: "unusable",
    state: "refused",
    live: ["oc_old"],
  },
  "the journal fails after the delivery": {
    setting: { failing: ["record 3"] },
    ends: "pending",
    state: "open",
    live: both,
  },
};

describe("a rotation", () => {
  it.each(Object.entries(rows))("%s", async (_name, { setting, how, ends, state, live }) => {
    const world = worldWithOld(setting);
    expect((await rotate(world, how)).kind).toBe(ends);
    expect(world.account.live("client").map(({ id }) => id)).toEqual(live);
    if (state !== "open") expect(world.entry("oauth_client.rotate")!.state).toBe(state);
    expect(world.broken).toEqual([]);
  });

  it.each([
    ["waiting", "a process that ended well left"],
    ["pending", "a killed process left"],
  ] as const)(
    "an overlap (%s, as %s it) is finished by recovery when it is due, and not before",
    async (state, _how) => {
      const world = worldWithOld();
      const overlapMs = 36 * 3_600_000;
      const { value } = await rotate(world, { overlapMs });
      const entry = (): Entry => world.entry("oauth_client.rotate")!;
      expect(value).toMatchObject({ oldRevoked: false, dueAt: entry().detail.overlap_until });
      world.entries[world.entries.indexOf(entry())] = { ...entry(), state };
      expect((await world.recover()).value).toMatchObject([{ entry: { state: "waiting" } }]);
      expect(world.account.live("client")).toHaveLength(2);
      world.now += overlapMs;
      await world.recover();
      expect(world.account.live("client").map(({ id }) => id)).toEqual(["oc_2"]);
      expect(entry().state).toBe("done");
    },
  );

  it("an overlap that is ended early revokes the old client, and only for a new one that works", async () => {
    for (const status of ["active", "revoked"]) {
      const world = worldWithOld();
      await rotate(world, { overlapMs: 36 * 3_600_000 });
      world.account.clients[1]!.status = status;
      await world.recover({ overlap: "end" });
      expect(world.account.live("client").map(({ id }) => id)).toEqual([status === "active" ? "oc_2" : "oc_old"]);
      expect(world.broken).toEqual([]);
    }
  });

  it("an overlap stays what it is while nobody answers, and is pending once the old client may be revoked", async () => {
    const world = worldWithOld({ retryForMs: 0 });
    await rotate(world, { overlapMs: 3_600_000 });
    const recovered = async (fates: Setting["fates"]): Promise<unknown[]> => {
      Object.assign(world.account.fates, fates);
      const [one] = (await world.recover()).value!;
      return [one!.failure?.kind, one!.entry.state];
    };
    expect(await recovered({ get: ["not sent", "not sent"] })).toEqual(["pending", "waiting"]);
    world.now += 3_600_000;
    expect(await recovered({ get: ["not sent", "not sent"] })).toEqual(["pending", "waiting"]);
    expect(await recovered({ revoke: ["lost before"] })).toEqual(["outcome_unknown", "pending"]);
    expect(await recovered({})).toEqual([undefined, "done"]);
  });

  it("revokes nothing for a new client that was revoked meanwhile: it ends there", async () => {
    const world = worldWithOld();
    await rotate(world, { overlapMs: 3_600_000 });
    world.account.clients[1]!.status = "revoked";
    world.now += 3_600_000;
    expect((await world.recover()).value![0]!.failure?.kind).toBe("unusable");
    expect(world.account.live("client").map(({ id }) => id)).toEqual(["oc_old"]);
    expect(world.entry("oauth_client.rotate")!.state).toBe("unusable");
  });

  it("what cannot be proven any more needs a yes", async () => {
    const world = worldWithOld({ destination: "stdout", fates: { exchange: ["lost before"] }, retryForMs: 0 });
    await rotate(world);
    const { value } = await world.recover({ mayRevokeUnproven: async () => false });
    expect(value![0]!.failure?.details.nextCommand).toContain("--accept-unproven");
    expect(world.account.live("client")).toHaveLength(2);
    await world.recover();
    expect(world.account.live("client").map(({ id }) => id)).toEqual(["oc_2"]);
  });

  it("is proven where the profile says now, whatever its entry says, and that is said", async () => {
    const elsewhere = { token_endpoint: "https://other.example/token", client_auth: "client_secret_post" } as const;
    for (const [fates, live] of [
      [["lost before"], ["oc_2"]],
      [[{ refused: 401 }, { refused: 401 }], both],
    ] as const) {
      const world = worldWithOld({ fates: { exchange: [...fates] }, retryForMs: 0 });
      expect((await rotate(world)).kind).toBe("pending");
      world.proves.client = elsewhere.token_endpoint;
      await world.recover({ benchFor: await asNow(world, { proof: elsewhere }), mayRevokeUnproven: async () => false });
      expect(world.account.live("client").map(({ id }) => id)).toEqual(live);
      expect([world.broken, world.told.join("\n")]).toEqual([
        [],
        expect.stringContaining("https://other.example/token is used"),
      ]);
    }
  });

  it.each([true, false])(
    "needs a yes where the profile has no token endpoint (the entry names one: %s)",
    async (isNamed) => {
      const world = worldWithOld({ fates: { exchange: ["lost before"] }, retryForMs: 0 });
      await rotate(world);
      const index = world.entries.findIndex(({ operation }) => operation === "oauth_client.rotate");
      const { proof: _, ...detail } = world.entries[index]!.detail;
      if (!isNamed) world.entries[index] = { ...world.entries[index]!, detail };
      const benchFor = await asNow(world, { proof: null });
      const { value } = await world.recover({ benchFor, mayRevokeUnproven: async () => false });
      expect(value![0]!.failure?.details.nextCommand).toContain("--accept-unproven");
      expect(world.account.live("client").map(({ id }) => id)).toEqual(both);
    },
  );

  it.each(["2025-01-01", "2030-01-01"])(
    "recovered under version %s, its new client is as it was begun",
    async (version) => {
      const world = worldWithOld({ failing: ["admit 2"] });
      await rotate(world);
      await world.recover({ benchFor: await asNow(world, { serviceVersion: version }) });
      const made = world.entries.map(({ service_version }) => service_version);
      expect(new Set(made)).toEqual(new Set(["2026-08-05"]));
    },
  );

  it("whose old client was revoked by hand is over, before it is due", async () => {
    const world = worldWithOld();
    await rotate(world, { overlapMs: 36 * 3_600_000 });
    world.account.clients[0]!.status = "revoked";
    expect((await world.recover()).value![0]!.failure).toBeUndefined();
    expect(world.entry("oauth_client.rotate")!.state).toBe("done");
  });

  it("whose new client was revoked meanwhile is over, before it is due", async () => {
    const world = worldWithOld();
    await rotate(world, { overlapMs: 36 * 3_600_000 });
    world.account.clients[1]!.status = "revoked";
    expect((await world.recover()).value![0]!.failure?.kind).toBe("unusable");
    expect(world.account.live("client").map(({ id }) => id)).toEqual(["oc_old"]);
  });

  it("whose new client was rotated meanwhile names the one that followed, and asks for no other", async () => {
    const world = worldWithOld({ destination: "command" });
    await rotate(world, { overlapMs: 36 * 3_600_000 });
    world.mayGo.add("oc_2");
    expect((await rotate(world, { id: "oc_2" })).kind).toBe("done");
    const { failure } = (await world.recover()).value![0]!;
    expect(failure).toMatchObject({
      kind: "unusable",
      details: {
        meaning: expect.stringContaining("oc_3 followed"),
        nextCommand: "integ oauth-clients revoke oc_old",
      },
    });
    expect(world.account.live("client").map(({ id }) => id)).toEqual(["oc_old", "oc_3"]);
  });

  it("begun again with another overlap is refused with both values", async () => {
    const world = worldWithOld();
    await rotate(world, { overlapMs: 3_600_000 });
    const { kind, failure } = await rotate(world, { overlapMs: 0 });
    expect([kind, failure?.message]).toEqual(["usage", expect.stringContaining("--overlap was 3600s, and is 0s now")]);
    expect(world.account.clients).toHaveLength(2);
  });
});

describe("a new client that was called unusable", () => {
  it("does not take the old one's place if it is shown active later", async () => {
    const world = worldWithOld({ fates: { create: ["disabled"] } });
    // The process ends between what it records of the new client and of the rotation.
    expect((await rotate(world)).kind).toBe("unusable");
    const [rotation] = world.entries;
    world.entries[0] = { ...rotation!, state: "open" };
    world.account.clients[1]!.status = "active";
    const requests = [...world.account.requests];
    expect((await rotate(world, { agrees: true })).kind).toBe("unusable");
    expect(world.account.requests).toEqual(requests);
    expect(world.entries.map(({ state }) => state)).toEqual(["unusable", "unusable"]);
    expect(world.account.live("client").map(({ id }) => id)).toEqual(both);
  });
});
