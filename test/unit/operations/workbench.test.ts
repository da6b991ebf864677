import { expect, it } from "vitest";
import {
  lifetimeDifference,
  accountFields,
  outcomeUnknown,
  serviceTime,
  type Account,
  type Workbench,
} from "../../../src/operations/workbench.ts";
import { Failure } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import { type Entry, otherPlaces, startedAt } from "../../../src/journal/entry.ts";
import { intent } from "../journal/intent.ts";

const start = Date.parse("2026-11-21T02:00:00.000Z");
const minute = 60_000;
const at = (ms: number): string => new Date(start + ms).toISOString();

function entry(changes: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6y1ys1e", key: "k", at: at(0) }), ...changes };
}

it.each([
  [undefined, start],
  [90_000, start + 90_000],
  [-90_000, start - 90_000],
])("the service's time, with a clock %s ahead", (offset, expected) => {
  const account = { service: { clockOffset: () => offset } };
  expect(serviceTime({ clock: { now: () => start }, account } as unknown as Workbench)).toBe(expected);
});

it.each([
  [null, start],
  [90_000, start + 90_000],
  [-90_000, start - 90_000],
])("the start of an entry whose clock was %s behind the service's", (clock_offset_ms, expected) => {
  expect(startedAt(entry({ clock_offset_ms }))).toBe(expected);
});

it("the start of an entry from a fast clock, first sent by another machine, is its sending", () => {
  expect(startedAt(entry({ created_at: at(60 * minute), detail: { sent_at: at(minute) } }))).toBe(start + minute);
});

it.each([
  ["was not requested", undefined, 10, 60, undefined],
  ["was requested as a date", at(60 * minute), 10, 60, undefined],
  ["has no end", `in ${60 * minute} ms`, 10, undefined, undefined],
  ["matches, with agreeing clocks", `in ${60 * minute} ms`, 5, 60, undefined],
  ["is unknown, without a compared clock", `in ${60 * minute} ms`, null, 60, undefined],
  ["matches by the service's clock", `in ${60 * minute} ms`, 10, 70, undefined],
  ["differs by five minutes", `in ${60 * minute} ms`, 10, 65, undefined],
  ["is shorter", `in ${60 * minute} ms`, 10, 60, ["10 minutes shorter", "behind"]],
  ["is longer", `in ${60 * minute} ms`, -10, 60, ["10 minutes longer", "ahead of"]],
] as const)("a lifetime that %s", (_what, expiry, offsetMinutes, endMinutes, words) => {
  const one = entry({
    detail: expiry === undefined ? {} : { expiry },
    clock_offset_ms: offsetMinutes === null ? null : offsetMinutes * minute,
  });
  const expected =
    words &&
    `its lifetime is ${words[0]} than requested, because the clock of this machine is ${words[1]} the service's`;
  expect(lifetimeDifference(one, endMinutes === undefined ? undefined : at(endMinutes * minute))).toBe(expected);
});

it.each([
  ["a response that was lost", 1, {}, "The request may have arrived."],
  ["a later failure before its request was sent", 1, { unsent: true }, "An earlier attempt may have arrived."],
  ["a later failure after two attempts", 2, {}, "An earlier attempt may have arrived."],
] as const)("an unknown outcome names the request that may have arrived: %s", (_what, attempts, details, words) => {
  const because = new Failure("unreachable", "No connection.", details);
  expect(outcomeUnknown(entry({ state: "unknown", attempts }), because).message).toBe(`No connection. ${words}`);
});

it("the account is part of the intent, and an entry's work keeps its original options", () => {
  const account = {
    profile: "p",
    profileId: "prf_2",
    principal: "c1",
    region: "us",
    baseUrl: "https://us.example.com",
  };
  const made = { profile: "p", profile_id: "prf_2", principal: "c1", region: "us", base_url: "https://us.example.com" };
  const rest = { organization_id: "org", service_version: "2026-07-01" };
  expect(accountFields({ ...account, organizationId: "org", serviceVersion: "2026-07-01" } as Account)).toEqual({
    ...made,
    ...rest,
  });
  expect(accountFields(entry({ ...made, ...rest }))).toEqual({ ...made, ...rest });
});

it.each([
  [undefined, ["this"], []],
  [["here"], ["this"], []],
  [["here"], ["replaced"], ["a state folder that was at here"]],
  [["there", "here", "elsewhere"], ["this"], ["there", "elsewhere"]],
])("among the places %j of the state folders %j, the others are %j", (attempted_at, attempted_by, others) => {
  const one = entry({ detail: attempted_at === undefined ? {} : { attempted_at, attempted_by } });
  expect(otherPlaces(one, { place: "here", machine: { copy: () => "this" } })).toEqual(others);
});
