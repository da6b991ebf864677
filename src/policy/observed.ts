// What a plan is made from: the journal's works and the clients and keys as the service shows them.
import type { Delivered, Holder } from "./holders.ts";
import type { ItemWorks } from "./works.ts";

/** A client or key as it is. What the service does not say is undefined. */
export interface SeenCredential {
  readonly id: string;
  /** `absent`: the service does not know it. */
  readonly status: string;
  readonly serviceAccount?: string | undefined;
  readonly clientId?: string | null | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly name?: string | undefined;
  /** ISO 8601. For a key whose secret was made again in place: when that was. */
  readonly createdAt?: string | undefined;
  /** null: never. */
  readonly expiresAt?: string | null | undefined;
  /** Of a key; null: never. */
  readonly lastUsedAt?: string | null | undefined;
  /** The user that created a key. */
  readonly createdBy?: string | undefined;
  /** Whether the caller authenticates with it. */
  readonly ownership: "own" | "maybe" | "other";
}

export interface Observed {
  /** By the service's clock, milliseconds since 1970. */
  readonly nowMs: number;
  /** The profile that the caller acts as. */
  readonly profile: string;
  /** By `itemKey`. */
  readonly works: ReadonlyMap<string, ItemWorks>;
  readonly clients: ReadonlyMap<string, SeenCredential>;
  readonly keys: ReadonlyMap<string, SeenCredential>;
  /** Whose secret is at the destinations of the policy, by `placeOf`. */
  readonly holders: ReadonlyMap<string, Holder>;
  /** Where the secret of each client and key went last. */
  readonly delivered: ReadonlyMap<string, Delivered>;
  /** Destinations of the policy, by `placeOf`, at which nothing is now. */
  readonly missing: ReadonlySet<string>;
  /** Destinations in the journal, by `placeIn`, that are on another machine. */
  readonly elsewhere: ReadonlySet<string>;
  /** Entries of the policy's items with a record that no key of the journal signed. */
  readonly untrusted?: ReadonlySet<string>;
  /** Creations that may have made a client which no one can name yet, by service account. */
  readonly unresolved: ReadonlyMap<string, number>;
}
