// Of several processes that begin one item of a policy at once, one continues: where ids are not in the order of admission, too.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { namedJournal } from "../../../../src/commands/policy/item-journal.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import type { EntryFilter } from "../../../../src/journal/lookup.ts";
import type { EntryLease, Intent, Journal } from "../../../../src/journal/journal.ts";

const entry = (id: string, change: Partial<Entry> = {}): Entry =>
  ({ id, state: "open", sequence: 1, parent: null, replaces: null, last_error: null, detail: {}, ...change }) as Entry;

/** A journal in which another process has its entry the moment this one has its own. */
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
    known: new Set(),
    current: undefined,
    continued: undefined,
    isWork: () => true,
  });
  const own = (): Entry => entries.find(({ id }) => id === "m")!;
  return { change, own, admitted: named.journal.admit({ detail: {} } as Intent) };
}

it.each([[true], [false]])("the one with the higher id gives way (shared: %s)", async (isShared) => {
  const { admitted, own } = journalWith(entry("a"), { isShared });
  await expect(admitted).rejects.toMatchObject({ kind: "conflict", details: { entry: "a" } });
  expect(own().state).toBe("refused");
});

it("the one with the lower id gives way to one that has begun already", async () => {
  const { admitted, own, change } = journalWith(entry("z"));
  await Promise.all([
    expect(admitted).rejects.toMatchObject({ kind: "conflict", details: { entry: "z" } }),
    sleep(120).then(() => change("z", { state: "done", sequence: 2 })),
  ]);
  expect(own().state).toBe("refused");
});

it("the one with the lower id continues once the other has given way, and says nothing of it", async () => {
  const { admitted, own, change } = journalWith(entry("z"));
  await sleep(120);
  expect(await Promise.race([admitted, Promise.resolve("waits")])).toBe("waits");
  change("z", { state: "refused", sequence: 2 });
  expect((await admitted).alongside).toBeUndefined();
  expect(own().state).toBe("open");
});

it("in a file a higher id was admitted later, and is not waited for", async () => {
  const { admitted } = journalWith(entry("z"), { isShared: false });
  expect((await admitted).kind).toBe("new");
});
