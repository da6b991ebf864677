// Owns: the shape of every place that a one-time secret may go to: check → prepare → deliver.
// Must not know: the API, the journal. A secret passes through here and is never kept, logged or shown.

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

/**
 * A place for a one-time secret.
 * `check` costs nothing and is called before anything is written anywhere; `prepare` makes sure that the delivery will
 * succeed (space reserved and synced, standard output open, profile there) and is called before every request that may
 * bring a secret. `deliver` returns only when the secret is safe. Each throws `Failure` with words for a person.
 */
export interface Destination {
  /** True where the secret goes to standard output with the rest of the result. */
  readonly isStdout: boolean;
  /** @returns the place as far as it is known before anything is reserved: what an intent remembers from the start. */
  check(): Promise<DestinationRecord>;
  /** @param work id of the piece of work (journal entry): names what is reserved, so that a later process finds it. */
  prepare(work: string): Promise<DestinationRecord>;
  deliver(secret: OneTimeSecret): Promise<void>;
  /** Gives back what `prepare` reserved, where no secret came. Safe to repeat. */
  release(): Promise<void>;
}
