// Tests a state folder, journal or destination that changes between two processes. `--yes` does not consent to the change.
import { describe, expect, it } from "vitest";
import { clientRotationIntent, rotateOAuthClient } from "../../../src/operations/client-rotation.ts";
import { type Entry, otherPlaces } from "../../../src/journal/entry.ts";
import type { AWorld, Setting } from "./a-world.ts";
import { perform, operations, worldFor } from "./every-operation.ts";

const [hour, old] = [3_600_000, { id: "old", service_account_id: "sa_1", scopes: ["entity:read"], status: "active" }];

function recover(world: AWorld, overlap: "leave" | "end" = "leave") {
  world.now += 3 * hour;
  const { place, machine } = world;
  const here = { place, machine: { copy: () => machine.id } };
  return world.recover({ mayReplace: async (entry) => otherPlaces(entry, here).length === 0, overlap });
}
const revoked = ({ account: { requests } }: AWorld): boolean => requests.some((one) => one.startsWith("revoke"));
const tamper = ({ entries, machine }: AWorld, which: (entry: Entry) => boolean): void =>
  void machine.tampered.add(entries.find(which)!.id);

describe("a lost secret is replaced", () => {
  const away = (world: AWorld): void => void (world.machine.id = "another");
  it.each<[string, string, (world: AWorld) => Promise<void> | void, boolean]>([
    ["client", "if nothing changed", () => {}, true],
    ["key", "if nothing changed", () => {}, true],
    ["client", "not if the folder of its first attempt was lost", away, false],
    ["key", "not if the folder of its first attempt was lost", away, false],
    [
      "client",
      "not if the journal is a backup from before its creation",
      async (world) => {
        world.account.clients.length = 0;
        const [before] = structuredClone(world.entries);
        await recover(world);
        world.entries.splice(0, 1, before!);
      },
      false,
    ],
  ])("of a %s, %s", async (noun, _when, change, isReplaced) => {
    const operation = operations[`a ${noun}'s creation`]!;
    const world = worldFor(operation, { destination: "command", retryForMs: 0, fates: { create: ["lost after"] } });
    await perform(world, operation);
    const [made] = world.entries;
    if (noun === "key")
      world.entries[0] = { ...made!, detail: { ...made!.detail, orphan_certain: true, marked: true } };
    await change(world);
    await recover(world);
    expect([world.entries[0]!.state, revoked(world)]).toEqual([isReplaced ? "replaced" : "secret_lost", isReplaced]);
  });
});

describe("the old client", () => {
  async function waiting(setting: Setting = {}): Promise<AWorld> {
    const operation = operations["a client's rotation with an overlap"]!;
    const world = worldFor(operation, setting);
    await perform(world, operation);
    expect(world.entry("oauth_client.rotate")!.state).toBe("waiting");
    return world;
  }

  it("is revoked if a person ends the overlap, but not for a new client that is created only then", async () => {
    const [plain, other] = [await waiting(), await waiting()];
    other.entries.splice(1, 1);
    other.files.clear();
    for (const world of [plain, other]) await recover(world, "end");
    expect([plain, other].map(revoked)).toEqual([true, false]);
  });

  it("stays valid after a machine found the new secret missing, until that machine finds it again", async () => {
    const world = await waiting();
    const { id } = world.machine;
    const file = world.files.get("/secret")!;
    world.files.clear();
    for (const on of [id, "another"]) {
      world.machine.id = on;
      expect((await recover(world)).value![0]!.failure?.message).toContain("is not there now");
    }
    world.files.set("/secret", file);
    world.machine.id = id;
    await recover(world);
    expect(revoked(world)).toBe(true);
  });

  it("was followed by no client that only an untrusted rotation names", async () => {
    const world = worldFor(operations["a client's rotation"]!);
    await perform(world, operations["a client's rotation"]!);
    tamper(world, ({ operation }) => operation === "oauth_client.rotate");
    const asked = { old: { ...old, status: "revoked" }, overlapMs: 0, keepOld: false };
    const no = async (): Promise<boolean> => false;
    const options = { destination: world.destination("stdout"), waitMs: 0, mayReplace: no, mayRevokeUnproven: no };
    const { failure } = await world.run((bench) => rotateOAuthClient(bench, asked, options));
    expect(failure?.message).toContain("cannot be rotated");
  });

  it("stays valid if the new client's entry is untrusted", async () => {
    const world = await waiting();
    tamper(world, ({ parent }) => parent !== null);
    expect((await recover(world)).value![0]!.failure?.kind).toBe("auth");
    expect(revoked(world)).toBe(false);
  });
});

describe("nothing is created", () => {
  it.each<[string, (world: AWorld) => void, string]>([
    ["for a rotation that is untrusted", (world) => tamper(world, () => true), "is untrusted"],
    ["for a file of another machine", (world) => void (world.machine.id = "another"), "of another machine"],
  ])("%s", async (_what, change, why) => {
    const operation = operations["a client's rotation"]!;
    for (const again of [(world: AWorld) => perform(world, operation), recover]) {
      const world = worldFor(operation);
      await world.run(async (bench) => {
        const destination = await world.destination().check();
        const intent = clientRotationIntent(bench, { old, overlapMs: 0, keepOld: false });
        await bench.journal.admit({ ...intent, destination });
      });
      change(world);
      const { failure, value } = await again(world);
      expect((Array.isArray(value) ? value[0].failure : failure)?.message).toContain(why);
      expect([world.entries.length, world.account.requests]).toEqual([1, []]);
    }
  });

  it("for an untrusted replacement of a lost client", async () => {
    const operation = operations["a client's creation"]!;
    const fates = { create: ["lost after"], revoke: ["lost before"] } satisfies Setting["fates"];
    const world = worldFor(operation, { retryForMs: 0, fates });
    for (const again of [() => perform(world, operation), () => recover(world)]) await again();
    const before = world.account.requests.length;
    tamper(world, ({ replaces }) => replaces !== null);
    expect((await recover(world)).value![0]!.failure?.kind).toBe("auth");
    expect(world.account.requests.length).toBe(before);
  });
});
