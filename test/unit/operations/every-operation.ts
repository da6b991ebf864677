import { createAccessKey } from "../../../src/operations/key.ts";
import { replaceAccessKey } from "../../../src/operations/key-rotation.ts";
import { revokeNamed } from "../../../src/operations/revocation.ts";
import { rotateAccessKey } from "../../../src/operations/in-place.ts";
import { createOAuthClient } from "../../../src/operations/client.ts";
import { rotateOAuthClient } from "../../../src/operations/client-rotation.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { AWorld, type Ended, type Setting } from "./a-world.ts";
import type { Request } from "./an-account.ts";

export interface TypedOptions {
  readonly key?: string;
}

export interface Operation {
  readonly sends: Request;
  readonly before?: (world: AWorld) => void;
  readonly work: (bench: Workbench, world: AWorld, options: TypedOptions) => Promise<unknown>;
}

const halfAnHour = 30 * 60_000;

const agreeing = { waitMs: 60_000, mayReplace: async () => true, mayRevokeUnproven: async () => true } as const;

function withExisting(kind: "client" | "key"): (world: AWorld) => void {
  return (world) => {
    world.account.addExisting(kind, "old");
    world.revocable.add("old");
  };
}

export const operations: Readonly<Record<string, Operation>> = {
  "a client's creation": {
    sends: "create",
    work: (bench, world, { key }) => {
      const request = { service_account_id: "sa_1", scopes: ["entity:read"] };
      const options = { key, waitMs: 60_000, destination: world.destination() };
      return createOAuthClient(bench, request, { ...options, mayReplace: async () => false });
    },
  },
  "a client's rotation": {
    sends: "create",
    before: withExisting("client"),
    work: (bench, world) => {
      const old = { id: "old", service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
      const options = { old, overlapMs: 0, keepOld: false };
      return rotateOAuthClient(bench, options, { ...agreeing, destination: world.destination() });
    },
  },
  "a client's rotation with an overlap": {
    sends: "create",
    before: withExisting("client"),
    work: (bench, world) => {
      const old = { id: "old", service_account_id: "sa_1", scopes: ["entity:read"], status: "active" };
      const options = { old, overlapMs: halfAnHour, keepOld: false };
      return rotateOAuthClient(bench, options, { ...agreeing, destination: world.destination() });
    },
  },
  "a client's revocation": {
    sends: "revoke",
    before: withExisting("client"),
    work: (bench) => revokeNamed(bench, "client", "old"),
  },
  "a key's creation": {
    sends: "create",
    work: (bench, world) =>
      createAccessKey(bench, { request: { name: "ci" }, marked: false }, { destination: world.destination() }),
  },
  "a key's rotation in place": {
    sends: "rotate",
    before: withExisting("key"),
    work: (bench, world) =>
      rotateAccessKey(bench, { id: "old", updateProfile: false }, { destination: world.destination() }),
  },
  "a key's replacement": {
    sends: "create",
    before: withExisting("key"),
    work: (bench, world) => {
      const creation = { request: { name: "new" }, marked: true };
      const options = { oldId: "old", creation, overlapMs: 0, updateProfile: false };
      return replaceAccessKey(bench, options, { ...agreeing, destination: world.destination() });
    },
  },
  "a key's replacement with an overlap": {
    sends: "create",
    before: withExisting("key"),
    work: (bench, world) => {
      const creation = { request: { name: "new" }, marked: true };
      const options = { oldId: "old", creation, overlapMs: halfAnHour, updateProfile: false };
      return replaceAccessKey(bench, options, { ...agreeing, destination: world.destination() });
    },
  },
  "a key's revocation": {
    sends: "revoke",
    before: withExisting("key"),
    work: (bench) => revokeNamed(bench, "key", "old"),
  },
};

export function worldFor({ before }: Operation, setting: Setting = {}): AWorld {
  const world = new AWorld(setting);
  world.account.addExisting("key", "ak_own");
  before?.(world);
  return world;
}

export function perform(world: AWorld, { work }: Operation, options: TypedOptions = {}): Promise<Ended<unknown>> {
  return world.run((bench) => work(bench, world, options));
}
