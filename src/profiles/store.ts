// Stored profiles: conf reads and writes profiles.json, zod checks it, and a lock serializes changes.
import { basename, dirname, join } from "node:path";
import type Conf from "conf";
import { linkTarget, replaceByCandidate } from "../disk/atomic-write.ts";
import { fileFailure } from "../disk/error-words.ts";
import type { LockOwner } from "../disk/lock-owner.ts";
import { ensurePrivateFolder, checkCommandFile } from "../disk/private-file.ts";
import type { HeldLock } from "../disk/kernel-lock.ts";
import { waitForLock } from "../disk/process-lock.ts";
import { Failure } from "../errors.ts";
import { checkProfileName, nameTaken, profileNotFound } from "./names.ts";
import type { Profile, StoredProfiles } from "./profile.ts";
import { formatOf, noProfiles, ProfileFile } from "./profile-file.ts";
import { shell, flags } from "../next-step.ts";

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

function findProfile(file: ProfileFile, name: string): { profile: Profile; index: number } {
  const index = file.profiles.findIndex((profile) => profile.name === name);
  const profile = file.profiles[index];
  if (profile === undefined)
    throw profileNotFound(
      name,
      file.profiles.map((one) => one.name),
    );
  return { profile, index };
}

function withProfile(file: ProfileFile, profile: Profile, use: boolean): ProfileFile {
  if (file.profiles.some((other) => other.name === profile.name)) throw nameTaken(profile.name);
  const isFirst = file.profiles.length === 0 && file.default === null;
  return { ...file, profiles: [...file.profiles, profile], default: use || isFirst ? profile.name : file.default };
}

/** Reads the file on every access. Concurrent changes wait for each other. */
class FileProfileStore implements StoredProfiles {
  readonly path: string;
  readonly #folder: string;
  readonly #waitMs: number | undefined;
  readonly #Conf: typeof Conf;
  #conf: Conf<ProfileFile> | undefined;

  constructor(folder: string, waitMs: number | undefined, conf: typeof Conf) {
    this.#folder = folder;
    this.#waitMs = waitMs;
    this.#Conf = conf;
    this.path = join(folder, "profiles.json");
  }

  get default(): string | null {
    return this.#read().default;
  }

  list(): readonly Profile[] {
    return this.#read().profiles;
  }

  get(name: string): Profile | undefined {
    return this.list().find((profile) => profile.name === name);
  }

  named(name: string): Profile {
    return findProfile(this.#read(), name).profile;
  }

  async add(profile: Profile, options: { readonly use?: boolean } = {}): Promise<Profile> {
    checkProfileName(profile.name);
    await this.#change((file) => withProfile(file, profile, options.use === true));
    return profile;
  }

  /** `change` may throw to cancel, and cannot change the id or the name. */
  async edit(name: string, change: (profile: Profile) => Profile): Promise<Profile> {
    let result: Profile | undefined;
    await this.#change((file) => {
      const { profile, index } = findProfile(file, name);
      result = { ...change(profile), id: profile.id, name: profile.name };
      return { ...file, profiles: file.profiles.with(index, result) };
    });
    return result!;
  }

  /** `check` may throw to cancel. */
  async remove(name: string, check?: (profile: Profile) => void): Promise<Profile> {
    let removed: Profile | undefined;
    await this.#change((file) => {
      const { profile, index } = findProfile(file, name);
      check?.(profile);
      removed = profile;
      return {
        ...file,
        profiles: file.profiles.toSpliced(index, 1),
        default: file.default === name ? null : file.default,
      };
    });
    return removed!;
  }

  async use(name: string): Promise<void> {
    await this.#change((file) => {
      if (name !== "sandbox" && name !== "sandbox-eu") findProfile(file, name);
      return { ...file, default: name };
    });
  }

  async #change(change: (file: ProfileFile) => ProfileFile): Promise<void> {
    ensurePrivateFolder(this.#folder);
    const acquired = await lock(join(this.#folder, "profiles.lock"), this.#waitMs);
    try {
      // Checks the new content, because the next read would refuse an invalid file.
      const next = ProfileFile.safeParse(change(this.#read()));
      if (!next.success) throw invalid(next.error.issues[0]);
      this.#write(next.data);
    } finally {
      acquired.release();
    }
  }

  /** @throws Failure `usage` if the file is damaged, or if other users may write commands into it */
  #read(): ProfileFile {
    // Does not open a missing file with conf, which would create the folder.
    if (!checkCommandFile(this.path)) return noProfiles;
    try {
      this.#conf ??= this.#confAt(this.path);
      return { ...noProfiles, ...this.#conf.store };
    } catch (error) {
      throw fileFailure(error, "read", { path: this.path });
    }
  }

  /**
   * conf ignores short writes on a full disk, so conf writes a candidate, which is checked, then renamed. If the path is
   * a symbolic link, its target is replaced.
   */
  #write(file: ProfileFile): void {
    const { serialize } = formatOf(this.path);
    try {
      replaceByCandidate(linkTarget(this.path), (candidate) => {
        this.#confAt(candidate).store = file;
        return serialize(file);
      });
    } catch (error) {
      throw fileFailure(error, "write", { path: this.path });
    }
  }

  #confAt(path: string): Conf<ProfileFile> {
    const place = { cwd: dirname(path), configName: basename(path), fileExtension: "", configFileMode: 0o600 };
    return new this.#Conf<ProfileFile>({ ...place, ...formatOf(path) });
  }
}

export type ProfileStore = Pick<FileProfileStore, keyof FileProfileStore>;

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

/** @param options.lockWaitMs the wait for another process's change (default 10 s) */
export async function openProfileStore(options: {
  readonly configDir: string;
  readonly lockWaitMs?: number;
}): Promise<ProfileStore> {
  return new FileProfileStore(options.configDir, options.lockWaitMs, await loadConf());
}

/**
 * Loads conf without the signal listeners of its atomic-write package. They send every signal a second time, and a
 * second signal abandons a request whose response is needed.
 */
async function loadConf(): Promise<typeof Conf> {
  const before = new Set(signalListeners().map(({ listener }) => listener));
  const { default: loaded } = await import("conf");
  for (const { signal, listener } of signalListeners()) if (!before.has(listener)) process.off(signal, listener);
  return loaded;
}

function signalListeners(): { readonly signal: NodeJS.Signals; readonly listener: NodeJS.SignalsListener }[] {
  const signals = process.eventNames().filter((name): name is NodeJS.Signals => String(name).startsWith("SIG"));
  return signals.flatMap((signal) => process.listeners(signal).map((listener) => ({ signal, listener })));
}
