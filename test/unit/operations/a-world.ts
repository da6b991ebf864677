// A simulation in memory of all that a change reads and writes: the account, the journal, kept secrets, destinations, the clock.
// A world outlives its processes: a process may crash at any call, and the next one continues with the remaining state.
import { DiskHealth } from "../../../src/disk/disk-health.ts";
import { recover, type Recovered, type RecoveryOptions } from "../../../src/operations/recovery.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import type { Attempt } from "../../../src/api/call/attempt.ts";
import { Failure, type FailureKind } from "../../../src/errors.ts";
import { type Entry, isGuess, isSettled, type KeyExchange } from "../../../src/journal/entry.ts";
import type { Destination, SingleDestinationPlace } from "../../../src/secrets/destination.ts";
import { rememberedSeveral, severalDestinations } from "../../../src/secrets/several.ts";
import { InMemory, isDelivered, isKept, newMachine, type Outside } from "../../model/in-memory.ts";
import { AnAccount, type Fate, type Request } from "./an-account.ts";

/** Thrown to end a process: a single object, because creating a stack trace takes longer than creating a world. */
const crash = new Error("the process ended");

type PlaceKind = "file" | "profile" | "command" | "stdout" | "store";
/** `three`: a file, a store and a profile. */
export type DestinationKind = PlaceKind | "three";

export interface Ended<T> {
  readonly kind: FailureKind | "done" | "crash";
  readonly value?: T;
  readonly failure?: Failure;
}

export interface Setting {
  readonly destination?: DestinationKind;
  readonly fates?: Partial<Record<Request, Fate[]>>;
  readonly retryForMs?: number;
  readonly proves?: boolean;
  /** The names of the first process's calls that fail, such as `deliver`, `keep` or `record 3`. */
  readonly failing?: readonly string[];
}

export class AWorld {
  readonly account = new AnAccount();
  readonly #machine = newMachine("1");
  readonly #outside: Outside = { stores: new Map(), profiles: new Map(), printed: new Set() };
  readonly machine = this.#machine;
  readonly entries = this.#machine.entries;
  readonly kept = this.#machine.kept;
  readonly files = this.#machine.files;
  readonly reserves = this.#machine.reserves;
  readonly profiles = this.#outside.profiles;
  readonly calls: string[] = [];
  readonly messages: string[] = [];
  readonly broken: string[] = [];
  /** Ids of the clients and keys that a change may revoke although their secret is in use. */
  readonly revocable = new Set<string>();
  keyId = "ak_own";
  now = Date.parse("2026-11-21T02:00:00.000Z");
  elapsed = 0;
  onSleep: () => void = () => {};
  /** The process ends at the point with this number. Points are before and after each call. */
  crashAt = Number.POSITIVE_INFINITY;
  journalIsGone = false;
  /** The only addresses that may receive a new secret for its proof, whatever an entry says. */
  proofAddresses = { client: "https://tokens.example/token", key: "https://api.example/exchange" };
  /** `<machine>:<folder>` of the current processes. */
  place = "here:/state";
  readonly running = new Set<string>();
  /** Called when recovery tries to take an entry, before it learns if another process works on it. */
  onTryLease: () => void = () => {};
  isTeam = false;
  readonly #setting: Setting;
  #process = {};
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
    this.account.step = (name, effect) => this.#step(name, effect);
    this.account.onRequest = (what, about) => this.#audit(what, about);
  }

  async run<T>(work: (bench: Workbench) => Promise<T>): Promise<Ended<T>> {
    this.#isDead = false;
    this.#points = 0;
    this.#counts = new Map();
    this.#process = {};
    this.#machine.leases.clear();
    this.calls.length = 0;
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
      this.#machine.leases.clear();
    }
  }

  /** Recovers with every consent by default, and after a guess of the key again with the key's id. */
  async recover(
    answers: Partial<RecoveryOptions> = {},
    onBegin: (bench: Workbench) => void = () => {},
  ): Promise<Ended<Recovered[]>> {
    const ended = await this.#recoverOnce(answers, onBegin);
    const guess = ended.value?.find(({ entry }) => entry.state === "secret_lost" && isGuess(entry));
    const hasEveryConsent = !("mayReplace" in answers) && !("namedRevocation" in answers) && !this.#isDead;
    if (guess === undefined || !hasEveryConsent) return ended;
    return this.#recoverOnce({ ...answers, namedRevocation: guess.entry.resource_id! }, onBegin);
  }

  async #recoverOnce(
    answers: Partial<RecoveryOptions>,
    onBegin: (bench: Workbench) => void,
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

  get stored(): readonly string[] {
    return this.#outside.stores.get("a") ?? [];
  }

  isSafe(secret: string): boolean {
    const isThere = isDelivered(secret, this.#outside, [this.#machine]) || this.stored.includes(secret);
    return isThere || isKept(secret, [this.#machine]);
  }

  #point(): void {
    if (this.#isDead) throw crash;
    this.#points += 1;
    if (this.#points !== this.crashAt) return;
    this.#isDead = true;
    throw crash;
  }

  #step<T>(name: string, effect: () => T): T {
    this.#point();
    this.calls.push(name);
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    if (this.#failing.includes(name) || this.#failing.includes(`${name} ${count}`))
      throw new Failure("failed", `no ${name}`);
    const result = effect();
    this.#point();
    return result;
  }

  /** A creation or rotation must be on disk when it arrives, and a revocation must not invalidate a secret in use. */
  #audit(what: Request, { id, body, key }: { id?: string; body?: string; key?: string }): void {
    const isOnDisk = (entry: Entry): boolean =>
      entry.attempts > 0 &&
      (body === undefined || (entry.request_text === body && entry.idempotency_key === (key ?? null)));
    if ((what === "create" || what === "rotate") && !this.entries.some(isOnDisk))
      this.broken.push(`${what} was sent before it was on disk`);
    if (what !== "revoke") return;
    const all = [...this.account.clients, ...this.account.keys];
    const revoked = all.find((made) => made.id === id);
    if (revoked === undefined || revoked.status !== "active") return;
    const { destination } = this.#setting;
    if (this.revocable.has(revoked.id) && destination === "three" && !this.allHaveSameSecret())
      this.broken.push(`${id} was revoked before all destinations had the new secret`);
    const isNamed = this.entries.some((entry) => entry.operation.endsWith(".revoke") && entry.attempts > 0);
    const other = all.find(
      (made) => made !== revoked && made.id !== "ak_own" && made.status === "active" && this.isSafe(made.secret),
    );
    if (isNamed || (this.revocable.has(revoked.id) && other)) return;
    if (this.revocable.has(revoked.id)) this.broken.push(`${id} was revoked, and no working credential replaces it`);
    else if (this.isSafe(revoked.secret)) this.broken.push(`${id} was revoked, and its secret is delivered or kept`);
  }

  #bench(): Workbench {
    const { proves = true, retryForMs = 60_000 } = this.#setting;
    const { service } = this.account;
    const here = this.#here();
    return {
      account: {
        profile: "p",
        profileId: "p1",
        region: "us",
        baseUrl: "https://api.example",
        organizationId: null,
        serviceVersion: "2026-08-05",
        service,
        keyId: this.keyId,
        proof: proves ? { token_endpoint: "https://tokens.example/token", client_auth: "client_secret_basic" } : null,
        keyExchange: { kind: "endpoint", url: "https://api.example/exchange" },
        credentialDigest: async (text) => `${this.account.credential} ${text}`,
        exchangeKey: (secret, way) => this.#exchangeKey(secret, way),
        proveClient: (client, at) => this.#proveClient(client.secret, at.token_endpoint),
      },
      journal: here.journal(),
      secrets: here.secrets(),
      disk: new DiskHealth(),
      retryForMs,
      clock: {
        now: () => (this.now += 1),
        elapsed: () => (this.elapsed += 1),
        sleep: async (ms) => {
          this.now += ms;
          this.elapsed += ms;
          this.onSleep();
          if (this.#interruption.signal.aborted) throw this.#interruption.signal.reason;
        },
        random: () => 0.5,
        interruption: this.#interruption.signal,
        finishing: (work) => work(),
      },
      tell: {
        note: (text) => void this.messages.push(text),
        warn: (text) => void this.messages.push(text),
        waiting: () => () => {},
        busy: () => () => {},
      },
    };
  }

  async #proveClient(secret: string, at: string): Promise<void> {
    if (at !== this.proofAddresses.client) this.broken.push(`a new secret went to ${at}`);
    const answer = await this.account.service.tokens.exchangeClient({ clientId: "", clientSecret: secret });
    if (answer?.kind === "refused") throw new Failure("auth", "The token endpoint refuses the client.");
    if (answer?.kind !== "answered") throw new Failure("unreachable", "The token endpoint gave no answer.");
  }

  async #exchangeKey(secret: string, way: KeyExchange): Promise<Attempt<unknown> | undefined> {
    if (way.kind !== "endpoint" || way.url !== this.proofAddresses.key)
      this.broken.push(`a new secret was exchanged otherwise: ${JSON.stringify(way)}`);
    return this.account.service.tokens.exchangeAccessKey(secret);
  }

  #here(): InMemory {
    const { leases } = this.#machine;
    const process = this.#process;
    const reading = (): void => {
      if (this.journalIsGone) throw new Failure("failed", "The journal cannot be read.");
    };
    return new InMemory(this.#machine, this.#outside, {
      by: process,
      call: async (what, effect) => this.#step(what, effect),
      waitFor: async () => {},
      at: () => new Date((this.now += 1)).toISOString(),
      isShared: this.isTeam,
      isFree: (id) => !leases.has(id),
      // Taking and releasing a team's lease clears the time until which its last holder's request may be in flight.
      mayTry: (id) => {
        if (this.isTeam) throw new Error(`the team's lease of ${id} was taken`);
        this.onTryLease();
        return !this.running.has(id);
      },
      holders: () => this.running,
      taking: (id) => {
        if (leases.has(id)) throw new Error(`${id} is held twice`);
      },
      reading,
      recording: () => {
        if (this.journalIsGone) throw new Failure("failed", "The journal cannot be written.");
      },
      destroying: () => {},
      place: this.place,
      keptName: (entry) => entry,
    });
  }

  destination(kind: DestinationKind = this.#setting.destination ?? "file"): Destination {
    if (kind !== "three") return this.single(kind);
    return severalDestinations((["file", "store", "profile"] as const).map((one) => this.single(one)));
  }

  allHaveSameSecret(): boolean {
    const secrets = [this.files.get("/secret")?.secret, this.stored.at(-1), this.profiles.get("target")?.secret];
    return secrets.every((secret) => secret !== undefined && secret === secrets[0]);
  }

  single(kind: PlaceKind): SingleDestinationPlace {
    const here = this.#here();
    return kind === "store" ? here.store("a") : kind === "file" ? here.file("/secret") : here.withoutReserve(kind);
  }
}
