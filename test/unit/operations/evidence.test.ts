// The act `send` sends nothing if a piece of its evidence is missing.
import { describe, expect, it } from "vitest";
import { send } from "../../../src/operations/acts/send.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { intent } from "../journal/intent.ts";
import { AWorld } from "./a-world.ts";

async function admitted(bench: Workbench, changes: Partial<Entry> = {}): Promise<EntryLease> {
  const { baseUrl: base_url } = bench.account;
  const { lease } = await bench.journal.admit(intent({ operation: "oauth_client.create", base_url }), { fresh: true });
  await lease.record({ attempts: 1, detail: { in_flight: true }, ...changes });
  return lease;
}

describe("a request without evidence is not sent", () => {
  it.each<[string, Partial<Entry>, (world: AWorld, bench: Workbench) => Workbench, RegExp | undefined]>([
    ["but it is sent with all evidence", {}, (_world, bench) => bench, undefined],
    ["whose attempt is not on disk", { attempts: 0 }, (_world, bench) => bench, /is not on disk/],
    [
      "to another address than the entry's",
      {},
      (_world, bench) => ({ ...bench, account: { ...bench.account, baseUrl: "https://other.example" } }),
      /other\.example/,
    ],
    [
      "after an interruption",
      {},
      (world, bench) => {
        world.interrupt();
        return bench;
      },
      /Interrupted/,
    ],
    [
      "after the disk failed",
      {},
      (_world, bench) => {
        bench.disk.markFailed("no space");
        return bench;
      },
      /no space/,
    ],
  ])("%s", async (_what, changes, without, why) => {
    const world = new AWorld();
    const end = await world.run(async (bench) => {
      const lease = await admitted(bench, changes);
      return send(without(world, bench), lease, { change: "create client" }).then(
        () => "sent",
        (error: unknown) => String(error),
      );
    });
    if (why === undefined) expect(end.value).toBe("sent");
    else expect(end.value).toMatch(why);
    expect(world.account.requests).toHaveLength(why === undefined ? 1 : 0);
  });
});
