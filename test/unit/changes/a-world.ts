// All that a change touches, in memory: the account, the journal, what is kept and where secrets go, the clock. It outlives
// the processes that work in it: each of them may be made to crash at any call, and the next finds what is left.
import { recover, type Recovered, type RecoveryOptions } from "../../../src/changes/recovery.ts";
import { DiskHealth, type Workbench } from "../../../src/changes/workbench.ts";
import type { SecretKeeping } from "../../../src/secrets/kept.ts";
import type { Attempt } from "../../../src/api/call/attempt.ts";
import { Failure, type FailureKind } from "../../../src/errors.ts";
import {
  assertNoneLost,
  assertSameAccount,
  entryOfKey,
  isResumable,
  newEntry,
  entriesOfRequest,
} from "../../../src/journal/admission.ts";
import { type Entry, type EntryProgress, isSettled, type KeyExchange } from "../../../src/journal/entry.ts";
import type { Admission, EntryLease, Intent, Journal } from "../../../src/journal/journal.ts";
import { findEntry, type EntryFilter, fits } from "../../../src/journal/lookup.ts";
import type {
  Destination,
  OneTimeSecret,
  ProofKeys,
  SingleDestinationPlace,
  SingleRecord,
} from "../../../src/secrets/destination.ts";
import { rememberedSeveral, severalDestinations } from "../../../src/secrets/several.ts";
import { rememberedStore, storeDestination, type StoreTarget } from "../../../src/secrets/store.ts";
import { isFull } from "../../support/sample.ts";
import { AnAccount, type Fate, type Request } from "./an-account.ts";

/** The end of a process, at any of its points: one for all, since to note where it was thrown takes longer than a world. */
const crash = new Error("the process ended");

type PlaceKind = "file" | "profile" | "command" | "stdout" | "store";
/** `three`: a file, a store and a profile. */
export type DestinationKind = PlaceKind | "three";

/** How one process ended. */
export interface Ended<T> {
  readonly kind: FailureKind | "done" | "crash";
  readonly value?: T;
  readonly failure?: Failure;
}

export interface Setting {
  readonly destination?: DestinationKind;
  readonly fates?: Partial<Record<Request, Fate[]>>;
  readonly retryForMs?: number;
  /** The profile has a token endpoint. */
  readonly proves?: boolean;
  /** Calls of the first process that fail, by name: `deliver`, `keep`, `record 3`, `prepare`, … */
  readonly failing?: readonly string[];
}

export class AWorld {
  readonly account = new AnAccount();
  readonly entries: Entry[] = [];
  readonly kept = new Map<string, OneTimeSecret>();
  readonly files = new Map<string, { readonly reserve: string; readonly secret: string }>();
  readonly reserves = new Map<string, string>();
  readonly profiles = new Map<string, { readonly id: string; readonly secret: string }>();
  readonly printed: string[] = [];
  /** What a store was given, oldest first. */
  readonly stored: string[] = [];
  readonly #proofKeys = new Map<string, Buffer>();
  /** Every call of the process that runs or ran last, in order. */
  readonly calls: string[] = [];
  /** The same with what each was about, its waits and what it told. */
  readonly steps: string[] = [];
  readonly told: string[] = [];
  /** Promises that were seen broken. */
  readonly broken: string[] = [];
  /** Clients and keys that a change may revoke although their secret is in use. */
  readonly mayGo = new Set<string>();
  now = Date.parse("2026-11-21T02:00:00.000Z");
  elapsed = 0;
  /** Told of every wait. */
  onSleep: () => void = () => {};
  /** The process ends at its n-th point: before and after each call. */
  crashAt = Number.POSITIVE_INFINITY;
  /** A person interrupts at the n-th call. */
  interruptAt = Number.POSITIVE_INFINITY;
  /** Its file can be neither read nor written any more. */
  journalIsGone = false;
  /** Machine and folder of the processes that run now. */
  place = "here:/state";
  /** Entries that a running process has. */
  readonly running = new Set<string>();
  /** Before it is seen whether one has an entry. */
  onTryLease: () => void = () => {};
  /** Its journal is a team's: it says who works on what. */
  isTeam = false;
  readonly #setting: Setting;
  readonly #held = new Set<string>();
  #failing: readonly string[];
  #points = 0;
  #isDead = false;
  #counts = new Map<string, number>();
  #interruption = new AbortController();

  constructor(setting: Setting = {}) {
    this.#setting = setting;
    this.#failing = setting.failing ?? [];
    Object.assign(this.account.fates, structuredClone(setting.fates));
    this.account.now = () => this.now;
    this.account.step = (name, effect, about) => this.#step(name, effect, about);
    this.account.onRequest = (what, about) => this.#audit(what, about);
  }

  /** Lives through one process. */
  async run<T>(work: (bench: Workbench) => Promise<T>): Promise<Ended<T>> {
    this.#isDead = false;
    this.#points = 0;
    this.#counts = new Map();
    this.#held.clear();
    this.calls.length = 0;
    this.steps.length = 0;
    this.#interruption = new AbortController();
    try {
      const value = await work(this.#bench());
      return this.#isDead ? { kind: "crash" } : { kind: "done", value };
    } catch (error) {
      if (this.#isDead) return { kind: "crash" };
      if (error instanceof Failure) return { kind: error.kind, failure: error };
      throw error;
    } finally {
      this.#failing = [];
      this.#held.clear();
    }
  }

  /** `journal recover` of everything, by somebody who agrees to all. */
  async recover(
    answers: Partial<RecoveryOptions> = {},
    onBegin: (bench: Workbench) => void = () => {},
  ): Promise<Ended<Recovered[]>> {
    const unsettled = this.unsettled().filter(({ id }) => !this.running.has(id));
    const roots = unsettled.filter(({ parent }) => !unsettled.some(({ id }) => id === parent));
    return this.run((bench) => {
      onBegin(bench);
      return recover(bench.journal, roots, {
        destinationOf: async ({ destination: remembered }) =>
          remembered?.kind === "several"
            ? rememberedSeveral(remembered, [], async ({ kind }) => this.single(kind))
            : this.destination(),
        mayReplace: async () => true,
        mayRevokeUnproven: async () => true,
        waitMs: 60_000,
        overlap: "leave",
        benchFor: async () => bench,
        ...answers,
      });
    });
  }

  unsettled(): Entry[] {
    return this.entries.filter(({ state }) => !isSettled(state));
  }

  interrupt(): void {
    this.#interruption.abort(new Failure("interrupted", "Interrupted."));
  }

  entry(operation: Entry["operation"]): Entry | undefined {
    return this.entries.find((entry) => entry.operation === operation);
  }

  /** True if a secret is somewhere: where it was to go, or kept here. */
  isSafe(secret: string): boolean {
    const places = [
      ...[...this.files.values(), ...this.profiles.values(), ...this.kept.values()].map((place) => place.secret),
      ...this.reserves.values(),
      ...this.printed,
      ...this.stored,
    ];
    return places.includes(secret);
  }

  #point(): void {
    if (this.#isDead) throw crash;
    this.#points += 1;
    if (this.#points !== this.crashAt) return;
    this.#isDead = true;
    throw crash;
  }

  #step<T>(name: string, effect: () => T, about = ""): T {
    this.#point();
    this.calls.push(name);
    this.steps.push(about === "" ? name : `${name} ${about}`);
    if (this.calls.length === this.interruptAt) this.interrupt();
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    if (this.#failing.includes(name) || this.#failing.includes(`${name} ${count}`))
      throw new Failure("failed", `no ${name}`);
    const result = effect();
    this.#point();
    return result;
  }

  /** What must be true when a request arrives. */
  #audit(what: Request, { id, body, key }: { id?: string; body?: string; key?: string }): void {
    const isOnDisk = (entry: Entry): boolean =>
      entry.attempts > 0 &&
      (body === undefined || (entry.request_text === body && entry.idempotency_key === (key ?? null)));
    if ((what === "create" || what === "rotate") && !this.entries.some(isOnDisk))
      this.broken.push(`${what} was sent and is not on disk`);
    if (what !== "revoke") return;
    const all = [...this.account.clients, ...this.account.keys];
    const going = all.find((made) => made.id === id);
    if (going === undefined || going.status !== "active") return;
    const { destination } = this.#setting;
    if (this.mayGo.has(going.id) && destination === "three" && !this.haveAll())
      this.broken.push(`${id} was revoked before all destinations had the new secret`);
    const isNamed = this.entries.some((entry) => entry.operation.endsWith(".revoke") && entry.attempts > 0);
    const other = all.find(
      (made) => made !== going && made.id !== "ak_own" && made.status === "active" && this.isSafe(made.secret),
    );
    if (isNamed || (this.mayGo.has(going.id) && other)) return;
    if (this.mayGo.has(going.id)) this.broken.push(`${id} was revoked, and nothing that works is in its place`);
    else if (this.isSafe(going.secret)) this.broken.push(`${id} was revoked, and its secret is delivered or kept`);
  }

  #bench(): Workbench {
    const { proves = true, retryForMs = 60_000 } = this.#setting;
    const { service } = this.account;
    return {
      account: {
        profile: "p",
        profileId: "p1",
        region: "us",
        baseUrl: "https://api.example",
        organizationId: null,
        serviceVersion: "2026-08-05",
        service,
        keyId: "ak_own",
        proof: proves ? { token_endpoint: "https://tokens.example/token", client_auth: "client_secret_basic" } : null,
        keyExchange: { kind: "endpoint", url: "https://api.example/exchange" },
        credentialDigest: async (text) => `${this.account.credential} ${text}`,
        exchangeKey: (secret, way) => this.#exchangeKey(secret, way),
        proveClient: (client, at) => this.#proveClient(client.secret, at.token_endpoint),
      },
      journal: this.#journal(),
      secrets: this.#secrets(),
      disk: new DiskHealth(),
      retryForMs,
      clock: {
        now: () => (this.now += 1),
        elapsed: () => (this.elapsed += 1),
        sleep: async (ms) => {
          this.now += ms;
          this.elapsed += ms;
          this.steps.push(`sleep ${ms}`);
          this.onSleep();
          if (this.#interruption.signal.aborted) throw this.#interruption.signal.reason;
        },
        random: () => 0.5,
        interruption: this.#interruption.signal,
        finishing: (work) => (this.steps.push("finishing"), work()),
      },
      tell: {
        note: (text) => this.#tell(text, "note"),
        warn: (text) => this.#tell(text, "warn"),
        waiting: (text) => (this.steps.push(`waiting: ${text}`), () => void this.steps.push("waited")),
        busy: (text) => (this.steps.push(`busy: ${text}`), () => void this.steps.push("done")),
      },
    };
  }

  #tell(text: string, how: "note" | "warn"): void {
    this.told.push(text);
    this.steps.push(`${how}: ${text}`);
  }

  async #proveClient(secret: string, at: string): Promise<void> {
    if (at !== "https://tokens.example/token") this.broken.push(`a new secret went to ${at}`);
    const answer = await this.account.service.tokens.exchangeClient({ clientId: "", clientSecret: secret });
    if (answer?.kind !== "answered") throw new Failure("auth", "The token endpoint refuses the client.");
  }

  async #exchangeKey(secret: string, way: KeyExchange): Promise<Attempt<unknown> | undefined> {
    if (way.kind !== "endpoint" || way.url !== "https://api.example/exchange")
      this.broken.push(`a new secret was exchanged otherwise: ${JSON.stringify(way)}`);
    return this.account.service.tokens.exchangeAccessKey(secret);
  }

  #journal(): Journal {
    const sorted = (): Entry[] => {
      if (this.journalIsGone) throw new Failure("failed", "The journal cannot be read.");
      return this.entries.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    };
    const unfinished = (
      intent: Intent,
      { fresh = false, key }: { fresh?: boolean; key?: string } = {},
    ): Admission | undefined => {
      if (key !== undefined) {
        const holder = entryOfKey(sorted(), intent, { key, scope: "machine" });
        return holder && { kind: "same_key", lease: this.#lease(holder) };
      }
      const same = fresh
        ? []
        : entriesOfRequest(sorted(), intent, "machine").filter(
            ({ id, state }) => !isSettled(state) && !this.#held.has(id),
          );
      const unfinished = same.find(isResumable);
      if (unfinished === undefined && !fresh) {
        assertNoneLost(same);
        assertSameAccount(
          sorted().filter(({ state }) => !isSettled(state)),
          intent,
          "machine",
        );
      }
      return unfinished && { kind: "resumed", lease: this.#lease(unfinished) };
    };
    const selected = (filter: EntryFilter): Entry[] =>
      sorted()
        .filter((entry) => fits(entry, filter))
        .slice(0, filter.limit);
    const journal: Omit<
      Journal,
      | "path"
      | "escrow"
      | "count"
      | "history"
      | "takeAway"
      | "extendLeases"
      | "holdsLeases"
      | "records"
      | "merge"
      | "movedTo"
      | "markMoved"
      | "verify"
      | "condition"
      | "prune"
      | "close"
    > = {
      isShared: this.isTeam,
      entries: async () => sorted(),
      select: async (filter) => selected(filter),
      async *each(filter) {
        yield* selected(filter);
      },
      unsettled: async () => sorted().filter(({ state }) => !isSettled(state)),
      find: async (id) => findEntry(sorted(), id),
      resume: async (intent, options) => unfinished(intent, options),
      admit: async (intent, options) =>
        unfinished(intent, options) ??
        this.#step(
          "admit",
          (): Admission => {
            const made = { id: `1${String(this.entries.length + 1).padStart(9, "0")}`, at: this.#at() };
            const key = intent.idempotent ? (options?.key ?? `key-${made.id}`) : null;
            const entry = newEntry(intent, { ...made, key });
            this.entries.push(entry);
            return { kind: "new", lease: this.#lease(entry) };
          },
          aboutOf(intent),
        ),
      lease: async (id) => this.#lease(findEntry(sorted(), id)),
      // To take and release a team's lease forgets until when a request of its last holder may be under way.
      tryLease: async (id) => {
        if (this.isTeam) throw new Error(`the team's lease of ${id} was taken`);
        this.onTryLease();
        return this.running.has(id) ? null : this.#lease(findEntry(sorted(), id));
      },
      holders: async () => new Map([...this.running].map((id) => [id, { pid: 1 } as never])),
    };
    return journal as Journal;
  }

  #at(): string {
    return new Date((this.now += 1)).toISOString();
  }

  #lease(from: Entry): EntryLease {
    const { id } = from;
    if (this.#held.has(id)) throw new Error(`${id} is held twice`);
    this.#held.add(id);
    const stored = (): Entry => this.entries.find((entry) => entry.id === id)!;
    // What was noted is gone with the process, unless a step was recorded after it.
    let noted: Partial<EntryProgress> | undefined;
    return {
      get entry() {
        return noted === undefined ? stored() : { ...stored(), ...noted };
      },
      note: (change) => {
        noted = { ...noted, ...change };
      },
      record: async (change) =>
        this.#step(
          "record",
          () => {
            if (this.journalIsGone) throw new Failure("failed", "The journal cannot be written.");
            const next = { ...stored(), ...noted, ...change, updated_at: this.#at() };
            this.entries[this.entries.indexOf(stored())] = next;
            return next;
          },
          `${Number(id) - 1e9} ${changesOf({ ...stored(), ...noted, ...change }, stored())}`,
        ),
      release: async () => void this.#held.delete(id),
    };
  }

  #secrets(): SecretKeeping {
    return {
      escrow: async () => false,
      profileWith: async (id) => {
        const [name] = [...this.profiles].find(([, its]) => its.id === id) ?? [];
        return name === undefined ? undefined : { kind: "profile", name, profileId: name };
      },
      completeDelivery: async (record, { clientId, id }) => {
        if (record.kind === "store")
          return rememberedStore(record, { open: async () => this.#store(), keys: this.#keys() }).completeDelivery({});
        return this.#step("complete delivery", () => {
          if (record.kind === "profile") return this.profiles.get(record.name)?.id === (clientId ?? id ?? "none");
          if (record.kind !== "file" || record.reserved === undefined) return false;
          const whole = this.reserves.get(record.reserved);
          if (whole) this.files.set(record.path, { reserve: record.reserved, secret: whole });
          return this.files.get(record.path)?.reserve === record.reserved;
        });
      },
      removeReserve: async (record) =>
        this.#step("remove reserve", () => {
          if (record.kind === "file" && record.reserved !== undefined && !this.reserves.get(record.reserved))
            this.reserves.delete(record.reserved);
        }),
      reread: async (record) =>
        this.#step("reread", () => {
          const file = record.kind === "file" ? this.files.get(record.path) : undefined;
          return record.kind === "file" && file?.reserve === record.reserved ? file?.secret : undefined;
        }),
      place: this.place,
      reserve: async () => this.#step("reserve", () => {}),
      keep: async (entry, secret) => this.#step("keep", () => void this.kept.set(entry, secret), secret.receipt),
      isKept: (entry) => this.#step("is kept", () => this.kept.has(entry)),
      isEscrowed: () => false,
      readKept: async (entry) =>
        this.#step("read kept", () => {
          const kept = this.kept.get(entry);
          if (kept === undefined) throw new Failure("failed", `No secret is kept for ${entry}.`);
          return kept;
        }),
      destroyKept: async (entry, options) =>
        this.#step("destroy", () => void this.kept.delete(entry), options?.keepsProof ? "keeping the proof" : ""),
      release: async () => this.#step("release kept", () => {}),
    };
  }

  /** The destination of a command, as each process makes it anew. */
  destination(kind: DestinationKind = this.#setting.destination ?? "file"): Destination {
    if (kind !== "three") return this.single(kind);
    return severalDestinations((["file", "store", "profile"] as const).map((one) => this.single(one)));
  }

  /** True if a file, the store and the profile hold one and the same secret. */
  haveAll(): boolean {
    const secrets = [this.files.get("/secret")?.secret, this.stored.at(-1), this.profiles.get("target")?.secret];
    return secrets.every((secret) => secret !== undefined && secret === secrets[0]);
  }

  #keys(): ProofKeys {
    const find = (entry: string): Buffer | undefined => this.#proofKeys.get(entry);
    const make = async (entry: string): Promise<Buffer> => {
      if (!find(entry)) this.#proofKeys.set(entry, Buffer.from(entry));
      return find(entry)!;
    };
    return { find, make };
  }

  #store(): StoreTarget {
    return {
      scheme: "memory",
      keys: this.#keys(),
      store: {
        address: "a",
        check: async () => ({ server: "s" }),
        prepare: async () => this.#step("prepare store", () => ({ version: String(this.stored.length) })),
        write: async (text) => this.#step("write store", () => void this.stored.push(text)),
        read: async () => this.#step("read store", () => this.stored.at(-1)),
      },
    };
  }

  /** One destination, as each process makes it anew. */
  single(kind: PlaceKind): SingleDestinationPlace {
    if (kind === "store") return storeDestination(this.#store());
    let reserved: string | undefined;
    const record = (): SingleRecord => {
      if (kind === "file") return { kind, path: "/secret", as: "raw", force: false, reserved };
      return kind === "profile" ? { kind, name: "target", profileId: "t1" } : { kind };
    };
    return {
      isStdout: kind === "stdout",
      get record() {
        return record();
      },
      check: async () =>
        this.#step("check", () => {
          if (kind === "file" && this.files.has("/secret")) throw new Failure("usage", "/secret exists.");
          return record();
        }),
      prepare: async (work) =>
        this.#step("prepare", () => {
          reserved = `/.secret.${work}`;
          if (kind === "file" && !this.reserves.has(reserved)) this.reserves.set(reserved, "");
          return record();
        }),
      deliver: async (secret) => {
        if (kind === "file") this.#step("write", () => void this.reserves.set(reserved!, secret.secret));
        this.#step("deliver", () => this.#take(kind, secret, reserved), secret.receipt);
      },
      release: async () =>
        this.#step("release", () => {
          if (kind === "file" && reserved !== undefined && !this.reserves.get(reserved)) this.reserves.delete(reserved);
        }),
    };
  }

  #take(kind: PlaceKind, { secret, clientId, id }: OneTimeSecret, reserved = ""): void {
    if (kind === "file") {
      this.files.set("/secret", { reserve: reserved, secret });
      this.reserves.delete(reserved);
    } else if (kind === "profile") this.profiles.set("target", { id: clientId ?? id, secret });
    else this.printed.push(secret);
  }
}

/** All that an entry begins with, except whose it is. */
function aboutOf(intent: Intent): string {
  const { operation, method, path, idempotent, request_text, fingerprint, parent, replaces, detail } = intent;
  const links = [parent && `of ${parent}`, replaces && `for ${replaces}`, idempotent ? "" : "without a key"];
  return [operation, method, path, request_text, fingerprint, ...links, JSON.stringify(detail)]
    .filter(Boolean)
    .join(" ");
}

/** What a record says that the one before did not. */
function changesOf(entry: Entry, before: Entry): string {
  const partsOf = ({ detail, destination, ...rest }: Entry): Readonly<Record<string, unknown>> => {
    const places = destination?.kind === "several" ? destination.places.map(({ state }) => state) : destination;
    return { ...rest, ...detail, destination: places, updated_at: undefined, sent_as: undefined };
  };
  const [now, then] = [partsOf(entry), partsOf(before)];
  const names = Object.keys({ ...then, ...now }).filter(
    (name) => JSON.stringify(now[name]) !== JSON.stringify(then[name]),
  );
  const words = names.map((name) => `${name}=${JSON.stringify(now[name])}`).join(" ");
  return words.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>");
}

/**
 * Lives through a scene once for each point at which its process can crash; after each crash everything is recovered, and
 * what is left is looked at. Then some of the same with a second crash, during that recovery.
 * @returns how many crashes there were
 */
export async function everyCrash(
  scene: () => { readonly world: AWorld; readonly act: () => Promise<Ended<unknown>> },
  check: (world: AWorld, at: string) => void,
): Promise<number> {
  let crashes = 0;
  const live = async (first: number, second: number): Promise<"none" | "first" | "both"> => {
    const { world, act } = scene();
    world.crashAt = first;
    if ((await act()).kind !== "crash") return "none";
    world.crashAt = second;
    const isSecond = (await world.recover()).kind === "crash";
    world.crashAt = Number.POSITIVE_INFINITY;
    // After an overlap, or before a list is believed, recovery is typed again.
    for (let round = 0; round < 3 && world.unsettled().length > 0; round++) {
      world.now += 3_600_000;
      await world.recover();
    }
    crashes += 1;
    check(world, `crash at point ${first}${isSecond ? `, then at ${second}` : ""}`);
    return isSecond ? "both" : "first";
  };
  // After a call nothing outside the process is other than before the next one: a sample has one point for both.
  const [step, stride] = isFull ? [1, 11] : [2, 42];
  for (let first = 1; (await live(first, Number.POSITIVE_INFINITY)) !== "none"; first += step)
    for (let second = 1 + (first % stride); (await live(first, second)) === "both"; second += stride);
  return crashes;
}
