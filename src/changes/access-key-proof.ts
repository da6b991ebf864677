// Owns: what must be true before an old key goes: the new one is the same person's, and its secret opens the service.
// Must not know: flags, terminals, files, how the new key was made.
import { Failure } from "../errors.ts";
import type { Entry } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import { listedStatus } from "./access-key-revocation.ts";
import { proveSecret } from "./access-key-secret.ts";
import { proven, rereadSecret } from "./overlap.ts";
import type { Workbench } from "./workbench.ts";

/** Asked before the old key goes though the new one was not proven to stand for it. */
type MayRevoke = (entry: Entry) => Promise<boolean>;

/** A user-bound key is tied to whoever creates it (§2.4): for another person's key that is no replacement. */
export async function checkIdentity(entry: Entry, child: Entry, mayRevoke: MayRevoke): Promise<void> {
  const { bound_to: before } = entry.detail;
  const { created_by: now } = child.detail;
  if (typeof before !== "string" || typeof now !== "string" || before === now) return;
  if (await mayRevoke(entry)) return;
  throw new Failure("pending", `The new key is bound to the user ${now}, the old one to ${before}.`, {
    meaning: "The new key works, and the old one is untouched. If that is meant, go on with --yes.",
    hint: `integ journal recover ${entry.id} --yes`,
  });
}

/** Shows that the new secret opens the service, before the old key goes. */
export async function prove(
  bench: Workbench,
  drive: EntryLease,
  { child, secret, mayRevoke }: { child: Entry; secret: string | undefined; mayRevoke: MayRevoke },
): Promise<void> {
  if (drive.entry.detail.proven !== undefined) return;
  const text = secret ?? (await rereadSecret(bench, child));
  if (text !== undefined && (await proveSecret(bench, text))) return markProven(bench, drive, "token exchange");
  if (await mayRevoke(drive.entry)) return markProven(bench, drive, "by the person");
  const why =
    text === undefined
      ? "its secret left this machine before a crash"
      : "the profile has a bearer token and knows no way to exchange a secret for one";
  throw new Failure("pending", `The new key ${child.resource_id ?? ""} cannot be proven: ${why}.`, {
    meaning: "The old key is untouched. If the new one works for you, go on with --yes.",
    hint: `integ journal recover ${drive.entry.id} --yes`,
  });
}

async function markProven(bench: Workbench, drive: EntryLease, how: string): Promise<void> {
  await drive.record(proven(bench, drive.entry, how));
}

/**
 * A proof tells of its own moment: until the old key goes, somebody may have revoked the new one. Then the old one is the
 * only one that works. A list that does not tell stands in nobody's way.
 * @throws Failure `unusable` where the new key does not work any more; nothing is revoked
 */
export async function stillWorks(bench: Workbench, newId: string, oldId: string): Promise<void> {
  const status = await listedStatus(bench, { id: newId, service: bench.account.service });
  if (status === undefined || status === "active") return;
  const how = status === "absent" ? "is not among the keys any more" : `is ${status}`;
  throw new Failure("unusable", `The new key ${newId} ${how}: the old one is not revoked.`, {
    meaning: `This rotation ends here, and the old key ${oldId} stays as it is. Another rotation makes another new key.`,
    hint: `integ keys rotate ${oldId} --by-replacement`,
  });
}
