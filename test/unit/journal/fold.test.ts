import { expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { recordContent, seal } from "../../../src/journal/record.ts";
import { readEntry } from "../../../src/journal/read-entry.ts";
import { ada, intent } from "./intent.ts";

const file = { kind: "file", path: "/s", as: "env", force: false } as const;
const store = { kind: "store", to: "keychain:s/a", facts: { server: "x" } } as const;
const earlier = { kind: "file", path: "/s", force: false, born: "1" } as const;

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
  [{ destination: { ...file, as: "xml" } }],
  [{ destination: { ...file, force: "no" } }],
  [{ destination: { ...file, inode: 1 } }],
  [{ destination: { ...earlier, format: "template:{secret}x", as: 1 } }],
  [{ destination: { ...file, proof: { entry: "e" } } }],
  [{ destination: { kind: "store", to: "keychain:s/a" } }],
  [{ destination: { ...store, facts: { server: 1 } } }],
  [{ destination: { ...store, proof: "p" } }],
  [{ destination: { kind: "several", places: {} } }],
  [{ destination: { kind: "several", places: [file] } }],
  [{ destination: { kind: "several", places: [{ state: "lost", at: file }] } }],
  [{ destination: { kind: "several", places: [{ state: "failed", at: { kind: "several", places: [] } }] } }],
])("%j is damage", (changes) => {
  expect(reread(changes)).toBeUndefined();
});

test.each<[object, object?]>([
  [
    { ...earlier, format: "raw" },
    { ...earlier, as: "line" },
  ],
  [
    { ...earlier, format: "json", later: 1 },
    { ...earlier, as: "json", later: 1 },
  ],
  [
    { ...file, as: "raw" },
    { ...file, as: "raw" },
  ],
  [{ ...file, as: "template:{secret}", proof: { entry: "e", digest: "d" } }],
  [{ ...file, as: "env:A=secret" }],
  [{ ...store, proof: { entry: "e", digest: "d" } }],
  [
    {
      kind: "several",
      places: [
        { state: "delivered", at: file },
        { state: "failed", at: store },
      ],
    },
    undefined,
  ],
  [
    { kind: "several", places: [{ state: "pending", at: { ...earlier, format: "env" } }] },
    {
      kind: "several",
      places: [{ state: "pending", at: { ...earlier, as: "env" } }],
    },
  ],
])("the destination %j is read as its version meant it", (destination, expected = destination) => {
  expect(reread({ destination })?.destination).toEqual(expected);
});

/** An entry with parts that its type would not let in, written and read. */
function reread(changes: object): Entry | undefined {
  const entry = newEntry(intent(), { id: "1rs6rsqksj", key: "k", at: "2026-11-21T00:00:00.000Z" });
  const bytes = Buffer.from(seal(recordContent({ ...entry, ...changes }, { by: ada })));
  return readEntry({ bytes, start: 0, end: bytes.length - 1 }, { record: 1, entry: 1 });
}
