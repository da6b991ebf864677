// Owns: which entries may be forgotten: settled, old, and no part of a piece of work that is neither. Pure.
// Must not know: files, locks.
import { type Entry, formatVersion, isSettled } from "./entry.ts";

/**
 * Ids that may go. Entries that name each other (`parent`, `replaces`, `replaced_by`) go together or not at all.
 * @param options.before ISO 8601 UTC: only entries last touched before it. `driven`: ids that a process works on.
 */
export function prunable(
  entries: readonly Entry[],
  options: { before: string; driven: ReadonlySet<string> },
): Set<string> {
  const group = new Map(entries.map((entry) => [entry.id, entry.id]));
  const root = (id: string): string => {
    let at = id;
    for (let up = group.get(at); up !== undefined && up !== at; up = group.get(at)) at = up;
    return at;
  };
  for (const entry of entries) {
    for (const other of [entry.parent, entry.replaces, entry.replaced_by]) {
      if (other !== null && group.has(other)) group.set(root(entry.id), root(other));
    }
  }
  const kept = new Set<string>();
  for (const entry of entries) {
    const goes =
      isSettled(entry.state) &&
      entry.format <= formatVersion &&
      entry.updated_at < options.before &&
      !options.driven.has(entry.id);
    if (!goes) kept.add(root(entry.id));
  }
  return new Set(entries.filter((entry) => !kept.has(root(entry.id))).map((entry) => entry.id));
}
