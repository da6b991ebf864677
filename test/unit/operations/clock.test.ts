// This machine's clock may be wrong or change at any moment; waiting times do not depend on it.
import { mayBeCreatedElsewhere } from "../../../src/journal/entry.ts";
import { describe, expect, it } from "vitest";
import { createAccessKey } from "../../../src/operations/key.ts";
import { AWorld } from "./a-world.ts";
import { perform, operations, worldFor } from "./every-operation.ts";
import type { Fate } from "./an-account.ts";

const day = 24 * 60 * 60_000;

describe.each(Object.entries(operations))("%s", (_name, operation) => {
  it.each([
    ["429", { refused: 429 }],
    ["a closed port", "not sent"],
  ] satisfies [string, Fate][])("%s: is retried equally long while the clock jumps", async (_what, fate) => {
    const tries = async (jump: number): Promise<[string, number]> => {
      const setting = { retryForMs: 60_000, fates: { [operation.sends]: Array.from({ length: 50 }, () => fate) } };
      const world = worldFor(operation, setting);
      world.onSleep = () => void (world.now += jump);
      const { kind } = await perform(world, operation);
      return [kind, world.account.requests.length];
    };
    const plain = await tries(0);
    expect(plain[1]).toBeGreaterThan(3);
    expect(await tries(-day)).toEqual(plain);
    expect(await tries(day)).toEqual(plain);
  });
});

it("an explicit key whose client was created earlier is not reported lost, whatever the clock says", async () => {
  for (const [aheadMs, isCorrected] of [-day, 0, day].flatMap((ms) => [false, true].map((is) => [ms, is] as const))) {
    const world = new AWorld({ retryForMs: 0 });
    const operation = operations["a client's creation"]!;
    world.account.aheadMs = aheadMs;
    await perform(world, operation, { key: "nightly" });
    world.entries.length = 0;
    world.files.clear();
    world.now += 3_600_000;
    world.account.fates.create = ["lost after"];
    await perform(world, operation, { key: "nightly" });
    if (isCorrected) {
      world.now += aheadMs;
      world.account.aheadMs = 0;
    }
    await world.recover({ mayReplace: async () => false });
    // No request of this entry got a response in its first process, so the service's clock is unknown.
    expect(world.entries[0]).toMatchObject({ state: "secret_lost" });
    expect(mayBeCreatedElsewhere(world.entries[0]!)).toBe(true);
  }
});

it("a client under a random key was created by the entry's own requests, whatever the clock says", async () => {
  for (const aheadMs of [-3 * day, 0, 3 * day]) {
    const world = new AWorld({ retryForMs: 0, fates: { create: ["lost after"] } });
    world.account.aheadMs = aheadMs;
    await perform(world, operations["a client's creation"]!);
    world.account.aheadMs = 0;
    await world.recover({ mayReplace: async () => false });
    expect(world.entries[0]!.state).toBe("secret_lost");
    expect(mayBeCreatedElsewhere(world.entries[0]!)).toBe(false);
  }
});

it.each([
  [-3 * day, "3 days longer than requested, because the clock of this machine is ahead of"],
  [day, "24 hours shorter than requested, because the clock of this machine is behind"],
  [60_000, undefined],
])("a lifetime by a service clock %i ms ahead is compared with the requested one", async (aheadMs, differs) => {
  const world = worldFor(operations["a key's creation"]!);
  world.account.aheadMs = aheadMs;
  const lifetimeMs = 90 * day;
  const request = { name: "ci", expiresAt: new Date(world.now + lifetimeMs).toISOString() };
  const creation = { request, expiry: `in ${lifetimeMs} ms`, marked: false };
  const ended = await world.run((bench) => createAccessKey(bench, creation, { destination: world.destination() }));
  const [entry] = world.entries;
  expect([entry!.state, entry!.detail.differs?.includes(differs ?? "")]).toEqual(
    differs === undefined ? ["done", undefined] : ["unusable", true],
  );
  expect(ended.kind).toBe(differs === undefined ? "done" : "unusable");
});
