// Owns: why a rotation of an OAuth client is refused, told: somebody else rotates it, it does not work, no slot is free.
// Must not know: flags, terminals, files, how a rotation goes on.
import { Failure } from "../errors.ts";
import { type Entry, isSettled } from "../journal/entry.ts";
import type { EntryLease } from "../journal/journal.ts";
import type { OldClient } from "./oauth-client-rotation.ts";
import { detailsOf, recordAfterwards, type Workbench } from "./workbench.ts";

async function rotationsOf({ journal, account }: Workbench, oldId: string): Promise<Entry[]> {
  return (await journal.entries())
    .filter(({ operation, base_url }) => operation === "oauth_client.rotate" && base_url === account.baseUrl)
    .filter(({ detail }) => detail.old_client === oldId);
}

function isOver({ state }: Entry): boolean {
  return isSettled(state);
}

/** Ids of the rotations of that client which are over. */
export async function rotationsSettled(bench: Workbench, oldId: string): Promise<Set<string>> {
  return new Set((await rotationsOf(bench, oldId)).filter(isOver).map(({ id }) => id));
}

/**
 * The entry is the lock: of two rotations of one client that begin at once, the one admitted first goes on. One that stands
 * there unsettled has a living process, or this one would have gone on with it.
 * @param settledBefore what was over before this process asked for admission
 * @throws Failure `conflict`; nothing was sent
 */
export async function refuseSecond(
  bench: Workbench,
  drive: EntryLease,
  { oldId, settledBefore }: { oldId: string; settledBefore: ReadonlySet<string> },
): Promise<void> {
  const others = (await rotationsOf(bench, oldId)).filter(({ id }) => id < drive.entry.id);
  const first = others.find((other) => !isOver(other) || (other.state === "done" && !settledBefore.has(other.id)));
  if (first === undefined) return;
  await recordAfterwards(bench, drive, { state: "refused" });
  const how = isOver(first) ? "has just rotated" : "rotates";
  throw new Failure(
    "conflict",
    `Another process ${how} the client ${oldId}${isOver(first) ? "" : " at this moment"}.`,
    {
      ...detailsOf(drive.entry),
      meaning: `Nothing was sent: one rotation makes one new client, and its secret goes where the other process was told to put it.`,
      hint: `integ journal show ${first.id}`,
    },
  );
}

/** A client that is revoked, disabled or expired: nothing of it can be handed on. */
export async function notActive(bench: Workbench, drive: EntryLease, old: OldClient): Promise<Failure> {
  await recordAfterwards(bench, drive, { state: "refused" });
  return new Failure("unusable", `The client ${old.id} is ${old.status}: there is nothing working to rotate.`, {
    ...detailsOf(drive.entry),
    hint: `integ oauth-clients create --service-account ${old.service_account_id} ${old.scopes.map((scope) => `--scope ${scope}`).join(" ")}`,
  });
}

/** At the limit of clients nothing is revoked: the person chooses what goes. */
export async function noSlot(bench: Workbench, rotation: Entry, refusal: Failure): Promise<Failure> {
  const { service_account_id } = JSON.parse(rotation.request_text) as { service_account_id: string };
  const known = (await bench.journal.entries())
    .filter(
      (entry) =>
        entry.operation === "oauth_client.create" && entry.state === "done" && entry.base_url === rotation.base_url,
    )
    .filter((entry) => entry.resource_id !== null && entry.request_text.includes(JSON.stringify(service_account_id)))
    .map((entry) => entry.resource_id as string);
  const names = [...new Set(known)].filter((id) => id !== rotation.detail.old_client).slice(0, 20);
  return new Failure("conflict", refusal.message, {
    ...refusal.details,
    meaning:
      names.length > 0
        ? `Nothing was revoked; the old client works on. If all 20 slots are taken, one of these could go: ${names.join(", ")}.`
        : "Nothing was revoked; the old client works on. If all 20 slots are taken, a client made elsewhere has to go first.",
    hint: names.length > 0 ? `integ oauth-clients revoke ${names[0]}` : refusal.details.hint,
  });
}
