import * as fc from "fast-check";
import { expect, test } from "vitest";
import { newEntry } from "../../../../src/journal/admission.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { entryLine, headerLine, readEntry, readLine, type Slice } from "../../../../src/journal/file/record.ts";
import { intent } from "../intent.ts";

const at = "2026-11-21T00:00:00.000Z";

function lineOf(entry: Entry): Buffer {
  return Buffer.from(entryLine(entry).slice(0, -1));
}

function all(bytes: Buffer): Slice {
  return { bytes, start: 0, end: bytes.length };
}

const anyText = fc.string({ unit: "grapheme", maxLength: 30 });

const anyEntry = fc
  .record({
    twin: anyText,
    request_text: fc.oneof(anyText, fc.json()),
    profile: anyText,
    detail: fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue(), { maxKeys: 3 }),
    key: fc.oneof(fc.constant(null), anyText),
    resource_id: fc.oneof(fc.constant(null), anyText, fc.constant('},"now":{"state":"done"')),
    last_error: fc.oneof(fc.constant(null), fc.record({ kind: anyText, message: anyText })),
  })
  .map(({ key, resource_id, last_error, ...rest }): Entry => {
    const made = newEntry(intent(rest), { id: "1rs6rsqksj", key, at });
    return { ...made, resource_id, last_error };
  });

test("what is written is read again, whatever its strings hold", () => {
  fc.assert(
    fc.property(anyEntry, (entry) => {
      const line = lineOf(entry);
      expect(line.includes(10)).toBe(false);
      const record = readLine(all(line));
      expect(record).toMatchObject({ kind: "entry", id: entry.id, format: 1 });
      expect(readEntry(all(line), { record: 1, entry: 1 })).toEqual(JSON.parse(JSON.stringify(entry)));
    }),
  );
});

test("every flipped bit and every truncation of a record is seen", () => {
  const line = lineOf(newEntry(intent(), { id: "1rs6rsqksj", key: "k", at }));
  let flips = 0;
  for (let bit = 0; bit < line.length * 8; bit += 1, flips += 1) {
    const flipped = Buffer.from(line);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(readLine(all(flipped))).toBeUndefined();
  }
  for (let length = 0; length < line.length; length += 1)
    expect(readLine(all(line.subarray(0, length)))).toBeUndefined();
  expect(flips).toBe(line.length * 8);
});

test("the first record names the format", () => {
  const line = Buffer.from(headerLine("f", at).slice(0, -1));
  expect(readLine(all(line))).toEqual({ kind: "header", format: 1 });
});

test("steps of one entry share the text of what never changes, and nothing else does", () => {
  const entry = newEntry(intent(), { id: "1rs6rsqksj", key: "k", at });
  const intentOf = (changed: Entry): string => {
    const record = readLine(all(lineOf(changed)));
    const text = record?.kind === "entry" ? record.intent : undefined;
    return text ? text.bytes.toString("utf8", text.start, text.end) : "";
  };
  const step: Entry = {
    ...entry,
    state: "done",
    attempts: 3,
    resource_id: "oc_1",
    updated_at: "later",
    detail: { revoked: true },
  };
  expect(intentOf(step)).toBe(intentOf(entry));
  for (const changed of [
    { idempotency_key: "other" },
    { request_text: "{}" },
    { base_url: "https://us.example.com" },
    { service_version: "2027-01-01" },
    { operation: "oauth_client.revoke" as const },
  ]) {
    expect(intentOf({ ...entry, ...changed })).not.toBe(intentOf(entry));
  }
});

const file = { kind: "file", path: "/s", format: "env", force: false } as const;

test.each([
  ["oauth_client.create", {}, { kind: "command" }],
  ["oauth_client.create", { client_id: null, secret_claimed: true, revoked: false, later: [1] }, { ...file, later: 1 }],
  ["oauth_client.rotate", { old_client: "oc_1", overlap_ms: 0, keep_old: false }, { kind: "stdout" }],
  ["oauth_client.revoke", {}, null],
  ["access_key.create", { base_name: "ci", marked: false, expiry: null, created_by: null }, { ...file, born: "1" }],
  [
    "access_key.rotate",
    { mode: "in_place", key_id: "k", in_flight: true },
    { kind: "profile", name: "p", profileId: "1" },
  ],
  ["access_key.rotate", { mode: "replacement", old_key: "k", bound_to: null }, null],
  ["access_key.revoke", { key_id: "k" }, null],
  ["an.operation.to.come", { old_client: "x" }, null],
])(
  "%s: what earlier versions wrote of its work is read, and unknown keys are kept",
  (operation, detail, destination) => {
    expect(reread({ operation, detail, destination })).toMatchObject({ operation, detail, destination });
  },
);

test.each([
  [{ detail: [] }],
  [{ detail: { client_id: 1 } }],
  [{ detail: { secret_claimed: "yes" } }],
  [{ detail: { overlap_ms: "10" } }],
  [{ detail: { key_id: null } }],
  [{ operation: "oauth_client.rotate", detail: {} }],
  [{ operation: "access_key.rotate", detail: { key_id: "k" } }],
  [{ operation: "access_key.rotate", detail: { mode: "in_place" } }],
  [{ operation: "access_key.rotate", detail: { mode: "replacement", key_id: "k" } }],
  [{ operation: "access_key.revoke", detail: {} }],
  [{ destination: "stdout" }],
  [{ destination: {} }],
  [{ destination: { kind: "moon" } }],
  [{ destination: { kind: "command", mark: 1 } }],
  [{ destination: { kind: "profile", name: "p" } }],
  [{ destination: { ...file, format: "xml" } }],
  [{ destination: { ...file, force: "no" } }],
  [{ destination: { ...file, inode: 1 } }],
])("%j is damage", (changes) => {
  expect(reread(changes)).toBeUndefined();
});

/** An entry with parts that its type would not let in, written and read. */
function reread(changes: object): Entry | undefined {
  const entry = newEntry(intent(), { id: "1rs6rsqksj", key: "k", at });
  return readEntry(all(lineOf({ ...entry, ...changes })), { record: 1, entry: 1 });
}
