import type { ProfileStores } from "../../src/profiles/configure.ts";
import { type Profile, secretSourceOf } from "../../src/profiles/profile.ts";
import type { Machine } from "./in-memory.ts";

export function profilesOf(
  { profiles, credentials }: Machine,
  delivering: (name: string, before: string | undefined, secret: string) => void,
): ProfileStores {
  const store = {
    get: (name: string) => profiles.get(name),
    list: () => [...profiles.values()],
    edit: async (name: string, change: (profile: Profile) => Profile) => {
      const before = profiles.get(name)!;
      const after = change(before);
      const secret = secretIn(after, credentials);
      if (secret !== undefined) delivering(name, secretIn(before, credentials), secret);
      profiles.set(name, after);
      return after;
    },
  };
  const kept = {
    testWrite: async () => {},
    read: async (source: { ref: string }) => credentials.get(source.ref) ?? "",
    save: async (secret: string) => {
      const ref = `of ${secret}`;
      credentials.set(ref, secret);
      return { ref, kept: "file" };
    },
    destroy: async ({ ref }: { ref: string }) => void credentials.delete(ref),
  };
  return { store, credentials: kept } as unknown as ProfileStores;
}

/** @returns the stored secret, or the command or path that provides it; undefined without a credential */
export function secretIn({ credential }: Profile, credentials: ReadonlyMap<string, string>): string | undefined {
  if (credential === null) return undefined;
  const source = secretSourceOf(credential);
  if (source.from === "stored") return credentials.get(source.ref);
  return "command" in source ? source.command : source.path;
}
