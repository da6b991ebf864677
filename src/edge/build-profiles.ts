// Owns: the profiles of this command line: which one acts, and the stored ones, each read when first asked for.
import type { Profiles, Settings } from "../context.ts";
import type { Choice } from "../output/output.ts";
import type { Terminal } from "../output/terminal.ts";
import type { ActiveProfile } from "../profiles/profile.ts";
import type { EmbeddedSandbox } from "./embedded-sandbox.ts";
import { once } from "./once.ts";

export interface ProfileParts {
  readonly env: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
  readonly settings: Settings;
  readonly sandbox: EmbeddedSandbox;
  /** Ends what must not be waited for any longer. */
  readonly cut: AbortSignal;
  readonly tellNote: (text: string) => void;
  /** Asks a person which profile it is; nothing where nobody can be asked. */
  readonly pick: (choices: readonly Choice[]) => Promise<string | undefined>;
}

export function buildProfiles({ env, terminal, settings, sandbox, cut, tellNote, pick }: ProfileParts): Profiles {
  const store = once(async () => {
    const { openProfileStore } = await import("../profiles/store.ts");
    return openProfileStore({ configDir: settings.configDir });
  });
  const credentials = once(async () => {
    const { credentialsAt } = await import("../profiles/credentials.ts");
    return credentialsAt({ configDir: settings.configDir, env, signal: cut });
  });
  const resolve = async (flagProfile: string | undefined): Promise<ActiveProfile> => {
    const [{ needsStored, noneStored, resolveProfile }, { activate }] = await Promise.all([
      import("../profiles/resolution.ts"),
      import("../profiles/active-profile.ts"),
    ]);
    const stored = needsStored({ flagProfile, env }) ? await store() : noneStored;
    const resolution = resolveProfile({ flagProfile, env, stored });
    return activate(resolution, {
      env,
      credentials: { read: async (source, origins) => (await credentials()).read(source, origins) },
      sandbox: (region) => sandbox.access(region),
      onStderr: (chunk) => terminal.writeErr(chunk.toString("utf8")),
      commandLimitMs: settings.timeoutMs,
      signal: cut,
    });
  };
  const picked = async (): Promise<string | undefined> => {
    const { leavesTheChoice, needsStored } = await import("../profiles/resolution.ts");
    if (!needsStored({ env })) return undefined;
    const stored = await store();
    if (!leavesTheChoice({ env, stored })) return undefined;
    const choices = stored
      .list()
      .map(({ name, region, base_url }) => ({ value: name, hint: `${region}, ${base_url}` }));
    const name = await pick(choices);
    if (name !== undefined) tellNote(`Without the question from now on: integ profiles use ${name}`);
    return name;
  };
  const rooms = async () => ({ store: await store(), credentials: await credentials() });
  return {
    active: once(async () => {
      const profile = await resolve(settings.profile ?? (await picked()));
      for (const note of profile.notes) tellNote(note);
      return profile;
    }),
    named: (name) => resolve(name),
    names: async () => (await import("../profiles/names.ts")).readProfileNames(settings.configDir),
    store,
    credentials,
    add: async (given, options) => (await import("../profiles/configure.ts")).addProfile(await rooms(), given, options),
    edit: async (name, given) => (await import("../profiles/configure.ts")).editProfile(await rooms(), name, given),
    remove: async (name) => (await import("../profiles/configure.ts")).removeProfile(await rooms(), name),
  };
}
