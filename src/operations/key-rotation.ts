// Rotates an access key by creating another key. The steps are in rotation.ts.
import type { AccessKeyRequest } from "../api/access-keys.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease, Intent } from "../journal/journal.ts";
import { flags, shell } from "../next-step.ts";
import { key, type KeyCreation, keyCreationIntent } from "./key.ts";
import { requestIn } from "./orphan.ts";
import {
  type Overlap,
  overlapDifferences,
  rotate,
  type Rotation,
  type RotationOptions,
  type RotationRequest,
} from "./rotation.ts";
import { lastUseOf } from "./revocation.ts";
import { accountFields, type Workbench } from "./workbench.ts";

export interface KeyReplacementRequest extends Overlap {
  readonly oldId: string;
  readonly boundTo?: string;
  readonly creation: KeyCreation;
  readonly updateProfile: boolean;
}

export function replaceAccessKey(bench: Workbench, request: KeyReplacementRequest, options: RotationOptions) {
  const asked: RotationRequest = {
    intent: keyReplacementIntent(bench, request),
    rotation: keyRotation,
    differences: (entry: Entry) => differencesOf(entry, request),
    alternative: () => `${flags.new} starts another`,
  };
  return rotate(bench, asked, options);
}

export function keyReplacementIntent(bench: Workbench, request: KeyReplacementRequest): Intent {
  const { oldId, boundTo = null, creation, overlapMs, unusedMs, updateProfile } = request;
  return {
    ...accountFields(bench.account),
    operation: "access_key.rotate",
    method: "POST",
    path: "/api/v1/access-keys",
    request_text: JSON.stringify({ id: oldId, ...creation.request }),
    fingerprint: JSON.stringify(["replacement", oldId]),
    idempotent: false,
    detail: {
      mode: "replacement",
      old_key: oldId,
      bound_to: boundTo,
      overlap_ms: overlapMs,
      ...(unusedMs !== undefined && { overlap_unused_ms: unusedMs }),
      marked: creation.marked,
      expiry: creation.expiry ?? null,
      update_profile: updateProfile,
      exchange: bench.account.keyExchange,
    },
  };
}

function differencesOf(entry: Entry, request: KeyReplacementRequest) {
  const { creation, updateProfile } = request;
  const recorded = requestIn(entry);
  const now = creation.request;
  const { expiry, marked, update_profile } = entry.detail;
  const list = (scopes: readonly string[] = []): string => [...new Set(scopes)].sort().join(" ");
  const life = (fingerprint: string | null | undefined, request: AccessKeyRequest): string =>
    fingerprint?.replace(/^in (\d+) ms$/, (_, ms: string) => `in ${Number(ms) / 1000}s`) ??
    request.expiresAt ??
    "never";
  return [
    ...overlapDifferences(entry, request),
    { flag: flags.name, recorded: recorded.name, typed: now.name },
    { flag: flags.type, recorded: recorded.keyType ?? "user_bound", typed: now.keyType ?? "user_bound" },
    { flag: flags.scope, recorded: list(recorded.scopes), typed: list(now.scopes) },
    { flag: "the expiry", recorded: life(expiry, recorded), typed: life(creation.expiry, now) },
    { flag: flags.marker, recorded: String(marked === true), typed: String(creation.marked) },
    { flag: flags.updateProfile, recorded: String(update_profile === true), typed: String(updateProfile) },
  ];
}

export function keyRotation(bench: Workbench, lease: EntryLease, options: RotationOptions): Rotation {
  const { old_key: oldId = "", bound_to: before, marked, update_profile, exchange } = lease.entry.detail;
  const { keyExchange, profile } = bench.account;
  return {
    bench,
    lease,
    options,
    creation: key,
    oldId,
    intent: () => {
      const creation = { request: requestIn(lease.entry), marked: marked === true };
      return keyCreationIntent(bench, creation, { lost: lease.entry });
    },
    updatesProfile: update_profile === true,
    lastUse: () => lastUseOf(bench, oldId),
    // A `user_bound` key is tied to its creator (§2.4), so a key of another person is not equivalent.
    differenceOf: ({ detail: { created_by: user } }) =>
      before && user && before !== user ? `is bound to the user ${user}, the old one to ${before}` : undefined,
    missingProofSetup:
      keyExchange || profile === "env"
        ? undefined
        : shell`integ profiles edit ${profile} ${flags.accessTokenEndpoint} <url>`,
    unprovenReason: (hasSecret) =>
      hasSecret
        ? exchange?.kind === "command" && keyExchange?.kind !== "command"
          ? "cannot be proven: the profile no longer has the command that exchanges a secret for a token"
          : "cannot be proven: the profile has a bearer token and no way to exchange a secret for one"
        : "cannot be proven: an earlier run delivered its secret",
  };
}
