import { describe, expect, it } from "vitest";
import {
  assertNoSecretLost,
  assertSameAccount,
  entriesOfRequest,
  entryOfKey,
  type Intent,
  isSameAccount,
  journalMovedFailure,
  newEntry,
} from "../../../src/journal/admission.ts";
import type { Entry, EntryState } from "../../../src/journal/entry.ts";
import { Failure } from "../../../src/errors.ts";
import { intent } from "./intent.ts";

const at = "2026-11-21T00:00:00.000Z";
const id = "1rs6rsqksj";

function entry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id, key: "k", at }), ...changes };
}

function failureOf(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

const show = `integ journal show ${id}`;
const elsewhere = "00000000-0000-4000-8000-000000000009";
const { organization_id } = intent();

describe("an account", () => {
  const [mine, theirs] = ["prf_1", "prf_2"];
  it.each<[boolean, object, object, boolean]>([
    [false, { profile_id: mine }, { profile_id: mine }, true],
    [false, { profile_id: mine, principal: "c" }, { profile_id: theirs, principal: "c" }, false],
    [false, { profile_id: mine, principal: "c" }, { profile_id: mine, principal: "d" }, true],
    [true, { profile_id: mine, principal: "c" }, { profile_id: mine, principal: "d" }, true],
    [true, { profile_id: mine, principal: "c" }, { profile_id: theirs, principal: "c" }, true],
    [true, { profile_id: mine, principal: "c" }, { profile_id: theirs, principal: "d" }, false],
    [true, { profile_id: mine, principal: "c" }, { profile_id: theirs }, true],
    [true, { profile_id: mine }, { profile_id: theirs, principal: "c" }, true],
  ])("of a shared journal (%s): %j and %j are the same: %s", (isShared, one, other, isSame) => {
    expect(isSameAccount(one as Entry, other as Intent, isShared)).toBe(isSame);
  });
});

describe("an explicit idempotency key", () => {
  it("finds the oldest entry that used it, only at that address", () => {
    const entries = [entry({ id: "3" }), entry({ id: "2" }), entry({ id: "1", base_url: "https://us.example.com" })];
    expect(entryOfKey(entries, intent(), { key: "k", isShared: false })?.id).toBe("2");
    expect(entryOfKey(entries, intent(), { key: "l", isShared: false })).toBeUndefined();
  });

  it.each<[string, Partial<Intent>, string]>([
    ["another account", { profile: "second", profile_id: "prf_2" }, 'was used as profile "prod"'],
    ["another request", { fingerprint: "2" }, "was already used for a different request"],
    ["another request of another account", { profile_id: "prf_2", fingerprint: "2" }, 'was used as profile "prod"'],
  ])("that %s used is refused", (_what, changes, what) => {
    const { kind, message, details } = failureOf(() =>
      entryOfKey([entry()], intent(changes), { key: "k", isShared: false }),
    );
    expect([kind, message]).toEqual(["conflict", `This idempotency key ${what}.`]);
    expect(details).toEqual({
      meaning: "Nothing was sent and nothing changed. An idempotency key belongs to one request of one account.",
      nextCommand: show,
      entry: id,
    });
  });
});

describe("the same request, unfinished", () => {
  const second = { profile: "second", profile_id: "prf_2" };

  const none = { organization_id: null };
  const at = `for the organization ${organization_id}`;
  const [prod, alone] = [`as profile "prod" ${at}`, 'as profile "prod" without an organization'];

  it.each<[string, Partial<Entry>, Partial<Intent>, started: string, now: string]>([
    ["as another profile", {}, second, prod, `as profile "second" ${at}`],
    ["with an organization that is not set now", {}, none, prod, alone],
    ["without the organization that is set now", none, {}, alone, prod],
  ])("%s is a different request", (_what, started, changes, was, now) => {
    const entries = [entry({ id: "1", fingerprint: "2" }), entry(started)];
    const { kind, message, details } = failureOf(() => assertSameAccount(entries, intent(changes), false));
    expect(kind).toBe("conflict");
    expect(message).toBe(`The same request is unfinished ${was}, and is now requested ${now}.`);
    expect(details).toEqual({
      meaning: `Nothing was sent. Recover it as it was started: integ journal recover ${id}; --new creates another one anyway.`,
      nextCommand: show,
      entry: id,
    });
  });

  it.each<[string, Partial<Entry>, Partial<Intent>]>([
    ["one of the same account", {}, {}],
    ["one of another organization", { organization_id: elsewhere }, {}],
    ["one of another organization and profile", { organization_id: elsewhere }, second],
    ["another request", { fingerprint: "2" }, second],
    ["another request without an organization", { fingerprint: "2", organization_id: null }, {}],
    ["a step of larger work", { parent: "p" }, second],
    ["as a step of larger work", {}, { ...second, parent: "p" }],
    ["for a replacement of another entry", {}, { ...second, replaces: "r" }],
    [
      "for a revocation of a client",
      { operation: "oauth_client.revoke" },
      { ...second, operation: "oauth_client.revoke" },
    ],
    ["for a revocation of a key", { operation: "access_key.revoke" }, { ...second, operation: "access_key.revoke" }],
  ])("%s blocks no other", (_what, started, now) => {
    expect(assertSameAccount([entry(started)], intent(now), false)).toBeUndefined();
  });

  it("is resumed: the oldest first, only of the same work", () => {
    const entries = [
      entry({ id: "6" }),
      entry({ id: "5", parent: "p" }),
      entry({ id: "4", replaces: "r" }),
      entry({ id: "3", profile_id: "prf_2" }),
      entry({ id: "2", fingerprint: "2" }),
      entry({ id: "1" }),
    ];
    const of = (changes: Partial<Intent>): string[] =>
      entriesOfRequest(entries, intent(changes), false).map((one) => one.id);
    expect([of({}), of({ parent: "p" }), of({ replaces: "r" }), of({ parent: null, replaces: null })]).toEqual([
      ["1", "6"],
      ["5"],
      ["4"],
      ["1", "6"],
    ]);
  });
});

describe("an earlier request", () => {
  it.each([
    ["secret_lost", "its one-time secret is lost", `integ journal recover ${id} --replace-lost-secret`],
    ["undelivered", "its secret is kept until you claim it", `integ journal claim ${id}`],
  ] as const)("whose entry is %s blocks another one", (state, what, nextCommand) => {
    const entries = [entry({ id: "2", state: "secret_lost" }), entry({ state }), entry({ id: "1", state: "unknown" })];
    const { kind, message, details } = failureOf(() => assertNoSecretLost(entries));
    expect([kind, message]).toEqual([state, `The same request was sent before, and ${what}.`]);
    expect(details).toEqual({
      meaning: "Nothing was sent and nothing changed; --new creates another one anyway.",
      entry: id,
      nextCommand,
    });
  });

  it("in any other state does not block another one", () => {
    const states = "open unknown pending waiting done refused unusable replaced abandoned".split(" ") as EntryState[];
    expect(assertNoSecretLost(states.map((state) => entry({ state })))).toBeUndefined();
  });
});

it.each([
  [false, "were moved", { hint: "Set INTEG_JOURNAL, or --journal of the profile, to /there." }],
  [
    true,
    "are being moved",
    {
      hint: "Wait until the move is finished, or run it again if it was interrupted.",
      nextCommand: "integ journal move --to /there",
    },
  ],
])(
  "a moved journal names its new place, and whether the move is complete (in progress: %s)",
  (isUnfinished, words, next) => {
    const { kind, message, details } = journalMovedFailure("/here", { to: "/there", isUnfinished });
    const meaning = "Nothing was sent and nothing changed: a change that is recorded here would be missing there.";
    expect([kind, message]).toEqual(["usage", `The entries of the journal /here ${words} to /there.`]);
    expect(details).toEqual({ meaning, ...next });
  },
);

describe("the unfinished creation of a policy's item", () => {
  const policy = { id: "pol_1", item: "reporting" };
  it("and a typed creation are different: each delivers its secret elsewhere", () => {
    expect(entriesOfRequest([entry({ policy })], intent(), false)).toEqual([]);
    expect(entriesOfRequest([entry()], { ...intent(), policy }, false)).toEqual([]);
    expect(entriesOfRequest([entry({ policy })], { ...intent(), policy }, false)).toHaveLength(1);
  });
});
