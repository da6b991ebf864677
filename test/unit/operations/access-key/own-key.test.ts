// A new secret of the profile's own key is proven before the profile stores it.
import { describe, expect, it } from "vitest";
import { isCredentialRefused } from "../../../../src/api/call/attempt.ts";
import { rotateAccessKey } from "../../../../src/operations/in-place.ts";
import type { Workbench } from "../../../../src/operations/workbench.ts";
import { Failure } from "../../../../src/errors.ts";
import type { Fate, Request } from "../an-account.ts";
import { AWorld, type DestinationKind, type Ended, type Setting } from "../a-world.ts";

function worldOf({ destination = "profile", ...setting }: Setting = {}): AWorld {
  const world = new AWorld({ destination, retryForMs: 0, ...setting });
  world.account.addExisting("key", "ak_own");
  return world;
}

function rotateOwn(
  world: AWorld,
  { updateProfile = true, account = {} }: { updateProfile?: boolean; account?: Partial<Workbench["account"]> } = {},
): Promise<Ended<unknown>> {
  return world.run((bench) =>
    rotateAccessKey(
      { ...bench, account: { ...bench.account, ...account } },
      { id: "ak_own", updateProfile },
      { destination: world.destination() },
    ),
  );
}

interface ProofRow {
  readonly exchange?: Fate[];
  readonly lies?: Readonly<Record<string, unknown>>;
  readonly account?: Partial<Workbench["account"]>;
  readonly ends: Ended<unknown>["kind"];
  readonly isStored: boolean;
  readonly says: string;
}

describe("a new secret for the profile itself", () => {
  const rows: Record<string, ProofRow> = {
    "is stored when it was exchanged for a token": { ends: "done", isStored: true, says: "" },
    "is kept outside the profile when the service refuses it": {
      exchange: [{ refused: 401 }],
      ends: "undelivered",
      isStored: false,
      says: "The new secret was not accepted",
    },
    "is stored with a warning when the service is unreachable": {
      exchange: ["not sent"],
      ends: "done",
      isStored: true,
      says: "could not be proven",
    },
    "is stored with a warning when the service fails": {
      exchange: ["broken after"],
      ends: "done",
      isStored: true,
      says: "It was stored in the profile anyway.",
    },
    "is stored with a warning when the profile has no way to prove it": {
      account: { keyExchange: null },
      ends: "done",
      isStored: true,
      says: "was not proven: the profile has no way to exchange it",
    },
    "is kept outside the profile when it came with another key id and is not proven": {
      lies: { id: "ak_other" },
      account: { keyExchange: null },
      ends: "undelivered",
      isStored: false,
      says: "The service responded with the key ak_other, and its secret could not be proven",
    },
  };
  it.each(Object.entries(rows))("%s", async (_name, { exchange = [], lies = {}, account, ends, isStored, says }) => {
    const world = worldOf({ fates: { exchange } });
    world.account.lies = lies;
    const { kind, failure } = await rotateOwn(world, { account });
    const { secret } = world.account.keys[0]!;
    expect([kind, world.profiles.get("target")?.secret === secret]).toEqual([ends, isStored]);
    expect(world.isSafe(secret)).toBe(true);
    expect([failure?.message, ...world.messages].join("\n")).toContain(says);
    expect(world.messages.some((text) => text.includes("proven"))).toBe(ends === "done" && says !== "");
  });

  it("is not proven if it goes to another destination", async () => {
    const world = worldOf({ destination: "file" });
    expect((await rotateOwn(world, { updateProfile: false, account: { keyExchange: null } })).kind).toBe("done");
    expect(world.account.requests).toEqual(["rotate ak_own"]);
    expect(world.messages).toEqual([]);
  });

  it("with another key id is stored once it is proven, and the id is reported", async () => {
    const world = worldOf({});
    world.account.lies = { id: "ak_other" };
    const { kind } = await rotateOwn(world, {});
    expect([kind, world.entries[0]!.resource_id, world.profiles.get("target")?.secret]).toEqual([
      "done",
      "ak_other",
      world.account.keys[0]!.secret,
    ]);
    expect(world.messages.join()).toContain("Whether ak_own still works is not known");
  });
});

interface OutcomeRow {
  readonly list?: Fate[];
  readonly keyId?: string;
  readonly attemptedAt?: readonly string[];
  readonly ends: string;
  readonly state: string;
  readonly meaning: string;
}

describe("a rotation of unknown outcome without consent to continue", () => {
  const still = "The profile's secret was accepted just now.";
  const unknown = "The new secret did not arrive, and the old secret may have stopped working.";
  const rows: Record<string, OutcomeRow> = {
    "is unknown as long as the profile's secret works": { ends: "outcome_unknown", state: "unknown", meaning: still },
    "is lost when the profile's secret is refused": {
      list: [{ refused: 401 }],
      ends: "secret_lost",
      state: "secret_lost",
      meaning: "This profile is locked out.",
    },
    "is unknown when the list is refused for another reason": {
      list: [{ refused: 403 }],
      ends: "outcome_unknown",
      state: "unknown",
      meaning: unknown,
    },
    "is unknown when the service is unreachable": {
      list: ["not sent"],
      ends: "outcome_unknown",
      state: "unknown",
      meaning: unknown,
    },
    "is unknown when the key is not the profile's own": {
      keyId: "ak_2",
      ends: "outcome_unknown",
      state: "unknown",
      meaning: unknown,
    },
    "is not lost when another place may have the secret": {
      list: [{ refused: 401 }],
      attemptedAt: ["there:/state"],
      ends: "outcome_unknown",
      state: "unknown",
      meaning: "The service refused the profile's own secret. It was requested in there:/state too",
    },
    "names the other places of a secret that still works": {
      attemptedAt: ["there:/state", "far:/state"],
      ends: "outcome_unknown",
      state: "unknown",
      meaning: "It was requested in there:/state, far:/state too",
    },
  };
  it.each(Object.entries(rows))("%s", async (_name, { list = [], keyId, attemptedAt = [], ends, state, meaning }) => {
    const world = worldOf({ fates: { rotate: ["lost after"] } });
    expect((await rotateOwn(world)).kind).toBe("outcome_unknown");
    const [entry] = world.entries;
    world.entries[0] = { ...entry!, detail: { ...entry!.detail, attempted_at: [world.place, ...attemptedAt] } };
    world.account.fates.list = [...list];
    let own: Workbench | undefined;
    const { value } = await world.recover(
      {
        mayReplace: async () => false,
        benchFor: async () => ({ ...own!, account: { ...own!.account, keyId: keyId ?? "ak_own" } }),
      },
      (bench) => void (own = bench),
    );
    const { entry: left, failure } = value![0]!;
    expect([failure?.kind, left.state]).toEqual([ends, state]);
    expect(failure?.details.meaning).toContain(meaning);
    expect(failure?.details.meaning?.includes("It was requested in")).toBe(attemptedAt.length > 0);
    expect(world.account.requests.filter((one) => one.startsWith("rotate"))).toHaveLength(1);
    expect(world.account.requests.includes("list")).toBe(keyId === undefined);
  });
});

describe("a credential", () => {
  const auth = new Failure("auth", "refused");
  it.each([
    ["refused by the service", { kind: "refused", status: 401, problem: {} }, true],
    ["without the permission", { kind: "refused", status: 403, problem: {} }, false],
    ["for which no token was issued", { kind: "not_sent", reason: "token", detail: "", failure: auth }, true],
    ["that could not be sent", { kind: "not_sent", reason: "refused", detail: "" }, false],
    ["whose token endpoint did not respond", { kind: "not_sent", failure: new Failure("unreachable", "") }, false],
    ["that works", { kind: "answered", status: 200, value: undefined, body: Buffer.alloc(0) }, false],
  ] as const)("%s", (_what, answer, refused) => {
    expect(isCredentialRefused(answer as never)).toBe(refused);
  });
});

it.each<DestinationKind>(["file", "stdout"])("the own key's secret for %s is not proven", async (kind) => {
  const world = worldOf({ destination: kind });
  expect((await rotateOwn(world, { updateProfile: false })).kind).toBe("done");
  expect(world.account.requests as Request[]).not.toContain("exchange");
});
