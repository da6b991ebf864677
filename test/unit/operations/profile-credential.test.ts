// The old credential of the profile in use stays until the profile has the new one.
import { describe, expect, it } from "vitest";
import { assertProfileHasSecret, type Rotation } from "../../../src/operations/rotation.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { type DestinationRecord, isForProfile } from "../../../src/secrets/destination.ts";
import { Failure } from "../../../src/errors.ts";

const profile = (name: string) => ({ kind: "profile", name, profileId: `p-${name}` }) as const;
const file = { kind: "file", path: "/s", as: "raw", force: false } as const;
const several = (...places: object[]) =>
  ({ kind: "several", places: places.map((at) => ({ at, state: "pending" })) }) as unknown as DestinationRecord;

describe("a destination includes a profile", () => {
  it.each<[string, DestinationRecord | null, boolean]>([
    ["if it is that profile", profile("prod"), true],
    ["if it is among several", several(file, profile("prod")), true],
    ["not if it is another profile", profile("dev"), false],
    ["not if it is a file", file, false],
    ["not if there is none", null, false],
    ["not if none of several is", several(file, profile("dev")), false],
  ])("%s", (_what, destination, expected) => {
    expect(isForProfile(destination, "prod")).toBe(expected);
  });
});

interface RotatedCredential {
  readonly noun?: "client" | "key";
  readonly wanted?: DestinationRecord | null;
  readonly went?: DestinationRecord | null;
  readonly account?: { readonly keyId?: string; readonly principal?: string };
}

function refusalOf({
  noun = "key",
  wanted = profile("prod"),
  went = file,
  account = {},
}: RotatedCredential): Failure | undefined {
  const entry = { id: "1rs6y1ys1e", profile: "prod", destination: wanted } as Entry;
  const child = { resource_id: "ak_new", destination: went, detail: { client_id: "cid_new" } } as unknown as Entry;
  try {
    const rotation = { bench: { account }, lease: { entry }, oldId: "ak_old", creation: { noun } };
    assertProfileHasSecret(rotation as unknown as Rotation, child);
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

describe("the old credential", () => {
  it.each<[string, RotatedCredential]>([
    ["if the profile got the new one", { went: profile("prod") }],
    ["if it was never the profile's own", { wanted: file }],
    ["if it was another profile's", { wanted: profile("dev") }],
    ["if its destination is unknown", { wanted: null }],
    ["if the profile has the new key by now", { account: { keyId: "ak_new" } }],
    ["if the profile uses the new client by now", { noun: "client", account: { principal: "cid_new" } }],
  ])("may be revoked %s", (_what, about) => {
    expect(refusalOf(about)).toBeUndefined();
  });

  it.each<[string, RotatedCredential, string, string]>([
    ["a key's secret in a file", {}, "/s", "integ profiles edit prod --api-key-stdin --api-key-id ak_new"],
    ["a key's secret on standard output", { went: null }, "standard output", "--api-key-id ak_new"],
    ["a key that is not the new one", { account: { keyId: "ak_old" } }, "/s", "--api-key-id ak_new"],
    [
      "a client's secret in a file",
      { noun: "client", account: { principal: "cid_old" } },
      "/s",
      "integ profiles edit prod --client-id '<id>' --client-secret-stdin",
    ],
    ["the profile's key is known, and its client too", { account: { keyId: "x", principal: "cid_new" } }, "/s", "edit"],
  ])("is not revoked: %s", (_what, about, where, step) => {
    const failure = refusalOf(about)!;
    expect([failure.kind, failure.message]).toEqual(["pending", expect.stringContaining("Profile prod does not have")]);
    expect(failure.message).toContain(where);
    expect(failure.details.meaning).toBe(
      `The old ${about.noun ?? "key"} ak_old is not revoked: profile prod would be locked out.`,
    );
    expect(failure.details.hint).toContain(step);
    expect(failure.details.hint).toContain("integ journal recover 1rs6y1ys1e");
  });
});
