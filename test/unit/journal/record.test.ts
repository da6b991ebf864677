import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import { type Entry, formatVersion } from "../../../src/journal/entry.ts";
import {
  brokenStep,
  type EntryRecord,
  hashOfRecord,
  headerLine,
  historyFinding,
  contentIn,
  isMoved,
  movedToIn,
  readLine,
  recordContent,
  recordHash,
  seal,
  type Slice,
  stateOf,
  stepOf,
  stepOfContent,
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
    `,"prev":"${prev}0`,
    ',"m":12',
    ',"n":12]',
    ',"n":',
    ',"n":1 ',
  ])("is nothing where it is not well formed: %s", (tail) => {
    const bytes = Buffer.from(seal(`"v":2,"intent":{"id":"0123456789"},"now":{"state":"done"}${tail}`).trimEnd());
    const line = { bytes, start: 0, end: bytes.length };
    expect(readLine(line)).toMatchObject({ sequence: undefined, prev: undefined });
  });

  it.each([1, 9, 10, 19, 90, 109, 123_456_789_012_345, 999_999_999_999_999, 100_000_000_000_000])(
    "is the number %i, with a hash and without",
    (n) => {
      for (const has of ["", members.prev])
        for (const after of [undefined, members.after]) {
          const line = sealed(`"v":2,"intent":{"id":"0123456789"},"now":{"state":"done"}${has},"n":${n}`, after);
          expect(readLine(line)).toMatchObject({ sequence: n, prev: has === "" ? undefined : prev, after });
        }
    },
  );

  it("is nothing where the line does not end as a record does", () => {
    const body = '"v":2,"intent":{"id":"0123456789"},"now":{"state":"done"},"n":12]';
    const bytes = Buffer.from(`{"sum":"${recordHash(body).slice(0, 16)}",${body}`);
    expect(readLine(all(bytes))).toMatchObject({
      kind: "entry",
      sequence: undefined,
      prev: undefined,
      after: undefined,
    });
  });
});

function sealed(content: string, after?: string): Slice {
  // As it stands in a file: between other bytes.
  const bytes = Buffer.from(`before${seal(content, after)}behind`);
  return { bytes, start: 6, end: bytes.length - 7 };
}

describe("a line whose checksum is right", () => {
  const now = '"now":{"state":"done"}';
  it.each<[string, string, unknown]>([
    ["an id that is longer", `"v":2,"intent":{"id":"01234567890"},${now}`, { kind: "entry", id: "01234567890" }],
    ["an id that is shorter", `"v":2,"intent":{"id":"012"},${now}`, { kind: "entry", id: "012" }],
    ["an entry without its state", '"v":2,"intent":{"id":"0123456789"}', undefined],
    ["another kind of record", '"v":2,"note":{"id":"0123456789"}', { kind: "other", format: 2 }],
    ["a header", '"v":2,"journal":"integ","file":"x"', { kind: "header", format: 2, kept: undefined }],
    [
      "a header with what was kept",
      '"v":2,"journal":"integ","kept":{"records":3,"digest":"d","gaps":["a",1,"b"]}',
      { kind: "header", kept: { records: 3, digest: "d", gaps: ["a", "b"] } },
    ],
    ...['"3","digest":"d","gaps":[]', '3,"digest":1,"gaps":[]', '3,"digest":"d","gaps":"a"', '3,"digest":"d"'].map(
      (kept): [string, string, unknown] => [
        `a header that keeps nothing: ${kept}`,
        `"v":2,"journal":"integ","kept":{"records":${kept}}`,
        { kind: "header", kept: undefined },
      ],
    ),
    [
      "a header that keeps nothing",
      '"v":2,"journal":"integ","kept":{"records":"3"}',
      { kind: "header", kept: undefined },
    ],
    [
      "an earlier version",
      `"v":1,"intent":{"id":"0123456789"},${now}`,
      { kind: "entry", format: 1, intent: expect.anything() },
    ],
    [
      "a newer version",
      '"v":9,"intent":{"id":"0123456789"},"prev":"p"',
      { kind: "entry", format: 9, id: "0123456789", intent: undefined, prev: "p" },
    ],
    [
      "a newer version without a hash",
      '"v":9,"intent":{"id":"0123456789"},"prev":1',
      { kind: "entry", prev: undefined },
    ],
    ["a newer header", '"v":9,"journal":"integ"', { kind: "header", format: 9 }],
    ["another kind, newer", '"v":9,"intent":{"id":1}', { kind: "other", format: 9 }],
    ["another kind without an intent, newer", '"v":9,"intent":"x"', { kind: "other", format: 9 }],
    ["no JSON, newer", '"v":9,"intent":{', undefined],
    ["no version", '"w":2,"journal":"integ"', undefined],
    ["a version that is none", '"v":02,"journal":"integ"', undefined],
    ["a version of ten digits", '"v":1234567890,"journal":"integ"', undefined],
    ["a version of nine digits", '"v":123456789,"journal":"integ"', { kind: "header", format: 123_456_789 }],
  ])("is %s", (_what, content, expected) => {
    const record = readLine(sealed(content));
    if (expected === undefined) expect(record).toBeUndefined();
    else expect(record).toMatchObject(expected as object);
  });

  it("says its state and its content, and what step it is", () => {
    const entry = { ...newEntry(intent(), { id: "1rs6rsqksj", key: "k", at }), state: "secret_lost" as const };
    const content = recordContent(entry, { by: ada });
    for (const after of [undefined, "0123456789abcdef"]) {
      const line = sealed(content, after);
      const record = readLine(line)!;
      expect([stateOf(record), contentIn(line)]).toEqual(["secret_lost", content]);
      expect(stepOf(line)).toEqual({ at, state: "secret_lost", actor: ada, destination: undefined });
      expect(stepOfContent(content)).toEqual(stepOf(line));
    }
    expect(stateOf(readLine(sealed('"v":2,"journal":"integ"'))!)).toBeUndefined();
    expect(stateOf(readLine(sealed('"v":9,"intent":{"id":"0123456789"}'))!)).toBeUndefined();
    const bare = { at: "", state: "", actor: null, destination: undefined };
    for (const of of ['"v":2', '"now":1', '"now":{"state":1,"updated_at":2}']) expect(stepOfContent(of)).toEqual(bare);
  });

  it("has digits of hashes in lower case alone", () => {
    const line = (digits: string): Slice => sealed(`"v":2,"intent":{"id":"0123456789"},${now},"prev":"${digits}"`);
    const prevOf = (digits: string): unknown => readLine(line(digits));
    expect(prevOf("09af".repeat(16))).toMatchObject({ prev: "09af".repeat(16) });
    for (const wrong of ["A", "g", "/", ":", "`", " "]) {
      expect(prevOf(`${wrong}${"0".repeat(63)}`)).toMatchObject({ prev: undefined });
      expect(prevOf(`${"0".repeat(63)}${wrong}`)).toMatchObject({ prev: undefined });
    }
  });
});

test("the head of a file says where its entries are, and only there", () => {
  const head = headerLine({ file: "f", createdAt: at, moved: { to: 'postgresql://u@h/"d"', isUnfinished: false } });
  expect([isMoved(head), movedToIn(head)]).toEqual([true, { to: 'postgresql://u@h/"d"', isUnfinished: false }]);
  const begun = headerLine({ file: "f", createdAt: at, moved: { to: "x", isUnfinished: true } });
  expect([isMoved(begun.slice(0, 100)), movedToIn(begun)]).toEqual([true, { to: "x", isUnfinished: true }]);
  const here = headerLine({ file: "f", createdAt: at });
  expect([isMoved(here), movedToIn(here)]).toEqual([false, undefined]);
});

describe("the history of an entry", () => {
  const record = (prev: string | undefined, format = 2): EntryRecord => {
    const content = `"v":${format},"intent":{"id":"0123456789"},"now":{"state":"done"}`;
    return readLine(sealed(prev === undefined ? content : `${content},"prev":"${prev}"`)) as EntryRecord;
  };
  const hashOf = ({ line }: EntryRecord): string => hashOfRecord(line);
  const first = record(undefined);
  const second = record(hashOf(first));
  const third = record(hashOf(second));
  const old = record(undefined, 1);
  const stray = record("0".repeat(64));

  it.each<[string, EntryRecord[], number | undefined, number | undefined]>([
    ["that follow each other", [first, second, third], undefined, undefined],
    ["of which there is none", [], undefined, undefined],
    ["whose first is missing", [second, third], undefined, 0],
    ["whose second is missing", [first, third], undefined, 1],
    ["of which one names none before it", [first, first], undefined, 1],
    ["of which one names another", [first, second, stray], undefined, 2],
    ["of an earlier version", [old, old, old], undefined, undefined],
    ["that go on from an earlier version", [old, record(hashOf(old))], undefined, undefined],
    ["that name another one in an earlier version", [old, record("0".repeat(64), 1)], undefined, 1],
    ["that go on from an earlier version and do not name it", [old, first], undefined, 1],
    ["that were looked at up to the second", [second, second, third], 2, undefined],
    ["that were looked at up to the first", [stray, third], 1, 1],
  ])("is told by records %s", (_what, records, from, place) => {
    expect(brokenStep(records, from)).toBe(place);
  });

  it.each([
    [0, false, "1", "problem"],
    [1, false, "1", "problem"],
    [3, true, "3", "warning"],
  ] as const)("that is broken at %i names the record before (known: %s)", (place, isKnown, number, severity) => {
    expect(historyFinding("a", place, isKnown)).toEqual({
      severity,
      where: "entry a",
      message: `its record ${number} or the next was edited, removed or moved since it was written`,
    });
  });
});
