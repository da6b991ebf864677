// Owns: the place of a one-time secret as an entry remembers it: it stands in the journal before anything is made there, and
// the one that is left is cleared before it is forgotten, so that a crash in between leaves nothing that nobody knows of.
// Must not know: what a place is, flags, terminals, the API.
import type { Entry } from "../journal/entry.ts";
import type { Admission, EntryLease, Intent, Journal } from "../journal/journal.ts";
import type { Destination, DestinationRecord } from "../secrets/destination.ts";
import type { SecretKeeping } from "./workbench.ts";

/**
 * Makes room for the secret of an entry at a place.
 * @param options.isKept the secret itself is safe elsewhere: what an earlier process wrote at another place goes too
 * @returns the place with what was made there, for the caller's next record
 */
export async function takePlace(
  { secrets }: { readonly secrets: Pick<SecretKeeping, "removeReserve"> },
  drive: EntryLease,
  { destination, isKept = false }: { readonly destination: Destination; readonly isKept?: boolean },
): Promise<DestinationRecord> {
  const place = await destination.check();
  if (!isRemembered(drive.entry, place)) {
    const before = drive.entry.destination;
    if (before) await secrets.removeReserve(before, drive.entry.id, { isKept });
    await drive.record({ destination: { ...place } });
  }
  return destination.prepare(drive.entry.id);
}

/** Only a file has room that could be left behind. */
function isRemembered({ destination: before }: Entry, place: DestinationRecord): boolean {
  if (place.kind !== "file") return before?.kind !== "file";
  return before?.kind === "file" && before.path === place.path;
}

interface PlacedAdmission {
  readonly destination: Destination;
  /** `--new` */
  readonly fresh?: boolean | undefined;
  /** True where the secret of this unfinished work is in its place: that place is no reason to refuse. */
  readonly isHome: (entry: Entry) => Promise<boolean>;
}

/**
 * Admits larger work with the place of its secret. The same command typed again finds the secret's file there, because an
 * earlier process put it there: the work is gone on with.
 * @throws Failure of the place, where it can take no secret and one is still to come
 */
export async function admitWithPlace(
  { journal }: { readonly journal: Pick<Journal, "admit" | "resume"> },
  intent: Intent,
  { destination, fresh, isHome }: PlacedAdmission,
): Promise<Admission> {
  let place: DestinationRecord;
  try {
    place = await destination.check();
  } catch (refusal) {
    const earlier = await journal.resume(intent, { fresh });
    if (earlier !== undefined && (await isHome(earlier.drive.entry))) return earlier;
    await earlier?.drive.release();
    throw refusal;
  }
  return journal.admit({ ...intent, destination: { ...place } }, { fresh });
}
