import { describe, expect, it } from "vitest";
import { newEntry } from "../../../src/journal/admission.ts";
import { otherAccount, setEnvironment } from "../../../src/operations/entry-account.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { shell } from "../../../src/next-step.ts";
import { intent } from "../journal/intent.ts";

const organization = "7d4f7a2e-2d9c-4c1c-9b53-0a3c3f1f0b11";
const own = { profileId: "prf_1", baseUrl: "https://eu.example.com", organizationId: organization };

function entry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6y1ys1e", key: "k", at: "2026-11-21T02:00:00.000Z" }), ...changes };
}

const address = "points at https://us.example.com now, and the entry was made for https://eu.example.com";

describe("a profile", () => {
  it.each([
    ["is the entry's", {}, {}, false, undefined],
    ["is the entry's, in upper case", {}, { organizationId: organization.toUpperCase() }, false, undefined],
    [
      "is the entry's, both without organization",
      { organization_id: null },
      { organizationId: undefined },
      false,
      undefined,
    ],
    ["got its organization id after the entry", { organization_id: null }, {}, false, undefined],
    ["has another address", {}, { baseUrl: "https://us.example.com" }, false, address],
    ["has another organization", {}, { organizationId: "other" }, false, "is bound to another organization now"],
    ["has no organization", {}, { organizationId: null }, false, "is bound to another organization now"],
    ["is another one", {}, { profileId: "prf_2" }, false, "is another profile of the same name"],
    ["is another machine's, in a team's journal", {}, { profileId: "prf_2" }, true, undefined],
    ["acts as the same client, in a team's journal", { principal: "c1" }, { principal: "c1" }, true, undefined],
    [
      "acts as another client, in a team's journal",
      { principal: "c1" },
      { principal: "c2" },
      true,
      "is another profile of the same name",
    ],
    ["has no client of its own, in a team's journal", { principal: "c1" }, {}, true, undefined],
    ["has a client and the entry does not, in a team's journal", {}, { principal: "c2" }, true, undefined],
    ["acts as another client, on one machine", { principal: "c1" }, { principal: "c2" }, false, undefined],
  ] as const)("%s", (_what, made, profile, isShared, moved) => {
    const failure = otherAccount(entry(made), { ...own, ...profile }, isShared);
    expect(failure?.message).toBe(moved && `Profile "prod" ${moved}.`);
    expect(failure?.kind).toBe(moved && "auth");
  });

  it("that differs leaves two ways: restore it, or give up the entry", () => {
    const failure = otherAccount(entry(), { ...own, profileId: "prf_2" }, false);
    expect(failure?.details).toEqual({
      meaning: "Nothing was sent: the idempotency key and the client belong to the original account.",
      hint: "Put the profile back as it was, or stop tracking the change with integ journal forget.",
      nextCommand: shell`integ journal show 1rs6y1ys1e`,
    });
    const kept = otherAccount(entry({ state: "undelivered" }), { ...own, profileId: "prf_2" }, false);
    expect(kept?.details.nextCommand).toEqual(shell`integ journal claim 1rs6y1ys1e`);
  });
});

describe("an environment", () => {
  it.each([
    [
      "with a client's credentials",
      { principal: "c1" },
      ` INTEG_ORGANIZATION_ID=${organization} and INTEG_CLIENT_ID=c1 with INTEG_CLIENT_SECRET and INTEG_TOKEN_ENDPOINT.`,
    ],
    ["with a key", {}, ` INTEG_ORGANIZATION_ID=${organization} and INTEG_API_KEY.`],
    [
      "without an organization",
      { organization_id: null },
      " and INTEG_API_KEY, and leave INTEG_ORGANIZATION_ID unset.",
    ],
    [
      "for access keys",
      { operation: "access_key.rotate", principal: "c1" },
      ` INTEG_ORGANIZATION_ID=${organization} and INTEG_ACCESS_TOKEN.`,
    ],
  ] as const)("%s is described by its variables", (_what, changes, rest) => {
    const expected = {
      hint: `Set INTEG_BASE_URL=https://eu.example.com INTEG_REGION=eu${rest}`,
      nextCommand: shell`integ journal recover 1rs6y1ys1e`,
    };
    expect(setEnvironment(entry(changes))).toEqual(expected);
    const failure = otherAccount(
      entry({ ...changes, profile: "env" }),
      { ...own, baseUrl: "https://us.example.com" },
      false,
    );
    expect(failure?.details).toMatchObject(expected);
  });

  it("of a finished entry has no next step", () => {
    expect(setEnvironment(entry({ state: "done" })).nextCommand).toBeUndefined();
  });
});
