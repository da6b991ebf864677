// The destination of an entry takes precedence over an option, unless the command names the entry.
import { describe, expect, it } from "vitest";
import {
  claimOptions,
  optionsFor,
  ignoredNote,
  refusingDestination,
  type RecoveryOptions,
} from "../../../src/commands/journal/remembered-destination.ts";
import { checkedDeliveryWords } from "../../../src/commands/running/change.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import {
  commandMark,
  type DestinationOption,
  type DestinationRecord,
  type SecretOptions,
  type SingleRecord,
} from "../../../src/secrets/destination.ts";

const file: SingleRecord = { kind: "file", path: "/h/own", as: "json" };
const profile: DestinationRecord = { kind: "profile", name: "p", profileId: "1" };
const command: SingleRecord = { kind: "command", mark: commandMark({ command: "store" }) };
const store: SingleRecord = { kind: "store", to: "keychain:s/a", facts: { server: "x" } };
const stdout: DestinationRecord = { kind: "stdout" };
const several: DestinationRecord = {
  kind: "several",
  places: [
    { state: "delivered", at: file },
    { state: "failed", at: command },
    { state: "pending", at: store },
  ],
};

const ownFile = { kind: "file", path: "/h/own", as: "json", force: false } as const;
const rememberedFile = { kind: "file", path: "/h/own", as: "json" } as const;
const f = { kind: "file", path: "f" } as const;
const c = { kind: "command", command: "c" } as const;
const same = { kind: "command", command: " store" } as const;
const p = { kind: "profile", name: "p" } as const;
const s = { kind: "store", to: "keychain:s/a" } as const;

function to(destination: DestinationRecord | null): Entry {
  return { id: "1abc", parent: null, destination } as Entry;
}

function requested(options: Partial<SecretOptions> = {}, isNamed = false): RecoveryOptions {
  return { options: { to: [], ...options }, isNamed, replaces: false };
}

describe("the options for an entry", () => {
  it.each<[string, DestinationRecord | null, Partial<SecretOptions>, boolean, Partial<SecretOptions>]>([
    ["a file, no option", file, {}, false, { to: [ownFile] }],
    ["a file, --force", file, { force: true }, false, { to: [{ ...ownFile, force: true }] }],
    ["a file, a format", file, { as: "env" }, false, { to: [{ ...ownFile, as: "env" }] }],
    ["a file, a command option", file, { to: [c] }, false, { to: [rememberedFile] }],
    ["a file, named", file, { to: [c] }, true, { to: [c] }],
    ["a profile, a file option", profile, { to: [f] }, false, { to: [{ ...p, profileId: "1" }] }],
    ["a profile, named", profile, { to: [f] }, true, { to: [f] }],
    ["a store, a file option", store, { to: [f] }, false, { to: [{ ...s, facts: { server: "x" } }] }],
    ["a command, the same", command, { to: [same] }, false, { to: [same] }],
    ["a command, a file option", command, { to: [f] }, false, { to: [f] }],
    ["a command, another one, named", command, { to: [c] }, true, { to: [c] }],
    ["a command of an earlier version", { kind: "command" }, { to: [c] }, false, { to: [c] }],
    ["standard output, a command option", stdout, { to: [c] }, false, { to: [c] }],
    ["standard output, no option", stdout, {}, false, { to: [] }],
    ["no place yet", null, { to: [f] }, false, { to: [f] }],
    ["several, no option", several, {}, false, { to: [], remembered: several }],
    ["several, the missing command", several, { to: [f, same] }, false, { to: [same], remembered: several }],
    ["several, another command", several, { to: [c] }, false, { to: [], remembered: several }],
    ["several, --force", several, { to: [same], force: true }, false, { to: [same], remembered: several }],
    ["several, named, --force", several, { force: true }, true, { to: [], force: true, remembered: several }],
    ["several, named", several, { to: [c] }, true, { to: [c], remembered: several }],
  ])("%s", (_what, place, options, isNamed, expected) => {
    expect(optionsFor(to(place), requested(options, isNamed))).toEqual(expected);
  });

  it.each<[string, readonly DestinationOption[], boolean?]>([
    ["no option", []],
    ["named, no option", [], true],
    ["another command", [c]],
    ["the same in another format", [{ ...same, as: "env" }]],
  ])("for a command are none: %s", async (_what, options, isNamed = false) => {
    expect(optionsFor(to(command), requested({ to: options }, isNamed))).toBeUndefined();
    const place = refusingDestination(to(command), { ...requested({ to: options }, isNamed), replaces: true });
    await expect(place.check()).rejects.toMatchObject({
      kind: "usage",
      details: {
        hint: "Recover the entry 1abc and pass --secret-command again and --replace-lost-secret: commands are not stored.",
      },
    });
    await expect(place.prepare("1abc")).rejects.toMatchObject({ kind: "usage" });
  });

  it("that are ignored are reported, and only those", () => {
    expect(ignoredNote(to(file), requested({ to: [c] }), "/h")).toContain("1abc: its secret goes to /h/own");
    expect(ignoredNote(to(profile), requested({ to: [f] }), "/h")).toContain("profile p");
    expect(ignoredNote(to(several), requested({ to: [f] }), "/h")).toContain("/h/own, a command, keychain:s/a");
    expect(ignoredNote(to(file), requested({ to: [{ kind: "file", path: "own" }] }), "/h")).toBeUndefined();
    expect(ignoredNote(to(profile), requested({ to: [p] }), "/h")).toBeUndefined();
    expect(ignoredNote(to(store), requested({ to: [s] }), "/h")).toBeUndefined();
    expect(ignoredNote(to(several), requested({ to: [same, s] }), "/h")).toBeUndefined();
    expect(ignoredNote(to(file), requested({ to: [c] }, true), "/h")).toBeUndefined();
    expect(ignoredNote(to(file), requested(), "/h")).toBeUndefined();
    expect(ignoredNote(to(command), requested({ to: [f] }), "/h")).toBeUndefined();
  });
});

it("a claim delivers to missing destinations and to a store, otherwise to the requested one, standard output included", () => {
  const claimed = (place: DestinationRecord, options: readonly DestinationOption[] = []): SecretOptions =>
    claimOptions(to(place), { to: options });
  expect(claimed(several)).toEqual({ to: [], remembered: several });
  expect(claimed(several, [c])).toEqual({ to: [c], remembered: several });
  expect(claimed(store)).toEqual({ to: [{ ...s, facts: { server: "x" } }] });
  expect(claimed(store, [f])).toEqual({ to: [f] });
  expect([claimed(file), claimed(command), claimed(profile, [f])]).toEqual([{ to: [] }, { to: [] }, { to: [f] }]);
});

it.each([
  [import.meta.filename, "was changed since"],
  ["/h/no", "is missing now"],
])("a delivered file that lacks the secret is described as it is: %s", async (path, words) => {
  const context = { secrets: { reread: async () => undefined } } as never;
  const entry = { state: "done", destination: { kind: "file", path, as: "raw" } } as unknown as Entry;
  expect(await checkedDeliveryWords(context, entry)).toContain(words);
});
