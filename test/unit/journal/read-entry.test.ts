// A record is an entry only if each of its fields has the shape that this program writes: of its own format. Of a newer one it
// is what can be understood.
import { describe, expect, it, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import { type Entry, formatVersion } from "../../../src/journal/entry.ts";
import { plainEntry } from "../../../src/journal/plain-entry.ts";
import { entryOfContent, readEntry } from "../../../src/journal/read-entry.ts";
import { recordContent, seal, type Slice, stepOf, stepOfContent } from "../../../src/journal/record.ts";
import { ada, intent } from "./intent.ts";

const full: Entry = {
  ...newEntry(intent({ profile: "prod" }), { id: "1000000001", at: "2026-11-21T00:00:00.000Z", key: "key-1" }),
  principal: "user_1",
  method: "POST",
  path: "/v1/oauth_clients",
  replaces: "1000000000",
  parent: "1000000002",
  state: "pending",
  resource_id: "oc_1",
  attempts: 3,
  request_ids: ["req_1", "req_2"],
  clock_offset_ms: -20,
  updated_at: "2026-11-21T00:00:01.000Z",
  last_error: { kind: "pending", message: "not yet" },
  destination: { kind: "file", path: "/secret", as: "raw", force: false },
  replaced_by: "1000000003",
  sequence: 7,
};

type Fields = Record<string, unknown>;
type Record_ = { intent: Fields; now: Fields } & Fields;

/** The entry of that record after a change. What is plain of it is the same. */
function read(change: (record: Record_) => void, entry: Entry = full): Entry | undefined {
  const record = JSON.parse(`{${recordContent(entry, { by: ada })}}`) as Record_;
  change(record);
  const content = (): string => JSON.stringify(record).slice(1, -1);
  const found = entryOfContent(content());
  if (record.now?.last_error) record.now.last_error = null;
  agreed(lineOf(content()));
  return found;
}

function lineOf(content: string): Slice {
  const bytes = Buffer.from(seal(content, "0123456789abcdef"));
  return { bytes, start: 0, end: bytes.length - 1 };
}

/** @returns whether the line was plain: then it says the same as all that is read of it */
function agreed(line: Slice): boolean {
  const plain = plainEntry(line);
  if (plain !== undefined)
    expect(readEntry(line, { record: formatVersion, entry: formatVersion })).toMatchObject(plain);
  return plain !== undefined;
}

const withDetail = (detail: object, operation = full.operation): Entry | undefined =>
  read(({ intent, now }) => {
    Object.assign(intent, { operation });
    Object.assign(now, { detail });
  });

test("what is not JSON is no entry and no step, whatever its checksum says", () => {
  const content = recordContent(full, { by: ada });
  for (const broken of [content.slice(0, -1), content.replace('"now"', "now"), content.replace(full.id, "\n")]) {
    expect(entryOfContent(broken)).toBeUndefined();
    expect(readEntry(lineOf(broken), { record: formatVersion, entry: formatVersion })).toBeUndefined();
    for (const step of [stepOf(lineOf(broken)), stepOfContent(broken)])
      expect(step).toEqual({ at: "", state: "", actor: null });
  }
});

test("what was written is read", () => {
  expect(read(() => {})).toEqual(full);
});

describe("a plain entry", () => {
  const settled: Entry = {
    ...full,
    state: "done",
    last_error: null,
    detail: { client_id: "c", attempted_at: ["here"] },
  };
  const rotation = { operation: "oauth_client.rotate", detail: { old_client: "oc_0", keep_old: false } } as const;
  const bare = { principal: undefined, method: undefined, path: undefined, request_ids: [], clock_offset_ms: null };
  const escaped = { request_text: '"\\/\b\u0001\u2028ü', profile: "größer 👍", twin: "\\" };
  it.each<[name: string, changes: Partial<Entry>]>([
    ["with every member", {}],
    ["with few members", { ...bare, idempotency_key: null, destination: null, replaces: null, parent: null }],
    ["of a rotation", rotation],
    ["with any text", escaped],
  ])("%s is what the program writes", (_, changes) => {
    expect(agreed(lineOf(recordContent({ ...settled, ...changes }, { by: ada, prev: "a".repeat(64) })))).toBe(true);
  });

  it.each<[name: string, changes: Partial<Entry>]>([
    ["an error", { last_error: { kind: "auth", message: "no" } }],
    ["an address beyond ASCII", { base_url: "https://ü.example" }],
    ["a key with a quotation mark", { idempotency_key: 'a"b' }],
    ["a detail of objects", { detail: { exchange: { kind: "command" } } }],
    ["a rotation of nothing", { operation: "oauth_client.rotate", detail: {} }],
  ])("is none with %s", (_, changes) => {
    expect(agreed(lineOf(recordContent({ ...settled, ...changes }, { by: ada })))).toBe(false);
  });

  it("agrees whatever one byte is replaced by", () => {
    const line = lineOf(recordContent({ ...settled, ...escaped, detail: { client_id: "c" } }, { by: ada }));
    for (let at = 0; at < line.end; at += 1)
      for (const other of [0, 10, 34, 44, 48, 58, 92, 125, 195]) {
        const bytes = Buffer.from(line.bytes);
        bytes[at] = other;
        agreed({ ...line, bytes });
      }
  });
});

describe("of this format", () => {
  const texts = [
    "id",
    "operation",
    "profile",
    "profile_id",
    "region",
    "base_url",
    "service_version",
    "request_text",
    "twin",
    "created_at",
  ];
  it.each(texts)("%s is a text", (name) => {
    for (const wrong of [undefined, null, 1, ["x"]])
      expect(read(({ intent }) => (intent[name] = wrong))).toBeUndefined();
    expect(read(({ intent }) => (intent[name] = "other"))).toBeDefined();
  });

  it.each(["idempotency_key", "organization_id", "replaces", "parent"])("%s is a text or null", (name) => {
    for (const wrong of [undefined, 1, {}]) expect(read(({ intent }) => (intent[name] = wrong))).toBeUndefined();
    expect(read(({ intent }) => (intent[name] = null))).toMatchObject({ [name]: null });
    expect(read(({ intent }) => (intent[name] = "other"))).toMatchObject({ [name]: "other" });
  });

  it.each<[name: string, right: readonly unknown[], wrong: readonly unknown[]]>([
    ["state", ["done", "of a newer program"], [undefined, null, 1]],
    ["updated_at", ["2026-11-22T00:00:00.000Z"], [undefined, null, 1]],
    ["resource_id", [null, "oc_2"], [undefined, 1]],
    ["replaced_by", [null, "1000000009"], [undefined, 1]],
    ["attempts", [0, 9], [undefined, null, "3", 1.5]],
    ["request_ids", [[], ["req_9"]], [null, "req_1", ["req_1", 2]]],
    ["clock_offset_ms", [0, 60_000], [null, "1"]],
    [
      "last_error",
      [null, { kind: "auth", message: "no" }],
      [undefined, "auth", { kind: "auth" }, { message: "no" }, { kind: 1, message: "no" }],
    ],
    ["destination", [null, { kind: "stdout" }], [undefined, "stdout", { kind: "file" }, { kind: "elsewhere" }]],
    ["detail", [{}], [undefined, null, "x"]],
  ])("%s has its shape", (name, right, wrong) => {
    for (const value of wrong)
      expect(
        read(({ now }) => (now[name] = value)),
        JSON.stringify(value),
      ).toBeUndefined();
    for (const value of right) expect(read(({ now }) => (now[name] = value))).toMatchObject({ [name]: value });
  });

  it("request ids and the clock's offset may be missing, as of an earlier version", () => {
    expect(read(({ now }) => delete now.request_ids)).toMatchObject({ request_ids: [] });
    expect(read(({ now }) => delete now.clock_offset_ms)).toMatchObject({ clock_offset_ms: null });
  });

  it("principal, method and path may be missing", () => {
    for (const name of ["principal", "method", "path"]) {
      expect(read(({ intent }) => delete intent[name])).toMatchObject({ id: full.id, [name]: undefined });
      expect(read(({ intent }) => (intent[name] = 1))).toMatchObject({ [name]: undefined });
      expect(read(({ intent }) => (intent[name] = "other"))).toMatchObject({ [name]: "other" });
    }
  });

  it("a record has both halves", () => {
    for (const half of ["intent", "now"])
      for (const wrong of [undefined, null, [], "x"]) expect(read((record) => (record[half] = wrong))).toBeUndefined();
    expect(entryOfContent('"v":1')).toBeUndefined();
  });

  it("a step without a number is the first", () => {
    expect(read((record) => delete record.n)).toMatchObject({ sequence: 0 });
    expect(read((record) => (record.n = "7"))).toMatchObject({ sequence: 0 });
  });
});

describe("the detail", () => {
  const proof = { token_endpoint: "https://t.example/token", client_auth: "client_secret_basic" };
  const kinds: Readonly<Record<string, readonly [right: readonly unknown[], wrong: readonly unknown[]]>> = {
    text: [
      ["x", ""],
      [null, 1, true, ["x"]],
    ],
    texts: [
      [[], ["x", "y"]],
      [null, "x", ["x", 1]],
    ],
    "text or null": [
      [null, "x"],
      [1, true, {}],
    ],
    flag: [
      [true, false],
      [null, 1, "true"],
    ],
    number: [
      [0, -1, 1.5],
      [null, "1"],
    ],
    "proof or null": [
      [null, proof, { ...proof, client_auth: "client_secret_post" }, { ...proof, audience: "a", issuer: "i" }],
      [
        "x",
        {},
        { ...proof, token_endpoint: 1 },
        { ...proof, client_auth: "none" },
        { ...proof, audience: 1 },
        { ...proof, issuer: null },
      ],
    ],
    "exchange or null": [
      [null, { kind: "command" }, { kind: "endpoint", url: "https://t.example" }],
      ["command", {}, { kind: "endpoint" }, { kind: "endpoint", url: 1 }, { kind: "other", url: "https://t.example" }],
    ],
  };

  it.each([
    ["policy_name", "text"],
    ["failures", "number"],
    ["secret_claimed", "flag"],
    ["attempted_at", "texts"],
    ["kept_at", "text"],
    ["differs", "text"],
    ["client_id", "text or null"],
    ["own_key", "flag"],
    ["made_before", "flag"],
    ["put_off", "flag"],
    ["put_off_until", "text"],
    ["revoked", "flag"],
    ["old_client", "text"],
    ["keep_old", "flag"],
    ["proof", "proof or null"],
    ["exchange", "exchange or null"],
    ["overlap_ms", "number"],
    ["overlap_until", "text"],
    ["proven", "text"],
    ["in_flight", "flag"],
    ["sent_at", "text"],
    ["created_by", "text or null"],
    ["base_name", "text"],
    ["marked", "flag"],
    ["expiry", "text or null"],
    ["orphan_certain", "flag"],
    ["mode", "text"],
    ["key_id", "text"],
    ["old_key", "text"],
    ["new_key", "text"],
    ["bound_to", "text or null"],
    ["revoking", "flag"],
    ["update_profile", "flag"],
  ])("%s is: %s", (name, type) => {
    const [right, wrong] = kinds[type]!;
    for (const value of right)
      expect(withDetail({ [name]: value })?.detail, JSON.stringify(value)).toEqual({ [name]: value });
    for (const value of wrong) expect(withDetail({ [name]: value }), JSON.stringify(value)).toBeUndefined();
  });

  it("keeps what it does not know", () => {
    expect(withDetail({ of_later: { any: 1 } })?.detail).toEqual({ of_later: { any: 1 } });
  });

  it.each<[operation: Entry["operation"], enough: readonly object[], tooLittle: readonly object[]]>([
    ["oauth_client.create", [{}], []],
    ["oauth_client.revoke", [{}], []],
    ["access_key.create", [{}], []],
    ["oauth_client.rotate", [{ old_client: "oc_1" }], [{}, { old_key: "ak_1" }]],
    ["access_key.revoke", [{ key_id: "ak_1" }], [{}, { old_key: "ak_1" }]],
    [
      "access_key.rotate",
      [
        { mode: "replacement", old_key: "ak_1" },
        { mode: "in_place", key_id: "ak_1" },
      ],
      [
        {},
        { old_key: "ak_1", key_id: "ak_1" },
        { mode: "replacement", key_id: "ak_1" },
        { mode: "in_place", old_key: "ak_1" },
        { mode: "other", old_key: "ak_1", key_id: "ak_1" },
      ],
    ],
  ])("of %s has what its work needs", (operation, enough, tooLittle) => {
    for (const detail of enough)
      expect(withDetail(detail, operation), JSON.stringify(detail)).toMatchObject({ detail });
    for (const detail of tooLittle) expect(withDetail(detail, operation), JSON.stringify(detail)).toBeUndefined();
  });
});

describe("of a newer format", () => {
  const newer = (change: (record: Record_) => void): Entry | undefined =>
    read((record) => {
      record.v = formatVersion + 1;
      change(record);
    });

  it("what is understood is shown, with the format", () => {
    expect(newer(() => {})).toEqual({ ...full, format: formatVersion + 1 });
    const strange = newer(({ intent, now }) => {
      for (const name of Object.keys(intent)) if (name !== "operation") intent[name] = 1;
      for (const name of Object.keys(now)) if (name !== "state") now[name] = "strange";
    });
    expect(strange).toEqual({
      ...full,
      id: "",
      profile: "",
      profile_id: "",
      region: "",
      base_url: "",
      service_version: "",
      request_text: "",

      fingerprint: "",
      created_at: "",
      idempotency_key: null,
      organization_id: null,
      replaces: null,
      parent: null,
      principal: undefined,
      method: undefined,
      path: undefined,
      resource_id: "strange",
      replaced_by: "strange",
      updated_at: "strange",
      attempts: 0,
      request_ids: [],
      clock_offset_ms: null,
      last_error: null,
      destination: null,
      detail: {},
      format: formatVersion + 1,
    });
  });

  it("nothing is without an operation and a state", () => {
    expect(newer(({ intent }) => delete intent.operation)).toBeUndefined();
    expect(newer(({ now }) => delete now.state)).toBeUndefined();
  });
});
