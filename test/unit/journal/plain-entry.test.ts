// What is read of a record by one expression: the same however often it was read before.
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import { plainEntry } from "../../../src/journal/plain-entry.ts";
import { recordContent, seal, type Slice } from "../../../src/journal/record.ts";
import { ada, intent } from "./intent.ts";

const at = "2026-11-21T00:00:00.000Z";
const made = newEntry(intent(), { id: "1000000001", key: "k", at });
const plain = {
  id: "1000000001",
  base_url: "https://eu.example.com",
  idempotency_key: "k",
  replaces: null,
  parent: null,
  updated_at: at,
  replaced_by: null,
};

/** As it stands in a file: between other bytes. */
function lineOf(content: string): Slice {
  const bytes = Buffer.from(`before${seal(content, "0123456789abcdef")}behind`);
  return { bytes, start: 6, end: bytes.length - 7 };
}

function contentOf(changes: object = {}): string {
  return recordContent({ ...made, ...changes }, { by: ada });
}

describe("a record", () => {
  it.each<[string, object, object]>([
    ["of few members", {}, {}],
    ["without a key", { idempotency_key: null }, { idempotency_key: null }],
    [
      "with all links",
      { replaces: "a", parent: "b", replaced_by: "c" },
      { replaces: "a", parent: "b", replaced_by: "c" },
    ],
    ["with a destination of few words", { destination: { kind: "stdout" } }, {}],
    ["of a rotation", { operation: "oauth_client.rotate", detail: { old_client: "oc_1" } }, {}],
  ])("%s is plain", (_what, changes, more) => {
    for (const _again of [1, 2]) expect(plainEntry(lineOf(contentOf(changes)))).toEqual({ ...plain, ...more });
  });

  // Never the same: what was found to be sound is known from then on.
  const other = randomUUID();
  it.each<[string, string]>([
    ["to a destination of no known kind", contentOf({ destination: { kind: other } })],
    ["to a destination that is not JSON", contentOf().replace('"destination":null', `"destination":{${other}}`)],
    ["by an actor that is not JSON", contentOf().replace('"by":{', `"by":{${other}`)],
    ["with a detail that is not JSON", contentOf().replace('"detail":{}', `"detail":{${other}}`)],
    ["with a detail of another type", contentOf({ detail: { client_id: 1 } })],
    ["without the detail that its work needs", contentOf({ operation: "oauth_client.rotate" })],
    ["with an error, which may have any words", contentOf({ last_error: { kind: "pending", message: "x" } })],
    ["of an earlier version", contentOf().replace('"v":2', '"v":1')],
    ["that no one counts", contentOf().replace(/,"n":1$/, "")],
    ["with a member more", contentOf({ detail: { client_id: "c" } }).replace('"detail"', '"more":1,"detail"')],
  ])("%s is not plain, however often it is read", (_what, content) => {
    for (const _again of [1, 2, 3]) expect(plainEntry(lineOf(content))).toBeUndefined();
  });

  it("is plain with more destinations than are remembered", () => {
    for (let number = 0; number < 130; number += 1) {
      const destination = { kind: "command", mark: `${other} ${number % 70}` };
      expect(plainEntry(lineOf(contentOf({ destination })))).toEqual(plain);
    }
  });
});
