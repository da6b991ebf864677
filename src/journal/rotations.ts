// Finds the rotations of a client or key and their creations, and decides which of several rotations may continue.
import { Failure } from "../errors.ts";
import type { Intent } from "./admission.ts";
import { type Entry, isInPlace, isSettled, mayHaveArrived, rotatedBy } from "./entry.ts";
import type { Journal } from "./journal.ts";

type AnyRotation = Pick<Intent, "operation" | "base_url" | "detail">;
type Entries = Pick<Journal, "select">;

export async function rotationsOf(
  journal: Entries,
  of: AnyRotation,
  filter: Parameters<Journal["select"]>[0] = { all: true },
): Promise<Entry[]> {
  const old = rotatedBy(of);
  const all = await journal.select({ ...filter, operation: of.operation, resource: old });
  return all.filter((entry) => entry.base_url === of.base_url && rotatedBy(entry) === old);
}

/** @returns ids of the finished rotations. `precedingRotation` needs those that were finished before the admission. */
export async function settledRotations(journal: Entries, of: AnyRotation): Promise<ReadonlySet<string>> {
  return new Set((await rotationsOf(journal, of)).filter(({ state }) => isSettled(state)).map(({ id }) => id));
}

/** @returns the `done` rotation that replaced this client or key; undefined without one or if the journal is unreadable */
export async function rotationFrom(journal: Entries, id: string): Promise<Entry | undefined> {
  const done = await journal.select({ states: ["done"], resource: id }).catch((error: unknown) => {
    if (error instanceof Failure) return [];
    throw error;
  });
  return done.find(
    ({ operation, detail, resource_id }) =>
      operation.endsWith(".rotate") && (detail.old_client ?? detail.old_key) === id && resource_id !== id,
  );
}

/** States of entries that have changed no credential in use. */
const ineffectiveStates: ReadonlySet<Entry["state"]> = new Set(["refused", "replaced", "abandoned"]);

/**
 * @returns the rotation's newest creation. Skips ineffective ones, and replacements of a creation that is unfinished or
 * done
 */
export async function currentChild(journal: Pick<Journal, "select">, rotation: Entry): Promise<Entry | undefined> {
  const operation = rotation.operation === "oauth_client.rotate" ? "oauth_client.create" : "access_key.create";
  const children = await journal.select({ all: true, parent: rotation.id, operation });
  const counts = (id: string | null): boolean =>
    children.some((entry) => entry.id === id && (!isSettled(entry.state) || entry.state === "done"));
  return children.find((entry) => !ineffectiveStates.has(entry.state) && !counts(entry.replaces));
}

/** A journal in a file has no records of holders, only locks. */
export async function hasHolder(journal: Journal, id: string): Promise<boolean> {
  if (journal.isShared) return (await journal.holders()).has(id);
  const lease = await journal.tryLease(id);
  await lease?.release();
  return lease === null;
}

export async function activeEarlierRotation(journal: Journal, entry: Entry): Promise<Entry | undefined> {
  const earlier = (await rotationsOf(journal, entry)).filter(({ id, state }) => id < entry.id && !isSettled(state));
  for (const other of earlier) if (await hasHolder(journal, other.id)) return other;
  return undefined;
}

const firstStepLimitMs = 5000;

export interface Concurrency {
  readonly clock: { elapsed(): number; sleep(ms: number): Promise<void> };
  readonly wasActive: boolean;
  readonly settledBefore: ReadonlySet<string>;
  /** `--new`: an unfinished rotation counts only if a process works on it, and not at all if both are replacements. */
  readonly fresh?: boolean | undefined;
}

/** @returns the rotation of the same client or key that takes precedence; undefined if `own` may continue */
export async function precedingRotation(journal: Journal, own: Entry, about: Concurrency): Promise<Entry | undefined> {
  let first: Entry | undefined;
  for (const other of await rotationsOf(journal, own)) {
    const now = other.id === own.id ? undefined : await checkPrecedence(journal, { own, other, about });
    first ??= now;
  }
  return first;
}

async function checkPrecedence(
  journal: Journal,
  { own, other, about }: { readonly own: Entry; readonly other: Entry; readonly about: Concurrency },
): Promise<Entry | undefined> {
  const { wasActive, settledBefore, fresh = false, clock } = about;
  // True if the other rotation finished after this process looked, or revoked the credential that this process saw
  // active. A rotation in place changed the secret even if its receipt was unexpected.
  const wasFaster = ({ id, state, detail }: Entry): boolean =>
    (state === "done" || (state === "unusable" && detail.mode === "in_place")) &&
    (!settledBefore.has(id) || (wasActive && detail.mode !== "in_place" && detail.keep_old !== true));
  if (isSettled(other.state)) return wasFaster(other) ? other : undefined;
  if (fresh && !isInPlace(own) && !isInPlace(other)) return undefined;
  // `own` must not rotate a key that the replacement `other` will revoke.
  if (!fresh && isInPlace(own) && !isInPlace(other)) return other;
  if (fresh || isInPlace(own) !== isInPlace(other)) {
    // If no process works on `other`, the user may have started `own` in its place.
    if (!(await hasHolder(journal, other.id))) {
      const [now] = await journal.select({ all: true, ids: [other.id] });
      return now && wasFaster(now) ? now : undefined;
    }
  }
  if (other.id < own.id || other.sequence > 1) return other;
  // In a file, ids follow the order of admission: the other process sees this entry and gives way.
  if (!journal.isShared) return undefined;
  const now = await afterFirstStep(journal, other, clock);
  return now !== undefined && (!isSettled(now.state) || wasFaster(now)) ? now : undefined;
}

/**
 * In a team's journal, the process of a rotation with a higher id may not have seen this entry. Waits for that
 * rotation's next step, which shows if the process gives way.
 */
async function afterFirstStep(journal: Journal, other: Entry, clock: Concurrency["clock"]): Promise<Entry | undefined> {
  const endMs = clock.elapsed() + firstStepLimitMs;
  let now: Entry | undefined = other;
  while (now?.sequence === 1 && clock.elapsed() < endMs) {
    await clock.sleep(50);
    [now] = await journal.select({ all: true, ids: [other.id] });
  }
  return now;
}

/**
 * @returns a later rotation of the same key that makes `entry`, a rotation in place, out of date: repeating the request of
 * `entry` could replace the later secret, and the secret of `entry` may no longer work. If that secret may be kept, only a
 * rotation that certainly ended it counts.
 */
export async function laterRotation(
  journal: Entries,
  entry: Entry,
  secrets: { isKept(entry: string): boolean },
): Promise<Entry | undefined> {
  const mayBeKept = entry.state === "undelivered" || secrets.isKept(entry.id);
  const hasChanged = (later: Entry): boolean =>
    later.state === "done" || (isInPlace(later) && (later.state === "undelivered" || later.state === "secret_lost"));
  const all = await rotationsOf(journal, entry);
  return all.find((later) => later.id > entry.id && (mayBeKept ? hasChanged(later) : mayHaveChanged(later)));
}

/** An `unusable` rotation in place may have changed the secret; an `unusable` replacement has not. */
function mayHaveChanged(later: Entry): boolean {
  return !ineffectiveStates.has(later.state) && (later.state !== "unusable" || isInPlace(later));
}

export function mayHaveSuperseded(later: Entry, key: string | null): boolean {
  if (!isInPlace(later) || rotatedBy(later) !== key) return false;
  return mayHaveChanged(later) && (later.state !== "open" || mayHaveArrived(later));
}
