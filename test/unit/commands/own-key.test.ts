import { expect, it } from "vitest";
import { type Ownership, ownershipIn } from "../../../src/commands/keys/own-key.ts";

const now = Date.parse("2026-11-21T00:00:00.000Z");
const past = "2026-11-20T00:00:00Z";
const full = { status: "active", scopes: ["*"], expiresAt: null };
const push = { ...full, scopes: ["push-ingest:*"] };

function rows(values: readonly object[], saysMore = false) {
  return {
    rows: values.map((value) => ({ value: { ...value }, text: JSON.stringify(value) })),
    saysMore,
  };
}

it.each<[string, Parameters<typeof ownershipIn>[0], Ownership]>([
  ["the profile knows it", { keyId: "a", now }, "own"],
  ["the profile knows another", { keyId: "b", now }, "other"],
  ["no list", { now }, "maybe"],
  ["an empty list", { rows: rows([]), now }, "maybe"],
  [
    "the only key that may list keys",
    {
      rows: rows([
        { id: "a", ...full },
        { id: "b", ...push },
      ]),
      now,
    },
    "own",
  ],
  [
    "one of two",
    {
      rows: rows([
        { id: "a", ...full },
        { id: "b", ...full },
      ]),
      now,
    },
    "maybe",
  ],
  [
    "two, one of them revoked",
    {
      rows: rows([
        { id: "a", ...full },
        { id: "b", ...full, status: "revoked" },
      ]),
      now,
    },
    "own",
  ],
  [
    "two, one of them expired",
    {
      rows: rows([
        { id: "a", ...full },
        { id: "b", ...full, expiresAt: past },
      ]),
      now,
    },
    "own",
  ],
  [
    "for ingestion only",
    {
      rows: rows([
        { id: "a", ...push },
        { id: "b", ...full },
      ]),
      now,
    },
    "other",
  ],
  ["for ingestion only, in an incomplete list", { rows: rows([{ id: "a", ...push }], true), now }, "other"],
  ["the only one in an incomplete list", { rows: rows([{ id: "a", ...full }], true), now }, "maybe"],
  ["in a list without details", { rows: rows([{ id: "a" }, { id: "b" }]), now }, "maybe"],
  ["next to one without an id", { rows: rows([{ id: "a", ...full }, full]), now }, "maybe"],
  ["not in a complete list", { rows: rows([{ id: "b", ...full }]), now }, "other"],
])("%s", (_what, own, ownership) => {
  expect(ownershipIn(own)("a")).toBe(ownership);
});
