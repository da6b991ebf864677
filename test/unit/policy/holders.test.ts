// No plan overwrites a working secret that is at an item's destination, for any holder, destination and action.
import { describe, expect, it } from "vitest";
import type { Entry } from "../../../src/journal/entry.ts";
import type { SingleDestination } from "../../../src/journal/entry-destination.ts";
import { holdersOf, placeOf } from "../../../src/policy/holders.ts";
import type { SeenCredential } from "../../../src/policy/observed.ts";
import { planPolicy } from "../../../src/policy/plan.ts";
import type { ClientItem, ItemDestination, Policy } from "../../../src/policy/policy.ts";
import { worksByName } from "../../../src/policy/works.ts";
import { commandMark } from "../../../src/secrets/destination.ts";
import { entry as anEntry, now, own, scope } from "./an-entry.ts";

const longAgo = new Date(now - 100 * 86_400_000).toISOString();

const destinations: Readonly<Record<string, readonly [ItemDestination, SingleDestination]>> = {
  file: [
    { file: "/s/a", format: "json" },
    { kind: "file", path: "/s/a", as: "env" },
  ],
  profile: [{ profile: "other" }, { kind: "profile", name: "other", profileId: "p" }],
  store: [{ store: "vault:kv/a#f" }, { kind: "store", to: "vault:kv/a#f", facts: {} }],
  "store in another case": [
    { store: "github:Acme/App#client_secret" },
    { kind: "store", to: "github:acme/app#CLIENT_SECRET", facts: {} },
  ],
  "store with options": [
    { store: "github:org/acme#SECRET?repositories=api,web" },
    { kind: "store", to: "github:org/acme#SECRET", facts: {} },
  ],
  command: [{ command: "deploy" }, { kind: "command", mark: commandMark({ command: "deploy" }) }],
};

const entry = (over: Partial<Entry>): Entry =>
  anEntry({ created_at: longAgo, updated_at: longAgo, resource_id: "oc_other", ...over });
const client = (id: string, over: Partial<SeenCredential> = {}): SeenCredential => ({
  id,
  status: "active",
  serviceAccount: "sa",
  scopes: ["entity:read"],
  createdAt: longAgo,
  ownership: "other",
  ...over,
});
const item = (name: string, ...to: ItemDestination[]): ClientItem => ({
  policy: own,
  kind: "oauth_client",
  name,
  serviceAccount: "sa",
  scopes: ["entity:read"],
  rotate: { everyMs: 60 * 86_400_000, overlapMs: 0, unknownAge: "report" },
  destinations: to,
});

interface Holder {
  readonly over: Partial<Entry>;
  readonly seen?: Partial<SeenCredential>;
  readonly more?: (of: Entry) => readonly Partial<Entry>[];
  readonly create: "adopt" | "occupied" | "free";
  readonly rotate: "occupied" | "free";
}

const taken = { create: "occupied", rotate: "occupied" } as const;
const free = { create: "free", rotate: "free" } as const;
const adoptable = { create: "adopt", rotate: "occupied" } as const;
const rotated: Partial<Entry> = {
  operation: "oauth_client.rotate",
  policy: { id: own, item: "renamed" },
  detail: { old_client: "oc_before" },
};

const holders: Readonly<Record<string, Holder>> = {
  "a client that was made by hand": { over: {}, ...adoptable },
  "the same item under another name": { over: { policy: { id: own, item: "renamed" } }, ...adoptable },
  "the same item under another name, in an overlap": { over: { ...rotated, state: "waiting" }, ...adoptable },
  "an item of another policy": { over: { policy: { id: "pol_another", item: "other" } }, ...taken },
  "an item of the same name in another policy": { over: { policy: { id: "pol_another", item: "a" } }, ...taken },
  "an item of the same file": { over: { policy: { id: own, item: "b" } }, ...taken },
  "an unfinished creation": { over: { state: "unknown", resource_id: null, policy: { id: own, item: "c" } }, ...taken },
  "an unfinished creation by hand": { over: { state: "open", resource_id: null }, ...taken },
  "a creation whose secret is kept": { over: { state: "undelivered" }, ...taken },
  "a client of another organization": { over: { organization_id: "o2" }, ...taken },
  "a client of another region": { over: { base_url: "https://eu.example" }, ...taken },
  "a client of another region that was revoked": {
    over: { base_url: "https://eu.example" },
    more: ({ resource_id, base_url }) => [{ operation: "oauth_client.revoke", resource_id, base_url }],
    ...free,
  },
  "a revoked client": { over: {}, seen: { status: "revoked" }, ...free },
  "a client that the journal saw revoked": {
    over: {},
    more: ({ resource_id }) => [{ operation: "oauth_client.revoke", resource_id }],
    ...free,
  },
  "an expired client": { over: {}, seen: { expiresAt: longAgo }, ...free },
  "a client that was not found": { over: {}, seen: { status: "absent" }, ...taken },
  "a disabled client": { over: {}, seen: { status: "disabled" }, ...taken },
  "a refused creation": { over: { state: "refused", resource_id: null }, ...free },
  "a client that was adopted as this item": {
    over: {},
    more: ({ resource_id }) => [{ operation: "oauth_client.adopt", resource_id, policy: { id: own, item: "a" } }],
    create: "free",
    rotate: "free",
  },
};

const results = { adopt: "not_adopted", occupied: "occupied", free: undefined };

function planItem(
  to: readonly ItemDestination[],
  at: SingleDestination,
  { holder, hasOwn }: { holder: Holder; hasOwn: boolean },
) {
  const other = entry({ destination: at, ...holder.over });
  const entries = [
    ...(hasOwn ? [entry({ resource_id: "oc_own", policy: { id: own, item: "a" } })] : []),
    other,
    ...(holder.more?.(other) ?? []).map(entry),
  ];
  const a = item("a", ...to);
  const policy: Policy = {
    id: own,
    items: [a, item("b", { file: "/s/b" })],
    maxFailures: 3,
    changesPerRun: 20,
    keepFreeSlots: 0,
    unmanaged: "report",
  };
  const works = worksByName(entries, scope);
  const places = new Set(to.map((one) => placeOf(one, a)));
  const clients = [client("oc_other", holder.seen), ...(hasOwn ? [client("oc_own")] : [])];
  const found = planPolicy(
    policy,
    {
      nowMs: now,
      profile: "prod",
      works,
      clients: new Map(clients.map((one) => [one.id, one])),
      keys: new Map(),
      unresolved: new Map(),
      delivered: new Map(),
      vanished: new Set(),
      elsewhere: new Set(),
      holders: holdersOf(entries, { scope, works, places, isHere: () => true }),
    },
    { only: new Set(["a"]), retry: new Set(), redeliver: new Set(), finish: new Set(), includeOwn: false },
  );
  return found.items[0]!;
}

describe.each(Object.entries(destinations))("a destination (%s) with the secret of", (_kind, [to, at]) => {
  it.each(Object.entries(holders))("%s", (_what, holder) => {
    for (const places of [[to], [{ file: "/s/first" }, to]]) {
      const created = planItem(places, at, { holder, hasOwn: false });
      expect(created.decision.hold).toBe(results[holder.create]);
      if (holder.create === "adopt")
        expect(created.row).toMatchObject({ action: "adopt", resource_id: "oc_other", state: "active" });
      const due = planItem(places, at, { holder, hasOwn: true });
      expect([due.decision.hold, due.row.action]).toEqual([results[holder.rotate], "rotate"]);
    }
  });
});

it("of two secrets delivered to one destination the later one is there, whatever the order of their entries", () => {
  const [to, at] = destinations.file!;
  const entries = [
    entry({ id: "1k00000001", resource_id: "oc_earlier", destination: at }),
    entry({ id: "1k00000002", resource_id: "oc_later", destination: at }),
  ];
  const place = placeOf(to);
  for (const listed of [entries, entries.toReversed()]) {
    const about = { scope, works: worksByName(listed, scope), places: new Set([place]), isHere: () => true };
    expect(holdersOf(listed, about).get(place)?.id).toBe("oc_later");
  }
});

describe("a command", () => {
  it("may select its place by service account, so another account's client is elsewhere", () => {
    const [to, at] = destinations["command"]!;
    const request_text = '{"service_account_id":"sb","scopes":["entity:read"]}';
    const holder: Holder = { over: { request_text }, ...free };
    expect(planItem([to], at, { holder, hasOwn: false }).decision.hold).toBeUndefined();
  });
});

describe("a reason", () => {
  const [to, at] = destinations["file"]!;
  it.each([
    ["a client that was made by hand", "exists as oc_other, not adopted"],
    [
      "the same item under another name",
      "the secret of oc_other (item renamed) is at its destination: adopt it if you renamed the item, or choose another destination",
    ],
    ["an item of the same file", "it does not exist yet; the secret of oc_other of item b is at its destination"],
    ["an unfinished creation", / of item c delivers to the same destination$/],
    ["a client of another region", /the secret of oc_other, issued by https:\/\/eu\.example, is at its destination$/],
  ] as const)("of %s", (what, reason) => {
    expect(planItem([to], at, { holder: holders[what]!, hasOwn: false }).row.reason).toMatch(
      typeof reason === "string" ? new RegExp(`^${reason.replaceAll(/[().]/g, "\\$&")}$`) : reason,
    );
  });
});

describe("the profile in use", () => {
  const at: SingleDestination = { kind: "stdout" };
  it.each([
    ["created in its place", "prod", false, "occupied"],
    ["rotated into its place", "prod", true, "occupied"],
    ["created in another profile", "other", false, undefined],
  ] as const)("is not locked out by a credential %s", (_what, profile, own, hold) => {
    const { decision, row } = planItem([{ file: "/s/b1" }, { profile }], at, {
      holder: { over: {}, ...free },
      hasOwn: own,
    });
    expect(decision.hold).toBe(hold);
    if (hold !== undefined)
      expect(row.reason).toMatch(/would replace the credential of profile prod, which this run uses$/);
  });
});

it("a new item that resembles a removed one says so, whatever its destination", () => {
  const over = { policy: { id: own, item: "renamed" } };
  const [, at] = destinations["file"]!;
  const { decision, row } = planItem([{ file: "/s/new" }], at, { holder: { over, ...free }, hasOwn: false });
  expect([decision.hold, row.action]).toEqual([undefined, "create"]);
  expect(row.reason).toBe(
    "it does not exist yet; oc_other of renamed, which is not in the file, is alike: adopt it if you renamed the item",
  );
});
