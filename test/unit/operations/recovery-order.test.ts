import { describe, expect, it } from "vitest";
import type { Recovered } from "../../../src/operations/recovery.ts";
import { Failure, type FailureKind, worstOf } from "../../../src/errors.ts";
import type { Entry } from "../../../src/journal/entry.ts";

describe("the worst of several errors", () => {
  const order =
    "outcome_unknown undelivered secret_lost pending unusable auth rate_limited unreachable conflict not_found failed usage".split(
      " ",
    ) as FailureKind[];
  const of = (kind?: FailureKind, isSkipped = false): Recovered => ({
    entry: { id: "e1" } as Entry,
    ...(kind === undefined ? {} : { failure: new Failure(kind, kind) }),
    isSkipped,
  });
  it("follows this order of kinds, whichever entry comes first", () => {
    for (const [at, one] of order.entries())
      for (const other of order.slice(at + 1))
        for (const both of [
          [of(one), of(other)],
          [of(other), of(), of(one)],
        ])
          expect([one, other, worstOf(both)?.kind]).toEqual([one, other, one]);
  });
  it("is none of the skipped ones, unless all were skipped", () => {
    expect(worstOf([of("outcome_unknown", true), of("usage")])?.kind).toBe("usage");
    expect(worstOf([of("outcome_unknown", true), of()])).toBeUndefined();
    expect(worstOf([of("auth", true), of("pending", true)])?.kind).toBe("pending");
    expect(worstOf([])).toBeUndefined();
  });
});
