// A process stands still for longer than its lease, another one goes on with its entry, and then the first delivers what it had.
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { EntryState } from "../../../src/journal/entry.ts";
import { settleDelivered } from "../../../src/operations/secret-delivery.ts";
import { intent } from "../journal/intent.ts";
import { AWorld } from "./a-world.ts";

describe("a secret that is delivered after another process went on", () => {
  it.each<[EntryState, number, string]>([
    ["replaced", 1, "outcome_unknown"],
    ["secret_lost", 1, "outcome_unknown"],
    // It found the secret where it was delivered.
    ["done", 1, "done"],
    // No one went on: the journal alone is in the way, and a replay is safe.
    ["unknown", 0, "done"],
  ])("to an entry that is %s (%i records later) ends as %s", async (state, later, kind) => {
    const world = new AWorld({ destination: "stdout" });
    const ended = await world.run(async (bench) => {
      const { lease } = await bench.journal.admit(intent({ operation: "oauth_client.create" }), { fresh: true });
      const { entry } = lease;
      const stale = { ...lease, entry, record: () => Promise.reject(new Failure("failed", "The lease is over.")) };
      const journal = { ...bench.journal, find: async () => ({ ...entry, state, sequence: entry.sequence + later }) };
      await settleDelivered({ bench: { ...bench, journal }, lease: stale }, { resource_id: "oc_1" });
    });
    expect(ended.kind).toBe(kind);
  });
});
