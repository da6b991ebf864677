import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../../src/errors.ts";
import type { Delivery, MayReplace, OneTimeSecret } from "../../../src/secrets/destination.ts";

export const canary = "canary-8f2e6b";

export const client: OneTimeSecret = {
  secret: canary,
  kind: "oauth_client",
  id: "oc_1",
  clientId: "cid_1",
  receipt: `{"id":"oc_1","client_id":"cid_1","client_secret":"${canary}"}`,
};

export const key: OneTimeSecret = {
  secret: canary,
  kind: "access_key",
  id: "key_1",
  receipt: `{"id":"key_1","secret":"${canary}"}`,
};

export const delivery: Delivery = {
  origin: { entry: "6k2f9", profile: "prod", region: "eu", serviceAccount: "sa_1" },
  may: async () => {},
  record: async () => {},
};

export function mayReplace(...texts: readonly string[]): MayReplace {
  return async (_at, found) => {
    if (found.is !== "absent" && !(found.is === "text" && texts.includes(found.text)))
      throw new Failure("usage", "Something else is there.");
  };
}

export const onlyNew = mayReplace();

export function filesWithCanary(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path, "latin1").includes(canary));
}

export function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}
