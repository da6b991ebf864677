// The promises of every journal engine (docs/design/journal.md), as tests of its interface: each engine's test file
// runs them. Faults that only a file or only a server has (torn bytes, a lost connection) are tested with the engine.
import { beforeEach, describe, expect, test } from "vitest";
import { Failure, type FailureKind } from "../../../src/errors.ts";
import type { Actor } from "../../../src/journal/actor.ts";
import type { EntryAccount, EntryProgress } from "../../../src/journal/entry.ts";
import type { EntryFilter } from "../../../src/journal/lookup.ts";
import { type EntryRecords, recordHash, type Signed } from "../../../src/journal/record.ts";
import type { Admission, Intent, Journal } from "../../../src/journal/journal.ts";
import { keyRing, type Keys, missingKeys } from "../../../src/journal/keys.ts";
import { isFull } from "../../support/sample.ts";
import { ada, intent } from "./intent.ts";

const eve: Actor = { user: "eve", host: "laptop", run: "https://ci.example.com/1" };

interface JournalStore {
  /** @param options.waitMs the wait for a running holder; short by default */
  open(options?: {
    readonly waitMs?: number;
    readonly now?: () => number;
    readonly actor?: Actor;
    readonly keys?: Keys;
    /** True to let an admission move finished entries to the engine's archive, if it has one. */
    readonly archives?: boolean;
  }): Journal;
  /** Changes records like someone with access to the journal but without its key: every checksum is valid. */
  tamper(id: string, change: (records: Signed[]) => Signed[]): Promise<void>;
}

export interface JournalEngine {
  readonly name: string;
  /** The kind of error for an entry that another process holds. */
  readonly busy: FailureKind;
  readonly hasArchive?: boolean;
  /** True to play only every third test in a sample, because another engine's tests cover the same code. */
  readonly isSampled?: boolean;
  store(): Promise<JournalStore>;
}

async function failure(work: Promise<unknown>): Promise<Failure> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${String(error)}`);
}

async function leave(
  open: Journal,
  state: Parameters<Admission["lease"]["record"]>[0]["state"],
  changes: Partial<Intent> = {},
): Promise<string> {
  const { lease } = await open.admit(intent(changes));
  if (state !== "open") await lease.record({ ...(state === undefined ? {} : { state }), attempts: 1 });
  await lease.release();
  return lease.entry.id;
}

async function exported(from: Journal): Promise<EntryRecords[]> {
  const all: EntryRecords[] = [];
  for await (const one of from.records()) all.push(one);
  return all;
}

function admission(engine: JournalEngine): void {
  test("a new intent is on disk under a random key before admission returns", async () => {
    const store = await engine.store();
    const open = store.open();
    const { kind, lease } = await open.admit(intent({ detail: { client_id: "cid" }, destination: { kind: "stdout" } }));
    expect(kind).toBe("new");
    expect(lease.entry.idempotency_key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{21}$/);
    const read = await store.open().entries();
    expect(read).toEqual([{ ...lease.entry }]);
    expect(read[0]).toMatchObject({
      state: "open",
      attempts: 0,
      detail: { client_id: "cid" },
      destination: { kind: "stdout" },
      request_text: intent().request_text,
    });
  });

  test("every byte of the request is kept unchanged", async () => {
    const store = await engine.store();
    const request_text = '{ "n": 12345678901234567890, "t": "\\u0000 é 💥 \u2028 \'%s\'", "scopes": [ ] }';
    const { lease } = await store.open().admit(intent({ request_text, fingerprint: "\u{1f511}\n".repeat(3000) }));
    const [read] = await store.open().entries();
    expect(read?.request_text).toBe(request_text);
    expect(read).toEqual({ ...lease.entry });
  });

  test("ids sort by admission, within a second and after the clock was set back", async () => {
    const store = await engine.store();
    const ids: string[] = [];
    for (const year of [2027, 2027, 2026, 2028]) {
      const { lease } = await store.open({ now: () => Date.UTC(year, 0, 1) }).admit(intent(), { fresh: true });
      ids.push(lease.entry.id);
    }
    expect(ids.toSorted()).toEqual(ids);
    expect((await store.open().entries()).map(({ id }) => id)).toEqual(ids.toReversed());
  });

  test("an operation without idempotency has no key, not even an explicit one", async () => {
    const { lease } = await (await engine.store())
      .open()
      .admit(intent({ operation: "access_key.create", idempotent: false }), { key: "k" });
    expect(lease.entry.idempotency_key).toBeNull();
  });

  test("concurrent creations in one process each have their own key", async () => {
    const store = await engine.store();
    const open = store.open();
    const all = await Promise.all(Array.from({ length: 8 }, () => open.admit(intent())));
    expect(new Set(all.map((one) => one.lease.entry.idempotency_key)).size).toBe(8);
    expect(all.map((one) => one.kind)).toEqual(Array.from({ length: 8 }, () => "new"));
    expect(await store.open().entries()).toHaveLength(8);
  });
}

function theSameRequest(engine: JournalEngine): void {
  test.each(["open", "unknown", "pending", "waiting"] as const)(
    "an unfinished %s entry of the same request is resumed with its key and bytes",
    async (state) => {
      const store = await engine.store();
      const open = store.open();
      const id = await leave(open, state);
      const again = await store.open().admit(intent({ request_text: "other bytes" }));
      expect(again.kind).toBe("resumed");
      expect(again.lease.entry).toMatchObject({ id, state, request_text: intent().request_text });
      expect(await open.entries()).toHaveLength(1);
    },
  );

  test.each([
    ["operation", { operation: "oauth_client.revoke" as const }],
    ["base URL", { base_url: "https://us.example.com" }],
    ["organization", { organization_id: "00000000-0000-4000-8000-000000000009" }],
    ["version", { service_version: "2027-01-01" }],
    ["request", { fingerprint: '["sa_2"]' }],
    ["parent", { parent: "1rs6rsqksj" }],
    ["replaced entry", { replaces: "1rs6rsqksj" }],
  ])("another %s is a different intent", async (_, changes) => {
    const open = (await engine.store()).open();
    await leave(open, "unknown");
    expect((await open.admit(intent(changes))).kind).toBe("new");
  });

  test("another account resumes nothing of this one, and does not silently create a second", async () => {
    const open = (await engine.store()).open();
    const { lease } = await open.admit(intent({ principal: "client-1" }), { key: "k" });
    await lease.record({ state: "unknown", attempts: 1 });
    await lease.release();
    const { id } = lease.entry;
    const other = intent({ profile: "second", profile_id: "prf_2", principal: "client-2" });
    const refusal = { kind: "conflict", details: { entry: id }, message: expect.stringContaining('profile "prod"') };
    await expect(open.admit(other)).rejects.toMatchObject(refusal);
    await expect(open.admit(other, { key: "k" })).rejects.toMatchObject(refusal);
    expect((await open.admit(other, { fresh: true })).kind).toBe("new");
    const revocation = { operation: "oauth_client.revoke", idempotent: false } as const;
    await leave(open, "unknown", { ...revocation, principal: "client-1" });
    expect((await open.admit({ ...other, ...revocation })).kind).toBe("new");
  });

  test("a step of a larger work is resumed only by that work", async () => {
    const open = (await engine.store()).open();
    const id = await leave(open, "unknown", { parent: "p1" });
    expect((await open.admit(intent({ parent: "p2" }))).kind).toBe("new");
    const again = await open.admit(intent({ parent: "p1" }));
    expect([again.kind, again.lease.entry.id]).toEqual(["resumed", id]);
  });

  test.each(["done", "refused", "unusable", "replaced", "abandoned"] as const)(
    "a %s entry is not resumed",
    async (state) => {
      const open = (await engine.store()).open();
      await leave(open, state);
      expect((await open.admit(intent())).kind).toBe("new");
    },
  );

  test.each([
    ["secret_lost", 9, (id: string) => `integ journal recover ${id} --replace-lost-secret`],
    ["undelivered", 12, (id: string) => `integ journal claim ${id}`],
  ] as const)(
    "a %s entry of the same request blocks the intent unless a new one is requested",
    async (state, exitCode, hint) => {
      const open = (await engine.store()).open();
      const id = await leave(open, state);
      const stopped = await failure(open.admit(intent()));
      expect(stopped).toMatchObject({ kind: state, exitCode, details: { nextCommand: hint(id), entry: id } });
      expect(await open.entries()).toHaveLength(1);
      expect((await open.admit(intent(), { fresh: true })).kind).toBe("new");
    },
  );

  test("--new starts another although one is unfinished", async () => {
    const open = (await engine.store()).open();
    await leave(open, "unknown");
    expect((await open.admit(intent(), { fresh: true })).kind).toBe("new");
  });
}

function resuming(engine: JournalEngine): void {
  test("an entry that another process has leased is that process's own creation", async () => {
    const open = (await engine.store()).open();
    const first = await open.admit(intent());
    const second = await open.admit(intent());
    expect(second.kind).toBe("new");
    expect(second.lease.entry.idempotency_key).not.toBe(first.lease.entry.idempotency_key);
  });

  test("resume returns the entry that admission would resume, and creates none", async () => {
    const open = (await engine.store()).open();
    expect(await open.resume(intent())).toBeUndefined();
    const id = await leave(open, "unknown");
    expect(await open.resume(intent(), { fresh: true })).toBeUndefined();
    expect(await open.resume(intent({ fingerprint: "another" }))).toBeUndefined();
    const found = await open.resume(intent());
    expect(found).toMatchObject({ kind: "resumed", lease: { entry: { id } } });
    expect(await open.resume(intent())).toBeUndefined();
    await found?.lease.release();
    expect((await open.admit(intent())).lease.entry.id).toBe(id);
    expect(await open.entries()).toHaveLength(1);
  });
}

function explicitKeys(engine: JournalEngine): void {
  test("the entry of an explicit key is found in any state", async () => {
    const open = (await engine.store()).open();
    const { lease } = await open.admit(intent(), { key: "by-hand" });
    await lease.record({ state: "done" });
    await lease.release();
    expect(await open.resume(intent())).toBeUndefined();
    expect(await open.resume(intent(), { key: "by-hand" })).toMatchObject({ kind: "same_key" });
    expect(await failure(open.resume(intent({ fingerprint: "another" }), { key: "by-hand" }))).toMatchObject({
      kind: "conflict",
    });
  });

  test.each(["open", "pending", "secret_lost", "done", "refused", "abandoned"] as const)(
    "an explicit key finds its %s entry and sends its bytes",
    async (state) => {
      const open = (await engine.store()).open();
      const first = await open.admit(intent(), { key: "by-hand" });
      await first.lease.record({ state });
      await first.lease.release();
      const again = await open.admit(intent({ request_text: "other bytes" }), { key: "by-hand" });
      expect(again.kind).toBe("same_key");
      expect(again.lease.entry).toEqual(first.lease.entry);
    },
  );

  test("a key belongs to one request within a base URL", async () => {
    const open = (await engine.store()).open();
    const { lease } = await open.admit(intent(), { key: "by-hand" });
    await lease.release();
    for (const changes of [{ fingerprint: "[]" }, { service_version: "2027-01-01" }, { organization_id: null }]) {
      const stopped = await failure(open.admit(intent(changes), { key: "by-hand" }));
      expect(stopped).toMatchObject({ kind: "conflict", exitCode: 5, details: { entry: lease.entry.id } });
    }
    expect(await open.entries()).toHaveLength(1);
    const other = await open.admit(intent({ base_url: "https://us.example.com" }), { key: "by-hand" });
    expect(other.kind).toBe("new");
    expect(other.lease.entry.idempotency_key).toBe("by-hand");
  });

  test("an admission with an explicit key waits while its entry is in use, then names the holder", async () => {
    const store = await engine.store();
    const open = store.open();
    const { lease } = await open.admit(intent(), { key: "by-hand" });
    const stopped = await failure(open.admit(intent(), { key: "by-hand" }));
    expect(stopped).toMatchObject({ kind: engine.busy });
    expect(stopped.message).toMatch(new RegExp(`${lease.entry.id} .* process ${process.pid}`));
    const waiting = store.open({ waitMs: 5000 }).admit(intent(), { key: "by-hand" });
    await new Promise((resolve) => setTimeout(resolve, 30));
    await lease.release();
    expect((await waiting).kind).toBe("same_key");
  });
}

function leases(engine: JournalEngine): void {
  test("a step is on disk once it is recorded; after the release none is accepted", async () => {
    const store = await engine.store();
    const { lease } = await store.open().admit(intent());
    const last_error = { kind: "timeout", message: "no answer", status: 503 };
    await lease.record({ state: "unknown", attempts: 1, last_error });
    await lease.record({ resource_id: "oc_1", detail: { client_id: "cid" } });
    expect(await store.open().find(lease.entry.id)).toEqual({ ...lease.entry });
    expect(lease.entry).toMatchObject({ state: "unknown", attempts: 1, resource_id: "oc_1", last_error });
    expect(lease.entry.updated_at > lease.entry.created_at).toBe(true);
    await lease.release();
    await lease.release();
    await expect(lease.record({ state: "done" })).rejects.toThrow("after its release");
  });

  test("fields that a step omits stay, and immutable ones never change", async () => {
    const store = await engine.store();
    const { lease } = await store.open().admit(intent({ destination: { kind: "stdout" } }));
    const before = lease.entry;
    const after = await lease.record({ state: "pending", replaced_by: null });
    expect(after).toEqual({ ...before, state: "pending", sequence: 2, updated_at: after.updated_at });
    expect(lease.entry).toEqual(after);
  });

  test("one process at a time holds an entry; the next holder reads its records", async () => {
    const store = await engine.store();
    const { lease } = await store.open().admit(intent());
    const { id } = lease.entry;
    expect(await store.open().tryLease(id)).toBeNull();
    expect((await failure(store.open().lease(id))).kind).toBe(engine.busy);
    const next = store.open({ waitMs: 5000 }).lease(id);
    await lease.record({ state: "unknown", attempts: 1 });
    await lease.release();
    expect((await next).entry).toMatchObject({ id, state: "unknown", attempts: 1 });
    await expect(lease.record({ state: "done" })).rejects.toThrow();
    expect(await (await next).record({ state: "done" })).toMatchObject({ sequence: 3 });
    await (await next).release();
    const again = await store.open().tryLease(id);
    expect(again?.entry).toMatchObject({ state: "done" });
    await again?.release();
  });

  test("only one of many processes gets an entry", async () => {
    const store = await engine.store();
    const id = await leave(store.open(), "unknown");
    const all = await Promise.all(Array.from({ length: 6 }, () => store.open().tryLease(id)));
    expect(all.filter((lease) => lease !== null)).toHaveLength(1);
  });

  test("the oldest free unfinished entry is resumed", async () => {
    const store = await engine.store();
    const ids: string[] = [];
    for (let number = 0; number < 3; number += 1) {
      const { lease } = await store.open().admit(intent(), { fresh: true });
      await lease.release();
      ids.push(lease.entry.id);
    }
    const leased = await store.open().lease(ids[0] ?? "");
    expect((await store.open().admit(intent())).lease.entry.id).toBe(ids[1]);
    await leased.release();
    expect((await store.open().admit(intent())).lease.entry.id).toBe(ids[0]);
  });
}

function reading(engine: JournalEngine): void {
  test("an empty journal has no entries and no errors", async () => {
    const open = (await engine.store()).open();
    expect(await open.entries()).toEqual([]);
    expect(await open.unsettled()).toEqual([]);
    expect(await open.verify()).toEqual([]);
    expect(await open.prune(0)).toEqual({ removed: 0, live: [], keptLive: [] });
    expect(await open.condition()).toMatchObject({ damagedPlaces: 0 });
    for (const typed of ["1rs", ""]) expect(await failure(open.find(typed))).toMatchObject({ kind: "not_found" });
    expect(await failure(open.lease("1rs6rsqksj"))).toMatchObject({ kind: "not_found" });
    expect(await failure(open.tryLease("1rs6rsqksj"))).toMatchObject({ kind: "not_found" });
  });

  test("unfinished entries are distinguished from finished ones, the newest first", async () => {
    const store = await engine.store();
    const open = store.open();
    const states = ["open", "unknown", "pending", "secret_lost", "undelivered", "done", "refused", "unusable"] as const;
    const ids: string[] = [];
    for (const state of [...states, "replaced", "abandoned"] as const) {
      const { lease } = await open.admit(intent(), { fresh: true });
      await lease.record({ state });
      await lease.release();
      ids.push(lease.entry.id);
    }
    expect((await store.open().unsettled()).map(({ id }) => id)).toEqual(ids.slice(0, 5).toReversed());
    expect((await store.open().entries()).map(({ id }) => id)).toEqual(ids.toReversed());
    expect(await store.open().verify()).toEqual([]);
  });

  test("an entry is found by any unique prefix, as typed", async () => {
    const store = await engine.store();
    const ids = [await leave(store.open(), "done"), await leave(store.open(), "done")];
    const [id = ""] = ids;
    const typings = [id, id.toUpperCase(), ` ${id.slice(0, 9)} `, id.replaceAll("0", "o").replaceAll("1", "L")];
    for (const typed of typings) {
      expect((await store.open().find(typed)).id).toBe(id);
      const lease = await store.open().lease(typed);
      expect(lease.entry.id).toBe(id);
      await lease.release();
    }
    const unclear = await failure(store.open().find(id.slice(0, 3)));
    expect(unclear.kind).toBe("usage");
    for (const fitting of ids) expect(unclear.message).toContain(fitting);
    for (const typed of ["%", "_".repeat(10), "'", `${id}0`])
      expect(await failure(store.open().find(typed))).toMatchObject({ kind: "not_found" });
  });
}

function histories(engine: JournalEngine): void {
  test("each step has its time and actor, oldest first", async () => {
    const store = await engine.store();
    const { lease } = await store.open().admit(intent());
    const { id, created_at } = lease.entry;
    await lease.record({ state: "unknown", attempts: 1 });
    await lease.release();
    const next = await store.open({ actor: eve }).lease(id);
    const { updated_at } = await next.record({ state: "done" });
    await next.release();
    const history = await store.open().history(id);
    expect(history).toMatchObject([
      { at: created_at, state: "open", actor: ada },
      { state: "unknown", actor: ada },
      { at: updated_at, state: "done", actor: eve },
    ]);
    expect(history.map(({ at }) => at)).toEqual(history.map(({ at }) => at).toSorted());
    expect(await store.open().verify()).toEqual([]);
  });

  test("a list is filtered by state, operation, profile, actor and time", async () => {
    const store = await engine.store();
    const made = await leave(store.open(), "done");
    const theirs = await leave(store.open({ actor: eve }), "unknown", { profile: "other", fingerprint: "2" });
    const revoked = await leave(store.open(), "refused", { operation: "oauth_client.revoke", fingerprint: "3" });
    const { updated_at } = await store.open().find(theirs);
    const ids = async (filter: EntryFilter): Promise<string[]> =>
      (await store.open().select(filter)).map(({ id }) => id);
    expect(await ids({})).toEqual([theirs]);
    expect(await ids({ all: true })).toEqual([revoked, theirs, made]);
    expect(await ids({ states: ["done", "refused"] })).toEqual([revoked, made]);
    expect(await ids({ states: ["done"], all: true })).toEqual([made]);
    expect(await ids({ all: true, operation: "oauth_client.create" })).toEqual([theirs, made]);
    expect(await ids({ all: true, profile: "other" })).toEqual([theirs]);
    expect(await ids({ all: true, since: updated_at })).toEqual([revoked, theirs]);
    for (const actor of ["eve", "laptop", "eve@laptop", "https://ci.example.com/1"])
      expect(await ids({ all: true, actor })).toEqual([theirs]);
    for (const actor of ["ev", "eve@desk", ""]) expect(await ids({ all: true, actor })).toEqual([]);
    expect(await ids({ all: true, actor: "ada", states: ["refused"], operation: "oauth_client.revoke" })).toEqual([
      revoked,
    ]);
    const again = await store.open({ actor: eve }).lease(made);
    await again.record({ state: "done" });
    await again.release();
    expect(await ids({ all: true, actor: "eve" })).toEqual([theirs, made]);
    expect(await ids({ all: true, actor: "ada" })).toEqual([revoked, made]);
  });

  test("the entries of an account are found under all its profile names", async () => {
    const store = await engine.store();
    const organization_id = intent().organization_id?.toUpperCase() ?? null;
    const made = async (changes: Partial<Intent>): Promise<string> => {
      const { lease } = await store.open().admit(intent(changes), { fresh: true });
      await lease.release();
      return lease.entry.id;
    };
    const ofKey = await made({ profile: "a" });
    const ofClient = await made({ profile: "b", principal: "client-1", organization_id });
    const ofOther = await made({ profile: "a", principal: "client-2" });
    await made({ profile: "a", base_url: "https://us.example.com" });
    const without = await made({ profile: "a", organization_id: null });
    const found = async (account: Partial<EntryAccount>, limit?: number): Promise<string[]> => {
      const whole = { base_url: intent().base_url, organization_id, principal: undefined, ...account };
      const filter = { account: whole, ...(limit === undefined ? {} : { limit }) };
      const each: string[] = [];
      for await (const { id } of store.open().each(filter)) each.push(id);
      expect((await store.open().select(filter)).map(({ id }) => id)).toEqual(each);
      return each;
    };
    expect(await found({})).toEqual([ofOther, ofClient, ofKey]);
    expect(await found({ principal: "client-1" })).toEqual([ofClient, ofKey]);
    expect(await found({ principal: "client-1" }, 1)).toEqual([ofClient]);
    expect(await found({ organization_id: null })).toEqual([without]);
    expect(await found({ base_url: "https://ap.example.com" })).toEqual([]);
  });

  test("entries related to an entry or a resource are found, up to the requested number", async () => {
    const store = await engine.store();
    const made = async (changes: Partial<Intent>, progress: Partial<EntryProgress>): Promise<string> => {
      const { lease } = await store.open().admit(intent(changes), { fresh: true });
      await lease.record(progress);
      await lease.release();
      return lease.entry.id;
    };
    const first = await made({}, { state: "done", resource_id: "oc_1", detail: { client_id: "cid_1" } });
    const old_client = "oc_1";
    const detail = { old_client };
    const policy = { id: "pol_of_this_test", item: "reporting" };
    const rotation = await made({ operation: "oauth_client.rotate", policy, detail }, { state: "pending" });
    const step = await made({ parent: rotation }, { state: "secret_lost", resource_id: "oc_2" });
    const other = await made({ parent: rotation, replaces: step }, { state: "done", resource_id: "oc_3" });
    const ids = async (filter: EntryFilter): Promise<string[]> =>
      (await store.open().select(filter)).map(({ id }) => id);
    expect(await ids({ all: true, parent: rotation })).toEqual([other, step]);
    expect(await ids({ parent: rotation })).toEqual([step]);
    expect(await ids({ states: ["done"], parent: rotation })).toEqual([other]);
    expect(await ids({ all: true, replaces: step })).toEqual([other]);
    expect(await ids({ all: true, replaces: first })).toEqual([]);
    expect(await ids({ all: true, resource: "oc_1" })).toEqual([rotation, first]);
    expect(await ids({ all: true, resource: "cid_1" })).toEqual([first]);
    expect(await ids({ all: true, resource: "oc_1", operation: "oauth_client.rotate" })).toEqual([rotation]);
    expect(await ids({ all: true, resource: "oc" })).toEqual([]);
    expect(await ids({ all: true, item: "reporting" })).toEqual([rotation]);
    expect(await ids({ all: true, item: "oc_1" })).toEqual([]);
    expect(await ids({ all: true, resource: "reporting" })).toEqual([]);
    expect(await ids({ all: true, ids: [first, other, "0000000000"] })).toEqual([other, first]);
    expect(await ids({ ids: [first, rotation] })).toEqual([rotation]);
    expect(await ids({ all: true, limit: 2 })).toEqual([other, step]);
    expect(await ids({ all: true, limit: 1, resource: "oc_1" })).toEqual([rotation]);
    expect(await ids({ limit: 1 })).toEqual([step]);
    expect(await ids({ all: true, after: rotation })).toEqual([other, step]);
    expect(await ids({ after: first })).toEqual([step, rotation]);
    expect(await ids({ all: true, after: first, resource: "oc_1" })).toEqual([rotation]);
    expect(await ids({ all: true, after: other })).toEqual([]);
    const request_text = '{"service_account_id":"sa_2","scopes":[]}';
    const adopted = await made({ operation: "oauth_client.adopt", request_text }, { state: "done" });
    const revoked = await made({ operation: "oauth_client.revoke", request_text: "" }, { state: "done" });
    expect(await ids({ all: true, serviceAccount: "sa_2" })).toEqual([adopted]);
    expect(await ids({ all: true, serviceAccount: "sa_1" })).toEqual([other, step, first]);
    expect(await ids({ all: true, serviceAccount: "sa" })).toEqual([]);
    // A service may return such text, and not every database can store it.
    const strange = await made(
      { request_text: '{"service_account_id":"sa_3","scopes":["\\u0000","\\ud800"]}' },
      { last_error: { kind: "failed", message: "\0 \ud800" } },
    );
    expect(await ids({ all: true, serviceAccount: "sa_2" })).toEqual([adopted]);
    expect(await ids({ all: true, serviceAccount: "sa_3" })).toEqual([strange]);
    expect(await ids({ all: true, limit: 2 })).toEqual([strange, revoked]);
    expect(await store.open().count()).toBe(7);
    for await (const entry of store.open().each({ all: true, parent: rotation })) {
      expect(entry.id).toBe(other);
      break;
    }
  });
}

function pruning(engine: JournalEngine): void {
  test("old finished entries are pruned, the entries of one change together", async () => {
    const store = await engine.store();
    const settle = async (changes: Partial<Intent>, state: "refused" | "done" | "open"): Promise<string> => {
      const { lease } = await store.open().admit(intent(changes), { fresh: true });
      if (state !== "open") await lease.record({ state });
      await lease.release();
      return lease.entry.id;
    };
    await settle({}, "refused");
    const lost = await settle({}, "refused");
    const replacement = await settle({ replaces: lost }, "open");
    const rotation = await settle({ operation: "oauth_client.rotate", detail: { old_client: "oc_1" } }, "done");
    await settle({ parent: rotation }, "refused");
    const leased = await store.open().admit(intent(), { fresh: true });
    await leased.lease.record({ state: "done" });
    const later = store.open({ now: () => Date.now() + 365 * 86_400_000 });
    expect(await later.prune(1000 * 86_400_000)).toMatchObject({ removed: 0 });
    expect(await later.prune(86_400_000)).toMatchObject({ removed: 3 });
    const kept = [leased.lease.entry.id, replacement, lost];
    expect((await store.open().entries()).map((entry) => entry.id)).toEqual(kept);
    await leased.lease.record({ state: "done", attempts: 2 });
    await leased.lease.release();
    expect(await store.open().find(leased.lease.entry.id)).toMatchObject({ attempts: 2 });
    expect(await store.open().verify()).toEqual([]);
  });

  test("a client that may be live is kept unless its removal is requested, and then it is named", async () => {
    const store = await engine.store();
    const { lease } = await store.open().admit(intent());
    await lease.record({ state: "done", resource_id: "oc_1" });
    await lease.release();
    const later = store.open({ now: () => Date.now() + 365 * 86_400_000 });
    expect(await later.prune(0)).toMatchObject({ removed: 0, keptLive: [{ id: lease.entry.id }] });
    expect(await later.prune(0, { includeLive: true })).toMatchObject({ removed: 1, live: [{ id: lease.entry.id }] });
    expect(await store.open().entries()).toEqual([]);
  });
}

function transfer(engine: JournalEngine): void {
  test("its entries can be moved to another journal, complete and in order", async () => {
    const [from, to] = [(await engine.store()).open(), (await engine.store()).open()];
    const first = await leave(from, "unknown", { detail: { client_id: "cid" } });
    const revocation = { operation: "oauth_client.revoke", idempotent: false, fingerprint: "2" } as const;
    const second = await leave(from, "done", revocation);
    const batch = await exported(from);
    expect(batch.map(({ id, records }) => [id, records.length])).toEqual([
      [first, 2],
      [second, 2],
    ]);
    expect(await to.merge(batch)).toEqual({ added: 2, extended: 0, unchanged: 0 });
    expect(await to.entries()).toEqual(await from.entries());
    expect((await to.select({ all: true, after: first })).map(({ id }) => id)).toEqual([second]);
    expect(await exported(to)).toEqual(batch);
    expect(await to.verify()).toEqual([]);
    expect(await to.unsettled()).toEqual(await from.unsettled());
    expect(await to.merge(batch)).toEqual({ added: 0, extended: 0, unchanged: 2 });
    expect(await to.merge([])).toEqual({ added: 0, extended: 0, unchanged: 0 });
    expect(await exported(to)).toEqual(batch);
    expect((await to.admit(intent())).kind).toBe("resumed");
  });

  test("an import adds newer records and keeps existing ones", async () => {
    const [from, to] = [(await engine.store()).open(), (await engine.store()).open()];
    const id = await leave(from, "unknown");
    await to.merge(await exported(from));
    const lease = await from.lease(id);
    await lease.record({ state: "done", resource_id: "oc_1" });
    await lease.release();
    const other = await leave(from, "open", { fingerprint: "2" });
    expect(await to.merge(await exported(from))).toEqual({ added: 1, extended: 1, unchanged: 0 });
    expect(await to.find(id)).toMatchObject({ state: "done", resource_id: "oc_1" });
    expect((await to.select({ all: true, resource: "oc_1" })).map((entry) => entry.id)).toEqual([id]);
    expect((await to.unsettled()).map((entry) => entry.id)).toEqual([other]);
    expect(await to.verify()).toEqual([]);
    const back = await to.lease(other);
    await back.record({ state: "refused" });
    await back.release();
    expect(await from.merge(await exported(to))).toEqual({ added: 0, extended: 1, unchanged: 1 });
  });

  test("an import is refused completely if an entry has other records in the journal, or another entry has its key", async () => {
    const [from, to] = [(await engine.store()).open(), (await engine.store()).open()];
    const id = await leave(from, "open");
    await to.merge(await exported(from));
    for (const [journal, state] of [
      [from, "unknown"],
      [to, "refused"],
    ] as const) {
      const lease = await journal.lease(id);
      await lease.record({ state });
      await lease.release();
    }
    const fresh = await leave(from, "open", { fingerprint: "2" });
    const refused = await failure(to.merge(await exported(from)));
    expect(refused.kind).toBe("conflict");
    expect(refused.message).toContain(`The entry ${id} contradicts the one in the journal: record 2 differs.`);
    expect((await to.entries()).map((entry) => entry.id)).toEqual([id]);
    const key = (await from.find(fresh)).idempotency_key ?? "";
    const holder = await to.admit(intent({ fingerprint: "3" }), { key });
    await holder.lease.release();
    const [taken] = (await exported(from)).filter((one) => one.id === fresh);
    const twice = await failure(to.merge([taken!]));
    expect(twice.message).toContain(`entry ${holder.lease.entry.id} has its idempotency key`);
    const elsewhere = (await engine.store()).open();
    const there = await elsewhere.admit(intent({ base_url: "https://us.example.com" }), { key });
    await there.lease.release();
    expect(await elsewhere.merge([taken!])).toMatchObject({ added: 1 });
  });

  test("an import larger than one statement is all or nothing", async () => {
    const [from, to] = [(await engine.store()).open(), (await engine.store()).open()];
    const id = await leave(from, "open");
    const [one] = await exported(from);
    const key = (await from.find(id)).idempotency_key!;
    const numbered = (n: number, keyOf = n): EntryRecords => {
      const own = `${id.slice(0, -3)}${String(n).padStart(3, "0")}`;
      const records = one!.records.map(({ content, mac }) => ({
        content: content.replaceAll(id, own).replaceAll(key, `${key}-${keyOf}`),
        mac,
      }));
      return { id: own, records };
    };
    const many = Array.from({ length: 502 }, (_, n) => numbered(n));
    const refused = await failure(to.merge([...many.slice(0, 501), numbered(501, 3)]));
    expect(refused.message).toContain(`entry ${numbered(3).id} has its idempotency key`);
    expect(await to.count()).toBe(0);
    expect(await to.merge(many)).toEqual({ added: 502, extended: 0, unchanged: 0 });
    expect(await to.count()).toBe(502);
  });

  test("an import with new records for an entry is refused while a process holds the entry", async () => {
    const [from, store] = [(await engine.store()).open(), await engine.store()];
    const to = store.open();
    const id = await leave(from, "open");
    await to.merge(await exported(from));
    const blocking = await to.lease(id);
    expect(await store.open().merge(await exported(from))).toMatchObject({ unchanged: 1 });
    const lease = await from.lease(id);
    await lease.record({ state: "refused" });
    await lease.release();
    const refused = await failure(store.open().merge(await exported(from)));
    expect(refused.kind).toBe("conflict");
    expect(refused.message.toLowerCase()).toContain(`entry ${id} is in use, and the import has new records for it`);
    expect(refused.details.hint).toBe("Wait until it is released, then run the command again.");
    await blocking.release();
    expect(await store.open().merge(await exported(from))).toMatchObject({ extended: 1 });
  });

  test("a journal is moved only while no entry is leased, then names its new place, and can be reactivated", async () => {
    const store = await engine.store();
    const id = await leave(store.open(), "open");
    expect((await store.open().condition()).moved).toBeUndefined();
    const lease = await store.open().lease(id);
    const there = { to: "postgresql://h/d", isUnfinished: false };
    const refused = await failure(store.open().markMoved(there));
    expect(refused.kind).toBe("conflict");
    expect(refused.message).toContain(`${id} is in use`);
    expect(refused.details.meaning).toBe("The journal is as it was.");
    expect((await store.open().condition()).moved).toBeUndefined();
    await lease.release();
    const others = [1, 2, 3, 4, 5].map(() => store.open());
    for (const other of others) await other.entries();
    await store.open().markMoved({ ...there, isUnfinished: true });
    expect((await store.open().condition()).moved).toEqual({ ...there, isUnfinished: true });
    const unfinished = await failure(store.open().lease(id));
    expect(unfinished.message).toContain("are being moved to postgresql://h/d");
    expect(unfinished.details.nextCommand).toBe("integ journal move --to postgresql://h/d");
    await store.open().markMoved(there);
    expect((await store.open().condition()).moved).toEqual(there);
    const batch = await exported(store.open());
    const [admits, resumes, leases, tries, begins] = others as [Journal, Journal, Journal, Journal, Journal];
    for (const begin of [
      () => admits.admit(intent()),
      () => resumes.resume(intent()),
      () => leases.lease(id),
      () => tries.tryLease(id),
      () => begins.admit(intent(), { fresh: true }),
      () => store.open().merge(batch),
      () => store.open().prune(0),
      () => store.open().markMoved({ to: "/other/journal.ndjson", isUnfinished: true }),
    ]) {
      const moved = await failure(begin());
      expect([moved.kind, moved.message]).toEqual(["usage", expect.stringContaining("were moved to postgresql://h/d")]);
    }
    expect((await store.open().entries()).map((entry) => entry.id)).toEqual([id]);
    const from = (await engine.store()).open();
    await from.merge(batch);
    await leave(from, "done", { fingerprint: "2" });
    expect(await store.open().merge(await exported(from), { isMove: true })).toMatchObject({ added: 1, unchanged: 1 });
    await store.open().markMoved(undefined);
    expect((await store.open().condition()).moved).toBeUndefined();
    expect((await store.open().admit(intent())).kind).toBe("resumed");
  });
}

const ring = (...keys: string[]): Keys => keyRing({ read: () => keys });
const [ours, old, theirs] = ["o".repeat(32), "p".repeat(32), "t".repeat(32)] as const;

/** Repairs the chain, so that only an HMAC reveals a change. */
function relinked(records: Signed[]): Signed[] {
  let prev = "";
  return records.map(({ content: was, mac }) => {
    const content = was.replace(/"prev":"[0-9a-f]*"/, `"prev":"${prev}"`);
    prev = recordHash(content);
    return { content, mac };
  });
}

const edited = ({ content, mac }: Signed): Signed => ({ content: content.replace('"eu"', '"us"'), mac });
const second = (change: (record: Signed) => Signed) => (records: Signed[]) => records.with(1, change(records[1]!));
const [order, hmac, stranger] = ["edited, removed or moved since", "HMAC of its record 2 is wrong", "no key of this"];

/** Changes to an entry of three records, each with the finding of `verify`, and true if the entry is still trusted. */
const faults: [what: string, change: (records: Signed[]) => Signed[], says: string, isTrusted: boolean][] = [
  ["edited", second(edited), order, false],
  ["edited, and its hash made to fit", (all) => relinked(second(edited)(all)), hmac, false],
  ["removed", (all) => all.toSpliced(1, 1), order, true],
  ["the first, removed", (all) => all.slice(1), order, true],
  ["reordered", ([one, two, three]) => [two!, one!, three!], order, true],
  ["with the HMAC of another", (all) => all.with(1, { ...all[1]!, mac: all[0]!.mac }), hmac, false],
  [
    "signed with an unknown key",
    second(({ content }) => ({ content, mac: ring(theirs).sign(content) })),
    stranger,
    false,
  ],
  ["unsigned", second(({ content }) => ({ content, mac: "" })), stranger, false],
];

function tampering(engine: JournalEngine): void {
  const places = engine.hasArchive ? (["the journal", "the archive"] as const) : (["the journal"] as const);
  test.each(places.flatMap((place) => faults.map((fault) => [place, ...fault] as const)))(
    "verify finds in %s a record that is %s",
    async (place, _what, change, says, isTrusted) => {
      const store = await engine.store();
      const { lease } = await store.open({ keys: ring(ours) }).admit(intent());
      for (const state of ["unknown", "refused"] as const) await lease.record({ state });
      await lease.release();
      const { id } = lease.entry;
      const isArchived = place === "the archive";
      await leave(store.open({ keys: ring(ours), archives: isArchived }), "open");
      const before = store.open({ keys: ring(ours) });
      expect((await before.entries()).length).toBe(isArchived ? 1 : 2);
      expect(await before.verify()).toEqual([]);
      await store.tamper(id, change);
      const later = store.open({ keys: ring(ours) });
      const severity = says === stranger ? "warning" : "problem";
      const finding = { severity, where: `entry ${id}`, message: expect.stringContaining(says) };
      expect(await later.verify()).toContainEqual(finding);
      expect([...(await later.untrusted([id]))]).toEqual(isTrusted ? [] : [id]);
      expect(await later.find(id)).toMatchObject({ id, state: "refused" });
    },
  );
}

function signing(engine: JournalEngine): void {
  test("records are signed with the first key, and each key verifies", async () => {
    const store = await engine.store();
    const id = await leave(store.open({ keys: ring(old) }), "unknown");
    const both = store.open({ keys: ring(ours, old) });
    const lease = await both.lease(id);
    await lease.record({ state: "refused" });
    await lease.release();
    expect([await both.verify(), [...(await both.untrusted([id]))]]).toEqual([[], []]);
    const one = store.open({ keys: ring(ours) });
    expect([...(await one.untrusted([id]))]).toEqual([id]);
    expect(await one.verify()).toMatchObject([
      { severity: "warning", message: expect.stringContaining(`integ journal trust ${id}`) },
    ]);
  });

  test("a machine without a key trusts no record, by any signer", async () => {
    const store = await engine.store();
    const id = await leave(store.open(), "unknown");
    expect([...(await store.open().untrusted([id]))]).toEqual([]);
    for (const keys of [ring(), missingKeys("here")]) {
      const without = store.open({ keys });
      expect([...(await without.untrusted([id]))]).toEqual([id]);
      expect(await without.verify()).toMatchObject([
        { severity: "warning", message: expect.stringContaining("untrusted") },
      ]);
      expect(await without.unsettled()).toMatchObject([{ id }]);
    }
  });

  test("an entry that changed after a person saw it is not signed, and none with it", async () => {
    const [from, store] = [(await engine.store()).open({ keys: ring(theirs) }), await engine.store()];
    const ids = [await leave(from, "open"), await leave(from, "open", { fingerprint: "2" })];
    const to = store.open({ keys: ring(ours) });
    await to.merge(from.records());
    const seen = await exported(to);
    await store.tamper(ids[1]!, (records) => relinked(records.map(edited)));
    const changed = { kind: "conflict", message: expect.stringContaining(`${ids[1]} is not as it was shown`) };
    const later = store.open({ keys: ring(ours) });
    expect(await failure(later.trust(seen))).toMatchObject(changed);
    expect([...(await later.untrusted(ids))].sort()).toEqual(ids.toSorted());
    const target = (await engine.store()).open({ keys: ring(ours) });
    expect(await failure(target.merge(later.recordsAsSeen(seen), { isMove: true }))).toMatchObject(changed);
    expect(await target.count()).toBe(0);
  });

  test("an entry that a person trusts is signed again, during the import or later", async () => {
    const [from, store] = [(await engine.store()).open({ keys: ring(theirs) }), await engine.store()];
    const id = await leave(from, "open");
    const to = store.open({ keys: ring(ours) });
    expect(await to.merge(from.records())).toMatchObject({ added: 1 });
    expect([...(await to.untrusted([id, "0000000000"]))]).toEqual([id]);
    const seen = await exported(to);
    await to.trust(seen);
    expect([[...(await to.untrusted([id]))], await to.verify()]).toEqual([[], []]);
    expect(await store.open({ keys: ring(ours) }).verify()).toEqual([]);
    const other = (await engine.store()).open({ keys: ring(ours) });
    await other.merge(from.records(), { trusted: new Set([id]) });
    expect([...(await other.untrusted([id]))]).toEqual([]);
    const moved = (await engine.store()).open({ keys: ring(ours) });
    await moved.merge(from.records(), { isMove: true });
    expect([...(await moved.untrusted([id]))]).toEqual([]);
    const without = store.open({ keys: missingKeys("here") });
    const changes = [() => without.trust(seen), () => without.lease(id), () => without.merge(from.records())];
    for (const change of changes)
      expect(await failure(change())).toMatchObject({
        kind: "usage",
        message: expect.stringContaining("has no key of"),
      });
    expect([...(await without.untrusted([id]))]).toEqual([id]);
  });
}

export function journalConformance(engine: JournalEngine): void {
  let number = 0;
  describe(engine.name, () => {
    beforeEach(({ skip }) => {
      number += 1;
      if (engine.isSampled && !isFull && number % 3 !== 0) skip("not of the sample: npm run test:full");
    });
    for (const part of [
      admission,
      theSameRequest,
      resuming,
      explicitKeys,
      leases,
      reading,
      histories,
      pruning,
      transfer,
      signing,
      tampering,
    ])
      part(engine);
  });
}
