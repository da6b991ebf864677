import { expect, test } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { Admission, Intent, Journal } from "../../../src/journal/journal.ts";
import { openJournal } from "../../../src/journal/open-journal.ts";
import { clock, intent, journalAt, journalPath } from "./intent.ts";

function journal(path = journalPath()): Journal {
  return journalAt(path);
}

async function failure(work: Promise<unknown>): Promise<Failure> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${String(error)}`);
}

async function left(
  open: Journal,
  state: Parameters<Admission["lease"]["record"]>[0]["state"],
  changes: Partial<Intent> = {},
): Promise<string> {
  const { lease } = await open.admit(intent(changes));
  if (state !== "open") await lease.record({ ...(state === undefined ? {} : { state }), attempts: 1 });
  await lease.release();
  return lease.entry.id;
}

test("a new intent is on disk under a random key before admission returns", async () => {
  const open = journal();
  const { kind, lease } = await open.admit(intent({ detail: { client_id: "cid" }, destination: { kind: "stdout" } }));
  expect(kind).toBe("new");
  expect(lease.entry.idempotency_key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{21}$/);
  const read = await openJournal({ path: open.path, now: clock() }).entries();
  expect(read).toEqual([{ ...lease.entry }]);
  expect(read[0]).toMatchObject({
    state: "open",
    attempts: 0,
    detail: { client_id: "cid" },
    destination: { kind: "stdout" },
    request_text: intent().request_text,
  });
});

test("an operation without idempotency has no key, not even one given by hand", async () => {
  const { lease } = await journal().admit(intent({ operation: "access_key.create", idempotent: false }), { key: "k" });
  expect(lease.entry.idempotency_key).toBeNull();
});

test.each(["open", "unknown", "pending"] as const)(
  "an unfinished %s entry of the same request is resumed with its key and bytes",
  async (state) => {
    const open = journal();
    const id = await left(open, state);
    const again = await openJournal({ path: open.path, now: clock() }).admit(intent({ request_text: "other bytes" }));
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
])("another %s is another intent", async (_, changes) => {
  const open = journal();
  await left(open, "unknown");
  expect((await open.admit(intent(changes))).kind).toBe("new");
});

test("a step of a larger work is resumed by that work alone", async () => {
  const open = journal();
  const id = await left(open, "unknown", { parent: "p1" });
  expect((await open.admit(intent({ parent: "p2" }))).kind).toBe("new");
  const again = await open.admit(intent({ parent: "p1" }));
  expect([again.kind, again.lease.entry.id]).toEqual(["resumed", id]);
});

test.each(["done", "refused", "unusable", "replaced", "abandoned"] as const)(
  "a %s entry is not resumed",
  async (state) => {
    const open = journal();
    await left(open, state);
    expect((await open.admit(intent())).kind).toBe("new");
  },
);

test("an entry that another process has leased is its own creation", async () => {
  const open = journal();
  const first = await open.admit(intent());
  const second = await open.admit(intent());
  expect(second.kind).toBe("new");
  expect(second.lease.entry.idempotency_key).not.toBe(first.lease.entry.idempotency_key);
});

test("what admission would go on with can be asked for, and nothing is started", async () => {
  const open = journal();
  expect(await open.resume(intent())).toBeUndefined();
  const id = await left(open, "unknown");
  expect(await open.resume(intent(), { fresh: true })).toBeUndefined();
  expect(await open.resume(intent({ fingerprint: "another" }))).toBeUndefined();
  const found = await open.resume(intent());
  expect(found).toMatchObject({ kind: "resumed", lease: { entry: { id } } });
  // Driven now, and so no longer anybody else's to look after.
  expect(await open.resume(intent())).toBeUndefined();
  await found?.lease.release();
  expect((await open.admit(intent())).lease.entry.id).toBe(id);
  expect(await open.entries()).toHaveLength(1);
});

test("the entry of a key given by hand is found whatever became of it", async () => {
  const open = journal();
  const { lease } = await open.admit(intent(), { key: "by-hand" });
  await lease.record({ state: "done" });
  await lease.release();
  expect(await open.resume(intent())).toBeUndefined();
  expect(await open.resume(intent(), { key: "by-hand" })).toMatchObject({ kind: "same_key" });
  expect(await failure(open.resume(intent({ fingerprint: "another" }), { key: "by-hand" }))).toMatchObject({
    kind: "conflict",
  });
});

test.each([
  ["secret_lost", 9, (id: string) => `integ journal recover ${id} --replace-lost-secret`],
  ["undelivered", 12, (id: string) => `integ journal claim ${id}`],
] as const)(
  "a %s entry of the same request stops the intent unless a fresh one is asked for",
  async (state, exitCode, hint) => {
    const open = journal();
    const id = await left(open, state);
    const stopped = await failure(open.admit(intent()));
    expect(stopped).toMatchObject({ kind: state, exitCode, details: { hint: hint(id), entry: id } });
    expect(await open.entries()).toHaveLength(1);
    expect((await open.admit(intent(), { fresh: true })).kind).toBe("new");
  },
);

test("fresh starts another though one is unfinished", async () => {
  const open = journal();
  await left(open, "unknown");
  expect((await open.admit(intent(), { fresh: true })).kind).toBe("new");
});

test.each(["open", "pending", "secret_lost", "done", "refused", "abandoned"] as const)(
  "a key given by hand finds its %s entry and sends its bytes",
  async (state) => {
    const open = journal();
    const first = await open.admit(intent(), { key: "by-hand" });
    await first.lease.record({ state });
    await first.lease.release();
    const again = await open.admit(intent({ request_text: "other bytes" }), { key: "by-hand" });
    expect(again.kind).toBe("same_key");
    expect(again.lease.entry).toEqual(first.lease.entry);
  },
);

test("a key belongs to one request within a base URL", async () => {
  const open = journal();
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

test("a key whose entry is driven is waited for, then its driver is named", async () => {
  const open = journal();
  const { lease } = await open.admit(intent(), { key: "by-hand" });
  const stopped = await failure(open.admit(intent(), { key: "by-hand" }));
  expect(stopped).toMatchObject({ kind: "failed" });
  expect(stopped.message).toContain(`${lease.entry.id} is in use by process ${process.pid}`);
  const waiting = journalAt(open.path, 5000).admit(intent(), { key: "by-hand" });
  await new Promise((resolve) => setTimeout(resolve, 30));
  await lease.release();
  expect((await waiting).kind).toBe("same_key");
});

test("creations at once in one process each have their own key", async () => {
  const open = journal();
  const all = await Promise.all(Array.from({ length: 8 }, () => open.admit(intent())));
  expect(new Set(all.map((one) => one.lease.entry.idempotency_key)).size).toBe(8);
  expect(all.map((one) => one.kind)).toEqual(Array.from({ length: 8 }, () => "new"));
  expect(await openJournal({ path: open.path, now: clock() }).entries()).toHaveLength(8);
});
