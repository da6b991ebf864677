// A validated policy, with absolute paths and durations in milliseconds.
import type { SecretFormat } from "../secrets/destination.ts";

/** `store` has the form of `--secret-to`. */
export type ItemDestination =
  | { readonly file: string; readonly format?: SecretFormat | undefined }
  | {
      readonly command: string;
      readonly format?: SecretFormat | undefined;
      readonly check?: string | undefined;
    }
  | { readonly profile: string }
  | { readonly store: string };

/** Shows a command in full, so that a person can check it. */
export function destinationName(destination: ItemDestination): string {
  if ("file" in destination) return destination.file;
  if ("profile" in destination) return `profile ${destination.profile}`;
  return "store" in destination ? destination.store : `command: ${destination.command}`;
}

export interface RotationRule {
  readonly everyMs?: number | undefined;
  readonly beforeExpiryMs?: number | undefined;
  /** With `unusedMs`, the overlap ends earlier if the old key was unused for that time. */
  readonly overlapMs: number;
  readonly unusedMs?: number | undefined;
  readonly unknownAge: "report" | "rotate";
}

interface AnyItem {
  readonly policy: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly rotate?: RotationRule | undefined;
  /** Empty for `secret: unknown`. */
  readonly destinations: readonly ItemDestination[];
  /** True if integ may revoke the old credential although the new one is not proven. */
  readonly acceptsUnproven?: boolean | undefined;
}

export interface ClientItem extends AnyItem {
  readonly kind: "oauth_client";
  readonly serviceAccount: string;
}

export interface KeyItem extends AnyItem {
  readonly kind: "access_key";
  readonly type: "user_bound" | "service_account";
  readonly expiresInMs?: number | undefined;
  /** ISO 8601, UTC. */
  readonly expiresAt?: string | undefined;
}

export type PolicyItem = ClientItem | KeyItem;

/** Minutes after midnight in `zone`; `to` is excluded. */
export interface DailyWindow {
  readonly from: number;
  readonly to: number;
  readonly zone: string;
}

export interface Policy {
  /** A random id, because items of different policies may have the same name. */
  readonly id: string;
  readonly profile?: string | undefined;
  readonly items: readonly PolicyItem[];
  readonly window?: DailyWindow | undefined;
  /** After this many consecutive failures, `apply` retries an item only with `--retry`. */
  readonly maxFailures: number;
  readonly changesPerRun: number;
  readonly keepFreeSlots: number;
  readonly unmanaged: "report" | "ignore";
}
