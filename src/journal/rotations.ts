// The rotations of one client or key: of two at the same time one continues, and one in place is over once a later one has taken
// its place.
import { Failure } from "../errors.ts";
import type { Intent } from "./admission.ts";
import { type Entry, isInPlace, isSettled, rotatedBy } from "./entry.ts";
import type { Journal } from "./journal.ts";

type AnyRotation = Pick<Intent, "operation" | "base_url" | "detail">;
type Looked = Pick<Journal, "select">;

/** The rotations of a client or key that are in the journal, the newest first. */
export async function rotationsOf(journal: Looked, of: AnyRotation): Promise<Entry[]> {
  const old = rotatedBy(of);
  const all = await journal.select({ all: true, operation: of.operation, resource: old });
  return all.filter((entry) => entry.base_url === of.base_url && rotatedBy(entry) === old);
}

/** Ids of those that are over before this process asks for admission. */
export async function settledRotations(journal: Looked, of: AnyRotation): Promise<ReadonlySet<string>> {
  return new Set((await rotationsOf(journal, of)).filter(({ state }) => isSettled(state)).map(({ id }) => id));
}

/** The successor that a finished rotation created; undefined without one, or if the journal cannot be read. */
export async function rotatedTo(journal: Looked, id: string): Promise<string | undefined> {
  const done = await journal.select({ states: ["done"], resource: id }).catch((error: unknown) => {
    if (error instanceof Failure) return [];
    throw error;
  });
  const by = done.find(
    ({ operation, detail, resource_id }) =>
      operation.endsWith(".rotate") && (detail.old_client ?? detail.old_key) === id && resource_id !== id,
  );
  return by?.resource_id ?? undefined;
}

/** True if a running process has the entry. A team's journal says so by itself; of a file only the lock knows it. */
export async function isWorkedOn(journal: Journal, id: string): Promise<boolean> {
  if (journal.isShared) return (await journal.holders()).has(id);
  const lease = await journal.tryLease(id);
  await lease?.release();
  return lease === null;
}

/** @returns an earlier rotation of the same client or key that a process works on now: one of two leftovers is recovered, say */
export async function rotationUnderWay(journal: Journal, entry: Entry): Promise<Entry | undefined> {
  const earlier = (await rotationsOf(journal, entry)).filter(({ id, state }) => id < entry.id && !isSettled(state));
  for (const other of earlier) if (await isWorkedOn(journal, other.id)) return other;
  return undefined;
}

/** How long another process is waited for that may have started before this one's entry was there, milliseconds. */
const undecidedMs = 5000;

export interface OfTwo {
  readonly clock: { elapsed(): number; sleep(ms: number): Promise<void> };
  /** Whether the old one was seen active before. */
  readonly wasActive: boolean;
  readonly settledBefore: ReadonlySet<string>;
  /** `--new`: an unfinished one that no process works on does not count. */
  readonly fresh?: boolean | undefined;
}

/** @returns the rotation of the same client or key that goes before this one; nothing if this one may continue */
export async function rotationAhead(journal: Journal, own: Entry, about: OfTwo): Promise<Entry | undefined> {
  let first: Entry | undefined;
  for (const other of await rotationsOf(journal, own)) {
    const now = other.id === own.id ? undefined : await decided(journal, { own, other, about });
    first ??= now;
  }
  return first;
}

/** @returns the other one as it is now, if it was first */
async function decided(
  journal: Journal,
  { own, other, about }: { readonly own: Entry; readonly other: Entry; readonly about: OfTwo },
): Promise<Entry | undefined> {
  const { wasActive, settledBefore, fresh = false, clock } = about;
  // What was seen active though a rotation has revoked it was looked at before that: the other process was faster.
  // A rotation in place changed the key's secret even if its receipt was not as expected.
  const wasFaster = ({ id, state, detail }: Entry): boolean =>
    (state === "done" || (state === "unusable" && detail.mode === "in_place")) &&
    (!settledBefore.has(id) || (wasActive && detail.mode !== "in_place" && detail.keep_old !== true));
  if (isSettled(other.state)) return wasFaster(other) ? other : undefined;
  // Two new ones that were asked for both work.
  if (fresh && !isInPlace(own) && !isInPlace(other)) return undefined;
  // A replacement ends by revoking the key, in this process or a later one.
  if (!fresh && isInPlace(own) && !isInPlace(other)) return other;
  if (fresh || isInPlace(own) !== isInPlace(other)) {
    // What waits or was left behind does not count: one of the other kind may be the way out of it.
    if (!(await isWorkedOn(journal, other.id))) {
      const [now] = await journal.select({ all: true, ids: [other.id] });
      return now && wasFaster(now) ? now : undefined;
    }
  }
  if (other.id < own.id || other.sequence > 1) return other;
  // A file's ids have the order of their admissions: the other sees this entry, and refuses itself.
  if (!journal.isShared) return undefined;
  const now = await onceStarted(journal, other, clock);
  return now !== undefined && (!isSettled(now.state) || wasFaster(now)) ? now : undefined;
}

/**
 * In a team's journal one with a higher id may have looked before this entry was there. Its next step decides: it refuses itself,
 * or records that it has started.
 */
async function onceStarted(journal: Journal, other: Entry, clock: OfTwo["clock"]): Promise<Entry | undefined> {
  const endMs = clock.elapsed() + undecidedMs;
  let now: Entry | undefined = other;
  while (now?.sequence === 1 && clock.elapsed() < endMs) {
    await clock.sleep(50);
    [now] = await journal.select({ all: true, ids: [other.id] });
  }
  return now;
}

/**
 * The later rotation of the same key after which one in place must neither be sent again nor deliver its secret: that of the
 * later one would stop working, or has taken its place. As long as a secret is kept that may be the key's, only one whose own
 * secret is known counts.
 */
export async function laterRotation(
  journal: Looked,
  entry: Entry,
  secrets: { isKept(entry: string): boolean },
): Promise<Entry | undefined> {
  const mayBeKept = entry.state === "undelivered" || secrets.isKept(entry.id);
  const cameToNothing: ReadonlySet<Entry["state"]> = new Set(["refused", "replaced", "abandoned"]);
  // A secret that came with another receipt than expected may still be the key's; a new key like that replaces nothing.
  const counts = (later: Entry): boolean =>
    !cameToNothing.has(later.state) && (later.state !== "unusable" || isInPlace(later));
  const isKnown = (later: Entry): boolean =>
    later.state === "done" || (isInPlace(later) && (later.state === "undelivered" || later.state === "secret_lost"));
  const all = await rotationsOf(journal, entry);
  return all.find((later) => later.id > entry.id && (mayBeKept ? isKnown(later) : counts(later)));
}
