// If several processes start a policy item at the same time, only one continues, even if ids are not in the order of admission.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { namedJournal } from "../../../../src/commands/policy/item-journal.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import type { EntryFilter } from "../../../../src/journal/lookup.ts";
import type { EntryLease, Intent, Journal } from "../../../../src/journal/journal.ts";

const entry = (id: string, change: Partial<Entry> = {}): Entry =>
  ({ id, state: "open", sequence: 1, parent: null, replaces: null, last_error: null, detail: {}, ...change }) as Entry;

/** A journal in which another process admits `rival` at the same moment. */
function journalWith(rival: Entry, { isShared = true } = {}) {
  const entries: Entry[] = [];
  const change = (id: string, to: Partial<Entry>): void => {
    const at = entries.findIndex((one) => one.id === id);
    entries[at] = { ...entries[at]!, ...to };
  };
  const lease = {
    entry: entry("m"),
    record: async (to: Partial<Entry>) => change("m", to),
    release: async () => {},
  } as unknown as EntryLease;
  const journal = {
    isShared,
    select: async ({ item }: EntryFilter) => (item === undefined ? [] : [...entries].toReversed()),
    admit: async () => {
      entries.push(entry("m"), rival);
      return { kind: "new", lease, alongside: [{ entry: rival.id }] };
    },
  } as unknown as Journal;
  const named = namedJournal(journal, {
    item: { policy: "pol_of_this_test", kind: "oauth_client", name: "a" },
    entriesAtPlan: new Set(),
    current: undefined,
    resumedEntry: undefined,
    isWork: () => true,
  });
  const own = (): Entry => entries.find(({ id }) => id === "m")!;
  return { change, own, admitted: named.journal.admit({ detail: {} } as Intent) };
}

it.each([[true], [false]])("the process with the higher id stops (shared: %s)", async (isShared) => {
  const { admitted, own } = journalWith(entry("a"), { isShared });
  await expect(admitted).rejects.toMatchObject({ kind: "conflict", details: { entry: "a" } });
  expect(own().state).toBe("refused");
});

it("the process with the lower id stops if the other has already started", async () => {
  const { admitted, own, change } = journalWith(entry("z"));
  await Promise.all([
    expect(admitted).rejects.toMatchObject({ kind: "conflict", details: { entry: "z" } }),
    sleep(120).then(() => change("z", { state: "done", sequence: 2 })),
  ]);
  expect(own().state).toBe("refused");
});

it("the process with the lower id continues after the other stopped, without a message", async () => {
  const { admitted, own, change } = journalWith(entry("z"));
  await sleep(120);
  expect(await Promise.race([admitted, Promise.resolve("waits")])).toBe("waits");
  change("z", { state: "refused", sequence: 2 });
  expect((await admitted).alongside).toBeUndefined();
  expect(own().state).toBe("open");
});

it("in a file journal a higher id was admitted later, so no process waits for it", async () => {
  const { admitted } = journalWith(entry("z"), { isShared: false });
  expect((await admitted).kind).toBe("new");
});
