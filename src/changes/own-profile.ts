// Secrets that profiles authenticate with: one that a profile has is not lost, and a profile whose own credential is rotated
// is locked out without the new one.
import { Failure } from "../errors.ts";
import { type Entry, isSettled } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import { shell } from "../next-step.ts";
import { type DestinationRecord, namesOf, placesOf } from "../secrets/destination.ts";
import type { SecretKeeping } from "../secrets/kept.ts";
import type { Workbench } from "./workbench.ts";

/** The two credentials of a rotation. */
interface Replaced {
  readonly noun: "client" | "key";
  readonly oldId: string;
  readonly newId: string;
  /** The creation of the new one. */
  readonly child: Entry;
}

/**
 * A rotation that was started to replace the credential of its own profile, and whose secret was sent elsewhere later.
 * @throws Failure `pending`: without the old one the profile could do nothing more
 */
export function assertProfileHasIt(
  { bench, lease }: { readonly bench: Pick<Workbench, "account">; readonly lease: Pick<EntryLease, "entry"> },
  { noun, oldId, newId, child }: Replaced,
): void {
  const { id, profile, destination } = lease.entry;
  const isTold = [newId, child.detail.client_id].includes(bench.account.keyId ?? bench.account.principal);
  if (isTold || !isForProfile(destination, profile) || isForProfile(child.destination, profile)) return;
  const how =
    noun === "key" ? ["--api-key-stdin", "--api-key-id", newId] : ["--client-id", "<id>", "--client-secret-stdin"];
  throw new Failure(
    "pending",
    `Profile ${profile} does not have the new secret, which went to ${child.destination ? namesOf(child.destination) : "standard output"}.`,
    {
      meaning: `The old ${noun} ${oldId} is not revoked: profile ${profile} would be locked out.`,
      hint: `Give the profile the new secret (${shell`integ profiles edit ${profile} ${how}`}), then run ${shell`integ journal recover ${id}`}.`,
    },
  );
}

/** Whether a secret goes to a profile, so that a rotation of its own credential leaves it working. */
export function isForProfile(destination: DestinationRecord | null, profile: string): boolean {
  return destination !== null && placesOf(destination).some((at) => at.kind === "profile" && at.name === profile);
}

/** A profile that names the client or key has its secret, whatever the entry remembers: it may have been sent elsewhere later. */
export async function isInProfile(
  secrets: Pick<SecretKeeping, "profileWith">,
  lease: EntryLease,
  { operation, resource_id, detail }: Entry,
): Promise<boolean> {
  const id = operation === "oauth_client.create" ? detail.client_id : operation === "access_key.create" && resource_id;
  const found = id ? await secrets.profileWith(id) : undefined;
  if (found !== undefined && !isSettled(lease.entry.state)) await lease.record({ destination: found });
  return found !== undefined;
}
