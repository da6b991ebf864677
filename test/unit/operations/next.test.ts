// `next` decides the next step of an entry in every state with every relevant fact. The state also decides the next command
// in `journal list`, and the exit code of a command that leaves the entry in that state.
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import {
  type Entry,
  type EntryState,
  nextStep,
  type Operation,
  settledStates,
  unfinishedStates,
} from "../../../src/journal/entry.ts";
import { withEntryOutcome, type Facts, next } from "../../../src/operations/next.ts";

const entry = (operation: Operation, changes: Partial<Entry> = {}): Entry =>
  ({
    id: "e1",
    operation,
    state: "open",
    attempts: 0,
    idempotency_key: operation === "oauth_client.create" ? "key" : null,
    detail: {},
    ...changes,
  }) as Entry;

const [sent, inFlight, guess] = [
  { attempts: 1 },
  { attempts: 1, detail: { in_flight: true } },
  { attempts: 1, resource_id: "ak_1", detail: { orphan_certain: false } },
];

/**
 * `steps` are those of a client's creation, a key's creation, a key's rotation in place, and a revocation. `command` omits
 * `integ journal`. `exits` are the codes after a refusal, a lost connection, or Ctrl-C that leaves the entry in this state.
 */
type Row = readonly [EntryState, title: string, changes: Partial<Entry>, steps: string, command: string, exits: string];
const rows: readonly Row[] = [
  ["open", "never sent", {}, "send send send send", "recover e1", "7 7 130"],
  ["open", "too early (429)", sent, "send send send send", "recover e1", "3 11 130"],
  ["open", "sent, no response", inFlight, "send look replace send", "recover e1", "7 7 7"],
  ["unknown", "may have arrived", inFlight, "send look replace send", "recover e1", "7 7 7"],
  ["pending", "not completed yet", sent, "send send send send", "recover e1", "3 11 130"],
  ["undelivered", "its secret is kept", sent, "deliver deliver deliver send", "claim e1", "3 11 130"],
  [
    "secret_lost",
    "its secret is lost",
    sent,
    "replace replace replace send",
    "recover e1 --replace-lost-secret",
    "3 9 130",
  ],
  [
    "secret_lost",
    "its key is only a guess",
    guess,
    "replace replace replace send",
    "recover e1 --revoke ak_1",
    "3 9 130",
  ],
];

function shown(one: Entry): readonly [command: unknown, exits: string] {
  const kinds = ["auth", "unreachable", "interrupted"] as const;
  return [nextStep(one), kinds.map((kind) => withEntryOutcome(one, new Failure(kind, "x.")).exitCode).join(" ")];
}

describe("an operation that is sent once", () => {
  it.each(rows)("%s, %s", (state, _what, changes, steps, command, exits) => {
    const of = (operation: Operation, more: Entry["detail"] = {}): Entry =>
      entry(operation, { state, ...changes, detail: { ...changes.detail, ...more } });
    const all = [
      of("oauth_client.create"),
      of("access_key.create"),
      of("access_key.rotate", { mode: "in_place" }),
      of("oauth_client.revoke"),
    ];
    expect(all.map((one) => next(one)).join(" ")).toBe(steps);
    expect(next(of("access_key.revoke"))).toBe(next(of("oauth_client.revoke")));
    for (const one of all) expect(shown(one)).toEqual([`integ journal ${command}`, exits]);
  });
});

const rotations: readonly (readonly [
  proven: string | undefined,
  keepOld: boolean,
  isDue: boolean,
  isRevoked: boolean,
  step: string,
])[] = [
  [undefined, false, false, false, "prove the new one"],
  [undefined, false, true, false, "prove the new one"],
  [undefined, false, true, true, "end"],
  [undefined, false, false, true, "end"],
  ["refused", false, true, false, "prove the new one"],
  ["an unknown way", false, true, false, "prove the new one"],
  ["token exchange", false, false, false, "wait"],
  ["token exchange", false, true, false, "revoke the old one"],
  ["by the person", false, true, false, "revoke the old one"],
  ["token exchange", false, false, true, "end"],
  ["token exchange", false, true, true, "end"],
  ...[undefined, "token exchange"].flatMap((proven) =>
    [true, false].flatMap((due) => [true, false].map((gone) => [proven, true, due, gone, "end"] as const)),
  ),
];

describe("the next step of a rotation by replacement", () => {
  const operations = [
    ["oauth_client.rotate", {}],
    ["access_key.rotate", { mode: "replacement" }],
  ] as const;
  const of = (state: EntryState, detail: Entry["detail"], facts: Facts): readonly string[] =>
    operations.map(([operation, more]) => next(entry(operation, { state, detail: { ...more, ...detail } }), facts));

  it.each([undefined, ...unfinishedStates, ...settledStates.filter((state) => state !== "done")])(
    "is to make the new one while the new one is %s, whatever else is known",
    (state) => {
      for (const isDue of [true, false])
        for (const proven of [undefined, "token exchange"])
          for (const keep_old of [true, false])
            expect(of("pending", { proven, keep_old }, { child: state && { state }, isDue })).toEqual(
              Array(2).fill("make the new one"),
            );
    },
  );

  it.each(rotations)(
    "proven: %s, kept: %s, due: %s, revoked by someone: %s",
    (proven, keep_old, isDue, isRevoked, step) => {
      const facts = { child: { state: "done" }, isDue, isOldRevoked: isRevoked } as const;
      for (const state of ["open", "pending", "waiting", "undelivered", "unknown"] as const)
        expect(of(state, { proven, keep_old }, facts)).toEqual([step, step]);
    },
  );
});

describe("a rotation during its overlap", () => {
  const waiting = entry("oauth_client.rotate", { state: "waiting", detail: { proven: "token exchange" } });

  it("shows its next command, and ends a command with its own exit code", () => {
    expect(shown(waiting)).toEqual(["integ journal recover e1", "3 11 130"]);
  });

  it.each([
    [false, "wait"],
    [true, "revoke the old one"],
  ])("revocation started: %s, and the clock was set back", (revoking, step) => {
    const one = { ...waiting, detail: { ...waiting.detail, revoking } };
    expect(next(one, { child: { state: "done" }, isDue: false })).toBe(step);
  });
});

const everyKind: readonly (readonly [Operation, Entry["detail"]])[] = [
  ["oauth_client.create", {}],
  ["access_key.create", {}],
  ["oauth_client.rotate", {}],
  ["access_key.rotate", { mode: "in_place" }],
  ["access_key.rotate", { mode: "replacement" }],
  ["oauth_client.revoke", {}],
  ["access_key.revoke", {}],
] as never;

describe.each(everyKind)("%s %j", (operation, detail) => {
  it.each(settledStates)("in state %s has nothing left to do, and never gives way", (state) => {
    for (const isOverrun of [true, false]) expect(next(entry(operation, { state, detail }), { isOverrun })).toBe("end");
    expect(nextStep(entry(operation, { state, detail }))).toBeNull();
  });

  it.each(unfinishedStates)("that is %s gives way to work that has taken its place", (state) => {
    expect(next(entry(operation, { state, detail }), { isOverrun: true })).toBe("give way");
  });
});
