// The services, settings and output that every command receives. edge/build-context.ts builds the context.
import type { Service } from "./api/connect.ts";
import type { LastApply } from "./disk/last-apply.ts";
import type { Clock } from "./operations/workbench.ts";
import type { SecretKeeping, Undelivered } from "./secrets/kept.ts";
import type { Journal } from "./journal/journal.ts";
import type { Output } from "./output/output.ts";
import type { addProfile, ConfiguredProfile, ProfileSettings } from "./profiles/configure.ts";
import type { ProfileName } from "./profiles/names.ts";
import type { ActiveProfile, Profile } from "./profiles/profile.ts";
import type { ProfileStore } from "./profiles/store.ts";
import type { Credentials } from "./profiles/credentials.ts";
import type { Destination, OneTimeSecret, SecretOptions, SingleRecord } from "./secrets/destination.ts";

export interface Settings {
  readonly profile?: string;
  readonly serviceVersion?: string;
  readonly timeoutMs: number;
  readonly retryForMs: number;
  readonly yes: boolean;
  readonly configDir: string;
  readonly stateDir: string;
  /** `doctor` hides this folder's path, which can contain the user's name. */
  readonly home: string;
  readonly cwd: string;
  /** A file's path, or the address of a shared journal. */
  readonly journalPath: string;
  /** integ's own files and folders, which output must never replace. */
  readonly ownPlaces: readonly string[];
  readonly version: string;
  /** The command that starts integ again: the executable, and the script if there is one. */
  readonly self: readonly string[];
  /** Environment for another integ process, without `INTEG_` variables. */
  readonly childEnvironment: Readonly<Record<string, string>>;
}

export interface Profiles {
  active(): Promise<ActiveProfile>;
  named(name: string, source?: "policy"): Promise<ActiveProfile>;
  /** Empty if the stored profiles are unreadable. */
  names(): Promise<readonly ProfileName[]>;
  store(): Promise<ProfileStore>;
  credentials(): Promise<Credentials>;
  add(settings: Parameters<typeof addProfile>[1], options: { readonly use: boolean }): Promise<ConfiguredProfile>;
  edit(
    name: string,
    settings: ProfileSettings,
    options?: { readonly over?: Profile["credential"] },
  ): Promise<ConfiguredProfile>;
  remove(seen: Profile): Promise<Profile>;
}

export interface Secrets
  extends Pick<SecretKeeping, "completeDelivery" | "removeReserve" | "reread" | "machine" | "allowed"> {
  /** `print` writes the receipt to standard output if there is no other destination. */
  destination(options: SecretOptions, print: (receipt: string) => Promise<void>): Promise<Destination>;
  /** True if the environment now leads to another server than the one that has the recorded secret. */
  isOfOtherServer(record: SingleRecord): Promise<boolean>;
  undelivered(): Promise<Undelivered>;
  readonly escrow: {
    /** Returns undefined without recipients. */
    encrypt(secret: OneTimeSecret, entry: string): Promise<string | undefined>;
    /**
     * @throws Failure `usage` for an invalid identity file; `undelivered` if no local identity can decrypt; `auth` if
     * `ciphertext` was not signed for `entry`
     */
    decrypt(ciphertext: string, entry: string): Promise<OneTimeSecret>;
  };
  /**
   * This check must run before a command prints a secret.
   * @throws Failure `usage` in agent mode, and on GitHub Actions if stderr is unusable, because GitHub reads the mask
   * there
   */
  checkMask(use?: string): Promise<void>;
  /**
   * Makes GitHub Actions mask the secret in its log, in each form that an output format prints.
   * @throws Failure `usage` in agent mode
   */
  mask(secret: string, receipt: string): Promise<void>;
  /**
   * Reads a secret without its last line break.
   * @throws Failure `usage` if standard input is empty, too long, not UTF-8 or a terminal
   */
  fromStdin(what: string): Promise<string>;
}

export interface Context {
  readonly settings: Settings;
  readonly profiles: Profiles;
  /**
   * Connects with the active profile by default. `timeoutMs` can only shorten the time limit of an attempt.
   * `serviceVersion` is the version of a stored request, which overrides the settings.
   */
  connect(
    profile?: ActiveProfile,
    options?: { readonly timeoutMs?: number; readonly serviceVersion?: string | undefined },
  ): Promise<Service>;
  /** Loads a change's modules in advance, so that an update of integ cannot interrupt the change. Safe to repeat. */
  loadForChange(): Promise<void>;
  journal(): Promise<Journal>;
  /** `place` is a path or an address. */
  journalAt(place: string): Promise<Journal>;
  /** @throws Failure `usage` for a file, which needs no tables */
  initJournal(): Promise<{ readonly version: number; readonly isNew: boolean; readonly key: string | undefined }>;
  readonly secrets: Secrets;
  readonly lastApply: LastApply;
  /**
   * `what` is the input's name in messages.
   * @throws Failure `usage` for a terminal and for too much input
   */
  input(what: string): Promise<Buffer>;
  readonly output: Output;
  readonly clock: Clock;
}
