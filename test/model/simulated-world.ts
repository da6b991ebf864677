// The simulated world of one seed: an account, machines, a clock, and processes that take turns.
import { DiskHealth } from "../../src/disk/disk-health.ts";
import { TakenPlaces } from "../../src/commands/journal/taken-places.ts";
import { accountOf } from "../../src/commands/running/change.ts";
import type { Context } from "../../src/context.ts";
import type { Service } from "../../src/api/connect.ts";
import type { Attempt } from "../../src/api/call/attempt.ts";
import type { Workbench } from "../../src/operations/workbench.ts";
import { Failure } from "../../src/errors.ts";
import { mayBeCreatedElsewhere, type Entry, otherPlaces } from "../../src/journal/entry.ts";
import type { Journal } from "../../src/journal/journal.ts";
import type {
  Destination,
  SecretOptions,
  SingleDestinationPlace,
  SingleRecord,
} from "../../src/secrets/destination.ts";
import { rememberedSeveral, severalDestinations } from "../../src/secrets/several.ts";
import { AnAccount, type Fate, type Made, type Request } from "../unit/operations/an-account.ts";
import { InMemory, isDelivered, isKept, type Machine, newMachine, type Outside } from "./in-memory.ts";
import { profilesOf } from "./profiles-in-memory.ts";
import type { Reliance } from "./reliance.ts";
import { keptName, Promises, type Sending } from "./promises.ts";
import { type Chance, Process, Turns } from "./turns.ts";

export interface Surroundings {
  readonly machine: Machine;
  readonly serviceVersion: string | undefined;
  readonly organizationId: string | undefined;
  /** True if a token endpoint is known, so that a new client can be proven. */
  readonly proves: boolean;
  readonly skewMs: number;
  readonly folder: string;
}

export interface Wanted {
  readonly kind: "stdout" | "file" | "store" | "both";
  readonly path: string;
}

/** Probabilities for each request (`faults`), turn (`kills`, `interruptions`), record (`lostLeases`) and call (`disk`). */
export interface FaultRates {
  readonly faults: number;
  readonly kills: number;
  readonly lostLeases: number;
  readonly disk: number;
  readonly interruptions: number;
}

const endpoint = "https://tokens.example/token";

export const calm: FaultRates = { faults: 0, kills: 0, lostLeases: 0, disk: 0, interruptions: 0 };

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
    { refused: 429, retryAfterSeconds: 300 },
    { refused: 403 },
  ],
  get: ["lost before", { refused: 429 }],
  revoke: [
    "lost before",
    "lost after",
    "broken after",
    "not sent",
    { refused: 404 },
    { refused: 429, retryAfterSeconds: 60 },
  ],
  list: ["lost before", { refused: 429 }],
  rotate: ["lost before", "lost after", "cut", "broken after", "not sent", { refused: 429, retryAfterSeconds: 60 }],
  exchange: ["lost before", { refused: 401 }],
};

export class World {
  readonly account = new AnAccount();
  readonly turns: Turns;
  readonly chance: Chance;
  readonly machines: Machine[] = [];
  readonly promises = new Promises(this);
  readonly broken = this.promises.broken;
  readonly outside: Outside = { stores: new Map(), profiles: new Map(), printed: new Set() };
  /** A second random sequence, whose draws do not shift those of `chance`. */
  readonly #dice: Chance;
  /** Ids of credentials that integ did not create, which a rotation may revoke although their secret is in use. */
  readonly mayBeRevoked = new Set<string>();
  readonly proven = new Set<string>();
  readonly makers = new Map<string, { readonly machine: Machine; readonly entry: string }>();
  readonly lied = new Set<string>();
  readonly revokedByHand = new Set<string>();
  /** Entries whose credential was revoked by hand after its secret was lost. integ must not replace that credential. */
  readonly endedByHand = new Set<string>();
  /** True if two processes may perform the same step at the same time. */
  isSimultaneous = false;
  /** True if a clock was wrong at some time, which makes the times in the journal unreliable. */
  isSkewed = false;
  /** True in a history with false receipts, in which no person consents to skip a proof. */
  isLiar = false;
  /** The fields of receipts that are false at this moment. */
  lie: Readonly<Record<string, unknown>> | undefined;
  reliance: Reliance | undefined;
  /** True if the service may be slow and unreliable, but refuses no request permanently. */
  isBenign = false;
  isTeam = false;
  weather = calm;
  now = Date.parse("2026-11-21T02:00:00.000Z");
  elapsed = 0;

  constructor(chance: Chance, dice: Chance) {
    this.chance = chance;
    this.#dice = dice;
    this.turns = new Turns(chance);
    this.account.now = () => this.now;
    this.account.addExisting("key", "ak_own");
  }

  machine(name: string, team?: Machine): Machine {
    const made = newMachine(name, team);
    this.machines.push(made);
    return made;
  }

  start(
    name: string,
    around: Surroundings,
    work: (bench: Workbench, process: Process) => Promise<unknown>,
    ended: (end: { readonly value?: unknown; readonly failure?: Failure }) => void,
  ): Process {
    const process = new Process(name);
    this.turns.start(process, async () => {
      this.promises.started(process);
      try {
        const value = await work(await this.#bench(process, around), process);
        ended({ value });
      } catch (error) {
        if (error instanceof Failure) return ended({ failure: error });
        const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
        this.broken.push(`${name} ended with a bug: ${what}`);
      } finally {
        this.promises.ended(process, this.machines);
      }
    });
    return process;
  }

  async live(): Promise<void> {
    const onKill = (process: Process): void => {
      for (const { leases } of this.machines) for (const [id, by] of leases) if (by === process) leases.delete(id);
      this.promises.ended(process, this.machines);
    };
    await this.turns.live(this.weather.kills, onKill, (process) => {
      if (process.isInterrupted || !this.#dice.is(this.weather.interruptions)) return;
      this.turns.history.push(`${process.name} is interrupted`);
      process.interruption.abort(new Failure("interrupted", "Interrupted."));
    });
    const stuck = this.turns.processes.find(({ isDead, isEnded }) => !isDead && !isEnded);
    if (stuck) this.broken.push(`${stuck.name} waits for ever, before ${stuck.at}`);
    this.turns.processes.length = 0;
    for (const { leases } of this.machines) leases.clear();
  }

  isSafe(secret: string): boolean {
    return this.isDelivered(secret) || isKept(secret, this.machines);
  }

  isDelivered(secret: string): boolean {
    return isDelivered(secret, this.outside, this.machines);
  }

  entries(): Entry[] {
    return this.machines.flatMap(({ entries }) => entries);
  }

  /** A disk or store call may fail before or after its effect, a record or admission only before it. */
  async #call<T>(process: Process, what: string, effect: () => T, entry?: string): Promise<T> {
    await this.turns.turn(process, what);
    if (/^(?:read store|complete delivery|reread)$/.test(what)) this.reliance?.noteLook(process);
    if (!this.#dice.is(this.weather.disk)) return effect();
    if (what !== "record" && what !== "admit" && this.#dice.is(0.5)) effect();
    this.turns.history.push(`  ${what} fails`);
    this.promises.diskFailed(process, entry);
    // If the copy was not kept, a kill after a delivery to standard output leaves no record of the delivery.
    if (entry !== undefined) this.promises.unrecorded(process, entry);
    throw new Failure("failed", `The disk failed: ${what}.`);
  }

  all(): Made[] {
    return [...this.account.clients, ...this.account.keys];
  }

  async #bench(process: Process, around: Surroundings): Promise<Workbench> {
    this.isSkewed ||= around.skewMs !== 0;
    const machine = this.#on(process, around);
    const journal = machine.journal();
    return {
      account: await this.#account(process, around),
      journal,
      secrets: machine.secrets(),
      disk: new DiskHealth(),
      retryForMs: this.chance.pick([0, 60_000]),
      clock: this.#clock(process, around),
      tell: { note: () => {}, warn: () => {}, waiting: () => () => {}, busy: () => () => {} },
    };
  }

  #clock(process: Process, around: Surroundings): Workbench["clock"] {
    return {
      now: () => (this.now += 1) + around.skewMs,
      elapsed: () => (this.elapsed += 1),
      sleep: async (ms: number) => {
        this.promises.shareWait(process);
        await this.turns.turn(process, `sleep ${ms}`);
        if (process.isInterrupted) throw process.interruption.signal.reason;
        this.now += ms;
        this.elapsed += ms;
      },
      random: () => 0.5,
      interruption: process.interruption.signal,
      finishing: <T>(work: () => Promise<T>) => work(),
    };
  }

  async #account(process: Process, around: Surroundings, entry?: Entry): Promise<Workbench["account"]> {
    const account = await accountOf(this.context(process, around), entry);
    return {
      ...account,
      credentialDigest: async (text) => text,
      proveClient: async ({ secret }, at) => {
        this.#provesAt(at.token_endpoint);
        const answer = await account.service.tokens.exchangeClient({ clientId: "", clientSecret: secret });
        if (answer?.kind !== "answered") throw new Failure("auth", "The token endpoint refuses the client.");
      },
      exchangeKey: (secret) => account.service.tokens.exchangeAccessKey(secret),
    };
  }

  #provesAt(address: string | undefined): void {
    if (address !== endpoint) this.broken.push(`a new secret went to ${address}`);
  }

  context(process: Process, around: Surroundings): Context {
    const here = this.#on(process, around);
    const keeping = here.secrets();
    const undelivered = { ...keeping, read: keeping.readKept, destroy: keeping.destroyKept };
    const progress = { done: () => {} };
    const profile = {
      id: "p1",
      name: "p",
      region: "us",
      baseUrl: "https://api.example",
      organizationId: around.organizationId,
      oauth: around.proves ? { token_endpoint: endpoint, client_auth: "client_secret_basic" } : undefined,
      keyExchange: { kind: "endpoint", url: "https://api.example/exchange" },
      keyId: "ak_own",
      credential: async () => ({ kind: "api_key", key: "own" }),
      legacy: async () => ({ kind: "access_token", token: "own" }),
    };
    const stores = here.profiles;
    return {
      profiles: { active: async () => profile, named: async () => profile, store: async () => stores?.store },
      settings: { serviceVersion: around.serviceVersion, retryForMs: 60_000, yes: true, cwd: "/" },
      journal: async (): Promise<Journal> => here.journal(),
      connect: async (_profile: unknown, { serviceVersion }: { serviceVersion?: string } = {}) =>
        this.#service(process, around, serviceVersion ?? around.serviceVersion ?? "2026-07-01"),
      loadForChange: async () => {},
      clock: this.#clock(process, around),
      output: {
        interactive: false,
        note: () => {},
        warn: () => {},
        countdown: () => progress,
        progress: () => progress,
      },
      secrets: {
        ...keeping,
        isOfOtherServer: async () => false,
        undelivered: async () => undelivered,
        destination: async (options: SecretOptions) => here.destination(options),
      },
    } as unknown as Context;
  }

  #fatesOf(what: Request): readonly Fate[] {
    const isSlow = (fate: Fate): boolean => typeof fate !== "object" || fate.refused === 429;
    return this.isBenign ? fates[what].filter(isSlow) : fates[what];
  }

  #service(process: Process, around: Surroundings, version: string): Service {
    const { machine, skewMs, organizationId } = around;
    const { service } = this.account;
    let hasServiceTime = false;
    const asked = async <T>(what: Request, send: () => Promise<Attempt<T>>): Promise<Attempt<T>> => {
      this.account.fates[what] = this.chance.is(this.weather.faults) ? [this.chance.pick(this.#fatesOf(what))] : [];
      const fate = this.account.fates[what][0];
      const answer = await send();
      hasServiceTime ||= answer.kind === "answered" || answer.kind === "refused";
      this.turns.history.push(`  ${what} ${JSON.stringify(fate ?? "as asked")}: ${answer.kind}`);
      await this.turns.turn(process, `read the answer of ${what}`);
      return answer;
    };
    const read = async <T>(what: Request, send: () => Promise<Attempt<T>>): Promise<Attempt<T>> => {
      await this.turns.turn(process, what);
      return asked(what, send);
    };
    const change = async <T>(
      request: Sending,
      send: (entry: Entry | undefined) => Promise<Attempt<T>>,
    ): Promise<Attempt<T>> => {
      await this.turns.turn(process, request.what);
      if (![...machine.leases.values()].includes(process))
        throw new Failure("outcome_unknown", "Another process has the entry now: nothing was sent.", { unsent: true });
      let entry: Entry | undefined;
      const answer = await asked(request.what, () => {
        entry = this.promises.sending(process, around, request, version);
        return send(entry);
      });
      this.promises.answered(process, entry, answer);
      return answer;
    };
    const making = async <T>(request: Sending, send: () => Promise<Attempt<T>>): Promise<Attempt<T>> =>
      change(request, (entry) => {
        const before = new Set(this.all());
        this.account.lies = this.#lieTo(machine, entry);
        const see = entry && this.promises.tooEarly(machine, entry, { version, organization: organizationId });
        const sent = send();
        for (const one of this.all())
          if (!before.has(one) && entry) {
            this.makers.set(one.id, { machine, entry: entry.id });
            this.reliance?.addMade(one.id, entry);
          }
        // integ cannot detect a false status, which may be newer than the receipt, and not every false id.
        const isLie = Object.keys(this.account.lies).some((name) => name !== "id" && name !== "status");
        void sent.then((answer) => {
          see?.(answer);
          if (answer.kind === "answered" && isLie && entry) this.lied.add(entry.id);
        });
        return sent;
      });
    return {
      oauthClients: {
        create: (body: string, key: string) =>
          making({ what: "create", body, key }, () => service.oauthClients.create(body, key)),
        get: (id: string) => read("get", () => service.oauthClients.get(id)),
        revoke: (id: string) =>
          change({ what: "revoke", id }, (entry) => {
            this.#revokes(process, machine, id, entry);
            return service.oauthClients.revoke(id);
          }),
      },
      accessKeys: {
        create: (body: string) => making({ what: "create", body }, () => service.accessKeys.create(body)),
        list: () => read("list", () => service.accessKeys.list()),
        rotate: (id: string) =>
          change({ what: "rotate", id }, async (entry) => {
            const secret = (): string | undefined => this.#find(id)?.secret;
            const before = secret();
            const see = this.promises.rotating(id, { process, entry: entry?.id ?? "" }, before);
            this.account.lies = this.#lieTo(machine, entry);
            const answer = await service.accessKeys.rotate(id);
            if (secret() !== before) see(answer.kind === "answered");
            return answer;
          }),
        revoke: (id: string) =>
          change({ what: "revoke", id }, (entry) => {
            this.#revokes(process, machine, id, entry);
            const secret = this.#find(id)?.secret;
            // A rotation that was killed before `assertPrecedence` resumes without it, and may revoke a key that was just rotated.
            if (this.weather.kills === 0)
              this.promises.stopsWorking(id, { process, isSafe: secret !== undefined && this.isSafe(secret) });
            return service.accessKeys.revoke(id);
          }),
      },
      authorize: async () => undefined,
      clockOffset: () => (hasServiceTime ? -skewMs : undefined),
      tokens: {
        exchangeAccessKey: (secret: string) =>
          read("exchange", async () => this.#noteProof(secret, (await service.tokens.exchangeAccessKey(secret))!)),
        exchangeClient: (client: { clientSecret: string; at?: { tokenEndpoint: string } }) =>
          read("exchange", async () => {
            if (client.at) this.#provesAt(client.at.tokenEndpoint);
            return this.#noteProof(client.clientSecret, (await service.tokens.exchangeClient(client as never))!);
          }),
      },
    } as unknown as Service;
  }

  #revokes(process: Process, machine: Machine, id: string, entry: Entry | undefined): void {
    if (this.reliance) this.reliance.revoking(process, machine, id, entry);
    else this.promises.checkRevocation(machine, id);
  }

  #find(id: string): Made | undefined {
    return this.all().find((made) => made.id === id);
  }

  revokeByHand(id: string): void {
    const going = this.all().find((made) => made.id === id && made.status === "active");
    if (!going) return;
    going.status = "revoked";
    this.revokedByHand.add(id);
    this.turns.history.push(`someone revokes ${id} by hand`);
    for (const { entries } of this.machines)
      for (const { id: entry, state, resource_id, detail, replaces } of entries)
        if (state === "secret_lost" && resource_id === id && detail.revoking !== true)
          if (!entries.some((other) => other.replaces === entry || replaces === other.id)) this.endedByHand.add(entry);
  }

  /** The false fields of an entry's receipt. integ can detect a false id only if it is the id of the old credential. */
  #lieTo({ entries }: Machine, entry: Entry | undefined): Readonly<Record<string, unknown>> {
    if (this.lie?.id === undefined) return this.lie ?? {};
    const { detail } = entries.find(({ id }) => id === entry?.parent) ?? {};
    const old = detail?.old_client ?? detail?.old_key;
    return old === undefined ? {} : { id: old };
  }

  #noteProof<T>(secret: string, answer: Attempt<T>): Attempt<T> {
    if (answer.kind === "answered") this.proven.add(secret);
    return answer;
  }

  #on(process: Process, around: Surroundings): InMemory {
    const { machine, skewMs, folder } = around;
    const { leases } = machine;
    const isFree = (id: string): boolean => !leases.has(id) || leases.get(id) === process;
    return new InMemory(machine, this.outside, {
      by: process,
      call: (what, effect, entry) => this.#call(process, what, effect, entry),
      waitFor: (what, mayGoOn) => this.turns.turn(process, what, mayGoOn),
      at: () => new Date((this.now += 1) + skewMs).toISOString(),
      isShared: this.isTeam,
      isFree,
      mayTry: isFree,
      holders: () => [...leases].flatMap(([id, by]) => (by === process ? [] : [id])),
      taking: () => {},
      reading: () => {},
      recording: (before, after) => {
        const { id } = before;
        if (leases.get(id) === process && this.chance.is(this.weather.lostLeases)) leases.delete(id);
        if (leases.get(id) !== process) {
          this.promises.unrecorded(process, id);
          throw new Failure("failed", `The lease of ${id} is over.`);
        }
        this.promises.recorded(process, around, before, after);
        this.turns.history.push(`  ${id} ${after.operation} is ${after.state}`);
      },
      destroying: (entry) => this.promises.destroying(around, entry),
      place: `${machine.host}:${folder}`,
      keptName: (entry) => keptName(around, entry),
      ...(this.reliance && {
        delivering: (place, before, secret) => this.reliance!.delivering({ process, place, before, secret }),
        profiles: profilesOf(machine, (name, before, secret) =>
          this.reliance!.delivering({ process, place: `${machine.name}:profile:${name}`, before, secret }),
        ),
      }),
    });
  }

  destination(process: Process, around: Surroundings, { kind, path }: Wanted): Destination {
    const here = this.#on(process, around);
    if (kind === "stdout") return here.withoutReserve("stdout");
    if (kind === "file") return here.file(path);
    return kind === "store" ? here.store(path) : severalDestinations([here.file(path), here.store(path)]);
  }

  async #remembered(
    here: InMemory,
    { id, destination: record }: Pick<Entry, "id" | "destination">,
    path: string | undefined,
  ): Promise<Destination> {
    const named = path === undefined ? [] : [here.file(path, { force: true })];
    const one = async (place: SingleRecord): Promise<SingleDestinationPlace> => {
      if (place.kind === "file") return here.file(place.path, place);
      return place.kind === "store" ? here.store(place.to, place) : here.file(`/recovered-${id}`);
    };
    if (record?.kind === "several") return rememberedSeveral(record, named, one);
    return named[0] ?? one(record ?? { kind: "stdout" });
  }

  /** The options of one recovery or rotation. No destination takes two secrets. */
  recovering(process: Process, around: Surroundings, bench: Workbench) {
    const taken = new TakenPlaces();
    const here = this.#on(process, around);
    const [agrees, endsOverlap] = [!this.#dice.is(0.1), this.#dice.is(0.1)];
    if (endsOverlap) this.promises.endsOverlap.add(process);
    const answer = (entry: Entry, isYes: boolean): boolean => {
      if (isYes) this.promises.agreed(entry);
      return isYes;
    };
    const path = this.chance.is(0.3) ? `/recovered by ${process.name}` : undefined;
    return {
      destinationOf: async (entry: Entry): Promise<Destination> =>
        taken.exclusive(await this.#remembered(here, entry, path), entry.parent ?? entry.id),
      mayReplace: async (entry: Entry) =>
        answer(entry, agrees && !mayBeCreatedElsewhere(entry) && otherPlaces(entry, bench.secrets).length === 0),
      mayRevokeUnproven: async (entry: Entry) => answer(entry, !agrees && !this.isLiar),
      waitMs: 60_000,
      overlap: endsOverlap ? ("end" as const) : ("leave" as const),
      benchFor: async (entry: Entry) => ({ ...bench, account: await this.#account(process, around, entry) }),
    };
  }
}
