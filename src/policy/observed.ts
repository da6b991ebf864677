// The inputs of a plan: the work that the journal records, and the service's clients and keys.
import type { Delivered, Holder } from "./holders.ts";
import type { ItemWorks } from "./works.ts";

/** Fields that the service does not show are undefined. */
export interface SeenCredential {
  readonly id: string;
  /** `absent`: the service does not know the credential. */
  readonly status: string;
  readonly serviceAccount?: string | undefined;
  readonly clientId?: string | null | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly name?: string | undefined;
  /** ISO 8601. For a key that was rotated in place, the time is that of the rotation. */
  readonly createdAt?: string | undefined;
  /** Null if the credential never expires. */
  readonly expiresAt?: string | null | undefined;
  /** The last use of a key, in ISO 8601; null if it was never used. */
  readonly lastUsedAt?: string | null | undefined;
  readonly createdBy?: string | undefined;
  /** `own`: the active profile authenticates with it; `maybe`: the API shows too little to decide. */
  readonly ownership: "own" | "maybe" | "other";
}

export interface Observed {
  /** The service's time in ms since 1970. */
  readonly nowMs: number;
  readonly profile: string;
  /** The recorded work of each item, by `itemKey`. */
  readonly works: ReadonlyMap<string, ItemWorks>;
  readonly clients: ReadonlyMap<string, SeenCredential>;
  readonly keys: ReadonlyMap<string, SeenCredential>;
  /** Credentials whose secrets are at the policy's destinations, by `placeOf`. */
  readonly holders: ReadonlyMap<string, Holder>;
  /** The last delivery of each client's and key's secret, by resource id. */
  readonly delivered: ReadonlyMap<string, Delivered>;
  /** Files and profiles of this machine that received a secret and no longer exist, by `placeIn`. */
  readonly vanished: ReadonlySet<string>;
  /** The journal's destinations on other machines, by `placeIn`. */
  readonly elsewhere: ReadonlySet<string>;
  /** The ids of the entries of the policy's items that have a record without a valid signature. */
  readonly untrusted?: ReadonlySet<string>;
  /** The number of unfinished creations that may have made a client of unknown id, by service account. */
  readonly unresolved: ReadonlyMap<string, number>;
}
