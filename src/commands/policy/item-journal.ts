// The journal as work for one item of a policy sees it: every entry carries the item's name, and of several processes that
// begin the same item at the same time one continues.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import type { Admission, AdmissionChoice, Intent, Journal } from "../../journal/journal.ts";
import { shell } from "../../next-step.ts";

export interface NamedJournal {
  readonly journal: Journal;
  /** Ids of the entries that this work has started, without the steps of larger work. */
  readonly begun: ReadonlySet<string>;
  /** The newest work for the item that another process began meanwhile; one that gave way to this one is none. */
  newestElsewhere(): Promise<Entry | undefined>;
}

/**
 * @param item.known ids of the entries that were there when the work was planned
 */
export function namedJournal(
  journal: Journal,
  item: {
    readonly name: string;
    readonly known: ReadonlySet<string>;
    /** Those of all entries that are work for this item. */
    readonly ours: (entries: readonly Entry[]) => readonly Entry[];
  },
): NamedJournal {
  const begun = new Set<string>();
  const others = async (): Promise<Entry[]> => {
    const entries = await journal.entries();
    const isNew = (entry: Entry): boolean =>
      isRoot(entry) && !item.known.has(entry.id) && !begun.has(entry.id) && !gaveWay(entry);
    const added = new Set(
      entries.filter(isNew).filter(({ detail }) => (detail.policy_name ?? item.name) === item.name),
    );
    return added.size === 0 ? [] : item.ours(entries).filter((entry) => added.has(entry));
  };
  // In a file ids are in the order of admission. Not so in a team's journal: a process with a higher id may have looked before
  // this entry was there, and have started. One with a lower id gives way immediately; of all others it has to be seen.
  const rivalOf = async ({ id: own }: Entry): Promise<Entry | undefined> => {
    for (const end = performance.now() + rivalLimitMs; ; await sleep(rivalPauseMs)) {
      const found = await others();
      const first = found.find(({ id }) => id < own);
      const other = first ?? (journal.isShared ? found.find(({ id }) => id !== own) : undefined);
      if (other === undefined || first !== undefined || hasStepped(other) || performance.now() > end) return other;
    }
  };
  const admit = async (intent: Intent, options?: AdmissionChoice): Promise<Admission> => {
    const named = { ...intent, detail: { ...intent.detail, policy_name: item.name } };
    if (!isRoot(intent)) return journal.admit(named, options);
    const [before] = await others();
    if (before !== undefined) throw elsewhere(item.name, before);
    // Never another item's unfinished request, though it may be the same one.
    const { kind, lease } = await journal.admit(named, { ...options, fresh: true });
    const rival = await rivalOf(lease.entry);
    if (rival === undefined) {
      begun.add(lease.entry.id);
      return { kind, lease };
    }
    await lease.record({ state: "refused" });
    await lease.release();
    throw elsewhere(item.name, rival);
  };
  return {
    begun,
    newestElsewhere: async () => (await others())[0],
    journal: new Proxy(journal, {
      get(target, key) {
        if (key === "admit") return admit;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    }),
  };
}

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

function elsewhere(name: string, { id }: Entry): Failure {
  return new Failure("conflict", `Another process works on ${name}: journal entry ${id}.`, {
    meaning: "Nothing was sent for it here.",
    nextCommand: shell`integ journal show ${id}`,
    entry: id,
  });
}
