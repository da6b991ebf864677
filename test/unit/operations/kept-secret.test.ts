import { describe, expect, it } from "vitest";
import { readableIds } from "../../../src/api/oauth-client-creation.ts";
import { withEntryIds } from "../../../src/secrets/secret-format.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { OneTimeSecret } from "../../../src/secrets/destination.ts";

function entry(changes: Partial<Entry> = {}): Entry {
  const plain = { operation: "oauth_client.create", resource_id: null, last_error: null, detail: {} };
  return { ...plain, ...changes } as Entry;
}

function kept(changes: Partial<OneTimeSecret> = {}): OneTimeSecret {
  return { secret: "s", kind: "oauth_client", id: "", receipt: '{"id":"a","client_secret":"s', ...changes };
}

describe("the ids in a truncated response", () => {
  it("are read if they occur once, and ignored if they occur twice", () => {
    expect(readableIds('{"id": "a","client_id":"b","client_secret":"s"')).toEqual({ id: "a", clientId: "b" });
    expect(readableIds('{"id":"a","owner":{"id":"b"},"client_id":"c","x":{"client_id":"d"}}')).toEqual({});
    expect(readableIds('{"id":"a')).toEqual({});
    expect(readableIds('{"id":"a\\\\u0007"}')).toEqual({});
  });
});

describe("a kept secret", () => {
  it("keeps the API's own text if the secret is at its top level", () => {
    const receipt = '{"big":12345678901234567890,"client_secret":"s"}';
    expect(withEntryIds(kept({ receipt }), entry()).receipt).toBe(receipt);
  });

  it.each(['{"client_secret":"s', '[{"client_secret":"s"}]', "null", "", '{"client_secret":"other"}'])(
    "gets a new receipt in place of %s",
    (receipt) => {
      expect(JSON.parse(withEntryIds(kept({ receipt }), entry()).receipt)).toEqual({
        id: null,
        client_id: null,
        client_secret: "s",
      });
    },
  );

  it("prefers the entry's ids to those in the copy", () => {
    const read = kept({ id: "read", clientId: "read too" });
    expect(withEntryIds(read, entry())).toMatchObject({ id: "read", clientId: "read too" });
    const named = withEntryIds(read, entry({ resource_id: "recorded", detail: { client_id: "recorded too" } }));
    expect(named).toMatchObject({ id: "recorded", clientId: "recorded too" });
    expect(JSON.parse(named.receipt)).toEqual({ id: "recorded", client_id: "recorded too", client_secret: "s" });
  });

  it("of an access key has no client id", () => {
    const key = withEntryIds(
      kept({ kind: "access_key", id: "k", receipt: "x" }),
      entry({ operation: "access_key.create" }),
    );
    expect(JSON.parse(key.receipt)).toEqual({ id: "k", secret: "s" });
  });
});
