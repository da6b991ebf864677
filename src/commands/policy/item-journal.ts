// Records the policy item in the item's entries. If several processes start a change of the item, only one continues.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import type { Admission, AdmissionChoice, Intent, Journal } from "../../journal/journal.ts";
import { shell } from "../../next-step.ts";
import { mayHold, placeIn } from "../../policy/holders.ts";
import { placesOf } from "../../secrets/destination.ts";
import type { ItemRef } from "../../policy/works.ts";
import { isLocal } from "../../secrets/destination.ts";

export interface NamedJournal {
  readonly journal: Journal;
  /** Ids of the root entries that this process added for the item. */
  readonly admitted: ReadonlySet<string>;
  /** The newest entry that another process added for the item since the plan. Withdrawn entries do not count. */
  newestOfOthers(): Promise<Entry | undefined>;
  newest(): Promise<Entry | undefined>;
}

export interface JournalItem {
  readonly item: ItemRef;
  readonly entriesAtPlan: ReadonlySet<string>;
  /** Id of the item's credential. An entry that replaces it belongs to the item. */
  readonly current: string | undefined;
  readonly resumedEntry: string | undefined;
  readonly isWork: (entry: Entry) => boolean;
}

export function namedJournal(journal: Journal, item: JournalItem): NamedJournal {
  const admitted = new Set<string>();
  const works = async (): Promise<Entry[]> => {
    const named = await journal.select({ all: true, item: item.item.name });
    const replacing = item.current === undefined ? [] : await journal.select({ all: true, resource: item.current });
    const resumedEntry =
      item.resumedEntry === undefined ? [] : await journal.select({ all: true, ids: [item.resumedEntry] });
    const unnamed = [...replacing, ...resumedEntry].filter(({ policy }) => policy === undefined);
    return [...named, ...unnamed].filter(item.isWork).sort((a, b) => (a.id < b.id ? 1 : -1));
  };
  const others = async (): Promise<Entry[]> =>
    (await works()).filter(
      (entry) => isRoot(entry) && !item.entriesAtPlan.has(entry.id) && !admitted.has(entry.id) && !hasYielded(entry),
    );
  // The entry with the lowest id continues. In a file, ids follow the order of admission. In a team's journal, the
  // process of an entry with a higher id may not have seen this process's entry, so this process waits for that process
  // to withdraw its entry. If that process takes its first step or is too slow, this process withdraws its own entry.
  const rivalOf = async ({ id: own }: Entry, rivals: () => Promise<Entry[]>): Promise<Entry | undefined> => {
    for (const end = performance.now() + rivalLimitMs; ; await sleep(rivalPauseMs)) {
      const entries = await rivals();
      const first = entries.find(({ id }) => id < own);
      const other = first ?? (journal.isShared ? entries.find(({ id }) => id !== own) : undefined);
      if (other === undefined || first !== undefined || hasStarted(other) || performance.now() > end) return other;
    }
  };
  const admit = async (intent: Intent, options?: AdmissionChoice): Promise<Admission> => {
    const named = { ...intent, policy: { id: item.item.policy, item: item.item.name } };
    if (!isRoot(intent)) return journal.admit(named, options);
    const rivals = async (): Promise<Entry[]> => [
      ...(await others()),
      ...(await rivalEntries({ journal, item, intent })),
    ];
    const [before] = await rivals();
    if (before !== undefined) throw refusalFor(item, before);
    // An unfinished entry of the same request belongs to another item, so a new entry is needed (`fresh`).
    const { kind, lease } = await journal.admit(named, { ...options, fresh: true });
    const rival = await rivalOf(lease.entry, rivals);
    if (rival === undefined) {
      admitted.add(lease.entry.id);
      return { kind, lease };
    }
    await lease.record({ state: "refused" });
    await lease.release();
    throw refusalFor(item, rival);
  };
  return {
    admitted,
    newestOfOthers: async () => (await others())[0],
    newest: async () => (await works())[0],
    journal: new Proxy(journal, {
      get(target, key) {
        if (key === "admit") return admit;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    }),
  };
}

/**
 * @returns entries outside the item that are newer than the plan and may deliver to one of the intent's destinations
 */
async function rivalEntries({ journal, item, intent }: RivalSearch): Promise<Entry[]> {
  const placesOfWork = ({ destination = null, ...about }: WithDestination): string[] =>
    destination === null
      ? []
      : placesOf(destination)
          .filter((at) => !journal.isShared || !isLocal(at))
          .flatMap((at) => placeIn(at, about) ?? []);
  const own = new Set(placesOfWork(intent));
  if (own.size === 0) return [];
  const newest = [...item.entriesAtPlan].reduce((newer, id) => (id > newer ? id : newer), "");
  const since = await journal.select({ all: true, ...(newest === "" ? {} : { after: newest }) });
  return since
    .filter((entry) => isRoot(entry) && !item.isWork(entry) && mayHold(entry))
    .filter((entry) => placesOfWork(entry).some((place) => own.has(place)));
}

interface RivalSearch {
  readonly journal: Journal;
  readonly item: JournalItem;
  readonly intent: Intent;
}

type WithDestination = Pick<Entry, "operation" | "request_text"> & Partial<Pick<Entry, "destination">>;

/** How long this process waits for another process to withdraw its entry or take the first step. */
const rivalLimitMs = 10_000;
const rivalPauseMs = 50;

/** The first record of an entry is its admission. */
function hasStarted({ sequence }: Entry): boolean {
  return sequence > 1;
}

function isRoot({ parent = null, replaces = null }: Pick<Intent, "parent" | "replaces">): boolean {
  return parent === null && replaces === null;
}

/** True if integ refused the entry without an error: another process was first. */
function hasYielded({ state, last_error }: Entry): boolean {
  return state === "refused" && last_error === null;
}

function refusalFor({ item: { name }, isWork }: JournalItem, entry: Entry): Failure {
  const { id } = entry;
  const about = { nextCommand: shell`integ journal show ${id}`, entry: id };
  if (isWork(entry))
    return new Failure("conflict", `Another process works on ${name}: journal entry ${id}.`, {
      meaning: "Nothing was sent for it here.",
      ...about,
    });
  return new Failure("conflict", `Journal entry ${id} delivers a secret to the destination of ${name}.`, {
    meaning: "Another process started it meanwhile. Nothing was sent for it here.",
    ...about,
  });
}
