import type { Entry } from "../entry.ts";
import { type EntryFilter, isOfUnsettled } from "../filter.ts";
import type { Fold } from "../fold.ts";
import { nameIn } from "../names.ts";

/** Every entry that may fit, the newest first: as few as possible without reading them. */
export function candidates(fold: Fold, filter: EntryFilter): Iterable<Entry> {
  if (filter.ids !== undefined) return fold.entriesOf([...new Set(filter.ids)].sort().toReversed());
  const name = nameIn(filter);
  if (name !== undefined) return fold.named(name);
  if (isOfUnsettled(filter)) return fold.unsettled();
  return filter.since === undefined ? fold.entries() : fold.since(filter.since);
}
