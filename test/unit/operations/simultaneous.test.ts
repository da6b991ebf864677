import { expect, describe, it } from "vitest";
import { createAccessKey } from "../../../src/operations/key.ts";
import { createOAuthClient } from "../../../src/operations/client.ts";
import { newEntryId } from "../../../src/journal/lookup.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { AWorld } from "./a-world.ts";

const request = { service_account_id: "sa_1", scopes: ["entity:read"] };

async function created(
  kind: "client" | "key",
  other: (own: Entry, world: AWorld) => Partial<Entry>,
  { isShared = false } = {},
): Promise<AWorld> {
  const world = new AWorld();
  if (kind === "key") world.account.addExisting("key", "ak_own");
  const addOtherEntry = (): void => {
    const own = world.entries[0]!;
    const id = newEntryId(world.now, { random: 0, newest: own.id });
    const updated_at = new Date(world.now).toISOString();
    world.entries.push({ ...own, id, resource_id: "other_1", state: "done", updated_at, ...other(own, world) });
  };
  const place = world.destination();
  const destination = { ...place, isStdout: false };
  const deliver = async (...given: Parameters<typeof destination.deliver>): Promise<void> => {
    await place.deliver(...given);
    addOtherEntry();
  };
  const ended = await world.run<unknown>((found) => {
    const bench = { ...found, journal: { ...found.journal, isShared } };
    return kind === "key"
      ? createAccessKey(bench, { request: { name: "ci" }, marked: false }, { destination: { ...destination, deliver } })
      : createOAuthClient(bench, request, {
          destination: { ...destination, deliver },
          waitMs: 0,
          mayReplace: async () => false,
        });
  });
  expect(ended.kind).toBe("done");
  return world;
}

const reports = ({ messages }: AWorld): string[] => messages.filter((text) => text.includes("at the same moment"));

describe.each(["client", "key"] as const)("a %s that two processes create simultaneously", (kind) => {
  const noun = kind === "client" ? "oauth-clients" : "keys";

  it("is reported, with the command that revokes the newer one", async () => {
    const world = await created(kind, () => ({}));
    const id = world.entries[1]!.id;
    expect(reports(world)).toEqual([
      `The same ${kind} was created at the same moment: other_1 (journal entry ${id}). If you need only one: integ ${noun} revoke other_1`,
    ]);
  });

  it("names its own id if that is the newer one", async () => {
    const world = await created(kind, () => ({ id: "0000000000" }));
    expect(reports(world)[0]).toMatch(new RegExp(`: integ ${noun} revoke ${world.entries[0]!.resource_id}$`));
  });

  it.each([
    ["a clock that is a day behind is named", { updated_at: "2026-11-20T01:00:00.000Z" }, 1],
    [
      "a clock that is a day ahead is not named if its entry was there before",
      { id: "0000000000", updated_at: "2036-11-22T01:00:00.000Z" },
      0,
    ],
  ])("of a team's machine with %s", async (_what, about, names) => {
    expect(reports(await created(kind, () => about, { isShared: true }))).toHaveLength(names);
  });

  it("has its id looked up in the journal if the newer one is unfinished", async () => {
    const world = await created(kind, () => ({ state: "open", resource_id: null }));
    expect(reports(world)[0]).toContain(`: not finished (journal entry ${world.entries[1]!.id})`);
    expect(reports(world)[0]).toMatch(new RegExp(`integ journal show ${world.entries[1]!.id}$`));
  });

  it.each([
    ["was refused", { state: "refused" }],
    ["asks for something else", { fingerprint: "another" }],
    ["is at another address", { base_url: "https://api.other.example.com" }],
    ["is a step of a rotation", { parent: "0000000001" }],
    ["ended before this one started", { updated_at: "2026-11-21T01:00:00.000Z" }],
  ] as const)("is not reported if the other one %s", async (_what, about) => {
    expect(reports(await created(kind, () => about))).toEqual([]);
  });
});
