// Tests a process that is paused beyond its lease: another process resumes the entry, then the first delivers its secret.
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import type { EntryState } from "../../../src/journal/entry.ts";
import { settleDelivered } from "../../../src/operations/secret-delivery.ts";
import { intent } from "../journal/intent.ts";
import { AWorld } from "./a-world.ts";

describe("a secret that is delivered after another process resumed its entry", () => {
  it.each<[EntryState, number, string]>([
    ["replaced", 1, "outcome_unknown"],
    ["secret_lost", 1, "outcome_unknown"],
    // The other process found the secret at its destination.
    ["done", 1, "done"],
    // No process resumed the entry: only the journal failed, and a replay is safe.
    ["unknown", 0, "done"],
  ])("(now %s, %i records later) ends as %s", async (state, later, kind) => {
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
