// All that a command may ask for. Types only; edge/build-context.ts makes each part when it is first asked for.
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

/** Settings of every command, flags before environment. Durations are milliseconds. */
export interface Settings {
  readonly profile?: string;
  readonly serviceVersion?: string;
  readonly timeoutMs: number;
  readonly retryForMs: number;
  readonly yes: boolean;
  readonly configDir: string;
  readonly stateDir: string;
  /** The person's own folder, whose path has their name in it. */
  readonly home: string;
  /** What relative paths are relative to. */
  readonly cwd: string;
  /** The journal's file, or the address of a shared one. */
  readonly journalPath: string;
  /** Files and folders of the program itself, which nothing that a person asks for may replace. */
  readonly ownPlaces: readonly string[];
  /** This program's version, and how to start it again (its own executable and script). */
  readonly version: string;
  readonly self: readonly string[];
  /** The environment for a copy of this program: without any variable of ours. */
  readonly childEnvironment: Readonly<Record<string, string>>;
}

/** Who acts: the profile chosen by flag, environment or default, and what is stored of all of them. */
export interface Profiles {
  active(): Promise<ActiveProfile>;
  /** The profile a journal entry was made for, whatever is chosen now. */
  named(name: string): Promise<ActiveProfile>;
  /** The stored profiles' names, for completion: nothing if they cannot be read. */
  names(): Promise<readonly ProfileName[]>;
  store(): Promise<ProfileStore>;
  credentials(): Promise<Credentials>;
  add(settings: Parameters<typeof addProfile>[1], options: { readonly use: boolean }): Promise<Configured>;
  edit(name: string, settings: ProfileSettings): Promise<Configured>;
  remove(name: string): Promise<Profile>;
}

/** Where one-time secrets may go, and how a delivery that a crash interrupted is looked after. */
export interface Secrets
  extends Pick<SecretKeeping, "completeDelivery" | "removeReserve" | "reread" | "machine" | "allowed"> {
  /** @param print writes the receipt to standard output, if no other destination was asked for. */
  destination(options: SecretOptions, print: (receipt: string) => Promise<void>): Promise<Destination>;
  undelivered(): Promise<Undelivered>;
  /** Encryption of secrets that a team's journal keeps. */
  readonly escrow: {
    /** The ciphertext, or undefined if nothing says to whom to encrypt. */
    encrypt(secret: OneTimeSecret): Promise<string | undefined>;
    /** @throws Failure `undelivered` if no identity here opens it */
    decrypt(ciphertext: string): Promise<OneTimeSecret>;
  };
  /**
   * Before a command that prints a secret. Throws `usage` in agent mode, and on GitHub Actions if standard error leads nowhere:
   * the mask would not be read.
   */
  checkMask(): Promise<void>;
  /**
   * Has a CI hide a secret in its log that is bound for standard output (GitHub Actions), in every form in which the
   * receipt has it; elsewhere nothing. Throws `usage` in agent mode.
   */
  mask(secret: string, receipt: string): Promise<void>;
  /** A secret from standard input, its last line break taken off. Throws `usage` if it is empty or a terminal. */
  fromStdin(what: string): Promise<string>;
}

export interface Context {
  readonly settings: Settings;
  readonly profiles: Profiles;
  /**
   * The service, as the active profile or as a given one.
   * @param options.timeoutMs a shorter limit for one attempt than the person's own
   * @param options.serviceVersion what a stored request is sent under: nothing that is set now takes its place
   */
  connect(
    profile?: ActiveProfile,
    options?: { readonly timeoutMs?: number; readonly serviceVersion?: string | undefined },
  ): Promise<Service>;
  /**
   * Loads what every change runs on: another version may be installed, or no file may be openable any more, while it is
   * under way. Safe to repeat.
   */
  loadForChange(): Promise<void>;
  journal(): Promise<Journal>;
  /** Another journal than the one that is kept now. @param place a path or an address */
  journalAt(place: string): Promise<Journal>;
  /** Makes the tables of a team's journal. @throws Failure `usage` for a file, which needs none */
  initJournal(): Promise<{ readonly version: number; readonly made: boolean; readonly key: string | undefined }>;
  readonly secrets: Secrets;
  /** Standard input, byte for byte. @param what it is. Throws `usage` if it is a terminal, or larger than a request should be */
  input(what: string): Promise<Buffer>;
  readonly output: Output;
  readonly clock: Clock;
}
