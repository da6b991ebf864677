// Selects entries that may be removed: finished, old and, by default, without a client or key that may still be valid.
import { type Entry, isInPlace, isSettled, revokedBy, rotatedBy } from "./entry.ts";

interface PruneChoice {
  /** ISO 8601 UTC. Without `isOfAnyAge`, an entry that changed later stays. */
  readonly before: string;
  readonly leased: ReadonlySet<string>;
  /** Also remove entries whose client or key may still be valid. */
  readonly includeLive?: boolean;
  readonly isOfAnyAge?: boolean;
}

/** An id is unique only within its base URL. */
function uniqueIds({ base_url }: Entry, resource: string | null | undefined): string[] {
  return typeof resource === "string" ? [JSON.stringify([base_url, resource])] : [];
}

function createdBy(entry: Entry): string[] {
  const exists = ["done", "abandoned", "unusable"].includes(entry.state);
  return exists && !entry.operation.endsWith(".revoke") ? uniqueIds(entry, entry.resource_id) : [];
}

/**
 * Entries that name each other (`parent`, `replaces`, `replaced_by`) are removed together or not at all. The entry of a
 * revocation stays while the entry that created its client or key stays. While an in-place rotation is unfinished,
 * other rotations of the same key stay, because they may show that the unfinished one is out of date.
 */
export function prunable(entries: readonly Entry[], choice: PruneChoice) {
  const revoked = new Set(entries.flatMap((entry) => uniqueIds(entry, revokedBy(entry))));
  const hasExpired = ({ detail }: Entry): boolean => Date.parse(detail.expiry ?? "") < Date.parse(choice.before);
  const isLive = (entry: Entry): boolean => !hasExpired(entry) && createdBy(entry).some((name) => !revoked.has(name));
  const unfinished = entries.filter((entry) => isInPlace(entry) && !isSettled(entry.state));
  const rotating = new Set(unfinished.flatMap((entry) => uniqueIds(entry, rotatedBy(entry))));
  const isNeeded = (entry: Entry): boolean =>
    entry.operation.endsWith(".rotate") && uniqueIds(entry, rotatedBy(entry)).some((name) => rotating.has(name));
  const isOldAndFinished = ({ id, state, updated_at }: Entry): boolean =>
    isSettled(state) && !choice.leased.has(id) && (choice.isOfAnyAge === true || updated_at < choice.before);
  const aged = removableIds(entries, (entry) => isOldAndFinished(entry) && !isNeeded(entry));
  const removable = choice.includeLive ? aged : removableIds(entries, (entry) => aged.has(entry.id) && !isLive(entry));
  return {
    removable,
    live: entries.filter((entry) => removable.has(entry.id) && isLive(entry)),
    /** Entries that stay only because their client or key may be valid. */
    keptLive: entries.filter((entry) => aged.has(entry.id) && !removable.has(entry.id) && isLive(entry)),
  };
}

/**
 * @returns ids of entries that `prunable` could remove at any age. The rotations between an entry that stays and the
 * entry with its policy item stay too, because the policy finds the item's client or key through them.
 */
export function archivable(
  entries: readonly Entry[],
  { now, leased }: { readonly now: number; readonly leased: ReadonlySet<string> },
): ReadonlySet<string> {
  const before = new Date(now).toISOString();
  const { removable } = prunable(entries, { before, leased, isOfAnyAge: true });
  const creators = new Map(entries.flatMap((entry) => createdBy(entry).map((name) => [name, entry])));
  const predecessorOf = (entry: Entry): Entry | undefined => creators.get(uniqueIds(entry, rotatedBy(entry))[0] ?? "");
  const isOfItem = ({ policy }: Entry): boolean => policy !== undefined;
  const staying = new Set<Entry>();
  for (const entry of entries) {
    if (removable.has(entry.id) || isOfItem(entry)) continue;
    const chain = new Set<Entry>();
    for (let at = predecessorOf(entry); at !== undefined && at !== entry && !chain.has(at); at = predecessorOf(at)) {
      chain.add(at);
      if (!isOfItem(at)) continue;
      for (const one of chain) staying.add(one);
      break;
    }
  }
  return removableIds(entries, (entry) => removable.has(entry.id) && !staying.has(entry));
}

function removableIds(entries: readonly Entry[], mayRemove: (entry: Entry) => boolean): Set<string> {
  const creators = new Map(entries.flatMap((entry) => createdBy(entry).map((name) => [name, entry.id])));
  // Maps an entry to the entries that must stay if it stays.
  const dependents = new Map<string, string[]>(entries.map(({ id }) => [id, []]));
  for (const entry of entries) {
    for (const other of [entry.parent, entry.replaces, entry.replaced_by]) {
      if (other === null || !dependents.has(other)) continue;
      dependents.get(other)!.push(entry.id);
      dependents.get(entry.id)!.push(other);
    }
    for (const name of uniqueIds(entry, revokedBy(entry))) dependents.get(creators.get(name) ?? "")?.push(entry.id);
  }
  const staying = new Set(entries.filter((entry) => !mayRemove(entry)).map(({ id }) => id));
  // Also visits ids that are added during the iteration.
  for (const id of staying) for (const other of dependents.get(id) ?? []) staying.add(other);
  return new Set([...dependents.keys()].filter((id) => !staying.has(id)));
}
