import { expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import {
  type Entry,
  type EntryState,
  formatVersion,
  isSettled,
  nextStep,
  publicEntry,
  unsettledStates,
} from "../../../src/journal/entry.ts";
import { intent } from "./intent.ts";

function entry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6rsqksj", key: "k-1", at: "2026-11-21T00:00:00.000Z" }), ...changes };
}

function parsed(text: string): object {
  const read: unknown = JSON.parse(text);
  if (typeof read !== "object" || read === null) throw new Error(`no object: ${text}`);
  return read;
}

test("exactly the first six states are unsettled", () => {
  const all: EntryState[] = [
    "open",
    "unknown",
    "pending",
    "waiting",
    "secret_lost",
    "undelivered",
    "done",
    "refused",
    "unusable",
    "replaced",
    "abandoned",
  ];
  expect(all.filter((state) => !isSettled(state))).toEqual(all.slice(0, 6));
  expect([...unsettledStates]).toEqual(all.slice(0, 6));
});

test("each unsettled state has a command to type, a settled one none", () => {
  const step = (state: EntryState): string | null => nextStep(entry({ state }));
  expect(step("open")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("unknown")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("pending")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("waiting")).toBe("integ journal recover 1rs6rsqksj");
  expect(step("secret_lost")).toBe("integ journal recover 1rs6rsqksj --replace-lost-secret");
  expect(step("undelivered")).toBe("integ journal claim 1rs6rsqksj");
  for (const state of ["done", "refused", "unusable", "replaced", "abandoned"] as const) expect(step(state)).toBeNull();
  expect(nextStep(entry({ format: formatVersion + 1 }))).toBeNull();
});

test("the public form has the keys of docs/design/journal.md in their order and no other", () => {
  const shown = parsed(publicEntry(entry({ detail: { client_id: "cid" }, destination: { kind: "stdout" } })));
  expect(Object.keys(shown)).toEqual([
    "id",
    "object",
    "operation",
    "state",
    "idempotency_key",
    "profile",
    "region",
    "base_url",
    "service_version",
    "request",
    "resource_id",
    "attempts",
    "request_ids",
    "created_at",
    "updated_at",
    "last_error",
    "next_step",
  ]);
  expect(shown).toMatchObject({ object: "journal_entry", next_step: "integ journal recover 1rs6rsqksj" });
});

test("links to other entries follow where they are set", () => {
  const shown = parsed(publicEntry(entry({ replaces: "a", replaced_by: "b", parent: "c" })));
  expect(Object.entries(shown).slice(-3)).toEqual([
    ["replaces", "a"],
    ["replaced_by", "b"],
    ["parent", "c"],
  ]);
});

test("the request is shown as it was sent: large integers, key order and all", () => {
  const request_text = '{"z":12345678901234567890,"__proto__":{"a":1.0}}';
  expect(publicEntry(entry({ request_text }))).toContain(`"request":${request_text},"resource_id"`);
  expect(JSON.parse(publicEntry(entry({ request_text: "" })))).toMatchObject({ request: null });
  expect(JSON.parse(publicEntry(entry({ request_text: '","state":"done' })))).toMatchObject({
    request: '","state":"done',
    state: "open",
  });
});
