import { describe, expect, it } from "vitest";
import { type Seen, seenAt } from "../../../src/operations/acts/overwrite.ts";
import { send } from "../../../src/operations/acts/send.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { newEntry } from "../../../src/journal/admission.ts";
import { known } from "../../support/known-places.ts";
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

describe("a command's destination has the secret only if its check prints that secret, or a later one of the item that works", () => {
  const proof = (secret: string): string => known.digests.of(secret);
  const delivered = (id: string, secret: string | undefined, more: Partial<Entry> = {}): Entry => ({
    ...newEntry(intent({ operation: "access_key.create" }), { id, now: "2026-11-28T00:00:00Z" } as never),
    resource_id: "ak_1",
    destination: { kind: "command", mark: "m", check: "output", proof: secret && proof(secret) },
    ...more,
  });
  const inPlace = {
    operation: "access_key.rotate",
    detail: { mode: "in_place", key_id: "ak_1" },
    state: "done",
  } as const;
  const successor = { resource_id: "ak_2", replaces: "1" } as const;

  it.each<[string, string | undefined, readonly Entry[], Seen]>([
    ["its own secret", "own\n", [], "there"],
    ["another text", "another", [], "missing"],
    ["nothing", "", [], "missing"],
    ["nothing that integ can run", undefined, [], "unverified"],
    ["a later secret whose key works", "later", [delivered("2", "later", successor)], "there"],
    [
      "a later secret whose key is revoked",
      "later",
      [delivered("2", "later", { ...successor, resource_id: "x" })],
      "missing",
    ],
    ["its own secret, after a rotation in place", "own", [delivered("2", "later", inPlace)], "missing"],
    ["the secret of a rotation in place", "later", [delivered("2", "later", inPlace)], "there"],
    [
      "a later secret that an untrusted entry names",
      "later",
      [delivered("2", "later", { ...successor, profile: "forged" })],
      "missing",
    ],
    [
      "its own secret, after an untrusted rotation in place",
      "own",
      [delivered("2", "later", { ...inPlace, profile: "forged" })],
      "missing",
    ],
  ])("%s", async (_what, shown, later, seen) => {
    const entry = delivered("1", "own");
    const select = async ({ trusted = false }) =>
      [entry, ...later].filter(({ profile }) => !trusted || profile !== "forged");
    const journal = { select, digests: known.digests };
    const bench = { journal, secrets: { ...known, isKept: () => false, reread: async () => undefined } } as never;
    const destination = { shownBy: async () => shown } as never;
    const isActive = async (id: string): Promise<boolean> => id !== "x";
    const [place] = [entry.destination] as never[];
    expect(await seenAt(bench, entry, place!, { isActive, destination })).toBe(seen);
  });
});
