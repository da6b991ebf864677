import { expect, it } from "vitest";
import { versionFault, versionHeader } from "../../../../src/api/call/request.ts";

it.each([
  ["2026-07-01", { "service-version": "2026-07-01" }],
  ["2024-02-29", { "service-version": "2024-02-29" }],
  ["none", {}],
])("%s is sent as %j", (text, headers) => {
  expect([versionFault(text), versionHeader(text)]).toEqual([undefined, headers]);
});

it.each([
  ["2026-02-30", "not a date"],
  ["2026-13-01", "not a date"],
  ["2026-00-00", "not a date"],
  ["2025-02-29", "not a date"],
  ["20260701", "not a date"],
  ["", "not a date"],
  ["None", "not a date"],
  ["2026-08-05", "the legacy contract"],
])("%s is refused: %s", (text, why) => {
  expect(versionFault(text)).toContain(why);
  expect(() => versionHeader(text)).toThrow(why);
});
