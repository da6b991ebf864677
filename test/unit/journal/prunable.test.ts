import { describe, expect, test } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { prunable } from "../../../src/journal/prunable.ts";
import { intent } from "./intent.ts";

const before = "2026-11-22T00:00:00.000Z";
const moment = "2026-11-21T23:59:59.999Z";

function entry(id: string, changes: Partial<Entry>): Entry {
  const fresh = newEntry(intent(), { id, key: id, at: "2026-11-21T00:00:00.000Z" });
  return { ...fresh, state: "done", ...changes };
}

const client = entry("c", { resource_id: "oc_1" });
const key = entry("k", { operation: "access_key.create", resource_id: "key_1" });
const revokesClient = entry("r", { operation: "oauth_client.revoke", resource_id: "oc_1" });
const revokesKey = entry("s", { operation: "access_key.revoke", detail: { key_id: "key_1" } });
const rotates = (detail: Entry["detail"] = {}): Entry =>
  entry("x", { operation: "oauth_client.rotate", resource_id: "oc_2", detail: { old_client: "oc_1", ...detail } });
const successor = entry("y", { parent: "x", resource_id: "oc_2" });
const last = entry("z", { operation: "oauth_client.revoke", resource_id: "oc_2" });

function prunedIds(entries: readonly Entry[], includeLive = false): string {
  return [...prunable(entries, { before, leased: new Set(), includeLive }).removable].sort().join("");
}

describe("an old finished entry", () => {
  test.each<[string, Entry[], string]>([
    ["of a client that was not revoked stays", [client], ""],
    ["of a key that was not revoked stays", [key], ""],
    ["of a revoked client goes with the revocation", [client, revokesClient], "cr"],
    ["of a revoked key goes with the revocation", [key, revokesKey], "ks"],
    ["of a client whose revocation is unknown stays", [client, { ...revokesClient, state: "unknown" }], ""],
    ["of a client of that id elsewhere stays", [{ ...client, base_url: "https://us.example.com" }, revokesClient], "r"],
    ["of an expired key goes", [{ ...key, detail: { expiry: "2026-11-01T00:00:00.000Z" } }], "k"],
    ["of a key that expires later stays", [{ ...key, detail: { expiry: "2027-11-01T00:00:00.000Z" } }], ""],
    ["of a key that expires exactly now stays", [{ ...key, detail: { expiry: before } }], ""],
    ["that was changed exactly at the limit stays", [{ ...client, state: "refused", updated_at: before }], ""],
    ["that was changed a moment before the limit goes", [{ ...client, state: "refused", updated_at: moment }], "c"],
    ["that was given up, of a client that exists, stays", [{ ...client, state: "abandoned" }], ""],
    ["that created nothing goes", [{ ...client, state: "refused", resource_id: null }], "c"],
    ["of a client that was disabled, and may be enabled again, stays", [{ ...client, state: "unusable" }], ""],
    ["of a client that was disabled and then revoked goes", [{ ...client, state: "unusable" }, revokesClient], "cr"],
    ["of a client that is replaced goes", [{ ...client, state: "replaced" }], "c"],
    [
      "of a client that differs from the request stays",
      [{ ...client, state: "unusable", detail: { differs: "x" } }],
      "",
    ],
    ["of a rotated client goes, its successor's stays", [client, rotates(), successor], "c"],
    ["of a rotation whose old client was kept stays", [client, rotates({ keep_old: true }), successor], ""],
    ["of a rotation goes with its successor's revocation", [client, rotates(), successor, last], "cxyz"],
  ])("%s", (_what, entries, ids) => {
    expect(prunedIds(entries)).toBe(ids);
  });

  test("that recorded a revocation stays as long as the revoked client's own entry", () => {
    expect(prunedIds([{ ...client, updated_at: "2027-01-01T00:00:00.000Z" }, revokesClient])).toBe("");
  });

  test.each<[string, Partial<Entry>, string]>([
    ["the same key in place", {}, "1"],
    ["another key", { detail: { mode: "in_place", key_id: "ak_2" } }, "12"],
    ["another account", { base_url: "https://elsewhere.example.com" }, "12"],
    ["the same key, and has finished", { state: "replaced" }, "12"],
  ])("that rotated a key stays as long as an unfinished rotation is of %s", (_what, about, ids) => {
    const inPlace = { mode: "in_place", key_id: "ak_1" } as const;
    const rotation = { ...key, operation: "access_key.rotate", detail: inPlace } as Entry;
    const old = "2027-01-01T00:00:00.000Z";
    const first = { ...rotation, id: "0", state: "unknown", updated_at: old, ...about } as Entry;
    const made = { ...key, id: "1", resource_id: "ak_9" };
    expect(prunedIds([first, made, { ...rotation, id: "2" }], true)).toBe(ids);
  });

  test.each<[string, Partial<Entry>]>([
    ["revoked it", { operation: "access_key.revoke" }],
    ["adopted it", { operation: "access_key.adopt", state: "refused" }],
    ["rotated an unnamed key", { operation: "access_key.rotate", state: "refused", detail: {} }],
  ])("that did not rotate a key is pruned while a rotation of it is unfinished: it %s", (_what, changes) => {
    const detail = { mode: "in_place", key_id: "ak_1" } as const;
    const rotation = { ...key, id: "0", operation: "access_key.rotate", detail, state: "unknown" } as Entry;
    expect(
      prunedIds([rotation, { ...key, id: "1", resource_id: null, detail: { key_id: "ak_1" }, ...changes }], true),
    ).toBe("1");
  });

  test("is pruned alone if its linked entries do not exist", () => {
    for (const link of [{ parent: "gone" }, { replaces: "gone" }, { replaced_by: "gone" }]) {
      const [over, open] = [entry("a", { state: "refused", ...link }), entry("b", { state: "open", ...link })];
      expect([prunedIds([over, open]), prunedIds([open, over])]).toEqual(["a", "a"]);
    }
  });

  test.each<[string, Partial<Entry>]>([
    ["its parent", { parent: "b" }],
    ["the entry it replaces", { replaces: "b" }],
    ["the entry that replaced it", { replaced_by: "b" }],
  ])("is pruned or kept together with %s", (_what, link) => {
    const [one, other] = [entry("a", { state: "refused", ...link }), entry("b", { state: "refused" })];
    expect([
      prunedIds([one, other]),
      prunedIds([one, { ...other, state: "open" }]),
      prunedIds([{ ...one, state: "open" }, other]),
    ]).toEqual(["ab", "", ""]);
  });

  test("is reported as kept for its client only if nothing else keeps it", () => {
    const young = { ...client, id: "y", resource_id: "oc_9", updated_at: before };
    const open = { ...client, id: "o", resource_id: "oc_8", state: "open" as const };
    const leased = { ...client, id: "l", resource_id: "oc_7" };
    const all = [client, young, open, leased, key];
    const choice = { before, leased: new Set(["l"]) };
    expect(prunable(all, choice)).toEqual({ removable: new Set(), live: [], keptLive: [client, key] });
    expect(prunable(all, { ...choice, includeLive: true })).toEqual({
      removable: new Set(["c", "k"]),
      live: [client, key],
      keptLive: [],
    });
  });

  test("in a chain of replacements is pruned or kept with the whole chain", () => {
    const row = Array.from({ length: 20_000 }, (_, at) => ({
      ...client,
      id: String(at).padStart(5, "0"),
      resource_id: `oac_${at}`,
      replaces: at === 0 ? null : String(at - 1).padStart(5, "0"),
      state: "replaced" as const,
    }));
    const count = (entries: Entry[]) =>
      prunable(entries, { before, leased: new Set(), includeLive: false }).removable.size;
    expect(count(row)).toBe(row.length);
    expect(count(row.toReversed())).toBe(row.length);
    expect(count([...row.slice(1), { ...row[0]!, state: "open" }])).toBe(0);
  });

  test("is pruned with its live client on request, and is named", () => {
    expect(prunedIds([client, key, rotates(), successor], true)).toBe("ckxy");
    const choice = { before, leased: new Set<string>(), includeLive: true };
    expect(prunable([client, key, revokesKey], choice).live).toEqual([client]);
    expect(prunable([client, key, revokesKey], { ...choice, includeLive: false }).keptLive).toEqual([client]);
  });
});
