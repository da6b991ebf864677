// What a one-time secret's destination is, and what can be said of it by its journal record alone. Pure.
import { createHash } from "node:crypto";
import type { EntryDestination } from "../journal/entry.ts";

/** How `--secret-format` writes a secret to a file or a command. */
export type SecretFormat = "raw" | "json" | "env";

/** A one-time secret with the public facts that belong to it. */
export interface OneTimeSecret {
  readonly secret: string;
  /** What the secret is for; names the variables of the `env` format and the keys of `json`. */
  readonly kind: "oauth_client" | "access_key";
  /** Resource id of the client or key. */
  readonly id: string;
  /** OAuth clients only: the id used in the token exchange. */
  readonly clientId?: string;
  /** The service's answer that brought the secret, as it came: what standard output shows, and what `claim` shows later. */
  readonly receipt: string;
}

/** Where a secret was to go, as the journal remembers it. */
export type DestinationRecord = EntryDestination;

/** The record of one kind of destination. */
export type RecordOf<K extends DestinationRecord["kind"]> = Extract<DestinationRecord, { kind: K }>;

/** The secret options as they were typed. */
export interface SecretOptions {
  readonly secretFile?: string | undefined;
  readonly secretCommand?: string | undefined;
  readonly secretProfile?: string | undefined;
  readonly secretFormat?: string | undefined;
  readonly force?: boolean | undefined;
  /** What the command yields, if it is known before: a profile that is to take an OAuth client needs a token endpoint. */
  readonly yields?: OneTimeSecret["kind"];
  /** Whose service issues the secret; the chosen profile's, if it is not said. */
  readonly issuedBy?: Issuer;
}

/** Whose service issues the secret: it opens nothing anywhere else (§1, §5.1 rule 4). */
export interface Issuer {
  readonly baseUrl: string;
  readonly organizationId?: string | undefined;
}

interface DestinationDescription {
  /** Its name for a person. */
  readonly name: string;
  /** Where a delivered secret is, as a sentence. */
  readonly delivered?: string;
  /** The options that lead there again, if the journal keeps enough of it. */
  readonly options?: SecretOptions;
}

/** What can be said of a remembered destination. */
export function describeDestination(record: DestinationRecord): DestinationDescription {
  switch (record.kind) {
    case "stdout":
      return { name: "standard output" };
    case "command":
      return { name: "a command", delivered: "The secret was given to the command." };
    case "file": {
      const { path, format, force } = record;
      return {
        name: path,
        delivered: `The secret is in ${path}, readable by you alone.`,
        options: { secretFile: path, secretFormat: format, force },
      };
    }
    case "profile":
      return {
        name: `profile ${record.name}`,
        delivered: `The secret is the credential of profile ${record.name} now.`,
        options: { secretProfile: record.name },
      };
  }
}

/**
 * Eight hexadecimal digits of a digest of a command and its format. A command may hold a credential, so that its text is
 * not kept: this tells another one apart, and is far too short to tell which it was.
 */
export function commandMark({ command, format }: { readonly command: string; readonly format: SecretFormat }): string {
  return createHash("sha256").update(`${format}\0${command.trim()}`).digest("hex").slice(0, 8);
}

/**
 * A destination for a one-time secret.
 * `check` costs nothing and is called before anything is written anywhere; `prepare` makes sure that the delivery will
 * succeed (space reserved and synced, standard output open, profile there) and is called before every request that may
 * bring a secret. `deliver` returns only when the secret is safe. Each throws `Failure` with words for a person.
 */
export interface Destination {
  /** True if the secret goes to standard output with the rest of the result. */
  readonly isStdout: boolean;
  /** @returns the place as far as it is known before anything is reserved: what an intent remembers from the start. */
  check(): Promise<DestinationRecord>;
  /** @param work id of the piece of work (journal entry): names what is reserved, so that a later process finds it. */
  prepare(work: string): Promise<DestinationRecord>;
  /** The record by which a later process tells the delivered secret again: in the journal before `deliver`. */
  provenRecord?(secret: OneTimeSecret): DestinationRecord | undefined;
  deliver(secret: OneTimeSecret): Promise<void>;
  /** Gives back what `prepare` reserved, if no secret came. Safe to repeat. */
  release(): Promise<void>;
}

/** Random keys, one for each journal entry, for digests of what was delivered. They are never in the journal. */
export interface ProofKeys {
  /** The entry's key, made and synced if there is none. */
  make(entry: string): Buffer;
  find(entry: string): Buffer | undefined;
}

/** What is known of the resource whose secret it is. */
export interface SecretFacts {
  readonly clientId?: string | undefined;
  /** Resource id, for access keys. */
  readonly id?: string | undefined;
}

/** A destination as a later process finds it by its record. */
export interface RememberedDestination {
  /**
   * Completes a delivery that a crash interrupted: a file that was written whole gets its name now.
   * @param facts what the service says of the resource; a profile holds the secret if it holds this id with it
   * @returns true if the secret is safe there
   * @throws Failure if the secret is there and its name cannot be given: it is not lost, and must not be replaced
   */
  completeDelivery(facts: SecretFacts): Promise<boolean>;
  /**
   * Removes what was reserved by a process that has ended, if it holds no whole secret or is only a second name of the
   * finished file. Safe to repeat.
   * @param entry id of the journal entry that it was made for
   * @param options.isKept the secret is safe elsewhere: a whole copy that has not got its name is wiped and goes too
   */
  removeReserve(entry: string, options?: { readonly isKept?: boolean }): void;
  /** The secret, if it is still there as it was delivered: for a proof by token exchange after a crash. */
  reread(): string | undefined;
}
