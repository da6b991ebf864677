// What a person is told to do after a failure in the middle of work: what comes first, and which entry is recovered then; and
// what is said where the journal cannot be written.
import { describe, expect, it } from "vitest";
import {
  isInterruption,
  outcomeUnknown,
  prerequisite,
  recordAfterwards,
  recoveryAfter,
  recoveryStep,
  saysNothingWasDone,
  standsUntilChanged,
  withReason,
} from "../../../src/operations/workbench.ts";
import { assertAsAsked, secretLost } from "../../../src/operations/secret-delivery.ts";
import { Failure, type FailureDetails, type FailureKind } from "../../../src/errors.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { shell } from "../../../src/next-step.ts";
import { intent } from "../journal/intent.ts";
import { AWorld } from "./a-world.ts";

const kinds: readonly FailureKind[] = [
  "usage",
  "failed",
  "unreachable",
  "auth",
  "not_found",
  "conflict",
  "rate_limited",
  "outcome_unknown",
  "interrupted",
  "terminated",
];

function failure(kind: FailureKind, details: FailureDetails = {}): Failure {
  return new Failure(kind, "It did not work.", details);
}

function entry(change: Partial<Entry> = {}): Entry {
  return { ...newEntry(intent(), { id: "1rs6y1ys1e", key: "k", at: "2026-11-21T02:00:00.000Z" }), ...change };
}

const df = shell`df`;
const first = { hint: "Free space.", nextCommand: df } as const;
const refused = { status: 403 };

describe.each(kinds)("a failure of kind %s", (kind) => {
  const isLocal = kind === "usage" || kind === "failed";
  const isStanding = kind === "auth" || kind === "not_found" || kind === "conflict";

  it("has something to be done first if it is of this machine", () => {
    expect(prerequisite(failure(kind, first))).toBe(isLocal ? " First: Free space." : "");
    expect(prerequisite(failure(kind, { nextCommand: df }))).toBe(isLocal ? " First: df" : "");
    expect(prerequisite(failure(kind, { nextCommand: { add: ["--force"] } }))).toBe("");
    expect(prerequisite(failure(kind))).toBe("");
    expect(prerequisite(failure(kind, { ...first, problem: refused }))).toBe("");
    expect(prerequisite(failure(kind, { ...first, recovers: "1" }))).toBe("");
  });

  it("stands until someone changes something if it is a refusal", () => {
    expect(standsUntilChanged(failure(kind, { problem: refused }))).toBe(isStanding);
    expect(standsUntilChanged(failure(kind))).toBe(false);
    expect(standsUntilChanged(failure(kind, { unsent: true }))).toBe(kind === "auth");
    expect(standsUntilChanged(failure(kind, { unsent: false }))).toBe(false);
  });

  it("is recovered afterwards, or now", () => {
    const now = recoveryStep("1");
    expect(now).toEqual({ hint: undefined, nextCommand: "integ journal recover 1", recovers: "1" });
    expect(recoveryAfter(failure(kind), "1")).toEqual(now);
    expect(recoveryAfter(failure(kind, { problem: refused }), "1")).toEqual(now);
    expect(recoveryAfter(failure(kind, first), "1")).toEqual(
      isLocal ? { hint: "Free space. Then run integ journal recover 1.", nextCommand: undefined, recovers: "1" } : now,
    );
    expect(recoveryAfter(failure(kind, { nextCommand: df }), "1")).toEqual(now);
    expect(recoveryAfter(failure(kind, { ...first, problem: refused }), "1")).toEqual(
      isStanding ? { hint: "Free space. Then run integ journal recover 1.", nextCommand: df, recovers: "1" } : now,
    );
    expect(recoveryAfter(failure(kind, { nextCommand: df, problem: refused }), "1")).toEqual(
      isStanding ? { hint: "Run integ journal recover 1 afterwards.", nextCommand: df, recovers: "1" } : now,
    );
  });

  it("is of unknown outcome after an attempt that may have arrived", () => {
    const { kind: of, message, details } = outcomeUnknown(entry(), failure(kind, { unsent: true, nextCommand: df }));
    expect(of).toBe("outcome_unknown");
    expect(message).toBe(
      kind === "outcome_unknown" ? "It did not work." : "It did not work. An earlier attempt may have arrived.",
    );
    expect(details).toMatchObject({ unsent: false, entry: "1rs6y1ys1e", recovers: "1rs6y1ys1e" });
    expect(String(details.meaning).endsWith(" First: df")).toBe(isLocal);
    expect(outcomeUnknown(entry(), failure(kind, first)).details.meaning).not.toContain("First:");
    const own = { hint: "Look there.", nextCommand: undefined, recovers: "2" } as const;
    expect(outcomeUnknown(entry(), failure(kind, own)).details).toMatchObject(own);
  });

  it("reads as if nothing was done, or as an interruption", () => {
    expect(saysNothingWasDone(failure(kind))).toBe(isLocal || kind === "unreachable");
    expect(isInterruption(failure(kind))).toBe(kind === "interrupted" || kind === "terminated");
  });
});

it.each([
  ["The disk is full.", "It stays. The disk is full."],
  ["Ärger", "It stays. Ärger"],
  ["no space left", "It stays: no space left"],
  ["/tmp is full", "It stays: /tmp is full"],
])("a reason is a sentence of its own or follows a colon: %s", (reason, words) => {
  expect(withReason("It stays", new Error(reason))).toBe(words);
});

describe("a journal that cannot be written after something was sent", () => {
  const recorded = async (change: Partial<Entry>, isGone: boolean): Promise<{ world: AWorld; text: string }> => {
    const world = new AWorld({ failing: ["record"] });
    const { value } = await world.run(async (bench) => {
      const { lease } = await bench.journal.admit({ ...intent(), idempotent: true });
      Object.assign(world.entries[0]!, change);
      const find: typeof bench.journal.find = async (id) => {
        if (isGone) throw new Failure("not_found", "No such entry.");
        return bench.journal.find(id);
      };
      await recordAfterwards({ ...bench, journal: { ...bench.journal, find } }, lease, {
        state: "done",
        resource_id: "x",
      });
      expect(lease.entry).toMatchObject({ state: "open", resource_id: "x" });
      expect(() => bench.disk.assertHealthy()).toThrow(
        "The disk failed during the command, and nothing more is sent: no record",
      );
      return world.told.join();
    });
    return { world, text: value! };
  };

  it("is told with the entry that it still has", async () => {
    const { world, text } = await recorded({}, false);
    expect(text).toBe(
      "The journal could not be updated. no record It still has the entry 1000000001. Next: integ journal recover 1000000001",
    );
    expect(world.entries[0]).toMatchObject({ state: "open", resource_id: null });
  });

  it.each([
    ["key-1000000001", " (idempotency key key-1000000001)"],
    [null, ""],
  ])("and with what is lost if it is gone: the key %s", async (idempotency_key, words) => {
    const { text } = await recorded({ idempotency_key }, true);
    expect(text).toBe(
      `The journal could not be updated. no record It no longer has the entry 1000000001${words}: note what is printed here.`,
    );
  });
});

describe("an entry that differs from what was asked for", () => {
  const differing = { state: "unusable", resource_id: "x1", detail: { differs: "its name is another" } } as const;

  it.each([
    ["oauth_client.create", "client"],
    ["access_key.create", "key"],
  ] as const)("%s is named as a %s", (operation, noun) => {
    expect(() => assertAsAsked(entry({ ...differing, operation }))).toThrow(
      `The ${noun} x1 differs from the request: its name is another.`,
    );
    expect(() => assertAsAsked(entry({ ...differing, operation, resource_id: null }))).toThrow(`The ${noun}  differs`);
  });

  it("is refused only where it was found unusable", () => {
    expect(() => assertAsAsked(entry({ ...differing, state: "done" }))).not.toThrow();
    expect(() => assertAsAsked(entry({ ...differing, detail: {} }))).not.toThrow();
  });
});

it("a lost secret is looked for where else it may be kept, and was lost before if it was", () => {
  const lost = entry({
    state: "secret_lost",
    resource_id: "x1",
    detail: { own_key: true, attempted_at: ["mine:/a", "there:/a", "there:/b"] },
  });
  const known = (change: Partial<Entry>, here?: string): string =>
    JSON.stringify([
      secretLost({ ...lost, ...change }, { here }).message,
      secretLost({ ...lost, ...change }, { here }).details,
    ]);
  expect(known({}, "mine:/a")).toContain("there:/a, there:/b");
  expect(known({}, "mine:/a")).not.toContain("mine:/a");
  expect(known({ detail: { own_key: true, attempted_at: ["mine:/a"] } }, "mine:/a")).not.toContain("mine:/a");
  expect(known({})).not.toContain("there:/a");
  expect(known({ detail: {} }, "mine:/a")).not.toBe(known({ detail: { own_key: true } }, "mine:/a"));
});
