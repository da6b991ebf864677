// Recovers unfinished entries, each with the profile that it was made for.
import { eachInParallel } from "../parallel.ts";
import { Failure, onFailure } from "../errors.ts";
import { otherAccount } from "./entry-account.ts";
import { type Entry, isInPlace, isSettled, resourcesOf } from "../journal/entry.ts";
import type { EntryLease, Journal } from "../journal/journal.ts";
import { laterRotation } from "../journal/rotations.ts";
import { placesOf } from "../secrets/destination.ts";
import { assertTrusted, untrusted } from "./acts/overwrite.ts";
import { client } from "./client.ts";
import { clientRotation } from "./client-rotation.ts";
import { type CreationOptions, finishCreation, refuseReplacement } from "./creation.ts";
import { endSuperseded, recoverKeyRotation } from "./in-place.ts";
import { key } from "./key.ts";
import { keyRotation } from "./key-rotation.ts";
import { withEntryOutcome } from "./next.ts";
import { finishRevocation } from "./revocation.ts";
import { finishRotation, type RotationOptions } from "./rotation.ts";
import { entryFailure, type Workbench } from "./workbench.ts";

export interface RecoveryOptions extends Omit<CreationOptions, "key">, Pick<RotationOptions, "mayRevokeUnproven"> {
  readonly overlap: "leave" | "end";
  readonly benchFor: (entry: Entry) => Promise<Workbench>;
  /** True if the entry counts as skipped when its account cannot be used. */
  readonly isOptional?: (entry: Entry) => boolean;
  /** True if the entry is recovered again, with a new account from `benchFor`. */
  readonly mayTryAgain?: (ended: Recovered) => boolean;
  /** How many independent entries are recovered in parallel. The default is 1. */
  readonly atOnce?: number;
  readonly watch?: (id: string, event: "begin" | Recovered) => void;
}

export interface Recovered {
  readonly entry: Entry;
  readonly failure?: Failure;
  readonly isSkipped?: boolean;
}

/** The failure of one entry does not stop the others. */
export async function recover(
  journal: Journal,
  entries: readonly Entry[],
  options: RecoveryOptions,
): Promise<Recovered[]> {
  const results: Recovered[] = [];
  const oldestFirst = [...entries].sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  const work = async (place: number): Promise<void> => {
    const entry = oldestFirst[place]!;
    options.watch?.(entry.id, "begin");
    let result = await recoverOne(journal, entry, options);
    while (options.mayTryAgain?.(result)) result = await recoverOne(journal, result.entry, options);
    options.watch?.(entry.id, result);
    results[place] = result;
  };
  for (const stage of stagesOf(oldestFirst)) await eachInParallel(stage, options.atOnce ?? 1, work);
  return results;
}

/**
 * Groups entries that may be recovered in parallel: client creations that are not part of larger work and whose secrets go
 * only to stdout or files. Any other entry is alone.
 */
function stagesOf(entries: readonly Entry[]): number[][] {
  const stages: number[][] = [];
  let taken: Set<string> | undefined;
  for (const [place, entry] of entries.entries()) {
    const names = exclusiveNames(entry);
    if (names === undefined || taken === undefined || names.some((name) => taken?.has(name))) {
      stages.push([]);
      taken = names && new Set();
    }
    for (const name of names ?? []) taken?.add(name);
    stages.at(-1)!.push(place);
  }
  return stages;
}

/** @returns the ids and files that only one entry of a group may have; undefined if the entry must be alone */
function exclusiveNames(entry: Entry): string[] | undefined {
  const { id, operation, parent, replaces, destination } = entry;
  if (operation !== "oauth_client.create" || parent !== null || replaces !== null) return undefined;
  const places = placesOf(destination);
  if (places.some(({ kind }) => kind !== "stdout" && kind !== "file")) return undefined;
  return [id, ...resourcesOf(entry), ...places.flatMap((place) => (place.kind === "file" ? [place.path] : []))];
}

async function recoverOne(journal: Journal, given: Entry, options: RecoveryOptions): Promise<Recovered> {
  let lease: EntryLease | undefined;
  let isSkipped = false;
  // An unreadable journal does not change the result of the work.
  const reread = (): Promise<Entry | undefined> => journal.find(given.id).catch(onFailure(() => undefined));
  try {
    lease = await journal.lease((await rootOf(journal, given.id)).id);
    if (isSettled(lease.entry.state)) return { entry: lease.entry };
    if (!(await lease.isTrusted())) throw untrusted(lease.entry.id);
    isSkipped = options.isOptional?.(lease.entry) === true;
    const bench = await options.benchFor(lease.entry);
    checkBinding(lease.entry, bench);
    isSkipped = false;
    await finish(bench, lease, options);
    return { entry: (await reread()) ?? lease.entry };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const entry = await reread();
    return {
      entry: entry ?? lease?.entry ?? given,
      failure: entry ? withEntryOutcome(entry, error) : error,
      isSkipped,
    };
  } finally {
    await lease?.release();
  }
}

export type FinishOptions = Omit<RecoveryOptions, "benchFor" | "isOptional" | "mayTryAgain">;

export async function resumeWork(bench: Workbench, lease: EntryLease, options: FinishOptions): Promise<void> {
  checkBinding(lease.entry, bench);
  await finish(bench, lease, options);
}

/** @returns the topmost unfinished entry above this one (`parent` or `replaces`), whose recovery includes it; else this one */
export async function rootOf(journal: Journal, id: string): Promise<Entry> {
  const entry = await journal.find(id);
  if (isSettled(entry.state)) return entry;
  const ids = [entry.parent, entry.replaces].filter((other) => other !== null);
  const unsettled = ids.length === 0 ? [] : await journal.select({ ids });
  const above = unsettled.find((other) => other.id === entry.parent) ?? unsettled[0];
  return above ? rootOf(journal, above.id) : entry;
}

function checkBinding(entry: Entry, { account, journal }: Workbench): void {
  const other = otherAccount(entry, account, journal.isShared);
  if (other !== undefined) throw entryFailure(entry, other.kind, other.message, other.details);
}

async function finish(bench: Workbench, lease: EntryLease, options: FinishOptions): Promise<unknown> {
  const { entry } = lease;
  if (await endIfUnneeded(bench, lease)) return;
  switch (entry.operation) {
    case "oauth_client.create":
      return finishCreation(client, { ...options, bench, lease });
    case "access_key.create":
      return finishCreation(key, { ...options, bench, lease });
    case "oauth_client.rotate":
    case "access_key.rotate": {
      const asked = { ...options, destination: await options.destinationOf(await placedStep(bench, entry)) };
      if (isInPlace(entry)) return recoverKeyRotation(bench, lease, asked);
      const rotationOf = entry.operation === "access_key.rotate" ? keyRotation : clientRotation;
      return finishRotation(rotationOf(bench, lease, asked));
    }
    case "oauth_client.revoke":
    case "access_key.revoke":
      return finishRevocation(bench, lease);
    default:
      throw entryFailure(entry, "failed", `This version cannot finish "${entry.operation}".`);
  }
}

/** @returns true if other work made the entry unnecessary; the entry has then ended */
async function endIfUnneeded(bench: Workbench, lease: EntryLease): Promise<boolean> {
  const { entry } = lease;
  const { id, replaces, attempts } = entry;
  const later = isInPlace(entry) ? await laterRotation(bench.journal, entry, bench.secrets) : undefined;
  if (later !== undefined) await endSuperseded(bench, lease, later);
  if (later !== undefined || replaces === null || attempts > 0) return later !== undefined;
  const [lost] = await bench.journal.select({ all: true, ids: [replaces] });
  const by = lost?.replaced_by ?? id;
  if (by === id && lost?.state !== "done" && lost?.state !== "abandoned") return false;
  const why = by === id ? `${replaces} needs no replacement any more` : `${by} already replaces ${replaces}`;
  await refuseReplacement(bench, lease, why);
  return true;
}

/** Prefers a step that was not refused, because a refused step's destination may have caused the refusal. */
async function placedStep(bench: Workbench, rotation: Entry): Promise<Entry> {
  const steps = await bench.journal.select({ all: true, parent: rotation.id });
  await assertTrusted(bench, steps);
  const placed = steps.filter(({ destination }) => destination !== null);
  return placed.find(({ state }) => state !== "refused") ?? placed[0] ?? rotation;
}
