import { describe, expect, it } from "vitest";
import type { SingleDestination } from "../../../src/journal/entry-destination.ts";
import type { Entry, EntryState } from "../../../src/journal/entry.ts";
import { stepForHeld } from "../../../src/commands/policy/held.ts";
import { shortDuration } from "../../../src/policy/decide.ts";
import { deliveries, holdersOf, lostPlaces, placeOf } from "../../../src/policy/holders.ts";
import type { Observed, SeenCredential } from "../../../src/policy/observed.ts";
import { planPolicy, type Plan, type PlanOptions, runnable } from "../../../src/policy/plan.ts";
import type {
  ClientItem,
  ItemDestination,
  KeyItem,
  Policy,
  PolicyItem,
  RotationRule,
} from "../../../src/policy/policy.ts";
import { ClientInventory, unsettledIn, worksByName } from "../../../src/policy/works.ts";
import { commandMark } from "../../../src/secrets/destination.ts";
import { isOpen, opensAt, readWindow } from "../../../src/policy/window.ts";
import { entry, now, own, scope } from "./an-entry.ts";

const day = 86_400_000;
const hour = 3_600_000;
const at = (ms: number): string => new Date(ms).toISOString();

const rule = (over: Partial<RotationRule> = {}): RotationRule => ({
  everyMs: 60 * day,
  overlapMs: 12 * hour,
  unknownAge: "report",
  ...over,
});
const client = (name: string, over: Partial<ClientItem> = {}): ClientItem => ({
  policy: own,
  kind: "oauth_client",
  name,
  serviceAccount: "sa",
  scopes: ["entity:read"],
  rotate: rule(),
  destinations: [{ file: `/secrets/${name}` }],
  ...over,
});
const key = (name: string, over: Partial<KeyItem> = {}): KeyItem => ({
  policy: own,
  kind: "access_key",
  name,
  type: "service_account",
  scopes: ["*"],
  expiresInMs: 90 * day,
  rotate: rule({ everyMs: undefined, beforeExpiryMs: 14 * day }),
  destinations: [{ command: "deploy" }],
  ...over,
});
const policy = (items: PolicyItem[], over: Partial<Policy> = {}): Policy => ({
  id: own,
  items,
  maxFailures: 3,
  changesPerRun: 20,
  keepFreeSlots: 0,
  unmanaged: "report",
  ...over,
});

const created = (name: string, id: string | null, state: EntryState = "done", over: Partial<Entry> = {}): Entry =>
  entry({ resource_id: id, state, policy: { id: own, item: name }, ...over });
const rotation = (
  name: string,
  of: { id: string | null; old: string; state: EntryState; detail?: Entry["detail"]; isTyped?: boolean },
): Entry =>
  entry({
    operation: "oauth_client.rotate",
    resource_id: of.id,
    state: of.state,
    request_text: JSON.stringify({ id: of.old, service_account_id: "sa", scopes: ["entity:read"] }),
    policy: of.isTyped === true ? undefined : { id: own, item: name },
    detail: { old_client: of.old, overlap_ms: hour, ...of.detail },
  });
const seen = (id: string, over: Partial<SeenCredential> = {}): SeenCredential => ({
  id,
  status: "active",
  serviceAccount: "sa",
  scopes: ["entity:read"],
  createdAt: at(now - 10 * day),
  ownership: "other",
  ...over,
});

interface World {
  readonly entries?: readonly Entry[];
  readonly clients?: readonly SeenCredential[];
  readonly keys?: readonly SeenCredential[];
  /** Items whose destinations are searched for other credentials' secrets. */
  readonly of?: readonly PolicyItem[];
  /** Files and profiles that received a secret and no longer exist. */
  readonly missing?: readonly string[];
  /** Destinations on other machines, and stores of other servers. */
  readonly elsewhere?: readonly string[];
  readonly untrusted?: readonly string[];
}
const observed = ({
  entries = [],
  clients = [],
  keys = [],
  of = [],
  missing = [],
  elsewhere = [],
  untrusted = [],
}: World): Observed => ({
  nowMs: now,
  profile: "prod",
  works: worksByName(entries, scope, new Set(untrusted)),
  clients: new Map(clients.map((one) => [one.id, one])),
  keys: new Map(keys.map((one) => [one.id, one])),
  unresolved: new ClientInventory(scope, entries).unresolved,
  delivered: deliveries(entries),
  vanished: new Set(missing),
  elsewhere: new Set(elsewhere),
  untrusted: new Set(untrusted),
  lost: lostPlaces(entries, { scope, works: worksByName(entries, scope) }),
  unsettled: unsettledIn(entries, scope),
  holders: holdersOf(entries, {
    scope,
    works: worksByName(entries, scope),
    places: new Set(of.flatMap((item) => item.destinations.map((one) => placeOf(one, item)))),
    isHere: () => true,
  }),
});
const options = (over: Partial<PlanOptions> = {}): PlanOptions => ({
  only: new Set(),
  retry: new Set(),
  redeliver: new Set(),
  finish: new Set(),
  includeOwn: false,
  ...over,
});
const plan = (of: Policy, world: World, over: Partial<PlanOptions> = {}): Plan =>
  planPolicy(of, observed({ of: of.items, ...world }), options(over));
const only = (of: Plan) => of.items[0]!;

describe("twenty items whose destinations hold secrets of clients without an item", () => {
  const clients = Array.from({ length: 20 }, (_, nth) => seen(`oac_${nth}`));
  const entries = clients.map(({ id }, nth) =>
    entry({ resource_id: id, destination: { kind: "file", path: `/secrets/a${nth}`, as: "json" } }),
  );
  const items = clients.map((_, nth) => client(`a${nth}`));

  it("report those clients, and use neither their destinations nor slots", () => {
    const found = plan(policy(items), { clients, entries });
    expect(found.refusals).toEqual([]);
    for (const [nth, { row, decision }] of found.items.entries()) {
      expect(row).toMatchObject({ action: "adopt", state: "active", resource_id: `oac_${nth}`, slots_after: 20 });
      expect([decision.hold, row.reason]).toEqual(["not_adopted", expect.stringContaining(`oac_${nth}`)]);
    }
    expect(runnable(found)).toEqual([]);
  });
});

describe("a new item", () => {
  const existing = (id: string, over: Partial<SeenCredential> = {}): SeenCredential =>
    seen(id, { serviceAccount: undefined, type: "service_account", scopes: ["*"], name: "k", ...over });
  const unknown = { destinations: [] };
  const [one, two] = [existing("ak_1"), existing("ak_2")];
  const [similar, other] = [seen("oc_1"), seen("oc_2")];
  const homeless = client("a", unknown);
  const none = "it does not exist yet";
  it.each<[string, PolicyItem, World, action: string, id: string | null, reason: string]>([
    ["a key of its name", key("k"), { keys: [one] }, "adopt", "ak_1", "exists as ak_1, not adopted"],
    ["two keys of its name", key("k"), { keys: [one, two] }, "adopt", null, "exists as one of ak_1, ak_2, not adopted"],
    ["a key of another name", key("k"), { keys: [existing("ak_1", { name: "l" })] }, "create", null, none],
    ["a key with other scopes", key("k"), { keys: [existing("ak_1", { scopes: ["x"] })] }, "create", null, none],
    ["a revoked key of its name", key("k"), { keys: [existing("ak_1", { status: "revoked" })] }, "create", null, none],
    ["a similar client, with another destination", client("a"), { clients: [similar] }, "create", null, none],
    [
      "a similar client, without a destination",
      homeless,
      { clients: [similar] },
      "adopt",
      "oc_1",
      "exists as oc_1, not adopted",
    ],
    [
      "two similar clients, without a destination",
      homeless,
      { clients: [similar, other] },
      "adopt",
      null,
      "exists as one of oc_1, oc_2, not adopted",
    ],
  ])("finds %s", (_what, item, world, action, resource_id, reason) => {
    const found = only(plan(policy([item]), world));
    expect(found.row).toMatchObject({ action, resource_id });
    const grants = expect.stringMatching(/^client of \S+ with [^,]+$|key with \*, valid for 90d$/);
    expect(found.row).toMatchObject({ reason: expect.stringContaining(reason), grants });
    if (action === "adopt" && resource_id !== null) expect(found.decision.hold).toBe("not_adopted");
  });

  const adopted = (items: PolicyItem[], world: World, adopt = true): unknown =>
    plan(policy(items), world, { adopt }).items.map(({ row, decision: { step, hold } }) => [
      row.name,
      step.do === "adopt" ? step.credential.id : (hold ?? step.do),
    ]);

  it("is adopted on request, and held otherwise", () => {
    const world = { keys: [existing("ak_1")] };
    expect(adopted([key("k"), key("l")], world)).toEqual([
      ["k", "ak_1"],
      ["l", "create"],
    ]);
    expect(adopted([key("k")], world, false)).toEqual([["k", "not_adopted"]]);
  });

  it("that exists twice is neither adopted nor created", () => {
    const world = { keys: [existing("ak_1"), existing("ak_2")] };
    expect(adopted([key("k")], world)).toEqual([["k", "not_adopted"]]);
    const both = ["k", "k-2"].map((name) => [name, "not_adopted"]);
    expect(adopted([key("k", unknown), key("k-2", unknown)], world)).toEqual(both);
  });

  it("that matches the same client as another is not adopted, even if only one of them is planned", () => {
    const world = { clients: [seen("oc_1")] };
    const items = [client("a", unknown), client("b", unknown)];
    expect(adopted(items, world)).toEqual([
      ["a", "not_adopted"],
      ["b", "not_adopted"],
    ]);
    const { row, decision } = only(plan(policy(items), world, { adopt: true, only: new Set(["a"]) }));
    expect(row).toMatchObject({ resource_id: null, reason: expect.stringContaining("b too") });
    expect(decision.step.do).toBe("nothing");
  });

  it.each<EntryState>(["waiting", "open"])("does not adopt what a rotation that is %s replaces", (state) => {
    const rotation = entry({ operation: "oauth_client.rotate", state, detail: { old_client: "oc_1" } });
    const ofKey = entry({ operation: "access_key.rotate", state, detail: { old_key: "ak_1" } });
    const delivered = entry({ resource_id: "oc_1", destination: { kind: "file", path: "/secrets/a", as: "json" } });
    const world = { keys: [existing("ak_1")], clients: [seen("oc_1")], entries: [delivered, rotation, ofKey] };
    expect(adopted([key("k"), client("a")], world)).toEqual([
      ["k", "create"],
      ["a", "occupied"],
    ]);
  });

  it("prefers a key of its name to one with similar settings", () => {
    const world = { keys: [existing("ak_1")] };
    expect(adopted([key("k"), key("l", unknown)], world)).toEqual([
      ["k", "ak_1"],
      ["l", "no_destination"],
    ]);
  });

  it("does not adopt a credential that an unfinished change of another item created", () => {
    const entries = [created("b", "oc_1", "undelivered", { operation: "oauth_client.create" })];
    expect(adopted([client("a", unknown)], { clients: [seen("oc_1")], entries })).toEqual([["a", "no_destination"]]);
  });

  const delivered = (by?: Entry["policy"]): Entry =>
    entry({
      operation: "access_key.create",
      resource_id: "ak_2",
      destination: { kind: "file", path: "/secrets/k", as: "raw" },
      policy: by,
    });
  const filed = key("k", { destinations: [{ file: "/secrets/k" }] });

  it("prefers the key whose secret is at its destination to a key of its name", () => {
    const world = { keys: [existing("ak_1"), existing("ak_2", { name: "other" })], entries: [delivered()] };
    expect(adopted([filed], world)).toEqual([["k", "ak_2"]]);
  });

  it("does not adopt another policy's credential from its destination without a request", () => {
    const world = { keys: [existing("ak_2", { name: "other" })], entries: [delivered({ id: own, item: "other" })] };
    expect(adopted([filed], world)).toEqual([["k", "not_adopted"]]);
  });

  it("leaves another item's key to that item", () => {
    const entries = [entry({ operation: "access_key.adopt", resource_id: "ak_1", policy: { id: own, item: "other" } })];
    const { row } = only(plan(policy([key("k")]), { keys: [existing("ak_1")], entries }));
    expect(row.action).toBe("create");
  });
});

describe("a secret that is not at the policy's destination", () => {
  const kinds: Readonly<Record<string, readonly [ItemDestination, SingleDestination, ItemDestination]>> = {
    file: [{ file: "/s/a" }, { kind: "file", path: "/s/a", as: "raw" }, { file: "/s/copy/a" }],
    profile: [{ profile: "ci" }, { kind: "profile", name: "ci", profileId: "p1" }, { profile: "other" }],
    store: [
      { store: "vault:secret/a#x" },
      { kind: "store", to: "vault:secret/a#x", facts: {} },
      { store: "vault:secret/b#x" },
    ],
  };
  const cases = Object.entries(kinds).flatMap(([kind, [to, at, another]]) =>
    [10, 61].map((age) => ({ kind, to, at, another, age })),
  );
  const planOf = (
    { to, at, age, says }: (typeof cases)[number] & { says: ItemDestination[] },
    over: Partial<World> = {},
  ) => {
    const entries = [created("a", "oc_1", "done", { destination: at })];
    const clients = [seen("oc_1", { createdAt: new Date(now - age * day).toISOString() })];
    const world = { entries, clients, missing: [], ...over };
    const items = [client("a", { destinations: says.length === 0 ? [to] : says })];
    return (choice: Partial<PlanOptions> = {}) => only(plan(policy(items), world, choice));
  };

  it.each(cases)("$kind, $age days old: an untrusted entry replaces nothing", (one) => {
    const forged = created("a", "oc_1", "done", { destination: one.at });
    const about = { destination: one.at, parent: "another", id: "zzzzzzzzzz" };
    const step = created("a", "oc_1", "done", about);
    for (const entries of [[forged], [created("a", "oc_1", "done", { destination: one.at }), step]]) {
      const untrusted = [entries.at(-1)!.id];
      const { row, decision } = planOf({ ...one, says: [] }, { entries, untrusted })();
      expect([row.state, decision.hold]).toEqual(one.age > 60 ? ["untrusted", "untrusted"] : ["active", undefined]);
    }
  });

  it.each(cases)("$kind, $age days old: another policy's untrusted entry does not take it", (one) => {
    const mine = created("a", "oc_1", "done", { destination: one.at });
    const theirs = entry({ resource_id: "oc_1", policy: { id: "pol_theirs0", item: "b" }, id: "zzzzzzzzzz" });
    const { decision } = planOf({ ...one, says: [] }, { entries: [mine, theirs], untrusted: [theirs.id] })();
    expect([decision.current?.id, decision.step.do]).toEqual(["oc_1", one.age > 60 ? "replace" : "nothing"]);
  });

  it.each(cases)("$kind, $age days old: nothing is reported while nothing changed", (one) => {
    const { row, decision } = planOf({ ...one, says: [] })();
    expect([row.action, decision.hold]).toEqual([one.age > 60 ? "rotate" : "none", undefined]);
  });

  it.each(cases)("$kind, $age days old: a rotation moves it only on request", (one) => {
    for (const says of [[one.another], [one.to, one.another]]) {
      const planned = planOf({ ...one, says });
      expect(planned().row).toMatchObject({ action: "redeliver", reason: expect.stringContaining("it went to") });
      expect(planned().decision.hold).toBe("astray");
      const requested = planned({ redeliver: new Set(["a"]) }).decision;
      expect([requested.hold, requested.step.do]).toEqual([undefined, "replace"]);
    }
  });

  it.each(cases)("$kind, $age days old: an empty destination is reported; a due rotation fills it", (one) => {
    const { row, decision } = planOf({ ...one, says: [] }, { missing: [placeOf(one.to)] })();
    expect([row.action, decision.hold]).toEqual(one.age > 60 ? ["rotate", undefined] : ["redeliver", "astray"]);
  });

  it.each(cases)("$kind, $age days old: a secret on another machine stays there", (one) => {
    const { row, decision } = planOf({ ...one, says: [] }, { elsewhere: [placeOf(one.to)] })();
    expect(row).toMatchObject({
      action: "redeliver",
      reason: expect.stringContaining(one.kind === "store" ? "of another server" : "of another machine"),
    });
    expect(decision.hold).toBe("astray");
  });

  it("is not reported if it was adopted or claimed", () => {
    const adopted = { operation: "oauth_client.adopt", resource_id: "oc_1", policy: { id: own, item: "a" } } as const;
    const elsewhere = { kind: "file", path: "/s/elsewhere", as: "raw" } as const;
    const byHand = entry({ resource_id: "oc_1", destination: elsewhere });
    const world = { entries: [byHand, entry(adopted)], clients: [seen("oc_1")] };
    expect(only(plan(policy([client("a")]), world)).row.action).toBe("none");
    for (const detail of [{}, { secret_claimed: true }]) {
      const destination = "secret_claimed" in detail ? elsewhere : null;
      const entries = [created("a", "oc_1", "done", { destination, detail })];
      expect(only(plan(policy([client("a")]), { entries, clients: [seen("oc_1")] })).row.action).toBe("none");
    }
  });

  it("of a command with another text is shown as changed, and rotated when it is due", () => {
    const was = { command: "old", as: "raw" } as const;
    const destination = { kind: "command", mark: commandMark(was) } as const;
    const entries = [created("a", "oc_1", "done", { destination })];
    const item = (command: string): PolicyItem => client("a", { destinations: [{ command, format: "raw" }] });
    const rowOf = (command: string) => only(plan(policy([item(command)]), { entries, clients: [seen("oc_1")] })).row;
    expect(rowOf("old")).toMatchObject({ action: "none", destinations: ["command: old"], changed: [] });
    expect(rowOf("new")).toMatchObject({ action: "none", destinations: ["command: new"], changed: ["command: new"] });
  });
});

describe("one item", () => {
  const aged = (days: number) => ({ createdAt: at(now - days * day) });
  const known = (over: Partial<SeenCredential> = {}): World => ({
    entries: [created("a", "oc_1")],
    clients: [seen("oc_1", over)],
  });
  const knownKey = (over: Partial<SeenCredential>): World => ({
    entries: [created("k", "ak_1", "done", { operation: "access_key.create" })],
    keys: [seen("ak_1", { type: "service_account", scopes: ["*"], ...over })],
  });
  /** A world in which oc_2 replaces oc_1, which the service shows with the fields `over`. */
  const overlapping = (untilMs: number, over: Partial<SeenCredential> = {}): World => {
    const detail = { overlap_until: at(untilMs) };
    const waiting = rotation("a", { id: "oc_2", old: "oc_1", state: "waiting", detail });
    return { entries: [created("a", "oc_1"), waiting], clients: [seen("oc_1", over), seen("oc_2")] };
  };
  const rotatedByHand = (until: number, to: SingleDestination): World => {
    const of = { operation: "access_key.rotate", resource_id: "ak_2" } as const;
    const detail = { mode: "replacement", old_key: "ak_1", overlap_ms: hour, overlap_until: at(until) } as const;
    const waiting = created("k", "ak_2", "waiting", { ...of, detail });
    const destination = { kind: "file", path: "/k", as: "raw" } as const;
    const made = entry({ operation: "access_key.create", resource_id: "ak_2", parent: waiting.id, destination });
    const byHand = entry({ ...of, detail: { mode: "in_place", key_id: "ak_2" }, destination: to });
    return { entries: [waiting, made, byHand], keys: [seen("ak_1"), seen("ak_2")] };
  };
  const isLost = "ak_2 was rotated later, and its secret in /k no longer works";
  const lostWords = `the overlap is over, but ak_1 is kept: ${isLost}`;
  const early = `ak_1 is kept after the overlap: ${isLost}`;
  const overWords = "the overlap is over, and ak_1 is revoked";
  const absent = "it does not exist yet";
  const young = "10 days old (limit: 60 days)";
  const kept = "oc_1 is revoked by the first run after the overlap, which ends in 60 minutes";
  const untilKnown = client("a", { rotate: rule({ unknownAge: "rotate" }) });
  const wider = client("a", { scopes: ["entity:read", "cohort:read"] });
  const a = client("a");
  const lost = created("a", "oc_1", "replaced");

  type Case = readonly [what: string, PolicyItem, World, action: string, state: string, reason: string | RegExp];
  const cases: readonly Case[] = [
    ["that does not exist", a, {}, "create", "absent", absent],
    ["that is young", a, known(), "none", "active", young],
    ["that is too old", a, known(aged(61)), "rotate", "active", "61 days old (limit: 60 days)"],
    ["that is exactly at its age limit", a, known(aged(60)), "none", "active", "60 days old (limit: 60 days)"],
    ["whose age is unknown", a, known({ createdAt: undefined }), "none", "active", "its age is unknown"],
    ["of unknown age: rotate", untilKnown, known({ createdAt: "yesterday" }), "rotate", "active", "its age is unknown"],
    [
      "with other scopes",
      wider,
      known({ scopes: ["entity:read", "person:read"] }),
      "change_scopes",
      "active",
      "other scopes: +cohort:read, -person:read",
    ],
    [
      "of another service account",
      a,
      known({ serviceAccount: "sb" }),
      "change_scopes",
      "active",
      "it belongs to sb, and the file says sa",
    ],
    ["that someone revoked", a, known({ status: "revoked" }), "create", "revoked", "oc_1 is revoked"],
    [
      "that the service has not completed",
      a,
      known({ status: "pending" }),
      "wait",
      "pending",
      "oc_1 is pending: the service has not completed its creation",
    ],
    ...(["absent", "disabled"] as const).map((status) => {
      const reason = /^oc_1 is (not found|disabled) and may work again, so no other client is created$/;
      return [`that is ${status}`, a, known({ status }), "create", status, reason] as const;
    }),
    [
      "whose creation is unfinished",
      a,
      { entries: [created("a", null, "unknown")] },
      "create",
      "unknown",
      /^unfinished \(unknown\): journal entry \w+ continues$/,
    ],
    [
      "whose secret is kept",
      a,
      { entries: [created("a", "oc_1", "undelivered")] },
      "create",
      "undelivered",
      /^its secret is kept and not delivered yet/,
    ],
    ["whose overlap runs", a, overlapping(now + hour), "wait", "waiting", kept],
    ["whose overlap is over", a, overlapping(now), "revoke_old", "waiting", "the overlap is over, and oc_1 is revoked"],
    ...(
      [
        [
          "wait",
          /by the first run in which it was unused for 24 hours since the rotation: ak_1 was last used 3 hours ago/,
          at(now - 3 * hour),
        ],
        ["revoke_old", /the overlap is over, and ak_1 is revoked: ak_1 was never used/, null],
        ["wait", /since the rotation: the API does not show when ak_1 was last used/, undefined],
      ] as const
    ).map(([action, reason, lastUsedAt]) => {
      const detail = { mode: "replacement", old_key: "ak_1", overlap_ms: 14 * day, overlap_unused_ms: day } as const;
      const until = { ...detail, overlap_until: at(now + 10 * day) };
      const rotating = created("k", "ak_2", "waiting", { operation: "access_key.rotate", detail: until });
      const world = { entries: [rotating], keys: [seen("ak_1", { lastUsedAt }), seen("ak_2")] };
      return [`whose key was used ${lastUsedAt}`, key("k"), world, action, "waiting", reason] as const;
    }),
    ...(
      [
        ["into another place", now, { kind: "file", path: "/other", as: "raw" }, "revoke_old", "lost", lostWords],
        ["into another place early", now + hour, { kind: "file", path: "/other", as: "raw" }, "wait", undefined, early],
        ["into its place", now, { kind: "file", path: "/k", as: "raw" }, "revoke_old", undefined, overWords],
      ] as const
    ).map(([where, until, to, action, hold, reason]) => {
      const world = rotatedByHand(until, to);
      const { decision } = only(plan(policy([key("k")]), world));
      const step = hold && { hint: "Revoke the old key if no program uses it any more: integ keys revoke ak_1" };
      expect([decision.hold, hold && stepForHeld(decision, "f")]).toEqual([hold, step]);
      return [`whose new key was rotated by hand ${where}`, key("k"), world, action, "waiting", reason] as const;
    }),
    ...(
      [
        ["revoked", () => [], "rotate", "the new one, oc_2, is revoked: the rotation ends, and oc_1 is kept"],
        [
          "replaced",
          () => [rotation("a", { id: "oc_3", old: "oc_2", state: "done", isTyped: true })],
          "revoke_old",
          "the new one, oc_2, is revoked: oc_1 is revoked if oc_3, which followed, works and is in all its places",
        ],
        [
          "replaced early",
          () => [rotation("a", { id: "oc_3", old: "oc_2", state: "done", isTyped: true })],
          "wait",
          kept,
          now + hour,
        ],
      ] as const
    ).map(([what, more, action, reason, until = now]) => {
      const { entries = [] } = overlapping(until);
      const world = { entries: [...entries, ...more()], clients: [seen("oc_1"), seen("oc_2", { status: "revoked" })] };
      return [`whose new client someone ${what} during the overlap`, a, world, action, "waiting", reason] as const;
    }),
    [
      "whose old client someone revoked during the overlap",
      a,
      overlapping(now + hour, { status: "revoked" }),
      "revoke_old",
      "waiting",
      "oc_1 is revoked already",
    ],
    [
      "whose rotation failed: it has its old client again",
      a,
      {
        entries: [created("a", "oc_1"), rotation("a", { id: "oc_2", old: "oc_1", state: "unusable" })],
        clients: [seen("oc_1"), seen("oc_2", { status: "revoked" })],
      },
      "none",
      "active",
      young,
    ],
    [
      "that a person rotated by hand",
      a,
      {
        entries: [created("a", "oc_1"), rotation("a", { id: "oc_2", old: "oc_1", state: "done", isTyped: true })],
        clients: [seen("oc_2")],
      },
      "none",
      "active",
      young,
    ],
    [
      "whose lost secret was replaced by hand",
      a,
      { entries: [lost, entry({ replaces: lost.id, resource_id: "oc_2" })], clients: [seen("oc_2")] },
      "none",
      "active",
      young,
    ],
    [
      "a key that expires soon",
      key("k"),
      knownKey({ expiresAt: at(now + 13 * day) }),
      "rotate",
      "active",
      "expires in 13 days, rotation due 14 days before",
    ],
    ["a key that has expired", key("k"), knownKey({ expiresAt: at(now - 1) }), "create", "expired", "ak_1 is expired"],
    [
      "a key of another type",
      key("k"),
      knownKey({ type: "user_bound" }),
      "change_scopes",
      "active",
      "it is a user_bound key, and the file says service_account",
    ],
    ["of the same name and another kind", key("a"), known(), "create", "absent", absent],
    [
      "of another organization's journal entries",
      a,
      { entries: [created("a", "oc_1", "done", { organization_id: "other" })] },
      "create",
      "absent",
      absent,
    ],
  ];

  it.each(cases)("%s", (_what, item, world, action, state, reason) => {
    const { row } = only(plan(policy([item]), world));
    expect({ action: row.action, state: row.state }).toEqual({ action, state });
    expect(row.reason).toMatch(
      reason instanceof RegExp ? reason : new RegExp(`^${reason.replaceAll(/[.+()]/g, "\\$&")}$`),
    );
  });

  it("whose overlap is ended by name is due now", () => {
    const planned = only(plan(policy([a]), overlapping(now + hour), { finish: new Set(["a"]) }));
    expect(planned.row.action).toBe("revoke_old");
  });

  it("that failed too often is skipped until it is requested", () => {
    const error = { kind: "conflict", message: "no slot" };
    const refused = Array.from({ length: 3 }, () => created("a", null, "refused", { last_error: error }));
    const stalled = only(plan(policy([client("a")]), { entries: refused }));
    expect(stalled.row).toMatchObject({ action: "create", state: "stalled" });
    expect(stalled.row.reason).toContain("3 failures in a row. The last one: no slot");
    expect(stalled.decision.hold).toBe("stalled");
    expect(
      only(plan(policy([client("a")]), { entries: refused }, { retry: new Set(["a"]) })).decision.hold,
    ).toBeUndefined();
    expect(only(plan(policy([client("a")]), { entries: refused.slice(1) })).decision.hold).toBeUndefined();
  });

  it("counts an item's failures since the last success, several of one entry, and no refusal without an error", () => {
    const error = { kind: "conflict", message: "no slot" };
    const entries = [
      created("a", null, "refused", { last_error: error }),
      created("a", "oc_1"),
      created("a", null, "refused"),
      created("a", null, "unknown", { detail: { failures: 2 } }),
    ];
    expect(only(plan(policy([client("a")]), { entries, clients: [seen("oc_1")] })).decision.hold).toBeUndefined();
    const third = [...entries, created("a", null, "refused", { last_error: error })];
    expect(only(plan(policy([client("a")]), { entries: third, clients: [seen("oc_1")] })).decision.hold).toBe(
      "stalled",
    );
  });

  it.each([
    ["own", false, "own"],
    ["own", true, undefined],
    ["maybe", true, "own"],
    ["other", false, undefined],
  ] as const)("with the caller's own credential (%s, include own: %s) is held: %s", (ownership, includeOwn, hold) => {
    const old = seen("oc_1", { createdAt: at(now - 61 * day), ownership });
    const world = { entries: [created("a", "oc_1")], clients: [old] };
    const { decision } = only(plan(policy([client("a")]), world, { includeOwn }));
    expect(decision.hold).toBe(hold);
    const known = "Set the id of the profile's own key: integ profiles edit prod --api-key-id <id>";
    if (ownership === "maybe") expect(stepForHeld(decision, "integ.yaml")).toEqual({ hint: known });
  });

  it("without a destination is planned but not started", () => {
    expect(only(plan(policy([client("a", { destinations: [] })]), {})).decision.hold).toBe("no_destination");
  });
});

describe("slots", () => {
  const old = (id: string): SeenCredential => seen(id, { createdAt: at(now - 61 * day) });
  const many = (count: number, from = 0): SeenCredential[] =>
    Array.from({ length: count }, (_, i) => seen(`x_${from + i}`));
  const one = [created("a", "oc_1")];

  it("are counted across the rows", () => {
    const entries = [
      created("a", "oc_1"),
      created("b", "oc_2"),
      created("c", "oc_3"),
      rotation("c", { id: "oc_4", old: "oc_3", state: "waiting", detail: { overlap_until: at(now - 1) } }),
    ];
    const items = [client("a"), client("b", { rotate: rule({ overlapMs: 0 }) }), client("c"), client("d")];
    const { items: rows } = plan(policy(items), {
      entries,
      clients: [old("oc_1"), old("oc_2"), seen("oc_3"), seen("oc_4")],
    });
    expect(rows.map(({ row }) => [row.name, row.slots_before, row.slots_after])).toEqual([
      ["a", 3, 4],
      ["b", 4, 4],
      ["c", 4, 3],
      ["d", 4, 5],
    ]);
  });

  it("of a creation that would be the 21st are refused with the numbers", () => {
    const { refusals } = plan(policy([client("b")]), { entries: one, clients: [seen("oc_1"), ...many(19)] });
    expect(refusals).toEqual([{ account: "sa", used: 20, needed: 1, limit: 20 }]);
    expect(plan(policy([client("b")]), { entries: one, clients: [seen("oc_1"), ...many(18)] }).refusals).toEqual([]);
  });

  it("include creations of unknown outcome, but not revoked clients", () => {
    const entries = [...one, created("z", null, "unknown")];
    const gone = seen("oc_9", { status: "revoked" });
    expect(plan(policy([client("b")]), { entries, clients: [seen("oc_1"), gone, ...many(18)] }).refusals).toHaveLength(
      1,
    );
  });

  it("of an unfinished rotation: neither client is unmanaged", () => {
    const unproven = rotation("a", { id: "oc_2", old: "oc_1", state: "pending", detail: {} });
    const world = { entries: [created("a", "oc_1"), unproven], clients: [seen("oc_1"), seen("oc_2"), seen("oc_7")] };
    expect(plan(policy([client("a")]), world).unmanaged.map(({ id }) => id)).toEqual(["oc_7"]);
  });

  it("of a rotation whose new secret is not delivered: the new client is not unmanaged", () => {
    const started = rotation("a", { id: null, old: "oc_1", state: "undelivered", detail: {} });
    const made = entry({ parent: started.id, resource_id: "oc_2", state: "undelivered" });
    const world = { entries: [created("a", "oc_1"), started, made], clients: [seen("oc_1"), seen("oc_2")] };
    expect(plan(policy([client("a")]), world).unmanaged).toEqual([]);
  });

  it.each(["absent", "disabled"])("are not used for a client that is %s, except with --retry", (status) => {
    const world = { entries: [created("a", "oc_1")], clients: [seen("oc_1", { status })] };
    const steps = [new Set<string>(), new Set(["a"])].map((retry) => plan(policy([client("a")]), world, { retry }));
    expect(steps.map(({ items }) => items[0]!.decision)).toMatchObject([
      { hold: "uncertain", step: { do: "nothing" } },
      { step: { do: "create" } },
    ]);
  });

  it("of keep_free_slots stay free", () => {
    const world = { entries: one, clients: [seen("oc_1"), ...many(17)] };
    expect(plan(policy([client("b")], { keepFreeSlots: 2 }), world).refusals).toEqual([
      { account: "sa", used: 18, needed: 1, limit: 18 },
    ]);
  });

  it("that are used up delay later rotations, the longest due first", () => {
    const entries = [created("a", "oc_1"), created("b", "oc_2"), created("c", "oc_3")];
    const oldest = seen("oc_2", { createdAt: at(now - 90 * day) });
    const clients = [old("oc_1"), oldest, old("oc_3"), ...many(16)];
    const { items, refusals } = plan(policy([client("a"), client("b"), client("c")]), { entries, clients });
    expect(refusals).toEqual([]);
    expect(items.map(({ row }) => row.action)).toEqual(["wait", "rotate", "wait"]);
    expect(items[0]!.row.reason).toContain("no free slot: 20 of 20 may be used");
  });

  it("of an account that stays full are refused", () => {
    const clients = [old("oc_1"), ...many(19)];
    expect(plan(policy([client("a")]), { entries: one, clients }).refusals).toEqual([
      { account: "sa", used: 20, needed: 1, limit: 20 },
    ]);
  });
});

describe("a run", () => {
  it("starts no more than changes_per_run, the longest due first", () => {
    const entries = [created("a", "oc_1"), created("b", "oc_2")];
    const clients = [seen("oc_1", { createdAt: at(now - 61 * day) }), seen("oc_2", { createdAt: at(now - 70 * day) })];
    const { items } = plan(policy([client("a"), client("b")], { changesPerRun: 1 }), { entries, clients });
    expect(items.map(({ postponed }) => postponed)).toEqual(["a later run: changes_per_run is 1", undefined]);
  });

  it("outside the window starts nothing, and finishes started work", () => {
    const window = readWindow("04:00-05:00 UTC")!;
    const entries = [created("b", null, "open")];
    const { items, opensAt: opens } = plan(policy([client("a"), client("b")], { window }), { entries });
    expect(opens).toBe("2026-11-22T04:00:00.000Z");
    expect(items.map(({ postponed }) => postponed)).toEqual([
      "the window is closed until 2026-11-22T04:00:00.000Z",
      undefined,
    ]);
  });

  it("of a plan that was saved outside the window starts inside it", () => {
    const of = policy([client("a")], { window: readWindow("04:00-05:00 UTC")! });
    expect(plan(of, {}).items[0]!.postponed).toMatch(/^the window is closed until/);
    expect(plan(of, {}, { windowMs: Date.parse("2026-11-22T04:30:00Z") }).items[0]!.postponed).toBeUndefined();
  });

  it("has work only for items that apply changes now", () => {
    const young = { entries: [created("a", "oc_1")], clients: [seen("oc_1"), seen("oc_7")] };
    expect(runnable(plan(policy([client("a")]), young))).toEqual([]);
    expect(runnable(plan(policy([client("a"), client("b")]), young))).toHaveLength(1);
  });

  it("reports credentials without an item, unless they are ignored", () => {
    const world = {
      entries: [created("a", "oc_1"), created("b", "oc_9", "done", { policy: { id: "pol_other", item: "b" } })],
      clients: [seen("oc_1"), seen("oc_7"), seen("oc_8", { status: "revoked" }), seen("oc_9")],
    };
    expect(plan(policy([client("a")]), world).unmanaged.map(({ id }) => id)).toEqual(["oc_7"]);
    expect(plan(policy([client("a")], { unmanaged: "ignore" }), world).unmanaged).toEqual([]);
  });

  it("of some items omits the others", () => {
    expect(
      plan(policy([client("a"), client("b")]), {}, { only: new Set(["b"]) }).items.map(({ row }) => row.name),
    ).toEqual(["b"]);
  });
});

describe("a window", () => {
  it.each([
    ["02:00-04:00 UTC", "2026-11-22T02:00:00Z", true, undefined],
    ["02:00-04:00 UTC", "2026-11-22T04:00:00Z", false, "2026-11-23T02:00:00.000Z"],
    ["23:00-01:00 UTC", "2026-11-22T00:30:00Z", true, undefined],
    ["23:00-01:00 UTC", "2026-11-22T12:00:30Z", false, "2026-11-22T23:00:00.000Z"],
    ["02:00-04:00 Europe/Berlin", "2026-11-22T01:30:00Z", true, undefined],
    // On 2026-03-29 in Berlin, the hour from 2 to 3 does not exist.
    ["02:00-02:30 Europe/Berlin", "2026-03-28T12:00:00Z", false, "2026-03-30T00:00:00.000Z"],
  ])("%s at %s: %s", (text, time, isIn, opens) => {
    const window = readWindow(text)!;
    expect(isOpen(window, Date.parse(time))).toBe(isIn);
    if (opens !== undefined) expect(at(opensAt(window, Date.parse(time)))).toBe(opens);
  });
});

it("durations are written as in a policy", () => {
  const lengths = [0, 999, 61_000, 2 * hour, 36 * hour, day, 61.9 * day];
  expect(lengths.map(shortDuration).join(" ")).toBe("0s 0s 61s 2h 36h 1d 61d");
});
