import { expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import {
  detailOf,
  dueAt,
  type Entry,
  type EntryState,
  isSettled,
  hasNoId,
  needsAttention,
  nextStep,
  unfinishedStates,
  wasClaimed,
} from "../../../src/journal/entry.ts";
import { publicEntry } from "../../../src/commands/journal/view.ts";
import { intent } from "./intent.ts";

function entry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6rsqksj", key: "k-1", at: "2026-11-21T00:00:00.000Z" }), ...changes };
}

function parsed(text: string): object {
  const read: unknown = JSON.parse(text);
  if (typeof read !== "object" || read === null) throw new Error(`no object: ${text}`);
  return read;
}

test("exactly the first six states are unfinished", () => {
  const all = "open unknown pending waiting secret_lost undelivered done refused unusable replaced abandoned".split(
    " ",
  ) as EntryState[];
  expect(all.filter((state) => !isSettled(state))).toEqual(all.slice(0, 6));
  expect([...unfinishedStates]).toEqual(all.slice(0, 6));
});

test("each unfinished state has a command to type, a finished one none", () => {
  const step = (state: EntryState): string | null => nextStep(entry({ state }));
  expect(step("open")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("unknown")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("pending")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("waiting")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("secret_lost")).toBe("integ journal recover 1rs6rsqksj --replace-lost-secret");
  expect(step("undelivered")).toBe("integ journal claim 1rs6rsqksj");
  for (const state of ["done", "refused", "unusable", "replaced", "abandoned"] as const) expect(step(state)).toBeNull();
});

test("the public form has exactly the keys of docs/design/journal.md in their order", () => {
  const shown = parsed(publicEntry(entry({ detail: { client_id: "cid" }, destination: { kind: "stdout" } })));
  const first = "id object operation state idempotency_key profile region base_url service_version request resource_id";
  const rest = "attempts request_ids created_at updated_at last_error next_step";
  expect(Object.keys(shown)).toEqual(`${first} ${rest}`.split(" "));
  expect(shown).toMatchObject({ object: "journal_entry", next_step: "integ journal recover 1rs6rsqksj" });
});

test("links to other entries follow if they are set", () => {
  const shown = parsed(publicEntry(entry({ replaces: "a", replaced_by: "b", parent: "c" })));
  expect(Object.entries(shown).slice(-3)).toEqual([
    ["replaces", "a"],
    ["replaced_by", "b"],
    ["parent", "c"],
  ]);
});

test("the request is shown as it was sent, with large integers and key order", () => {
  const request_text = '{"z":12345678901234567890,"__proto__":{"a":1.0}}';
  expect(publicEntry(entry({ request_text }))).toContain(`"request":${request_text},"resource_id"`);
  expect(JSON.parse(publicEntry(entry({ request_text: "" })))).toMatchObject({ request: null });
  expect(JSON.parse(publicEntry(entry({ request_text: '","state":"done' })))).toMatchObject({
    request: '","state":"done',
    state: "open",
  });
});

test.each<[string, Partial<Entry>, string | undefined]>([
  [
    "a running overlap",
    { state: "waiting", detail: { overlap_until: "2026-12-01T00:00:00Z" } },
    "2026-12-01T00:00:00Z",
  ],
  ["a request that was put off", { detail: { put_off_until: "2026-12-02T00:00:00Z" } }, "2026-12-02T00:00:00Z"],
  [
    "a request that was put off and has been sent",
    { detail: { in_flight: true, put_off_until: "2026-12-02T00:00:00Z" } },
    undefined,
  ],
  [
    "a request that may have arrived",
    { state: "unknown", detail: { put_off_until: "2026-12-02T00:00:00Z" } },
    undefined,
  ],
  ["a rotation before its overlap", { detail: { overlap_until: "2026-12-01T00:00:00Z" } }, undefined],
  ["an overlap by use", { state: "waiting" }, undefined],
])("when the next step is due: %s", (_what, changes, due) => {
  const one = entry(changes);
  expect(dueAt(one)).toBe(due);
  const at = Date.parse(due ?? "2026-12-01T00:00:00Z");
  expect([at - 1, at, at + 1].map((now) => needsAttention(one, now))).toEqual(
    due ? [false, true, true] : [true, true, true],
  );
  expect(needsAttention({ ...one, state: "done" }, at + 1)).toBe(false);
});

test("an entry has the detail of its own operation", () => {
  const one = entry({ operation: "oauth_client.rotate", detail: { old_client: "oac_1" } });
  expect(detailOf(one, "oauth_client.rotate").old_client).toBe("oac_1");
  expect(() => detailOf(one, "access_key.revoke")).toThrow(
    "1rs6rsqksj is a oauth_client.rotate, not a access_key.revoke",
  );
});

test("a creation without a resource id is unnamed; a claimed secret is recorded", () => {
  expect(hasNoId(entry())).toBe(true);
  expect(hasNoId(entry({ resource_id: "oac_1" }))).toBe(false);
  expect(hasNoId(entry({ operation: "access_key.rotate" }))).toBe(false);
  expect([wasClaimed(entry()), wasClaimed(entry({ detail: { secret_claimed: true } }))]).toEqual([false, true]);
});
