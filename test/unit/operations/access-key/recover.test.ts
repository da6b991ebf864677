// A key whose creation has no known outcome: which key of the list it is taken for, when none is taken, and what a person
// is told of it.
import { describe, expect, it } from "vitest";
import { key, createAccessKey } from "../../../../src/operations/key.ts";
import type { Recovered, RecoveryOptions } from "../../../../src/operations/recovery.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { finishCreation } from "../../../../src/operations/creation.ts";
import { AWorld, type Ended, type Setting } from "../a-world.ts";
import type { Fate, Made } from "../an-account.ts";

const minute = 60_000;
const hour = 60 * minute;
const began = Date.parse("2026-11-21T02:00:00.000Z");

interface Row {
  /** What became of the creation's request; made, and its response lost. */
  readonly fate?: Fate;
  readonly setting?: Setting;
  readonly marked?: boolean;
  /** What else is there when it is recovered. */
  readonly before?: (world: AWorld, lost: Entry, key: Made | undefined) => void;
  /** What comes while it is recovered. */
  readonly meanwhile?: (world: AWorld, lost: Entry) => void;
  readonly answers?: Partial<RecoveryOptions>;
  /** How far the service's clock was ahead of this machine's, milliseconds; null: they were not compared. */
  readonly offset?: number | null;
  /** After the creation, milliseconds. */
  readonly later?: number;
  readonly sends: readonly string[];
  /** Of the lost entry. */
  readonly state: Entry["state"];
  readonly says?: readonly (string | RegExp)[];
  readonly fails?: object;
}

/** Changes what the journal has of an entry. */
function edit(world: AWorld, { id }: Pick<Entry, "id">, change: (entry: Entry) => Partial<Entry>): void {
  const at = world.entries.findIndex((entry) => entry.id === id);
  world.entries[at] = { ...world.entries[at]!, ...change(world.entries[at]!) };
}

/** Another creation in the journal, older than the lost one. */
function another(world: AWorld, lost: Entry, change: Partial<Entry>): Entry {
  const updated_at = new Date(began - hour).toISOString();
  const entry: Entry = { ...lost, id: "0000000009", state: "done", updated_at, ...change };
  world.entries.unshift(entry);
  return entry;
}

async function recovered(row: Row): Promise<{ world: AWorld; lost: Entry; end: Ended<Recovered[]> }> {
  const { fate = "lost after", setting = {}, marked = false, later = hour, offset = 0 } = row;
  const world = new AWorld({ retryForMs: 0, fates: { create: [fate] }, ...setting });
  world.account.has("key", "ak_own", { at: began - hour });
  await world.run((bench) =>
    createAccessKey(bench, { request: { name: "ci" }, marked }, { destination: world.destination() }),
  );
  const [lost] = world.entries;
  edit(world, lost!, () => ({ clock_offset_ms: offset }));
  world.now += later;
  row.before?.(world, lost!, world.account.keys[1]);
  world.account.requests.length = 0;
  world.told.length = 0;
  // Who agrees to all types the id that is shown.
  const answers = row.answers?.mayReplace === undefined ? { revokes: "ak_2", ...row.answers } : row.answers;
  const end = await world.recover(answers, () => row.meanwhile?.(world, lost!));
  return { world, lost: world.entries.find(({ id }) => id === lost!.id)!, end };
}

const replacedIt = ["list", "list", "list", "revoke ak_2", "create"];

const rows: Record<string, Row> = {
  "the only unused key of that name and time": {
    sends: replacedIt,
    state: "replaced",
    says: [
      'Found the key ak_2 ("ci", created 2026-11-21T02:00:00.',
      "the only unused key with that name from that time.",
      "Revoking ak_2, whose secret is lost.",
    ],
  },
  "a key with the creation's mark": {
    marked: true,
    sends: replacedIt,
    state: "replaced",
    says: ["Found the key ak_2: its name has the mark of this creation."],
  },
  "none, and long ago": {
    fate: "lost before",
    sends: ["list"],
    state: "refused",
    says: ["No key of that name is in the list: none was created."],
  },
  "none, a moment ago": {
    fate: "lost before",
    later: 1000,
    sends: ["list", "list"],
    state: "refused",
  },
  "none, a moment ago, and the clock is set back while it waits": {
    fate: "lost before",
    later: 1000,
    sends: ["list", "list"],
    state: "refused",
    before: (world) => void (world.onSleep = () => void (world.now -= 60_000)),
  },
  "none, a moment ago, with no time to wait": {
    fate: "lost before",
    later: 1000,
    answers: { waitMs: 0 },
    sends: ["list"],
    state: "unknown",
    fails: {
      kind: "outcome_unknown",
      message: "No key of this creation was found, but that is not certain: the request was sent a moment ago.",
      details: { nextCommand: "integ journal recover 1000000001", recovers: undefined },
    },
  },
  "none in a list without the own key": {
    fate: "lost before",
    before: (world) => world.account.keys.splice(0, 1),
    sends: ["list"],
    state: "unknown",
    fails: { message: expect.stringContaining("the list is empty") },
  },
  "none, and two doubts": {
    fate: "lost before",
    before: (world) => {
      world.account.has("key", "theirs", { name: "other", at: began - hour });
      Object.assign(world.account.has("key", "nameless", { at: began }), { body: "{}" });
      world.account.keys.splice(0, 1);
    },
    sends: ["list"],
    state: "unknown",
    fails: {
      message:
        "No key of this creation was found, but that is not certain: the list does not contain the profile's own key, so others may be missing too; some keys of the list have no name.",
    },
  },
  "two that may be it": {
    before: (world) => world.account.has("key", "theirs", { name: "ci", at: began + 1000 }),
    sends: ["list"],
    state: "unknown",
    fails: {
      kind: "outcome_unknown",
      message: expect.stringMatching(
        /^2 keys match the request: ak_2 \("ci", created 2026[^)]+\); theirs \("ci", created 2026-11-21T02:00:01.000Z\)\.$/,
      ),
      details: { nextCommand: "integ journal forget 1000000001", hint: expect.stringContaining("keys revoke") },
    },
  },
  "one that was used": {
    before: (_world, _lost, key) => (key!.lastUsedAt = "2026-11-21T02:30:00.000Z"),
    sends: ["list"],
    state: "unknown",
    fails: {
      message: expect.stringMatching(/^The key ak_2 .* matches the request, and it has been used/),
      details: { nextCommand: "integ journal forget 1000000001" },
    },
  },
  "one of another time": {
    before: (world, _lost, key) => {
      world.account.keys.splice(1, 1);
      world.account.has("key", key!.id, { name: "ci", at: began - 20 * minute });
    },
    sends: ["list"],
    state: "unknown",
    fails: { message: expect.stringContaining("the key ak_2 has that name, but differs in time") },
  },
  "one that another creation made": {
    before: (world, lost) => another(world, lost, { resource_id: "ak_2" }),
    sends: ["list"],
    state: "refused",
  },
  "one of another address' creation": {
    before: (world, lost) => another(world, lost, { resource_id: "ak_2", base_url: "https://other.example" }),
    sends: replacedIt,
    state: "replaced",
  },
  "one whose secret is kept here for another creation": {
    before: (world, lost) => {
      another(world, lost, { state: "undelivered" });
      world.kept.set("0000000009", { id: "ak_2", secret: world.account.keys[1]!.secret } as never);
    },
    sends: ["list"],
    state: "refused",
  },
  "one that the rotation that asked for it made": {
    before(world, lost) {
      another(world, lost, { operation: "access_key.rotate", resource_id: "ak_2", detail: { old_key: "old" } });
      edit(world, lost, () => ({ parent: "0000000009" }));
    },
    sends: replacedIt,
    state: "replaced",
  },
  "the old one of the rotation that asked for it": {
    before(world, lost) {
      another(world, lost, { operation: "access_key.rotate", detail: { old_key: "ak_2" }, resource_id: "ak_2" });
      edit(world, lost, () => ({ parent: "0000000009" }));
    },
    sends: ["list"],
    state: "refused",
  },
  "one of another user, as an earlier creation shows": {
    before: (world, lost) => another(world, lost, { detail: { ...lost.detail, created_by: "user_2" } }),
    sends: ["list"],
    state: "unknown",
    fails: { message: expect.stringContaining("differs in time, user, type, scopes or expiry") },
  },
  "one of the user of an earlier creation": {
    before: (world, lost) => another(world, lost, { detail: { ...lost.detail, created_by: "user_1" } }),
    sends: replacedIt,
    state: "replaced",
  },
  "one whose user only another profile's creation names": {
    before: (world, lost) =>
      another(world, lost, { detail: { ...lost.detail, created_by: "user_2" }, profile_id: "p2" }),
    sends: replacedIt,
    state: "replaced",
  },
  "one whose user only a creation at another address names": {
    before: (world, lost) =>
      another(world, lost, { detail: { ...lost.detail, created_by: "user_2" }, base_url: "https://other.example" }),
    sends: replacedIt,
    state: "replaced",
  },
  "one whose user only its own receipt names": {
    before: (world, lost) => edit(world, lost, ({ detail }) => ({ detail: { ...detail, created_by: "user_2" } })),
    sends: replacedIt,
    state: "replaced",
  },
  "one whose user only another kind of change names": {
    before: (world, lost) =>
      another(world, lost, { operation: "access_key.revoke", detail: { ...lost.detail, created_by: "user_2" } }),
    sends: replacedIt,
    state: "replaced",
  },
  "one whose earlier creation names no user": {
    before: (world, lost) => another(world, lost, { detail: {} }),
    sends: replacedIt,
    state: "replaced",
  },
  "none, with a clock that was never compared": {
    fate: "lost before",
    offset: null,
    sends: ["list", "list"],
    state: "refused",
  },
  "none, with a clock that was an hour behind": {
    fate: "lost before",
    later: 30 * minute,
    answers: { waitMs: 0 },
    offset: hour,
    sends: ["list"],
    state: "unknown",
    fails: { message: expect.stringContaining("the request was sent a moment ago") },
  },
  "one, with a clock that was five minutes behind": {
    offset: 5 * minute,
    sends: replacedIt,
    state: "replaced",
  },
  "none, since the last request was sent long after the entry was made": {
    fate: "lost before",
    answers: { waitMs: 0 },
    before: (world, lost) =>
      edit(world, lost, ({ detail }) => ({ detail: { ...detail, sent_at: new Date(world.now - 1000).toISOString() } })),
    sends: ["list"],
    state: "unknown",
    fails: { message: expect.stringContaining("the request was sent a moment ago") },
  },
  "none, since the outcome was noted a moment ago": {
    fate: "lost before",
    answers: { waitMs: 0 },
    before: (world, lost) => edit(world, lost, () => ({ updated_at: new Date(world.now - 1000).toISOString() })),
    sends: ["list"],
    state: "unknown",
    fails: { message: expect.stringContaining("the request was sent a moment ago") },
  },
  "one that a running process may have made": {
    before: (world, lost) => {
      another(world, lost, { state: "unknown" });
      world.running.add("0000000009");
    },
    sends: ["list"],
    state: "unknown",
    fails: {
      message: expect.stringContaining("matches the request, and may be of 0000000009 instead."),
      details: { meaning: "Nothing was revoked: a running process works on 0000000009." },
    },
  },
  "one whose secret may be kept on another machine": {
    meanwhile: (world, lost) =>
      another(world, lost, { state: "unknown", detail: { ...lost.detail, attempted_at: ["there:/a", "there:/b"] } }),
    sends: ["list"],
    state: "unknown",
    fails: {
      message: expect.stringContaining("may be of 0000000009 instead."),
      details: {
        meaning:
          "Nothing was revoked: 0000000009 was requested in there:/a, there:/b, and its secret may be kept there.",
        hint: "Run integ journal recover there.",
      },
    },
  },
  "one whose creation has ended meanwhile": {
    before: (world) => {
      world.onTryLease = () => {
        for (const { id } of world.entries.filter((entry) => entry.id === "0000000009"))
          edit(world, { id }, () => ({ state: "done", resource_id: "ak_2" }));
      };
    },
    meanwhile: (world, lost) => void another(world, lost, { state: "unknown" }),
    sends: ["list"],
    state: "unknown",
    fails: {
      details: { meaning: "Nothing was revoked: 0000000009 has finished meanwhile.", hint: "Run the command again." },
    },
  },
  "lost, and nobody agrees to another": {
    answers: { mayReplace: async () => false },
    sends: ["list", "list"],
    state: "secret_lost",
    fails: { kind: "secret_lost" },
  },
  "lost, and revoked by hand meanwhile": {
    fate: "silent",
    before: (_world, _lost, key) => (key!.status = "revoked"),
    sends: ["list"],
    state: "unusable",
    fails: { kind: "unusable", message: expect.stringContaining("The key ak_2, whose secret is lost, is revoked") },
  },
  "lost, and not in the list any more": {
    fate: "silent",
    before: (world) => world.account.keys.splice(1, 1),
    sends: ["list"],
    state: "unusable",
    fails: { message: expect.stringContaining("is missing from the list of keys") },
  },
  "lost, and being revoked when the process ended": {
    fate: "silent",
    before: (world, lost, key) => {
      key!.status = "revoked";
      edit(world, lost, ({ detail }) => ({ detail: { ...detail, revoking: true } }));
    },
    sends: ["list", "revoke ak_2", "create"],
    state: "replaced",
    says: ["Revoking ak_2, whose secret is lost."],
  },
  "lost, and of a time that has passed": {
    fate: "silent",
    before: (world, lost) =>
      edit(world, lost, () => ({ request_text: '{"name":"ci","expiresAt":"2026-11-21T02:30:00.000Z"}' })),
    sends: ["list"],
    state: "secret_lost",
    fails: { kind: "secret_lost", message: expect.stringMatching(/expires-at is in the past/) },
  },
  "never sent, and of a time that has passed": {
    fate: { refused: 429 },
    before: (world, lost) =>
      edit(world, lost, () => ({ request_text: '{"name":"ci","expiresAt":"2026-11-21T02:30:00.000Z"}' })),
    sends: [],
    state: "open",
    fails: { kind: "usage" },
  },
  "lost, and different from what was asked for": {
    fate: "silent",
    before: (world, lost) =>
      edit(world, lost, ({ detail }) => ({ detail: { ...detail, differs: "its name is another" } })),
    sends: ["list", "list", "revoke ak_2", "create"],
    state: "replaced",
  },
  "lost, without the id of its key": {
    fate: "silent",
    before: (world, lost) => edit(world, lost, () => ({ resource_id: null })),
    sends: [],
    state: "secret_lost",
    fails: { message: "The entry 1000000001 does not name its key." },
  },
  "lost, and used after all": {
    fate: "silent",
    before: (_world, _lost, key) => (key!.lastUsedAt = "2026-11-21T02:30:00.000Z"),
    sends: ["list", "list"],
    state: "secret_lost",
    fails: {
      kind: "secret_lost",
      message: expect.stringContaining("was used at 2026-11-21T02:30:00.000Z: its secret is in use."),
      details: { nextCommand: "integ journal forget 1000000001" },
    },
  },
};

describe("a key that only its name and time identify", () => {
  it.each([undefined, "ak_9"])("is not revoked by any consent but its id (typed: %s)", async (revokes) => {
    const world = new AWorld({ destination: "file", fates: { create: ["lost after"] } });
    world.account.has("key", "ak_own");
    await world.run((bench) =>
      createAccessKey(bench, { request: { name: "ci" }, marked: false }, { destination: world.destination() }),
    );
    for (let round = 0; round < 2; round++) {
      world.now += 3_600_000;
      const { value } = await world.recover({ revokes, mayReplace: async () => true });
      expect(value?.[0]?.failure).toMatchObject({
        kind: "secret_lost",
        details: { nextCommand: "integ journal recover 1000000001 --revoke ak_2" },
      });
      expect(world.account.live("key").map(({ id }) => id)).toEqual(["ak_own", "ak_2"]);
    }
    await world.recover({ revokes: "ak_2", mayReplace: async () => false });
    expect(world.account.live("key").map(({ id }) => id)).toEqual(["ak_own", "ak_3"]);
    expect(world.unsettled()).toEqual([]);
  });
});

describe("a lost creation of a key is recovered:", () => {
  it.each(Object.entries(rows))("%s", async (_name, row) => {
    const { world, lost, end } = await recovered(row);
    const failure = end.failure ?? end.value?.find(({ entry }) => entry.id === lost.id)?.failure;
    if (row.fails === undefined) expect(failure).toBeUndefined();
    else expect(failure).toMatchObject(row.fails);
    expect(world.account.requests).toEqual(row.sends);
    expect(lost.state).toBe(row.state);
    if (lost.state === "replaced" && row.fate === undefined)
      expect(lost.detail).toMatchObject({ in_flight: false, orphan_certain: true });
    for (const words of row.says ?? [])
      expect(world.told.join("\n")).toMatch(typeof words === "string" ? escaped(words) : words);
    expect(world.broken).toEqual([]);
  });

  it("one that someone revoked is not created again by its rotation", async () => {
    const world = new AWorld({ retryForMs: 0, fates: { create: ["silent"] } });
    const request = { request: { name: "ci" }, marked: false };
    await world.run((bench) => createAccessKey(bench, request, { destination: world.destination() }));
    const [lost] = world.entries;
    edit(world, lost!, () => ({ state: "unusable" }));
    const options = { mayReplace: async () => true, waitMs: 0, destinationOf: async () => world.destination() };
    const end = await world.run(async (bench) =>
      finishCreation(key, { bench, lease: await bench.journal.lease(lost!.id) }, options),
    );
    expect([end.kind, world.account.requests]).toEqual(["unusable", ["create"]]);
  });

  it("a marked key is replaced by one of the same name with another mark, and with the time at which it ends", async () => {
    const { world, lost } = await recovered({
      marked: true,
      sends: [],
      state: "replaced",
      before: (inner, entry) =>
        edit(inner, entry, ({ detail }) => ({ detail: { ...detail, expiry: "2027-01-01T00:00:00.000Z" } })),
    });
    const next = world.entries.find(({ replaces }) => replaces === lost.id)!;
    const [before, after] = [lost, next].map(({ request_text }) => (JSON.parse(request_text) as { name: string }).name);
    expect(after).toMatch(/^ci-[0-9a-f]{12}$/);
    expect(after).not.toBe(before);
    expect(next).toMatchObject({
      parent: null,
      state: "done",
      detail: { base_name: "ci", marked: true, expiry: "2027-01-01T00:00:00.000Z" },
    });
  });
});

function escaped(words: string): RegExp {
  return new RegExp(words.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
}
