// Where a secret goes that recovery brings: the entry's own place before an option, unless the entry was named.
import { describe, expect, it } from "vitest";
import { type RecoveryOptions, optionsFor, passedOver, placeNotTold } from "../../../src/commands/journal/recover.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { SecretOptions } from "../../../src/secrets/destination.ts";
import { commandMark } from "../../../src/secrets/destination.ts";
import type { DestinationRecord } from "../../../src/secrets/destination.ts";

const file: DestinationRecord = { kind: "file", path: "/h/own", format: "json", force: false };
const profile: DestinationRecord = { kind: "profile", name: "p", profileId: "1" };
const command: DestinationRecord = { kind: "command", mark: commandMark({ command: "store", format: "raw" }) };
const stdout: DestinationRecord = { kind: "stdout" };

function to(destination: DestinationRecord | null): Entry {
  return { id: "1abc", parent: null, destination } as Entry;
}

function asked(options: SecretOptions = {}, isNamed = false): RecoveryOptions {
  return { options, isNamed, replaces: false };
}

describe("the options for an entry", () => {
  it.each([
    ["a file, nothing asked", file, {}, false, { secretFile: "/h/own", secretFormat: "json", force: false }],
    ["a file, --force", file, { force: true }, false, { secretFile: "/h/own", secretFormat: "json", force: true }],
    [
      "a file, a command asked",
      file,
      { secretCommand: "c" },
      false,
      { secretFile: "/h/own", secretFormat: "json", force: false },
    ],
    ["a file, named", file, { secretCommand: "c" }, true, { secretCommand: "c" }],
    ["a profile, a file asked", profile, { secretFile: "f" }, false, { secretProfile: "p" }],
    ["a profile, named", profile, { secretFile: "f" }, true, { secretFile: "f" }],
    ["a command, the same", command, { secretCommand: " store" }, false, { secretCommand: " store" }],
    ["a command, a file asked", command, { secretFile: "f" }, false, { secretFile: "f" }],
    ["a command, another one, named", command, { secretCommand: "c" }, true, { secretCommand: "c" }],
    [
      "a command of an earlier version",
      { kind: "command" } as const,
      { secretCommand: "c" },
      false,
      { secretCommand: "c" },
    ],
    ["standard output, a command asked", stdout, { secretCommand: "c" }, false, { secretCommand: "c" }],
    ["standard output, nothing asked", stdout, {}, false, {}],
    ["no place yet", null, { secretFile: "f" }, false, { secretFile: "f" }],
  ])("%s", (_what, place, options, isNamed, expected) => {
    expect(optionsFor(to(place), asked(options, isNamed))).toEqual(expected);
  });

  it.each([
    ["nothing asked", {}],
    ["named, nothing asked", {}, true],
    ["another command", { secretCommand: "other" }],
    ["the same in another format", { secretCommand: "store", secretFormat: "env" }],
  ] as [string, SecretOptions, boolean?][])("are none for a command: %s", async (_what, options, isNamed = false) => {
    expect(optionsFor(to(command), asked(options, isNamed))).toBeUndefined();
    const place = placeNotTold(to(command), { ...asked(options, isNamed), replaces: true });
    await expect(place.check()).rejects.toMatchObject({
      kind: "usage",
      details: { hint: "integ journal recover 1abc --replace-lost-secret --secret-command '<command>'" },
    });
    await expect(place.prepare("1abc")).rejects.toMatchObject({ kind: "usage" });
  });

  it("that are passed over are told, and only those", () => {
    expect(passedOver(to(file), asked({ secretCommand: "c" }), "/h")).toContain("1abc: its secret goes to /h/own");
    expect(passedOver(to(profile), asked({ secretFile: "p" }), "/h")).toContain("profile p");
    expect(passedOver(to(file), asked({ secretFile: "own" }), "/h")).toBeUndefined();
    expect(passedOver(to(profile), asked({ secretProfile: "p" }), "/h")).toBeUndefined();
    expect(passedOver(to(file), asked({ secretCommand: "c" }, true), "/h")).toBeUndefined();
    expect(passedOver(to(file), asked(), "/h")).toBeUndefined();
    expect(passedOver(to(command), asked({ secretFile: "f" }), "/h")).toBeUndefined();
  });
});
