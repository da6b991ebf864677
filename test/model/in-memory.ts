// A machine in memory, as one process sees it. Its `Watch` can schedule, observe and fail calls.
import { Failure } from "../../src/errors.ts";
import {
  assertNoSecretLost,
  assertSameAccount,
  entriesOfRequest,
  entryOfKey,
  isResumable,
  newEntry,
} from "../../src/journal/admission.ts";
import { type Entry, type EntryProgress, isSettled } from "../../src/journal/entry.ts";
import type { Admission, AdmissionChoice, EntryLease, Intent, Journal } from "../../src/journal/journal.ts";
import { type EntryFilter, findEntry, fits } from "../../src/journal/lookup.ts";
import type { SecretDigests } from "../../src/journal/keys.ts";
import { overwriteFound } from "../../src/secrets/delivered-secret.ts";
import {
  commandMark,
  describeDestination,
  type Destination,
  type DestinationOption,
  type Found,
  hasContentId,
  contentId,
  type MayReplace,
  type OneTimeSecret,
  type RememberedDestination,
  type SecretOptions,
  type SingleDestinationPlace,
  type SingleRecord,
  withoutLastNewline,
} from "../../src/secrets/destination.ts";
import type { MachineId } from "../../src/disk/machine-id.ts";
import type { SecretKeeping } from "../../src/secrets/kept.ts";
import type { Profile } from "../../src/profiles/profile.ts";
import type { ProfileStores } from "../../src/profiles/configure.ts";
import { profileDestination, type ProfileTarget, rememberedProfile } from "../../src/secrets/profile.ts";
import { parseSecret } from "../../src/secrets/secret-format.ts";
import { rememberedSeveral, severalDestinations } from "../../src/secrets/several.ts";
import { rememberedStore, storeDestination, type StoreTarget } from "../../src/secrets/store.ts";

/** The state that a machine's processes share. A kill ends only the leases of the killed process. */
export interface Machine {
  readonly name: string;
  host: string;
  id: string;
  /** Set if the state folder was restored from a backup. */
  copy?: string;
  readonly entries: Entry[];
  readonly leases: Map<string, object>;
  readonly files: Map<string, { readonly inode: string; readonly secret: string }>;
  /** Reserves by their own paths, not those of their destinations. `by` is the process that last wrote the reserve. */
  readonly reserves: Map<string, { readonly inode: string; readonly secret: string; readonly by: object }>;
  /** The keys of both maps come from `keptName`. `keptReserves` has the process that reserved space for the secret. */
  readonly kept: Map<string, OneTimeSecret>;
  readonly keptReserves: Map<string, object>;
  /** Ids of entries that someone without the journal's key changed. */
  readonly tampered: Set<string>;
  /** Profiles by their names, and stored secrets by the `ref` of their profile's credential. */
  readonly profiles: Map<string, Profile>;
  readonly credentials: Map<string, string>;
  readonly ids: { readonly prefix: string; last: number };
}

/** @param team a machine with which this one shares its journal */
export function newMachine(name: string, team?: Machine): Machine {
  return {
    name,
    host: name,
    id: name,
    entries: team?.entries ?? [],
    leases: team?.leases ?? new Map(),
    tampered: team?.tampered ?? new Set(),
    ids: team?.ids ?? { prefix: name, last: 0 },
    profiles: new Map(),
    credentials: new Map(),
    files: new Map(),
    reserves: new Map(),
    kept: new Map(),
    keptReserves: new Map(),
  };
}

/** Places that all machines share. The texts of a store are from oldest to newest. */
export interface Outside {
  readonly stores: Map<string, string[]>;
  readonly profiles: Map<string, { readonly id: string; readonly secret: string }>;
  readonly printed: Set<string>;
}

export interface Watch {
  readonly by: object;
  /** Runs a call, or lets it fail. @param entry the entry of a record, of a kept secret or of a released reserve */
  call<T>(what: string, effect: () => T, entry?: string): Promise<T>;
  /** Waits for a turn of the process in which `mayGoOn` is true. */
  waitFor(what: string, mayGoOn?: () => boolean): Promise<void>;
  /** The time on the machine's clock (ISO 8601). */
  at(): string;
  readonly isShared: boolean;
  isFree(id: string): boolean;
  /** Called by `tryLease`. @returns true if the entry is free */
  mayTry(id: string): boolean;
  holders(): Iterable<string>;
  taking(id: string): void;
  /** Called before the journal is read. @throws to simulate an unreadable journal */
  reading(): void;
  /** Called before an entry changes. @throws to simulate an ended lease */
  recording(before: Entry, after: Entry): void;
  destroying(entry: string): void;
  /** The place of kept secrets, `<host>:<folder>`. */
  readonly place: string;
  keptName(entry: string): string;
  delivering?(place: string, before: string | undefined, secret: string): void;
  /** The machine's stored profiles. Without them, only the profile `target` exists. */
  readonly profiles?: ProfileStores;
}

let inodes = 0;

/** Readable digests in place of an HMAC under the journal's key. */
export const plainDigests: SecretDigests = {
  of: (text) => `digest of ${text}`,
  fits: (text, digest) => digest === `digest of ${text}`,
};

function foundIn(secret: string | undefined): Found {
  return secret === undefined ? { is: "absent" } : { is: "text", text: secret };
}

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
    const { entries, ids, tampered } = this.#machine;
    const watch = this.#watch;
    const all = (): Entry[] => {
      watch.reading();
      return entries.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    };
    const unsettled = (): Entry[] => all().filter(({ state }) => !isSettled(state));
    const lease = (id: string): EntryLease => {
      watch.taking(id);
      this.#machine.leases.set(id, watch.by);
      return this.#lease(id);
    };
    const unfinished = (intent: Intent, { fresh = false, key }: AdmissionChoice = {}): Admission | undefined => {
      if (key !== undefined) {
        const holder = entryOfKey(all(), intent, { key, isShared: false });
        if (holder && !watch.isFree(holder.id))
          throw new Failure("outcome_unknown", "Another process works on it.", { unsent: true });
        return holder && { kind: "same_key", lease: lease(holder.id) };
      }
      if (fresh) return undefined;
      const same = entriesOfRequest(all(), intent, false).filter(
        ({ id, state }) => !isSettled(state) && watch.isFree(id),
      );
      const found = same.find(isResumable);
      if (found) return { kind: "resumed", lease: lease(found.id) };
      assertNoSecretLost(same);
      assertSameAccount(unsettled(), intent, false);
      return undefined;
    };
    const admitted = (intent: Intent, options?: AdmissionChoice): Admission => {
      const made = { id: `${ids.prefix}${String((ids.last += 1)).padStart(9, "0")}`, at: watch.at() };
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
      digests: plainDigests,
      untrusted: async (some: readonly string[]) => new Set(some.filter((id) => tampered.has(id))),
      entries: async () => all(),
      unsettled: async () => unsettled(),
      select: async ({ trusted = false, ...filter }: EntryFilter & { readonly trusted?: boolean }) =>
        selected(filter).filter(({ id }) => !trusted || !tampered.has(id)),
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
    const { entries, leases, tampered } = this.#machine;
    const { call, recording, at, by } = this.#watch;
    const stored = (): Entry => entries.find((entry) => entry.id === id)!;
    // A note reaches the journal only with the next record: a kill loses it.
    let noted: Partial<EntryProgress> = {};
    return {
      get entry() {
        return { ...stored(), ...noted };
      },
      isTrusted: async () => !tampered.has(id),
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
        if (leases.get(id) === by) leases.delete(id);
      },
    };
  }

  secrets(): SecretKeeping {
    const { kept, keptReserves, files, reserves } = this.#machine;
    const { call, keptName, place, by, destroying } = this.#watch;
    const { profiles } = this.#outside;
    return {
      place,
      machine: this.#machineId,
      completeDelivery: async (record, may) => {
        const remembered = this.#remembered(record);
        if (remembered !== undefined) return remembered.completeDelivery(may);
        if (record.kind !== "file" && record.kind !== "profile") return false;
        const { proof } = record;
        const isKnown = (secret: string | undefined): boolean => hasContentId(foundIn(secret), proof, plainDigests);
        if (record.kind === "profile")
          return call("complete delivery", () => isKnown(profiles.get(record.name)?.secret));
        const look = async (): Promise<Found> => foundIn(files.get(record.path)?.secret);
        const whole = await call("complete delivery", () => {
          const written = reserves.get(record.reserved ?? "");
          return isKnown(files.get(record.path)?.secret) || !isKnown(written?.secret) ? undefined : written;
        });
        if (whole === undefined) return isKnown(files.get(record.path)?.secret);
        await overwriteFound(record.path, {
          look,
          may: (found) => may(record, found),
          write: async () => {
            this.#reportDelivery(`file:${record.path}`, files.get(record.path)?.secret, whole.secret);
            files.set(record.path, whole);
            reserves.delete(record.reserved ?? "");
            return true;
          },
        });
        return true;
      },
      removeReserve: (record) =>
        call("remove reserve", () => {
          if (record.kind === "file" && record.reserved !== undefined && !reserves.get(record.reserved)?.secret)
            reserves.delete(record.reserved);
        }),
      reread: async (record) => {
        const remembered = this.#remembered(record);
        if (remembered !== undefined) return remembered.reread();
        return call("reread", () => {
          if (record.kind !== "file" && record.kind !== "profile") return undefined;
          const here = record.kind === "file" ? files.get(record.path) : profiles.get(record.name);
          return hasContentId(foundIn(here?.secret), record.proof, plainDigests)
            ? parseSecret(here!.secret, "raw")
            : undefined;
        });
      },
      escrow: async () => false,
      isEscrowed: () => false,
      reserve: (entry) =>
        call("reserve", () => void (kept.has(keptName(entry)) || keptReserves.set(keptName(entry), by))),
      keep: (entry, secret) =>
        call(
          "keep",
          () => {
            kept.set(keptName(entry), secret);
            keptReserves.delete(keptName(entry));
          },
          entry,
        ),
      isKept: (entry) => kept.has(keptName(entry)),
      readKept: (entry) =>
        call("read kept", () => {
          const one = kept.get(keptName(entry));
          if (one === undefined) throw new Failure("failed", `No secret is kept for ${entry}.`);
          return one;
        }),
      destroyKept: (entry) =>
        call("destroy", () => {
          destroying(entry);
          kept.delete(keptName(entry));
          keptReserves.delete(keptName(entry));
        }),
      release: (entry) => call("release kept", () => void keptReserves.delete(keptName(entry)), entry),
    };
  }

  readonly #machineId: MachineId = {
    find: () => this.#machine.id,
    make: () => this.#machine.id,
    copy: () => this.#machine.copy ?? this.#machine.id,
  };

  #reportDelivery(place: string, before: string | undefined, secret: string): void {
    const name = place.startsWith("store:") ? place : `${this.#machine.name}:${place}`;
    this.#watch.delivering?.(name, before, secret);
  }

  get #knowledge() {
    return { digests: plainDigests, machine: this.#machineId };
  }

  #target(address: string): StoreTarget {
    const { call } = this.#watch;
    const written = this.#outside.stores.get(address) ?? [];
    this.#outside.stores.set(address, written);
    return {
      scheme: "memory",
      store: {
        address,
        check: async () => ({ server: "s" }),
        prepare: () => call("prepare store", () => ({})),
        write: (text, _facts, over) =>
          call("write store", () => {
            if (over.is === "text" ? over.text !== written.at(-1) : written.length > 0) return false;
            this.#reportDelivery(`store:memory:${address}`, written.at(-1), text);
            written.push(text);
            return true;
          }),
        look: () => call("read store", () => foundIn(written.at(-1))),
      },
    };
  }

  #remembered(record: SingleRecord): RememberedDestination | undefined {
    const { profiles } = this.#watch;
    if (record.kind === "profile" && profiles)
      return rememberedProfile(record, { stores: async () => profiles, digests: plainDigests });
    if (record.kind !== "store") return undefined;
    const target = this.#target(record.to.replace("memory:", ""));
    return rememberedStore(record, { open: async () => target, digests: plainDigests });
  }

  store(address: string, before: Pick<StoreTarget, "facts" | "consent" | "force"> = {}): SingleDestinationPlace {
    const context = { ...this.#knowledge, sleep: async () => {} };
    return storeDestination({ ...this.#target(address.replace("memory:", "")), ...before }, context);
  }

  get profiles(): ProfileStores | undefined {
    return this.#watch.profiles;
  }

  async destination({ to, remembered, force, mayBeOwn, yields }: SecretOptions): Promise<Destination> {
    const one = (option: DestinationOption): SingleDestinationPlace => {
      if (option.kind === "command") return this.withoutReserve("command", commandMark(option));
      const how = { ...option, force: force === true || option.force === true, mayBeOwn, yields };
      if (how.kind === "file") return this.file(how.path, how);
      return how.kind === "store" ? this.store(how.to, how) : this.profile(how);
    };
    const typed = to.map(one);
    if (remembered)
      return rememberedSeveral(remembered, typed, async (place) => {
        const { option } = describeDestination(place);
        if (option === undefined) throw new Failure("usage", "Commands are not stored.");
        return one(option);
      });
    if (typed.length > 1) return severalDestinations(typed);
    return typed[0] ?? this.withoutReserve("stdout");
  }

  file(
    path: string,
    {
      force = false,
      mayBeOwn = false,
      consent: before,
    }: { force?: boolean; mayBeOwn?: boolean; consent?: string } = {},
  ): SingleDestinationPlace {
    const { files, reserves, id: machine } = this.#machine;
    const { call, by } = this.#watch;
    let reserved: string | undefined;
    let inode: string | undefined;
    let work: string | undefined;
    let proof: string | undefined;
    let consent = before;
    const record = () => ({ kind: "file", path, as: "raw", machine, reserved, inode, proof, consent }) as const;
    const found = (): Found => foundIn(files.get(path)?.secret);
    return {
      isStdout: false,
      get record() {
        return record();
      },
      check: () =>
        call("check", () => {
          if (files.has(path) && !force && !mayBeOwn && before === undefined)
            throw new Failure("usage", `${path} exists.`);
          if (force) consent ??= contentId(found(), plainDigests);
          return record();
        }),
      prepare: async (entry, { may }: { readonly may?: MayReplace } = {}) => {
        await may?.(record(), found());
        return call("prepare", () => {
          work = entry;
          reserved = `${path}.${entry}`;
          const before = reserves.get(reserved);
          if (before?.secret) throw new Failure("failed", `${reserved} contains the secret of an earlier run.`);
          inode = before?.inode ?? String((inodes += 1));
          reserves.set(reserved, { inode, secret: "", by });
          return record();
        });
      },
      deliver: async ({ secret }, { may, record: note }) => {
        if (reserved === undefined) throw new Error("No space could be reserved for it there.");
        try {
          await may(record(), found());
          proof = plainDigests.of(secret);
          await note(record());
          const written = { inode: inode!, secret, by };
          await call("write", () => void reserves.set(reserved!, written));
          await overwriteFound(path, {
            look: async () => found(),
            may: (one) => may(record(), one),
            write: (over) =>
              call("deliver", () => {
                if ((over.is === "text" ? over.text : undefined) !== files.get(path)?.secret) return false;
                this.#reportDelivery(`file:${path}`, files.get(path)?.secret, secret);
                files.set(path, written);
                reserves.delete(reserved!);
                return true;
              }),
          });
        } catch (error) {
          throw error instanceof Failure ? new Failure("undelivered", error.message) : error;
        }
      },
      release: () => call("release", () => void (reserved !== undefined && reserves.delete(reserved)), work),
    };
  }

  profile(target: Omit<ProfileTarget, "kind">): SingleDestinationPlace {
    const stores = this.#watch.profiles!;
    const place = profileDestination(target, { stores, ...this.#knowledge });
    const { call } = this.#watch;
    return {
      isStdout: false,
      get record() {
        return place.record;
      },
      check: () => place.check(),
      prepare: async (work, preparation) => {
        await call("prepare", () => {});
        return place.prepare(work, preparation);
      },
      deliver: async (secret, delivery) => {
        await call("deliver", () => {});
        return place.deliver(secret, delivery);
      },
      release: () => place.release(),
    };
  }

  withoutReserve(kind: "stdout" | "command" | "profile", mark?: string): SingleDestinationPlace {
    const { call, delivering } = this.#watch;
    const { printed, profiles } = this.#outside;
    let proof: string | undefined;
    const record = () =>
      kind === "profile"
        ? ({ kind, name: "target", profileId: "t1", machine: this.#machine.id, proof } as const)
        : kind === "command"
          ? ({ kind, mark } as const)
          : { kind };
    return {
      isStdout: kind === "stdout",
      get record() {
        return record();
      },
      check: () => call("check", record),
      prepare: () => call("prepare", record),
      async deliver({ secret, clientId, id }, { may, record: note }) {
        if (kind === "profile") {
          await may(record(), foundIn(profiles.get("target")?.secret));
          proof = plainDigests.of(secret);
          await note(record());
        }
        await call("deliver", () => {
          if (kind === "command") delivering?.("command", undefined, secret);
          if (kind === "profile") profiles.set("target", { id: clientId ?? id, secret });
          else printed.add(secret);
        });
      },
      release: () => call("release", () => {}),
    };
  }
}

export function isDelivered(
  secret: string,
  { stores, profiles, printed }: Outside,
  machines: readonly Machine[],
): boolean {
  return (
    machines.some(({ credentials }) => [...credentials.values()].includes(secret)) ||
    printed.has(secret) ||
    [...stores.values()].some((written) => written.at(-1) === secret) ||
    [...profiles.values()].some((profile) => profile.secret === secret) ||
    machines.some(({ files }) => [...files.values()].some((file) => withoutLastNewline(file.secret) === secret))
  );
}

/** A reserve with the complete secret also counts: only its rename to the destination is missing. */
export function isKept(secret: string, machines: readonly Machine[]): boolean {
  return machines.some(({ reserves, kept }) =>
    [...reserves.values(), ...kept.values()].some((one) => one.secret === secret),
  );
}
