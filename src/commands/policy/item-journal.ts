// The journal as work for one item of a policy sees it: every entry carries the item's name, and of several processes that
// begin the same item at the same time one continues.
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
  /** Ids of the entries that this work has started, without the steps of larger work. */
  readonly begun: ReadonlySet<string>;
  /** The newest work for the item that another process began meanwhile; one that gave way to this one does not count. */
  newestElsewhere(): Promise<Entry | undefined>;
  /** The newest work for the item, by any process. */
  newest(): Promise<Entry | undefined>;
}

export interface JournalItem {
  readonly item: ItemRef;
  /** Ids of the entries that were there when the work was planned. */
  readonly known: ReadonlySet<string>;
  /** The client or key that the item has: who replaces it works for the item too. */
  readonly current: string | undefined;
  /** The entry that is continued. */
  readonly continued: string | undefined;
  /** Whether an entry that is named so, or names what the item has, is work for it. */
  readonly isWork: (entry: Entry) => boolean;
}

export function namedJournal(journal: Journal, item: JournalItem): NamedJournal {
  const begun = new Set<string>();
  const works = async (): Promise<Entry[]> => {
    const named = await journal.select({ all: true, item: item.item.name });
    const replacing = item.current === undefined ? [] : await journal.select({ all: true, resource: item.current });
    const continued = item.continued === undefined ? [] : await journal.select({ all: true, ids: [item.continued] });
    const unnamed = [...replacing, ...continued].filter(({ policy }) => policy === undefined);
    return [...named, ...unnamed].filter(item.isWork).sort((a, b) => (a.id < b.id ? 1 : -1));
  };
  const others = async (): Promise<Entry[]> =>
    (await works()).filter(
      (entry) => isRoot(entry) && !item.known.has(entry.id) && !begun.has(entry.id) && !gaveWay(entry),
    );
  // In a file ids are in the order of admission. Not so in a team's journal: a process with a higher id may have looked before
  // this entry was there, and have started. One with a lower id gives way immediately; of all others it has to be seen.
  const rivalOf = async ({ id: own }: Entry, rivals: () => Promise<Entry[]>): Promise<Entry | undefined> => {
    for (const end = performance.now() + rivalLimitMs; ; await sleep(rivalPauseMs)) {
      const found = await rivals();
      const first = found.find(({ id }) => id < own);
      const other = first ?? (journal.isShared ? found.find(({ id }) => id !== own) : undefined);
      if (other === undefined || first !== undefined || hasStepped(other) || performance.now() > end) return other;
    }
  };
  const admit = async (intent: Intent, options?: AdmissionChoice): Promise<Admission> => {
    const named = { ...intent, policy: { id: item.item.policy, item: item.item.name } };
    if (!isRoot(intent)) return journal.admit(named, options);
    const rivals = async (): Promise<Entry[]> => [...(await others()), ...(await besideOf({ journal, item, intent }))];
    const [before] = await rivals();
    if (before !== undefined) throw refusalFor(item, before);
    // Never another item's unfinished request, though it may be the same one.
    const { kind, lease } = await journal.admit(named, { ...options, fresh: true });
    const rival = await rivalOf(lease.entry, rivals);
    if (rival === undefined) {
      begun.add(lease.entry.id);
      return { kind, lease };
    }
    await lease.record({ state: "refused" });
    await lease.release();
    throw refusalFor(item, rival);
  };
  return {
    begun,
    newestElsewhere: async () => (await others())[0],
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

/** Work for something else, started since the plan, whose secret goes where this one's goes. */
async function besideOf({ journal, item, intent }: BesideWhat): Promise<Entry[]> {
  const placesOfWork = ({ destination = null, ...about }: Placed): string[] =>
    destination === null
      ? []
      : placesOf(destination)
          .filter((at) => !journal.isShared || !isLocal(at))
          .flatMap((at) => placeIn(at, about) ?? []);
  const own = new Set(placesOfWork(intent));
  if (own.size === 0) return [];
  const newest = [...item.known].reduce((newer, id) => (id > newer ? id : newer), "");
  const since = await journal.select({ all: true, ...(newest === "" ? {} : { after: newest }) });
  return since
    .filter((entry) => isRoot(entry) && !item.isWork(entry) && mayHold(entry))
    .filter((entry) => placesOfWork(entry).some((place) => own.has(place)));
}

interface BesideWhat {
  readonly journal: Journal;
  readonly item: JournalItem;
  readonly intent: Intent;
}

type Placed = Pick<Entry, "operation" | "request_text"> & Partial<Pick<Entry, "destination">>;

/** How long a process is waited for that either gives way or records a step. */
const rivalLimitMs = 10_000;
const rivalPauseMs = 50;

/** True of an entry whose process has done more than to begin it. */
function hasStepped({ sequence }: Entry): boolean {
  return sequence > 1;
}

/** Work of its own, and no step of larger work. */
function isRoot({ parent = null, replaces = null }: Pick<Intent, "parent" | "replaces">): boolean {
  return parent === null && replaces === null;
}

/** True of an entry that was refused for no error of its own: another process was first. */
function gaveWay({ state, last_error }: Entry): boolean {
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
