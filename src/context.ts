// The parts that commands use. Types only; edge/build-context.ts creates each part on first use.
import type { Service } from "./api/connect.ts";
import type { Clock } from "./operations/workbench.ts";
import type { SecretKeeping, Undelivered } from "./secrets/kept.ts";
import type { Journal } from "./journal/journal.ts";
import type { Output } from "./output/output.ts";
import type { addProfile, Configured, ProfileSettings } from "./profiles/configure.ts";
import type { ProfileName } from "./profiles/names.ts";
import type { ActiveProfile, Profile } from "./profiles/profile.ts";
import type { ProfileStore } from "./profiles/store.ts";
import type { Credentials } from "./profiles/credentials.ts";
import type { Destination, OneTimeSecret, SecretOptions } from "./secrets/destination.ts";

/** Settings of every command; flags override the environment. Durations are milliseconds. */
export interface Settings {
  readonly profile?: string;
  readonly serviceVersion?: string;
  readonly timeoutMs: number;
  readonly retryForMs: number;
  readonly yes: boolean;
  readonly configDir: string;
  readonly stateDir: string;
  /** The user's home folder, whose path contains their name. */
  readonly home: string;
  /** Base of relative paths. */
  readonly cwd: string;
  /** The journal's file, or the address of a shared journal. */
  readonly journalPath: string;
  /** integ's own files and folders, which output must never replace. */
  readonly ownPlaces: readonly string[];
  readonly version: string;
  /** The command that starts integ again: executable and script. */
  readonly self: readonly string[];
  /** The environment for another integ process, without `INTEG_` variables. */
  readonly childEnvironment: Readonly<Record<string, string>>;
}

/** The active profile, chosen by flag, environment or default, and the stored profiles. */
export interface Profiles {
  active(): Promise<ActiveProfile>;
  /** The profile with this name, such as that of a journal entry. It need not be the active profile. */
  named(name: string, source?: "policy"): Promise<ActiveProfile>;
  /** Names of stored profiles, for completion; empty if they are unreadable. */
  names(): Promise<readonly ProfileName[]>;
  store(): Promise<ProfileStore>;
  credentials(): Promise<Credentials>;
  add(settings: Parameters<typeof addProfile>[1], options: { readonly use: boolean }): Promise<Configured>;
  edit(name: string, settings: ProfileSettings): Promise<Configured>;
  remove(name: string): Promise<Profile>;
}

/** Destinations of one-time secrets, and the recovery of interrupted deliveries. */
export interface Secrets
  extends Pick<SecretKeeping, "completeDelivery" | "removeReserve" | "reread" | "machine" | "allowed"> {
  /** @param print writes the receipt to stdout, if there is no other destination */
  destination(options: SecretOptions, print: (receipt: string) => Promise<void>): Promise<Destination>;
  undelivered(): Promise<Undelivered>;
  /** Encryption of secrets in a team's journal. */
  readonly escrow: {
    /** The ciphertext; undefined without recipients. */
    encrypt(secret: OneTimeSecret): Promise<string | undefined>;
    /** @throws Failure `undelivered` if no local identity decrypts the ciphertext */
    decrypt(ciphertext: string): Promise<OneTimeSecret>;
  };
  /**
   * Runs before a command that prints a secret. Throws `usage` in agent mode, and on GitHub Actions if stderr is
   * discarded, because GitHub reads the mask there.
   */
  checkMask(): Promise<void>;
  /** Makes GitHub Actions mask a secret in its log, in all forms in the receipt. Throws `usage` in agent mode. */
  mask(secret: string, receipt: string): Promise<void>;
  /** Reads a secret from stdin without its last line break. Throws `usage` if it is empty or a terminal. */
  fromStdin(what: string): Promise<string>;
}

export interface Context {
  readonly settings: Settings;
  readonly profiles: Profiles;
  /**
   * Connects to the service as the active or the given profile.
   * @param options.timeoutMs a shorter time limit per attempt
   * @param options.serviceVersion the version of a stored request, which overrides current settings
   */
  connect(
    profile?: ActiveProfile,
    options?: { readonly timeoutMs?: number; readonly serviceVersion?: string | undefined },
  ): Promise<Service>;
  /** Loads a change's modules before it starts, so that an update of integ cannot interrupt it. Safe to repeat. */
  loadForChange(): Promise<void>;
  journal(): Promise<Journal>;
  /** Opens another journal. @param place a path or an address */
  journalAt(place: string): Promise<Journal>;
  /** Creates the tables of a team's journal. @throws Failure `usage` for a file, which needs none */
  initJournal(): Promise<{ readonly version: number; readonly made: boolean; readonly key: string | undefined }>;
  readonly secrets: Secrets;
  /** Reads stdin unchanged. @param what the input's name in messages. Throws `usage` for a terminal and for too much input */
  input(what: string): Promise<Buffer>;
  readonly output: Output;
  readonly clock: Clock;
}
