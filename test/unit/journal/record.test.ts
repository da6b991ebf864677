import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import { type Entry, formatVersion } from "../../../src/journal/entry.ts";
import {
  hashOfRecord,
  headerLine,
  readLine,
  recordContent,
  recordHash,
  seal,
  type Slice,
} from "../../../src/journal/record.ts";
import { readEntry } from "../../../src/journal/read-entry.ts";
import { ada, intent } from "./intent.ts";

const at = "2026-11-21T00:00:00.000Z";

function lineOf(entry: Entry): Buffer {
  return Buffer.from(seal(recordContent(entry, { by: ada })).slice(0, -1));
}

function all(bytes: Buffer): Slice {
  return { bytes, start: 0, end: bytes.length };
}

const anyText = fc.string({ unit: "grapheme", maxLength: 30 });

const anyEntry = fc
  .record({
    fingerprint: anyText,
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
      expect(record).toMatchObject({ kind: "entry", id: entry.id, format: formatVersion });
      expect(readEntry(all(line), { record: formatVersion, entry: formatVersion })).toEqual(
        JSON.parse(JSON.stringify(entry)),
      );
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
  const line = Buffer.from(headerLine({ file: "f", createdAt: at }).slice(0, -1));
  expect(readLine(all(line))).toMatchObject({ kind: "header", format: formatVersion });
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

test("the hash of a record is the same wherever it stands, and another for every byte of it", () => {
  const entry = newEntry(intent(), { id: "1rs6rsqksj", key: "k", at });
  const content = recordContent(entry, { by: ada, prev: "0".repeat(64) });
  const lines = [seal(content), seal(content, "0123456789abcdef")].map((line) => Buffer.from(line.slice(0, -1)));
  expect(lines.map((line) => hashOfRecord(all(line)))).toEqual([recordHash(content), recordHash(content)]);
  expect(lines.map((line) => readLine(all(line))?.after)).toEqual([undefined, "0123456789abcdef"]);
  for (const line of lines) expect(readLine(all(line))).toMatchObject({ kind: "entry", sequence: 1 });
  for (const by of [
    { ...ada, user: "eve" },
    { ...ada, run: "https://ci.example.com/1" },
  ])
    expect(recordHash(recordContent(entry, { by, prev: "0".repeat(64) }))).not.toBe(recordHash(content));
  expect(recordHash(recordContent({ ...entry, updated_at: "later" }, { by: ada }))).not.toBe(recordHash(content));
});

describe("what stands at the end of a record", () => {
  const prev = "ab".repeat(32);
  const members = { prev: `,"prev":"${prev}"`, n: ',"n":12', after: "0123456789abcdef" };

  it.each([
    ["all of it", { prev, n: 12, after: members.after }],
    ["no hash", { n: 12, after: members.after }],
    ["no number", { prev, after: members.after }],
    ["no checksum of the line before", { prev, n: 12 }],
    ["a hash alone", { prev }],
    ["a number alone", { n: 12 }],
    ["nothing", {}],
  ] as const)("is read where there is %s", (_, has: { prev?: string; n?: number; after?: string }) => {
    const content = `"v":2,"intent":{"id":"0123456789","x":",\\"n\\":7"},"now":{"state":"done"}${"prev" in has ? members.prev : ""}${"n" in has ? members.n : ""}`;
    const bytes = Buffer.from(seal(content, has.after).trimEnd());
    const line = { bytes, start: 0, end: bytes.length };
    expect(readLine(line)).toMatchObject({ kind: "entry", sequence: has.n, after: has.after, prev: has.prev });
  });

  it.each([
    ',"n":0',
    ',"n":01',
    ',"n":1234567890123456',
    ',"prev":"xy"',
    `,"prev":"${prev.slice(1)}"`,
    `,"prev":"${prev}g"`,
  ])("is nothing where it is not well formed: %s", (tail) => {
    const bytes = Buffer.from(seal(`"v":2,"intent":{"id":"0123456789"},"now":{"state":"done"}${tail}`).trimEnd());
    const line = { bytes, start: 0, end: bytes.length };
    expect(readLine(line)).toMatchObject({ sequence: undefined, prev: undefined });
  });
});
