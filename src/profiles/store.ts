import { join } from "node:path";
import { fileFailure } from "../disk/error-words.ts";
import type { LockOwner } from "../disk/lock-owner.ts";
import { ensurePrivateFolder } from "../disk/private-file.ts";
import type { HeldLock } from "../disk/kernel-lock.ts";
import { waitForLock } from "../disk/process-lock.ts";
import { Failure } from "../errors.ts";
import { checkProfileName, profileNotFound } from "./names.ts";
import type { Profile, StoredProfiles } from "./profile.ts";
import { ProfileFile, readProfileFile, writeProfileFile } from "./profile-file.ts";
import { shell, flags } from "../next-step.ts";

/** Takes the lock that every change is made under. */
async function lock(path: string, waitMs: number | undefined): Promise<HeldLock> {
  try {
    return await waitForLock(path, { waitMs, whenHeld: (owner) => heldFailure(path, owner) });
  } catch (error) {
    throw fileFailure(error, "make the lock", { path });
  }
}

function heldFailure(path: string, owner: LockOwner | undefined): Failure {
  const nextCommand = shell`rm ${path}`;
  if (owner === undefined)
    return new Failure("failed", `The lock ${path} has no owner.`, {
      meaning: "integ did not write it, or the disk lost it.",
      nextCommand,
    });
  return new Failure("failed", `${path} is held by process ${owner.pid} on ${owner.host}.`, {
    meaning: "Another integ process is changing the same file. If that process no longer exists, remove the lock.",
    nextCommand,
  });
}

function placeIn(file: ProfileFile, name: string): { profile: Profile; index: number } {
  const index = file.profiles.findIndex((profile) => profile.name === name);
  const profile = file.profiles[index];
  if (profile === undefined)
    throw profileNotFound(
      name,
      file.profiles.map((one) => one.name),
    );
  return { profile, index };
}

export function nameTaken(name: string): Failure {
  return new Failure("usage", `Profile "${name}" already exists.`, {
    meaning: `integ profiles edit ${name} changes its settings.`,
    nextCommand: shell`integ profiles show ${name}`,
  });
}

function added(file: ProfileFile, profile: Profile, use: boolean): ProfileFile {
  if (file.profiles.some((other) => other.name === profile.name)) throw nameTaken(profile.name);
  const isFirst = file.profiles.length === 0 && file.default === null;
  return { ...file, profiles: [...file.profiles, profile], default: use || isFirst ? profile.name : file.default };
}

/** Reading looks at the file each time; changes of several processes are made one after another. */
class FileProfileStore implements StoredProfiles {
  /** Where they are, for messages. */
  readonly path: string;
  readonly #folder: string;
  readonly #waitMs: number | undefined;

  constructor(folder: string, waitMs: number | undefined) {
    this.#folder = folder;
    this.#waitMs = waitMs;
    this.path = join(folder, "profiles.json");
  }

  get default(): string | null {
    return readProfileFile(this.path).default;
  }

  list(): readonly Profile[] {
    return readProfileFile(this.path).profiles;
  }

  get(name: string): Profile | undefined {
    return this.list().find((profile) => profile.name === name);
  }

  /** Adds a profile; the first one becomes the default, as does one added with `use`. `usage` if the name is taken. */
  async add(profile: Profile, options: { readonly use?: boolean } = {}): Promise<Profile> {
    checkProfileName(profile.name);
    await this.#change((file) => added(file, profile, options.use === true));
    return profile;
  }

  /** Changes a profile as it is at that moment; `change` sees the newest state and may throw to change nothing. */
  async edit(name: string, change: (profile: Profile) => Profile): Promise<Profile> {
    let result: Profile | undefined;
    await this.#change((file) => {
      const { profile, index } = placeIn(file, name);
      result = { ...change(profile), id: profile.id, name: profile.name };
      return { ...file, profiles: file.profiles.with(index, result) };
    });
    return result!;
  }

  /** Removes a profile; if it was the default there is none afterwards. */
  async remove(name: string): Promise<Profile> {
    let removed: Profile | undefined;
    await this.#change((file) => {
      const { profile, index } = placeIn(file, name);
      removed = profile;
      return {
        ...file,
        profiles: file.profiles.toSpliced(index, 1),
        default: file.default === name ? null : file.default,
      };
    });
    return removed!;
  }

  /** Makes a profile the default: a stored one, `sandbox` or `sandbox-eu`. */
  async use(name: string): Promise<void> {
    await this.#change((file) => {
      if (name !== "sandbox" && name !== "sandbox-eu") placeIn(file, name);
      return { ...file, default: name };
    });
  }

  async #change(change: (file: ProfileFile) => ProfileFile): Promise<void> {
    ensurePrivateFolder(this.#folder);
    const held = await lock(join(this.#folder, "profiles.lock"), this.#waitMs);
    try {
      // What would not be read again is never written.
      const next = ProfileFile.safeParse(change(readProfileFile(this.path)));
      if (!next.success) throw invalid(next.error.issues[0]);
      await writeProfileFile(this.path, next.data);
    } finally {
      held.release();
    }
  }
}

/** The stored profiles. */
export type ProfileStore = Pick<FileProfileStore, keyof FileProfileStore>;

/** What a person typed for a setting that has a flag of its own. */
const flagOf: ReadonlyMap<string, string> = new Map([
  ["organization_id", flags.organizationId],
  ["legacy.url", flags.accessTokenEndpoint],
  ["service_version", flags.serviceVersion],
]);

function invalid(issue: { readonly path: readonly PropertyKey[]; readonly message: string } | undefined): Failure {
  const field = issue?.path.slice(2).map(String).join(".") ?? "";
  const typed = flagOf.get(field) ?? `The profile's ${field || "settings"}`;
  return new Failure("usage", `${typed} ${issue?.message ?? "do not fit"}.`);
}

/**
 * The profiles of a configuration folder. Nothing is read or made before it is needed.
 * @param options.configDir the folder; made 0700 at the first change
 * @param options.lockWaitMs how long another process' change is waited for (default 10 s)
 */
export function openProfileStore(options: { readonly configDir: string; readonly lockWaitMs?: number }): ProfileStore {
  return new FileProfileStore(options.configDir, options.lockWaitMs);
}
