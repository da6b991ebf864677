// Rotates a client by creating another client of the same service account. The steps are in rotation.ts.
import type { CreationRequest } from "../api/oauth-client-creation.ts";
import type { Failure } from "../errors.ts";
import { detailOf, type Entry } from "../journal/entry.ts";
import type { EntryLease, Intent } from "../journal/journal.ts";
import { rotationsOf } from "../journal/rotations.ts";
import { flags, shell } from "../next-step.ts";
import { client, creationIntent } from "./client.ts";
import { overlapDifferences, rotate, type Rotation, type RotationOptions, type RotationRequest } from "./rotation.ts";
import { entryFailure, accountFields, recordOrWarn, type Workbench } from "./workbench.ts";

interface OldClient extends CreationRequest {
  readonly id: string;
  readonly status: string;
}

export interface ClientRotation {
  /** `old.scopes` are the scopes that the new client gets. */
  readonly old: OldClient;
  readonly overlapMs: number;
  readonly keepOld: boolean;
}

export function rotateOAuthClient(bench: Workbench, request: ClientRotation, options: RotationOptions) {
  const { old } = request;
  const asked: RotationRequest = {
    intent: clientRotationIntent(bench, request),
    rotation: clientRotation,
    differences: (entry: Entry) => overlapDifferences(entry, request),
    alternative: ({ id }: Entry) => `integ journal forget ${id} gives it up`,
    refuseOld: old.status === "active" ? undefined : (lease: EntryLease) => notActive(bench, lease, old),
  };
  return rotate(bench, asked, options);
}

export function clientRotationIntent(bench: Workbench, { old, overlapMs, keepOld }: ClientRotation): Intent {
  return {
    ...accountFields(bench.account),
    operation: "oauth_client.rotate",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: JSON.stringify({ id: old.id, service_account_id: old.service_account_id, scopes: old.scopes }),
    fingerprint: JSON.stringify([old.id]),
    idempotent: false,
    detail: { old_client: old.id, overlap_ms: overlapMs, keep_old: keepOld, proof: bench.account.proof },
  };
}

export function clientRotation(bench: Workbench, lease: EntryLease, options: RotationOptions): Rotation {
  const { old_client: oldId } = detailOf(lease.entry, "oauth_client.rotate");
  const { proof: due } = bench.account;
  return {
    bench,
    lease,
    options,
    creation: client,
    oldId,
    intent: () => creationIntent(bench, JSON.parse(lease.entry.request_text) as OldClient, lease.entry),
    missingProofSetup: due === null ? endpointSetting(bench.account.profile) : undefined,
    unprovenReason: (hasSecret) =>
      due === null
        ? "cannot be proven: the profile has no token endpoint"
        : hasSecret
          ? "could not be proven"
          : "could not be proven: an earlier run delivered its secret",
  };
}

export const endpointSetting = (profile: string): string =>
  profile === "env" ? "set INTEG_TOKEN_ENDPOINT" : shell`integ profiles edit ${profile} ${flags.tokenEndpoint} <url>`;

async function notActive(bench: Workbench, lease: EntryLease, old: OldClient): Promise<Failure> {
  await recordOrWarn(bench, lease, { state: "refused" });
  const done = await rotationsOf(bench.journal, lease.entry, { states: ["done"], trusted: true });
  const successor = done.find(({ resource_id }) => resource_id !== null)?.resource_id;
  const why = successor ? `it was rotated, and ${successor} followed` : "it cannot be rotated";
  const scopes = old.scopes.flatMap((scope) => [flags.scope, scope]);
  return entryFailure(lease.entry, "unusable", `The client ${old.id} is ${old.status}: ${why}.`, {
    nextCommand: successor
      ? shell`integ oauth-clients rotate ${successor}`
      : shell`integ oauth-clients create ${flags.serviceAccount} ${old.service_account_id} ${scopes}`,
  });
}
