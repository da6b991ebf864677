// What one process finds on a machine that is in memory: a journal, kept secrets, and places that secrets go to. A simulated
// world says when each call is made, whether it fails, and who watches it.
import { Failure } from "../../src/errors.ts";
import {
  assertNoneLost,
  assertSameAccount,
  entriesOfRequest,
  entryOfKey,
  isResumable,
  newEntry,
} from "../../src/journal/admission.ts";
import { type Entry, type EntryProgress, isSettled } from "../../src/journal/entry.ts";
import type { Admission, AdmissionChoice, EntryLease, Intent, Journal } from "../../src/journal/journal.ts";
import { type EntryFilter, findEntry, fits } from "../../src/journal/lookup.ts";
import type { OneTimeSecret, ProofKeys, RecordOf, SingleDestinationPlace } from "../../src/secrets/destination.ts";
import type { SecretKeeping } from "../../src/secrets/kept.ts";
import { rememberedStore, storeDestination, type StoreTarget } from "../../src/secrets/store.ts";

/** A machine: what its processes share and what a crash leaves. `by` is the process that holds or made something. */
export interface Machine {
  readonly name: string;
  readonly entries: Entry[];
  readonly held: Map<string, object>;
  readonly files: Map<string, { readonly inode: string; readonly secret: string }>;
  /** What is reserved for files, with what was written there. */
  readonly reserves: Map<string, { readonly inode: string; readonly secret: string; readonly by: object }>;
  /** Kept secrets, and empty room for one, by folder and entry. */
  readonly kept: Map<string, OneTimeSecret>;
  readonly rooms: Map<string, object>;
  readonly proofKeys: Map<string, Buffer>;
}

export function newMachine(name: string): Machine {
  return {
    name,
    entries: [],
    held: new Map(),
    files: new Map(),
    reserves: new Map(),
    kept: new Map(),
    rooms: new Map(),
    proofKeys: new Map(),
  };
}

/** What every machine reaches: stores by address, oldest text first, profiles by name, and what was printed. */
export interface Outside {
  readonly stores: Map<string, string[]>;
  readonly profiles: Map<string, { readonly id: string; readonly secret: string }>;
  readonly printed: Set<string>;
}

export interface Watch {
  /** The process. */
  readonly by: object;
  /** Makes a call, or lets it fail. @param entry whose record or reserve it is about */
  call<T>(what: string, effect: () => T, entry?: string): Promise<T>;
  /** Waits for an entry that another process has. */
  waitFor(what: string, mayGoOn?: () => boolean): Promise<void>;
  /** The time of a record. */
  at(): string;
  readonly isShared: boolean;
  isFree(id: string): boolean;
  /** Before an entry is taken only if it is free. @returns whether it is */
  mayTry(id: string): boolean;
  /** Entries that another process has. */
  holders(): Iterable<string>;
  /** An entry is taken. */
  taking(id: string): void;
  /** Before the journal is read. @throws if it cannot be */
  reading(): void;
  /** Before an entry is changed. @throws if its lease is over */
  recording(before: Entry, after: Entry): void;
  /** Before a kept secret is destroyed. */
  destroying(entry: string): void;
  /** Machine and folder of what is kept. */
  readonly place: string;
  /** Under which name a secret is kept. */
  room(entry: string): string;
}

let inodes = 0;

/** One process on one machine. */
export class InMemory {
  readonly #machine: Machine;
  readonly #outside: Outside;
  readonly #watch: Watch;

  constructor(machine: Machine, outside: Outside, watch: Watch) {
    this.#machine = machine;
    this.#outside = outside;
    this.#watch = watch;
  }

  journal(): Journal {
    const { entries, name } = this.#machine;
    const watch = this.#watch;
    const all = (): Entry[] => {
      watch.reading();
      return entries.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    };
    const unsettled = (): Entry[] => all().filter(({ state }) => !isSettled(state));
    const lease = (id: string): EntryLease => {
      watch.taking(id);
      this.#machine.held.set(id, watch.by);
      return this.#lease(id);
    };
    const unfinished = (intent: Intent, { fresh = false, key }: AdmissionChoice = {}): Admission | undefined => {
      if (key !== undefined) {
        const holder = entryOfKey(all(), intent, { key, scope: "machine" });
        if (holder && !watch.isFree(holder.id))
          throw new Failure("outcome_unknown", "Another process works on it.", { unsent: true });
        return holder && { kind: "same_key", lease: lease(holder.id) };
      }
      if (fresh) return undefined;
      const same = entriesOfRequest(all(), intent, "machine").filter(
        ({ id, state }) => !isSettled(state) && watch.isFree(id),
      );
      const found = same.find(isResumable);
      if (found) return { kind: "resumed", lease: lease(found.id) };
      assertNoneLost(same);
      assertSameAccount(unsettled(), intent, "machine");
      return undefined;
    };
    const admitted = (intent: Intent, options?: AdmissionChoice): Admission => {
      const made = { id: `${name}${String(entries.length + 1).padStart(9, "0")}`, at: watch.at() };
      const key = intent.idempotent ? (options?.key ?? `key-${made.id}`) : null;
      entries.push(newEntry(intent, { ...made, key }));
      return { kind: "new", lease: lease(made.id) };
    };
    const selected = (filter: EntryFilter): Entry[] =>
      all()
        .filter((entry) => fits(entry, filter))
        .slice(0, filter.limit);
    return {
      isShared: watch.isShared,
      entries: async () => all(),
      unsettled: async () => unsettled(),
      select: async (filter: EntryFilter) => selected(filter),
      async *each(filter: EntryFilter) {
        yield* selected(filter);
      },
      find: async (id: string) => findEntry(all(), id),
      resume: async (intent: Intent, options?: AdmissionChoice) => unfinished(intent, options),
      admit: (intent: Intent, options?: AdmissionChoice) =>
        watch.call("admit", () => unfinished(intent, options) ?? admitted(intent, options)),
      lease: async (id: string) => {
        await watch.waitFor("lease", () => watch.isFree(id));
        return lease(findEntry(all(), id).id);
      },
      tryLease: async (id: string) => {
        await watch.waitFor("try lease");
        return watch.mayTry(id) ? lease(findEntry(all(), id).id) : null;
      },
      holders: async () => new Map([...watch.holders()].map((id) => [id, { pid: 1 }])),
      extendLeases: async () => {},
      holdsLeases: () => true,
    } as unknown as Journal;
  }

  #lease(id: string): EntryLease {
    const { entries, held } = this.#machine;
    const { call, recording, at, by } = this.#watch;
    const stored = (): Entry => entries.find((entry) => entry.id === id)!;
    // What was noted is gone with the process, unless a step was recorded after it.
    let noted: Partial<EntryProgress> = {};
    return {
      get entry() {
        return { ...stored(), ...noted };
      },
      note: (change) => {
        noted = { ...noted, ...change };
      },
      record: (change) =>
        call(
          "record",
          () => {
            const next = { ...stored(), ...noted, ...change, updated_at: at() };
            recording(stored(), next);
            entries[entries.indexOf(stored())] = next;
            noted = {};
            return next;
          },
          id,
        ),
      release: async () => {
        if (held.get(id) === by) held.delete(id);
      },
    };
  }

  secrets(): SecretKeeping {
    const { kept, rooms, files, reserves } = this.#machine;
    const { call, room, place, by, destroying } = this.#watch;
    const { profiles } = this.#outside;
    return {
      place,
      profileWith: async (id) => {
        const [name] = [...profiles].find(([, its]) => its.id === id) ?? [];
        return name === undefined ? undefined : { kind: "profile", name, profileId: name };
      },
      completeDelivery: async (record, { clientId, id }) => {
        if (record.kind === "store") return this.#remembered(record).completeDelivery({});
        return call("complete delivery", () => {
          if (record.kind === "profile") return profiles.get(record.name)?.id === (clientId ?? id ?? "none");
          if (record.kind !== "file" || record.reserved === undefined || record.inode === undefined) return false;
          const whole = reserves.get(record.reserved);
          if (whole?.secret && whole.inode === record.inode) {
            assertFree(files, record);
            files.set(record.path, whole);
            reserves.delete(record.reserved);
          }
          return files.get(record.path)?.inode === record.inode;
        });
      },
      removeReserve: (record) =>
        call("remove reserve", () => {
          if (record.kind === "file" && record.reserved !== undefined && !reserves.get(record.reserved)?.secret)
            reserves.delete(record.reserved);
        }),
      reread: async (record) => {
        if (record.kind === "store") return this.#remembered(record).reread();
        return call("reread", () => {
          const file = record.kind === "file" ? files.get(record.path) : undefined;
          return record.kind === "file" && file !== undefined && file.inode === record.inode ? file.secret : undefined;
        });
      },
      escrow: async () => false,
      isEscrowed: () => false,
      reserve: (entry) => call("reserve", () => void (kept.has(room(entry)) || rooms.set(room(entry), by))),
      keep: (entry, secret) =>
        call(
          "keep",
          () => {
            kept.set(room(entry), secret);
            rooms.delete(room(entry));
          },
          entry,
        ),
      isKept: (entry) => kept.has(room(entry)),
      readKept: (entry) =>
        call("read kept", () => {
          const one = kept.get(room(entry));
          if (one === undefined) throw new Failure("failed", `No secret is kept for ${entry}.`);
          return one;
        }),
      destroyKept: (entry) =>
        call("destroy", () => {
          destroying(entry);
          kept.delete(room(entry));
          rooms.delete(room(entry));
        }),
      release: (entry) => call("release kept", () => void rooms.delete(room(entry)), entry),
    };
  }

  #target(address: string): StoreTarget {
    const { proofKeys } = this.#machine;
    const { call } = this.#watch;
    const written = this.#outside.stores.get(address) ?? [];
    this.#outside.stores.set(address, written);
    const make = async (entry: string): Promise<Buffer> => {
      if (!proofKeys.has(entry)) proofKeys.set(entry, Buffer.from(entry));
      return proofKeys.get(entry)!;
    };
    const keys: ProofKeys = { find: (entry) => proofKeys.get(entry), make };
    return {
      scheme: "memory",
      keys,
      store: {
        address,
        check: async () => ({ server: "s" }),
        prepare: () => call("prepare store", () => ({ version: String(written.length) })),
        write: (text) => call("write store", () => void written.push(text)),
        read: () => call("read store", () => written.at(-1)),
      },
    };
  }

  #remembered(record: RecordOf<"store">) {
    const target = this.#target(record.to.replace("memory:", ""));
    return rememberedStore(record, { open: async () => target, keys: target.keys });
  }

  /** A store, as it was typed or as an entry remembers it. */
  store(address: string, before?: Pick<RecordOf<"store">, "facts" | "proof">): SingleDestinationPlace {
    return storeDestination({ ...this.#target(address.replace("memory:", "")), before });
  }

  file(path: string, { force = false } = {}): SingleDestinationPlace {
    const { files, reserves } = this.#machine;
    const { call, by } = this.#watch;
    let reserved: string | undefined;
    let inode: string | undefined;
    let work: string | undefined;
    const record = () => ({ kind: "file", path, as: "raw", force, reserved, inode }) as const;
    return {
      isStdout: false,
      get record() {
        return record();
      },
      check: () =>
        call("check", () => {
          if (files.has(path) && !force) throw new Failure("usage", `${path} exists.`);
          return record();
        }),
      prepare: (entry) =>
        call("prepare", () => {
          work = entry;
          reserved = `${path}.${entry}`;
          const found = reserves.get(reserved);
          if (found?.secret) throw new Failure("failed", `${reserved} contains the secret of an earlier run.`);
          inode = found?.inode ?? String((inodes += 1));
          reserves.set(reserved, { inode, secret: "", by });
          return record();
        }),
      deliver: async ({ secret }) => {
        if (reserved === undefined) throw new Error("No space could be reserved for it there.");
        try {
          const written = { inode: inode!, secret, by };
          await call("write", () => void reserves.set(reserved!, written));
          await call("deliver", () => {
            assertFree(files, { path, force });
            files.set(path, written);
            reserves.delete(reserved!);
          });
        } catch (error) {
          throw error instanceof Failure ? new Failure("undelivered", error.message) : error;
        }
      },
      release: () =>
        call(
          "release",
          () => {
            if (reserved !== undefined && !reserves.get(reserved)?.secret) reserves.delete(reserved);
          },
          work,
        ),
    };
  }

  /** A place without anything to reserve: standard output and a command, whose reader has the secret, or a profile. */
  taker(kind: "stdout" | "command" | "profile"): SingleDestinationPlace {
    const { call } = this.#watch;
    const { printed, profiles } = this.#outside;
    const record = kind === "profile" ? { kind, name: "target", profileId: "t1" } : { kind };
    return {
      isStdout: kind === "stdout",
      record,
      check: () => call("check", () => record),
      prepare: () => call("prepare", () => record),
      deliver: ({ secret, clientId, id }) =>
        call("deliver", () => {
          if (kind === "profile") profiles.set("target", { id: clientId ?? id, secret });
          else printed.add(secret);
        }),
      release: () => call("release", () => {}),
    };
  }
}

/** A file gets a name that another one has only by `--force`. */
function assertFree(
  files: Machine["files"],
  { path, force }: { readonly path: string; readonly force: boolean },
): void {
  if (files.has(path) && !force) throw new Failure("undelivered", `${path} exists.`);
}

/** True if a secret is where it was to go. */
export function isDelivered(
  secret: string,
  { stores, profiles, printed }: Outside,
  machines: readonly Machine[],
): boolean {
  return (
    printed.has(secret) ||
    [...stores.values()].some((written) => written.at(-1) === secret) ||
    [...profiles.values()].some((profile) => profile.secret === secret) ||
    machines.some(({ files }) => [...files.values()].some((file) => file.secret === secret))
  );
}

/** True if a secret is kept, or written whole where it waits for its name. */
export function isKept(secret: string, machines: readonly Machine[]): boolean {
  return machines.some(({ reserves, kept }) =>
    [...reserves.values(), ...kept.values()].some((one) => one.secret === secret),
  );
}
