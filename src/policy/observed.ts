// The inputs of a plan from the journal, the service and this machine.
import type { Delivered, Holder } from "./holders.ts";
import type { ItemKind, ItemWorks } from "./works.ts";

/** A field is undefined if the service does not show it. */
export interface SeenCredential {
  readonly id: string;
  /** `absent`: unknown to the service. `unlisted`: the journal knows the key, and an incomplete list lacks it. */
  readonly status: string;
  readonly serviceAccount?: string | undefined;
  readonly clientId?: string | null | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly name?: string | undefined;
  /** ISO 8601; for a key rotated in place, the time of the rotation. */
  readonly createdAt?: string | undefined;
  /** ISO 8601; null if the credential never expires. */
  readonly expiresAt?: string | null | undefined;
  /** Only for keys. ISO 8601; null if the key was never used. */
  readonly lastUsedAt?: string | null | undefined;
  readonly createdBy?: string | undefined;
  /** `own`: the acting profile authenticates with it; `maybe`: the API shows too little to decide. */
  readonly ownership: "own" | "maybe" | "other";
}

export interface Observed {
  /** The service's time, milliseconds since 1970. */
  readonly nowMs: number;
  readonly profile: string;
  /** By `itemKey`. */
  readonly works: ReadonlyMap<string, ItemWorks>;
  readonly clients: ReadonlyMap<string, SeenCredential>;
  readonly keys: ReadonlyMap<string, SeenCredential>;
  /** The credential whose secret is or will be at each destination, by `placeOf`. */
  readonly holders: ReadonlyMap<string, Holder>;
  /** The last delivery of each secret, by resource id. */
  readonly delivered: ReadonlyMap<string, Delivered>;
  /** Files and profiles of this machine that received a secret and no longer exist, by `placeIn`. */
  readonly vanished: ReadonlySet<string>;
  /** Destinations on other machines, and stores of other servers, by `placeIn`. */
  readonly elsewhere: ReadonlySet<string>;
  /**
   * Destinations that lack the current secret of an overlap's new key, by the id of the overlap's entry (`lostPlaces`).
   */
  readonly lost?: ReadonlyMap<string, readonly string[]>;
  /** Ids of the items' entries with a record that lacks a valid signature. */
  readonly untrusted?: ReadonlySet<string>;
  /** Ids of the clients and keys that unfinished work made or will replace. */
  readonly unsettled?: ReadonlySet<string>;
  /** Number of unfinished creations that may have made a client of unknown id, by service account. */
  readonly unresolved: ReadonlyMap<string, number>;
}

export function seenOf(
  { kind }: { readonly kind: ItemKind },
  { clients, keys }: Pick<Observed, "clients" | "keys">,
): ReadonlyMap<string, SeenCredential> {
  return kind === "oauth_client" ? clients : keys;
}
