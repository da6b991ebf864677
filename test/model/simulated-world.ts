// One world of one seed, in memory: an account, machines with their journals and disks, a clock, and processes that take
// turns. It watches every request and every step with the promises of docs/design in hand, and knows nothing of how
// changes/ keeps them.
import { TakenPlaces } from "../../src/commands/journal/taken-places.ts";
import { accountOf } from "../../src/commands/running/change.ts";
import type { Context } from "../../src/context.ts";
import type { Service } from "../../src/api/connect.ts";
import type { Attempt } from "../../src/api/call/attempt.ts";
import { DiskHealth, otherPlaces, type Workbench } from "../../src/changes/workbench.ts";
import type { SecretKeeping } from "../../src/secrets/kept.ts";
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
import { findEntry, type EntryFilter, fits } from "../../src/journal/lookup.ts";
import type { Admission, AdmissionChoice, EntryLease, Intent, Journal } from "../../src/journal/journal.ts";
import type { Destination, OneTimeSecret, SingleDestinationPlace } from "../../src/secrets/destination.ts";
import { AnAccount, type Fate, type Made, type Request } from "../unit/changes/an-account.ts";
import { type Chance, Process, Turns } from "./turns.ts";

/** A machine: what its processes share and what a crash leaves. Another folder of kept secrets is another place. */
export interface Machine {
  readonly name: string;
  readonly entries: Entry[];
  readonly held: Map<string, Process>;
  readonly files: Map<string, { readonly reserve: string; readonly secret: string }>;
  readonly reserves: Map<string, string>;
  /** By place and entry. */
  readonly kept: Map<string, OneTimeSecret>;
}

/** What one process finds around it. */
export interface Surroundings {
  readonly machine: Machine;
  readonly serviceVersion: string | undefined;
  readonly organizationId: string | undefined;
  /** Whether the profile, or the environment, names a token endpoint. */
  readonly proves: boolean;
  /** How far this machine's clock is ahead. */
  readonly skewMs: number;
  /** Folder of kept secrets. */
  readonly folder: string;
}

export interface Weather {
  /** How often a request meets a fault, a process is killed, a lease is lost. */
  readonly faults: number;
  readonly kills: number;
  readonly lostLeases: number;
}

/** A request under a key as the service met it. */
interface Sent {
  readonly body: string;
  readonly version: string;
  readonly organization: string | undefined;
}

const fates: Readonly<Record<Request, readonly Fate[]>> = {
  create: [
    "lost before",
    "lost after",
    "cut",
    "broken after",
    "silent",
    "pending",
    "not sent",
    { refused: 429, retryAfterSeconds: 60 },
    { refused: 403 },
  ],
  get: ["lost before", { refused: 429 }],
  revoke: ["lost before", "lost after", "broken after", "not sent", { refused: 404 }, { refused: 429 }],
  list: ["lost before", { refused: 429 }],
  rotate: ["lost before", "lost after", "cut", "broken after", "not sent", { refused: 429 }],
  exchange: ["lost before", { refused: 401 }],
};

export class World {
  readonly account = new AnAccount();
  readonly turns: Turns;
  readonly chance: Chance;
  readonly machines: Machine[] = [];
  /** Promises that were seen broken. */
  readonly broken: string[] = [];
  readonly printed = new Set<string>();
  /** Credentials that a change may revoke although their secret is in use, with the id of whoever asked. */
  readonly mayGo = new Set<string>();
  /** Secrets that were shown to work by an exchange. */
  readonly proven = new Set<string>();
  readonly #sent = new Map<string, Sent>();
  /** By whom something was made: the entry that was under way. */
  readonly makers = new Map<string, { readonly machine: Machine; readonly entry: string }>();
  /** What a receipt showed otherwise than it was asked for. */
  readonly lied = new Set<string>();
  /** What somebody revoked by hand, without integ. */
  readonly revokedByHand = new Set<string>();
  /** Entries whose client or key was revoked by hand after its secret was lost: nothing is to be made in its place. */
  readonly endedByHand = new Set<string>();
  /** The key of a creation that was refused as too early and has met nothing else, by machine and request. */
  readonly #tooEarly = new Map<string, string>();
  /** The newest secret of a key that was rotated in place: by whom, for which entry, and when. */
  readonly #rotated = new Map<string, { readonly process: Process; readonly entry: string; readonly at: number }>();
  readonly #startedAt = new Map<Process, number>();
  #moments = 0;
  /** Two processes may do the same at the same moment. */
  isTwoFold = false;
  /** What receipts show for now instead of what was asked for. */
  lie: Readonly<Record<string, unknown>> | undefined;
  weather: Weather = { faults: 0, kills: 0, lostLeases: 0 };
  now = Date.parse("2026-11-21T02:00:00.000Z");
  elapsed = 0;

  constructor(chance: Chance) {
    this.chance = chance;
    this.turns = new Turns(chance);
    this.account.now = () => this.now;
    this.account.has("key", "ak_own");
  }

  machine(name: string): Machine {
    const made: Machine = {
      name,
      entries: [],
      held: new Map(),
      files: new Map(),
      reserves: new Map(),
      kept: new Map(),
    };
    this.machines.push(made);
    return made;
  }

  /** Starts a process; what it came to is handed to `ended`. */
  start(
    name: string,
    around: Surroundings,
    work: (bench: Workbench, process: Process) => Promise<unknown>,
    ended: (end: { readonly value?: unknown; readonly failure?: Failure }) => void,
  ): Process {
    const process = new Process(name);
    this.turns.start(process, async () => {
      this.#startedAt.set(process, (this.#moments += 1));
      try {
        const value = await work(await this.#bench(process, around), process);
        ended({ value });
      } catch (error) {
        if (error instanceof Failure) return ended({ failure: error });
        const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
        this.broken.push(`${name} ended with a bug: ${what}`);
      }
    });
    return process;
  }

  async live(): Promise<void> {
    await this.turns.live(this.weather.kills, (process) => {
      for (const { held } of this.machines) for (const [id, by] of held) if (by === process) held.delete(id);
    });
    const stuck = this.turns.processes.find(({ isDead, isEnded }) => !isDead && !isEnded);
    if (stuck) this.broken.push(`${stuck.name} waits for ever, before ${stuck.at}`);
    this.turns.processes.length = 0;
    for (const { held } of this.machines) held.clear();
  }

  /** True if a secret is somewhere: where it was to go, or kept. */
  isSafe(secret: string): boolean {
    return (
      this.printed.has(secret) ||
      this.machines.some(
        ({ files, reserves, kept }) =>
          [...files.values()].some((file) => file.secret === secret) ||
          [...reserves.values()].includes(secret) ||
          [...kept.values()].some((one) => one.secret === secret),
      )
    );
  }

  all(): Made[] {
    return [...this.account.clients, ...this.account.keys];
  }

  async #bench(process: Process, around: Surroundings): Promise<Workbench> {
    const journal = this.#journal(process, around);
    const bench = {
      account: await this.#account(process, around),
      journal,
      secrets: this.#secrets(process, around),
      disk: new DiskHealth(),
      retryForMs: this.chance.pick([0, 60_000]),
      clock: {
        now: () => (this.now += 1) + around.skewMs,
        elapsed: () => (this.elapsed += 1),
        sleep: async (ms: number) => {
          await this.turns.turn(process, `sleep ${ms}`);
          this.now += ms;
          this.elapsed += ms;
        },
        random: () => 0.5,
        interruption: new AbortController().signal,
        finishing: <T>(work: () => Promise<T>) => work(),
      },
      tell: { note: () => {}, warn: () => {}, waiting: () => () => {}, busy: () => () => {} },
    };
    return bench;
  }

  /** As the commands make it of profile, environment and flags, for new work or for an entry's. */
  async #account(process: Process, around: Surroundings, entry?: Entry): Promise<Workbench["account"]> {
    const endpoint = "https://tokens.example/token";
    const profile = {
      id: "p1",
      name: "p",
      region: "us",
      baseUrl: "https://api.example",
      organizationId: around.organizationId,
      oauth: around.proves ? { token_endpoint: endpoint, client_auth: "client_secret_basic" } : undefined,
      keyExchange: { kind: "endpoint", url: "https://api.example/exchange" },
      keyId: "ak_own",
    };
    const context = {
      profiles: { active: async () => profile, named: async () => profile },
      settings: { serviceVersion: around.serviceVersion },
      journal: async () => this.#journal(process, around),
      connect: async (_profile: unknown, { serviceVersion }: { serviceVersion?: string } = {}) =>
        this.#service(process, around, serviceVersion ?? around.serviceVersion ?? "2026-07-01"),
    };
    const account = await accountOf(context as unknown as Context, entry);
    return {
      ...account,
      credentialDigest: async (text) => text,
      proveClient: async ({ secret }, at) => {
        if (at.token_endpoint !== endpoint) this.broken.push(`a new secret went to ${at.token_endpoint}`);
        const answer = await account.service.tokens.exchangeClient({ clientId: "", clientSecret: secret });
        if (answer?.kind !== "answered") throw new Failure("auth", "The token endpoint refuses the client.");
      },
      exchangeKey: (secret) => account.service.tokens.exchangeAccessKey(secret),
    };
  }

  #service(process: Process, { machine, skewMs, organizationId }: Surroundings, version: string): Service {
    const { service } = this.account;
    let isTold = false;
    const asked = async <T>(what: Request, send: () => Promise<Attempt<T>>): Promise<Attempt<T>> => {
      await this.turns.turn(process, what);
      const lost = [...machine.held.values()].includes(process) ? undefined : "lease";
      if (lost !== undefined && (what === "create" || what === "rotate" || what === "revoke"))
        throw new Failure("outcome_unknown", "Another process has the entry now: nothing was sent.", { unsent: true });
      this.account.fates[what] = this.chance.is(this.weather.faults) ? [this.chance.pick(fates[what])] : [];
      const fate = this.account.fates[what][0];
      const answer = await send();
      isTold ||= answer.kind === "answered" || answer.kind === "refused";
      this.turns.history.push(`  ${what} ${JSON.stringify(fate ?? "as asked")}: ${answer.kind}`);
      await this.turns.turn(process, `read the answer of ${what}`);
      return answer;
    };
    const making = async <T>(
      what: "create" | "rotate",
      about: { readonly body?: string; readonly key?: string },
      send: () => Promise<Attempt<T>>,
    ): Promise<Attempt<T>> =>
      asked(what, () => {
        this.#auditSent(machine, what, about, { version, organization: organizationId });
        const before = new Set(this.all());
        // Of a creation and its replacement, which ask for the same, the replacement is under way.
        const held = machine.entries.findLast(
          (entry) =>
            machine.held.get(entry.id) === process &&
            entry.attempts > 0 &&
            entry.request_text === about.body &&
            entry.idempotency_key === (about.key ?? null),
        );
        this.account.lies = this.#lieTo(machine, held);
        const sent = this.#watchTooEarly(machine, held, { version, organization: organizationId }, send);
        for (const one of this.all())
          if (!before.has(one) && held) this.makers.set(one.id, { machine, entry: held.id });
        // A status may be another one a moment later, and a false id is not the entry's to notice.
        const isLie = Object.keys(this.account.lies).some((name) => name !== "id" && name !== "status");
        void sent.then(({ kind }) => {
          if (kind === "answered" && isLie && held) this.lied.add(held.id);
        });
        return sent;
      });
    return {
      oauthClients: {
        create: (body: string, key: string) =>
          making("create", { body, key }, () => service.oauthClients.create(body, key)),
        get: (id: string) => asked("get", () => service.oauthClients.get(id)),
        revoke: (id: string) =>
          asked("revoke", () => {
            this.#auditRevocation(machine, id);
            return service.oauthClients.revoke(id);
          }),
      },
      accessKeys: {
        create: (body: string) => making("create", { body }, () => service.accessKeys.create(body)),
        list: () => asked("list", () => service.accessKeys.list()),
        rotate: (id: string) =>
          making("rotate", { body: "" }, () => {
            const entry = machine.entries.findLast(
              (one) => machine.held.get(one.id) === process && one.attempts > 0 && one.detail.key_id === id,
            );
            return this.#watchRotation(id, { process, entry: entry!.id }, () => service.accessKeys.rotate(id));
          }),
        revoke: (id: string) =>
          asked("revoke", () => {
            this.#auditRevocation(machine, id);
            const secret = this.account.keys.find((made) => made.id === id)?.secret;
            // Killed between its admission and its look at the others, a rotation is continued as if it had been first.
            if (this.weather.kills === 0)
              this.#auditSecret(id, { process, isSafe: secret !== undefined && this.isSafe(secret) });
            return service.accessKeys.revoke(id);
          }),
      },
      clockOffset: () => (isTold ? -skewMs : undefined),
      tokens: {
        exchangeAccessKey: (secret: string) =>
          asked("exchange", async () => {
            const answer = await service.tokens.exchangeAccessKey(secret);
            return this.#noteProof(secret, answer!);
          }),
        exchangeClient: (client: { clientSecret: string }) =>
          asked("exchange", async () => {
            const answer = await service.tokens.exchangeClient(client as never);
            return this.#noteProof(client.clientSecret, answer!);
          }),
      },
    } as unknown as Service;
  }

  async #watchRotation<T>(
    id: string,
    by: { readonly process: Process; readonly entry: string },
    send: () => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> {
    const key = (): Made | undefined => this.account.keys.find((made) => made.id === id);
    const before = key()?.secret;
    const last = this.#rotated.get(id);
    const isSafe = before !== undefined && this.isSafe(before);
    const answer = await send();
    if (key()?.secret === before) return answer;
    if (isSafe && last !== undefined && by.entry < last.entry)
      this.broken.push(`${id} was rotated for ${by.entry}, and the secret of ${last.entry} was delivered or kept`);
    else this.#auditSecret(id, { process: by.process, isSafe });
    // What did not arrive can be had only by another rotation.
    if (answer.kind === "answered") this.#rotated.set(id, { ...by, at: (this.#moments += 1) });
    else this.#rotated.delete(id);
    return answer;
  }

  /** A secret that another process has got, or gets at this moment, stops working only by what was typed after it. */
  #auditSecret(id: string, { process, isSafe }: { readonly process: Process; readonly isSafe: boolean }): void {
    const last = this.#rotated.get(id);
    if (last === undefined || last.process === process) return;
    // Typed with `--new` beside a replacement that ends by revoking the key.
    if (last.process.name.includes("--new")) return;
    const isUnderWay = !last.process.isDead && !last.process.isEnded;
    if (isUnderWay || (isSafe && this.#startedAt.get(process)! < last.at))
      this.broken.push(`the secret of ${id} for ${last.entry} stopped working at the same time as it came`);
  }

  /** Typed again after 429, a creation goes out under its own key. */
  #watchTooEarly<T>(
    machine: Machine,
    held: Entry | undefined,
    about: Omit<Sent, "body">,
    send: () => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> {
    const { idempotency_key: key = null, parent, replaces, request_text } = held ?? {};
    if (this.isTwoFold || key === null || parent !== null || replaces !== null) return send();
    const id = JSON.stringify([machine.name, request_text, about]);
    const before = this.#tooEarly.get(id);
    if (before !== undefined && before !== key)
      this.broken.push(`${before} was refused as too early, and ${key} was sent for the same request`);
    const sent = send();
    void sent.then((answer) => {
      if (answer.kind === "refused" && answer.status === 429) this.#tooEarly.set(id, key);
      else this.#tooEarly.delete(id);
    });
    return sent;
  }

  /** Somebody revokes something that works, without integ. */
  revokeByHand(id: string): void {
    const going = this.all().find((made) => made.id === id && made.status === "active");
    if (!going) return;
    going.status = "revoked";
    this.revokedByHand.add(id);
    this.turns.history.push(`somebody revokes ${id} by hand`);
    for (const { entries } of this.machines)
      for (const { id: entry, state, resource_id, detail, replaces } of entries)
        if (state === "secret_lost" && resource_id === id && detail.revoking !== true)
          if (!entries.some((other) => other.replaces === entry || replaces === other.id)) this.endedByHand.add(entry);
  }

  /** A false id is known to be one only where it is the id of what is to be replaced. */
  #lieTo({ entries }: Machine, held: Entry | undefined): Readonly<Record<string, unknown>> {
    if (this.lie?.id === undefined) return this.lie ?? {};
    const { detail } = entries.find(({ id }) => id === held?.parent) ?? {};
    const old = detail?.old_client ?? detail?.old_key;
    return old === undefined ? {} : { id: old };
  }

  #noteProof<T>(secret: string, answer: Attempt<T>): Attempt<T> {
    if (answer.kind === "answered") this.proven.add(secret);
    return answer;
  }

  /** Before it is sent a request is on disk; and one key is one request for ever. */
  #auditSent(
    machine: Machine,
    what: string,
    { body, key }: { readonly body?: string; readonly key?: string },
    sent: Omit<Sent, "body">,
  ): void {
    const isOnDisk = machine.entries.some(
      (entry) => entry.attempts > 0 && entry.request_text === body && entry.idempotency_key === (key ?? null),
    );
    if (!isOnDisk) this.broken.push(`${what} was sent and is not on disk`);
    if (key === undefined) return;
    const id = `${machine.name} ${key}`;
    const now = { body: body ?? "", ...sent };
    const before = this.#sent.get(id) ?? now;
    this.#sent.set(id, before);
    for (const name of ["body", "version", "organization"] as const)
      if (before[name] !== now[name])
        this.broken.push(`${key} was sent with ${name} ${before[name]}, then ${now[name]}`);
  }

  /** What works is revoked because a person named it, or because something that works is in its place. */
  #auditRevocation(machine: Machine, id: string): void {
    const going = this.all().find((made) => made.id === id);
    if (going?.status !== "active") return;
    const isNamed = machine.entries.some(
      (entry) => entry.operation.endsWith(".revoke") && entry.attempts > 0 && entry.resource_id === id,
    );
    if (isNamed) return;
    if (!this.mayGo.has(id)) {
      if (this.isSafe(going.secret)) this.broken.push(`${id} was revoked, and its secret is delivered or kept`);
      return;
    }
    const others = this.all().filter(
      (made) => made !== going && this.makers.has(made.id) && made.status === "active" && this.isSafe(made.secret),
    );
    if (others.length === 0) this.broken.push(`${id} was revoked, and nothing that works is in its place`);
    else if (!others.some(({ secret }) => this.proven.has(secret)))
      this.broken.push(`${id} was revoked, and what is in its place was never shown to work`);
  }

  #journal(process: Process, { machine, skewMs }: Surroundings): Journal {
    const { entries, held } = machine;
    const sorted = (): Entry[] => entries.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    const unsettled = (): Entry[] => sorted().filter(({ state }) => !isSettled(state));
    const at = (): string => new Date((this.now += 1) + skewMs).toISOString();
    const lease = (from: Entry): EntryLease => {
      held.set(from.id, process);
      return this.#lease(from.id, { process, machine, at });
    };
    const free = (id: string): boolean => !held.has(id) || held.get(id) === process;
    const unfinished = (intent: Intent, { fresh = false, key }: AdmissionChoice = {}): Admission | undefined => {
      if (key !== undefined) {
        const holder = entryOfKey(sorted(), intent, { key, scope: "machine" });
        if (holder && !free(holder.id))
          throw new Failure("outcome_unknown", "Another process works on it.", { unsent: true });
        return holder && { kind: "same_key", lease: lease(holder) };
      }
      const same = fresh
        ? []
        : entriesOfRequest(sorted(), intent, "machine").filter(({ id, state }) => !isSettled(state) && free(id));
      const found = same.find(isResumable);
      if (found === undefined && !fresh) {
        assertNoneLost(same);
        assertSameAccount(unsettled(), intent, "machine");
      }
      return found && { kind: "resumed", lease: lease(found) };
    };
    const selected = (filter: EntryFilter): Entry[] =>
      sorted()
        .filter((entry) => fits(entry, filter))
        .slice(0, filter.limit);
    return {
      entries: async () => sorted(),
      unsettled: async () => unsettled(),
      select: async (filter: EntryFilter) => selected(filter),
      async *each(filter: EntryFilter) {
        yield* selected(filter);
      },
      find: async (id: string) => findEntry(sorted(), id),
      resume: async (intent: Intent, options?: AdmissionChoice) => unfinished(intent, options),
      admit: async (intent: Intent, options?: AdmissionChoice) => {
        await this.turns.turn(process, "admit");
        const found = unfinished(intent, options);
        if (found) return found;
        const made = { id: `${machine.name}${String(entries.length + 1).padStart(8, "0")}`, at: at() };
        const key = intent.idempotent ? (options?.key ?? `key-${made.id}`) : null;
        const entry = newEntry(intent, { ...made, key });
        entries.push(entry);
        return { kind: "new", lease: lease(entry) };
      },
      lease: async (id: string) => {
        await this.turns.turn(process, "lease", () => free(id));
        return lease(findEntry(sorted(), id));
      },
      tryLease: async (id: string) => {
        await this.turns.turn(process, "try lease");
        return free(id) ? lease(findEntry(sorted(), id)) : null;
      },
      extendLeases: async () => {},
      holdsLeases: () => true,
      isShared: false,
    } as unknown as Journal;
  }

  #lease(id: string, { process, machine, at }: { process: Process; machine: Machine; at: () => string }): EntryLease {
    const { entries, held } = machine;
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
      record: async (change) => {
        await this.turns.turn(process, "record");
        if (held.get(id) === process && this.chance.is(this.weather.lostLeases)) held.delete(id);
        if (held.get(id) !== process) throw new Failure("failed", `The lease of ${id} is over.`);
        const next = { ...stored(), ...noted, ...change, updated_at: at() };
        entries[entries.indexOf(stored())] = next;
        return next;
      },
      release: async () => {
        if (held.get(id) === process) held.delete(id);
      },
    };
  }

  #secrets(process: Process, { machine, folder }: Surroundings): SecretKeeping {
    const { kept, files, reserves, name } = machine;
    const keyOf = (entry: string): string => `${folder} ${entry}`;
    const step = async <T>(what: string, effect: () => T): Promise<T> => {
      await this.turns.turn(process, what);
      return effect();
    };
    return {
      profileWith: async () => undefined,
      completeDelivery: (record) =>
        step("complete delivery", () => {
          if (record.kind !== "file" || record.reserved === undefined) return false;
          const whole = reserves.get(record.reserved);
          if (whole) {
            assertFree(files, record);
            files.set(record.path, { reserve: record.reserved, secret: whole });
            reserves.delete(record.reserved);
          }
          return files.get(record.path)?.reserve === record.reserved;
        }),
      removeReserve: (record) =>
        step("remove reserve", () => {
          if (record.kind === "file" && record.reserved !== undefined && !reserves.get(record.reserved))
            reserves.delete(record.reserved);
        }),
      reread: (record) =>
        step("reread", () => {
          const file = record.kind === "file" ? files.get(record.path) : undefined;
          return record.kind === "file" && file?.reserve === record.reserved ? file?.secret : undefined;
        }),
      escrow: async () => false,
      place: `${name}:${folder}`,
      reserve: () => step("reserve", () => {}),
      keep: (entry, secret) => step("keep", () => void kept.set(keyOf(entry), secret)),
      isKept: (entry) => kept.has(keyOf(entry)),
      isEscrowed: () => false,
      readKept: (entry) =>
        step("read kept", () => {
          const one = kept.get(keyOf(entry));
          if (one === undefined) throw new Failure("failed", `No secret is kept for ${entry}.`);
          return one;
        }),
      destroyKept: (entry) => step("destroy", () => void kept.delete(keyOf(entry))),
      release: () => step("release kept", () => {}),
    };
  }

  /** A file, as each process makes it anew. */
  file(process: Process, machine: Machine, { path, force = false }: { path: string; force?: boolean }): Destination {
    const { files, reserves } = machine;
    let reserved: string | undefined;
    const step = async <T>(what: string, effect: () => T): Promise<T> => {
      await this.turns.turn(process, what);
      return effect();
    };
    const record = () => ({ kind: "file", path, as: "raw", force, reserved }) as const;
    const place: SingleDestinationPlace = {
      isStdout: false,
      get record() {
        return record();
      },
      check: () =>
        step("check", () => {
          if (files.has(path) && !force) throw new Failure("usage", `${path} exists.`);
          return record();
        }),
      prepare: (work) =>
        step("prepare", () => {
          reserved = `${path}.${work}`;
          if (!reserves.has(reserved)) reserves.set(reserved, "");
          return record();
        }),
      deliver: async ({ secret }) => {
        await step("write", () => void reserves.set(reserved!, secret));
        await step("name", () => {
          assertFree(files, { path, force });
          files.set(path, { reserve: reserved!, secret });
          reserves.delete(reserved!);
        });
      },
      release: () =>
        step("release", () => {
          if (reserved !== undefined && !reserves.get(reserved)) reserves.delete(reserved);
        }),
    };
    return place;
  }

  /** Standard output: whoever reads it has the secret. */
  output(process: Process): Destination {
    const record = { kind: "stdout" } as const;
    return {
      isStdout: true,
      record,
      check: async () => record,
      prepare: async () => record,
      deliver: async ({ secret }) => {
        await this.turns.turn(process, "print");
        this.printed.add(secret);
      },
      release: async () => {},
    };
  }

  /** One command's recovery: each place takes one secret, an entry is finished as its own account. */
  recovering(process: Process, around: Surroundings, bench: Workbench) {
    const taken = new TakenPlaces();
    const path = this.chance.is(0.3) ? `/recovered by ${process.name}` : undefined;
    return {
      destinationOf: async (entry: Entry): Promise<Destination> => {
        const record = entry.destination;
        const to =
          path === undefined && record?.kind === "file"
            ? this.file(process, around.machine, { path: record.path, force: record.force })
            : this.file(process, around.machine, { path: path ?? `/recovered-${entry.id}`, force: path !== undefined });
        return taken.once(to, entry.parent ?? entry.id);
      },
      // As `--yes` agrees.
      mayReplace: async (entry: Entry) =>
        entry.detail.made_before !== true && otherPlaces(entry, bench.secrets.place).length === 0,
      mayRevokeUnproven: async () => false,
      waitMs: 60_000,
      overlap: "leave" as const,
      benchFor: async (entry: Entry) => ({ ...bench, account: await this.#account(process, around, entry) }),
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
