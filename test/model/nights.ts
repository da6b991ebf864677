// A seed determines a history of nights: processes apply policies, people type commands, and other actors act in between.
import { readAccessKey } from "../../src/api/access-keys.ts";
import { readUntilAnswered } from "../../src/operations/sending.ts";
import { createAccessKey } from "../../src/operations/key.ts";
import { createOAuthClient } from "../../src/operations/client.ts";
import { continueDelivery } from "../../src/operations/secret-delivery.ts";
import { recover } from "../../src/operations/recovery.ts";
import type { Workbench } from "../../src/operations/workbench.ts";
import { applyItem, type ItemOutcome } from "../../src/commands/policy/apply-item.ts";
import { claimOptions, optionsFor, refusingDestination } from "../../src/commands/journal/remembered-destination.ts";
import { TakenPlaces } from "../../src/commands/journal/taken-places.ts";
import { accountOf, mayReplace, mayRevokeUnproven, workbenchOf } from "../../src/commands/running/change.ts";
import type { Context } from "../../src/context.ts";
import type { Failure } from "../../src/errors.ts";
import { type Entry, isSettled } from "../../src/journal/entry.ts";
import { deliveries, holdersOf, placeIn, placeOf } from "../../src/policy/holders.ts";
import type { Observed, SeenCredential } from "../../src/policy/observed.ts";
import { planPolicy, runnable } from "../../src/policy/plan.ts";
import type { ItemDestination, Policy, PolicyItem } from "../../src/policy/policy.ts";
import { ClientInventory, isOf, itemKey, type WorkScope, worksByName } from "../../src/policy/works.ts";
import { type DestinationOption, isLocal, type SingleRecord } from "../../src/secrets/destination.ts";
import type { Machine } from "./in-memory.ts";
import type { Outcome } from "./one-seed.ts";
import { takeTurn } from "./other-actors.ts";
import { actingProfile, Reliance } from "./reliance.ts";
import { calm, type Surroundings, World } from "./simulated-world.ts";
import { Chance, type Process } from "./turns.ts";

const day = 24 * 60 * 60_000;

/** The same destinations in the form of a policy and in the form of `Reliance`. */
interface Destinations {
  readonly items: readonly ItemDestination[];
  readonly places: (machine: Machine) => string[];
}

const kinds = ["file", "file", "store", "store", "profile", "command", "several"] as const;

function destinationsOf(kind: (typeof kinds)[number], name: string): Destinations {
  const [file, store] = [{ file: `/${name}` }, { store: `memory:${name}` }];
  const atFile = (machine: Machine): string => `${machine.name}:file:/${name}`;
  const atStore = `store:memory:${name}`;
  if (kind === "file") return { items: [file], places: (machine) => [atFile(machine)] };
  if (kind === "store") return { items: [store], places: () => [atStore] };
  if (kind === "several") return { items: [file, store], places: (machine) => [atFile(machine), atStore] };
  if (kind === "command") return { items: [{ command: `put ${name}` }], places: () => ["command"] };
  return { items: [{ profile: name }], places: (machine) => [`${machine.name}:profile:${name}`] };
}

const typedKinds = ["file", "file", "store", "command", "acting", "profile"] as const;

class Nights {
  readonly #chance: Chance;
  readonly #world: World;
  readonly #reliance: Reliance;
  readonly #isHostile: boolean;
  readonly #policies: { readonly policy: Policy; readonly machines: readonly Machine[] }[] = [];
  readonly #folders = new Map<Machine, string>();
  readonly #backups = new Map<Machine, () => void>();
  readonly #typed = new Set<string>();
  readonly #failures: string[] = [];
  #refusals = 0;
  #processes = 0;

  constructor(seed: number, isHostile: boolean) {
    const chance = new Chance(seed ^ 0x3c6ef372);
    this.#chance = chance;
    this.#isHostile = isHostile;
    this.#world = new World(chance, new Chance(seed ^ 0x1b873593));
    const world = this.#world;
    this.#reliance = new Reliance(world);
    world.reliance = this.#reliance;
    world.isSimultaneous = true;
    world.isBenign = !isHostile;
    const home = world.machine("1");
    const isTwo = chance.is(0.4);
    world.isTeam = isTwo && chance.is(0.7);
    if (isTwo) world.machine("2", world.isTeam ? home : undefined);
    for (const machine of world.machines) {
      this.#folders.set(machine, "/state");
      this.#addProfiles(machine, [actingProfile, "target"]);
    }
    this.#policies.push(this.#policy("pol_first", world.isTeam && chance.is(0.5) ? world.machines : [home]));
    if (chance.is(0.5)) this.#policies.push(this.#policy("pol_second", [chance.pick(world.machines)]));
  }

  /** @param isEmpty true for an item's destination: the item replaces no credential that it did not deliver */
  #addProfiles(machine: Machine, names: readonly string[], isEmpty = false): void {
    const about = {
      region: "us",
      base_url: "https://api.example",
      credential_origins: ["https://api.example"],
    } as const;
    const oauth = { token_endpoint: "https://tokens.example/token", client_auth: "client_secret_basic" } as const;
    const legacy = { kind: "endpoint", url: "https://api.example/exchange" };
    for (const name of names) {
      machine.credentials.set(`${name}-0`, `a credential of ${name}`);
      const stored = { source: "stored", ref: `${name}-0`, kept: "file" } as const;
      const credential = isEmpty ? null : ({ kind: "api_key", basic_style: "apikey-user", ...stored } as const);
      const id = name === actingProfile ? "p1" : `${name} of ${machine.name}`;
      machine.profiles.set(name, { ...about, id, name, oauth, legacy, credential } as never);
    }
  }

  #policy(id: string, machines: readonly Machine[]) {
    const chance = this.#chance;
    const rotate = { everyMs: 30 * day, overlapMs: chance.pick([0, 0, 2 * day]), unknownAge: "report" } as const;
    const item = (kind: PolicyItem["kind"], name: string): PolicyItem => {
      const to = chance.pick(machines.length > 1 ? (["store", "command"] as const) : kinds);
      const own = destinationsOf(to, `${id}-${name}`);
      if (to === "profile") for (const machine of machines) this.#addProfiles(machine, [`${id}-${name}`], true);
      const about = { policy: id, name, rotate, destinations: own.items, acceptsUnproven: to === "command" };
      const scopes = [chance.pick(["entity:read", "organization:read"])];
      const made: PolicyItem =
        kind === "oauth_client"
          ? { ...about, kind, serviceAccount: "sa_1", scopes }
          : { ...about, kind, type: "user_bound", scopes: ["*"] };
      this.#reliance.addPlaces(
        itemKey(made),
        machines.flatMap((machine) => own.places(machine)),
      );
      return made;
    };
    const items = [item("oauth_client", "reporting"), ...(chance.is(0.5) ? [item("access_key", "nightly")] : [])];
    const policy: Policy = {
      id,
      items,
      maxFailures: 1000,
      changesPerRun: 10,
      keepFreeSlots: 0,
      unmanaged: "ignore",
    };
    return { policy, machines };
  }

  async live(): Promise<Outcome> {
    const world = this.#world;
    const chance = this.#chance;
    world.weather = { ...calm, faults: chance.pick([0, 0.1, 0.3]), kills: chance.pick([0, 0.02, 0.08]) };
    const rounds = 2 + chance.below(3);
    for (let round = 0; round < rounds; round += 1) {
      await this.#night(round);
      await this.#actOfOthers();
      world.now += chance.pick([3_600_000, day, 3 * day, 31 * day]);
    }
    world.weather = calm;
    for (const made of world.account.clients) if (made.status === "pending") made.status = "active";
    for (let night = 0; night < 3; night += 1) {
      this.#failures.length = 0;
      world.now += 3 * day;
      for (const { policy, machines } of this.#policies)
        for (const machine of machines) {
          this.#apply(policy, machine);
          await world.live();
        }
      for (const machine of world.machines) this.#recover(machine);
      await world.live();
    }
    this.#refusals = this.#failures.length;
    if (!this.#isHostile) this.#audit();
    const kills = world.turns.history.filter((line) => line.includes("is killed")).length;
    const { broken, turns } = world;
    return {
      broken,
      history: turns.history,
      processes: this.#processes,
      kills,
      entries: world.entries(),
      refusals: this.#refusals,
    };
  }

  async #night(round: number): Promise<void> {
    const chance = this.#chance;
    const { machines } = this.#world;
    for (const { policy, machines: own } of this.#policies) this.#apply(policy, chance.pick(own));
    if (chance.is(0.4)) this.#type(chance.pick(machines));
    if (chance.is(0.3)) this.#type(chance.pick(machines));
    if (round > 0 && chance.is(0.4)) this.#recover(chance.pick(machines));
    await this.#world.live();
  }

  async #actOfOthers(): Promise<void> {
    const chance = this.#chance;
    const machine = chance.pick(this.#world.machines);
    const others = { world: this.#world, chance, machine, folders: this.#folders, backups: this.#backups };
    if (chance.is(0.5)) takeTurn(others, "benign");
    for (let turn = 0; this.#isHostile && turn < 2; turn += 1) if (chance.is(0.6)) takeTurn(others, "hostile");
    if (!this.#backups.has(machine)) this.#backups.set(machine, this.#backupOf(machine));
  }

  #backupOf(machine: Machine): () => void {
    const { entries, kept, tampered, id } = machine;
    const [before, keptBefore, tamperedBefore] = [[...entries], [...kept], [...tampered]];
    const folder = this.#folders.get(machine)!;
    return () => {
      machine.id = id;
      machine.copy = `${id} restored ${this.#world.elapsed}`;
      this.#folders.set(machine, folder);
      if (!this.#world.isTeam) {
        entries.splice(0, entries.length, ...before);
        tampered.clear();
        for (const one of tamperedBefore) tampered.add(one);
      }
      kept.clear();
      machine.keptReserves.clear();
      for (const [name, secret] of keptBefore) kept.set(name, secret);
      this.#world.promises.forget();
    };
  }

  #around(machine: Machine): Surroundings {
    return {
      machine,
      serviceVersion: undefined,
      organizationId: undefined,
      proves: true,
      skewMs: 0,
      folder: this.#folders.get(machine)!,
    };
  }

  #start(name: string, machine: Machine, work: (context: Context, process: Process) => Promise<unknown>): void {
    const around = this.#around(machine);
    this.#world.start(
      `process ${(this.#processes += 1)} (${name} on ${machine.name})`,
      around,
      (_bench, process) => work(this.#world.context(process, around), process),
      ({ failure }) => this.#ended(name, failure),
    );
  }

  #ended(name: string, failure: Failure | undefined): void {
    if (failure === undefined) return;
    // Only `apply` must succeed: people resolve a conflict between their typed commands.
    if (name.startsWith("apply")) this.#failures.push(`${name} ended with ${failure.kind}: ${failure.message}`);
    this.#world.turns.history.push(`  ${name} ended with ${failure.kind}: ${failure.message}`);
  }

  #apply(policy: Policy, machine: Machine): void {
    const name = `apply ${policy.id}`;
    this.#start(name, machine, async (context, process) => {
      const bench = await workbenchOf(context);
      const { baseUrl, organizationId } = bench.account;
      const scope = { baseUrl, organizationId };
      const entries = await bench.journal.entries();
      const observed = await this.#observe({ bench, policy, machine, entries, scope });
      const none = new Set<string>();
      const plan = planPolicy(policy, observed, {
        only: none,
        retry: none,
        redeliver: none,
        finish: none,
        includeOwn: false,
      });
      const entriesAtPlan = new Set(entries.map(({ id }) => id));
      const isLeft = ({ decision: { hold } }: (typeof plan.items)[number]): boolean => hold !== undefined;
      for (const { decision } of plan.items.filter(isLeft))
        this.#noteLeft(name, `${decision.item.name} ${decision.reason}`);
      for (const { decision } of runnable(plan)) {
        const place = `${machine.name}:profile:${policy.id}-${decision.item.name}`;
        if (decision.step.do === "create") this.#reliance.addConsents(process, [place]);
        const options = { context, bench, disk: bench.disk, scope, entriesAtPlan, waitMs: 60_000 };
        const outcome = await applyItem(decision, options);
        if (!this.#needsOthers(decision.item)) this.#noteOutcome(`${name} ${decision.item.name}`, outcome);
      }
    });
  }

  #noteOutcome(name: string, { result, failure }: ItemOutcome): void {
    if (result === "failed") this.#ended(name, failure);
  }

  #noteLeft(name: string, why: string): void {
    this.#failures.push(`${name} is left: ${why}`);
    this.#world.turns.history.push(`  ${name} is left: ${why}`);
  }

  async #observe(about: {
    readonly bench: Workbench;
    readonly policy: Policy;
    readonly machine: Machine;
    readonly entries: readonly Entry[];
    readonly scope: WorkScope;
  }): Promise<Observed> {
    const { bench, policy, machine, entries, scope } = about;
    const untrusted = await bench.journal.untrusted(entries.map(({ id }) => id));
    const works = worksByName(entries, scope, untrusted);
    const isOfAnother = (at: SingleRecord): boolean =>
      "machine" in at && at.machine !== undefined && at.machine !== machine.id;
    const isThere = (at: SingleRecord): boolean =>
      at.kind === "file" ? machine.files.has(at.path) : at.kind !== "profile" || machine.profiles.has(at.name);
    const places = new Set(policy.items.flatMap((item) => item.destinations.map((one) => placeOf(one, item))));
    const isHere = ({ state }: Entry, at: SingleRecord): boolean =>
      !isLocal(at) || (!isOfAnother(at) && ((state !== "done" && state !== "waiting") || isThere(at)));
    const holders = holdersOf(entries, { scope, works, places, isHere });
    const delivered = deliveries(entries.filter((entry) => isOf(entry, scope)));
    const [vanished, elsewhere] = [new Set<string>(), new Set<string>()];
    for (const { entry, places: went } of delivered.values())
      for (const at of went) {
        const place = placeIn(at, entry);
        if (place === undefined || !isLocal(at)) continue;
        if (this.#world.isTeam && isOfAnother(at)) elsewhere.add(place);
        else if (!isThere(at)) vanished.add(place);
      }
    const { service } = bench.account;
    // Reads the account directly, because a request for each client would be slow.
    const clients = new Map<string, SeenCredential>();
    for (const { id, clientId, status, body, createdAt } of this.#world.account.clients) {
      const { service_account_id: serviceAccount, scopes } = JSON.parse(body) as Record<string, never>;
      clients.set(id, { id, clientId, status, serviceAccount, scopes, createdAt, ownership: "other" });
    }
    const keys = new Map<string, SeenCredential>();
    const rows = await readUntilAnswered(bench, () => service.accessKeys.list(), { what: "list", where: "here" });
    for (const { value } of rows.rows) {
      const { id = "", keyType: type, status = "active", name, createdAt, expiresAt } = readAccessKey(value);
      keys.set(id, { id, type, status, name, createdAt, expiresAt, ownership: "other" });
    }
    const { unresolved } = new ClientInventory(scope, entries);
    const seen = {
      nowMs: this.#world.now,
      profile: actingProfile,
      works,
      clients,
      keys,
      holders,
      delivered,
      unresolved,
    };
    return { ...seen, vanished, elsewhere, untrusted };
  }

  #type(machine: Machine): void {
    const chance = this.#chance;
    // Names often repeat. In a hostile history the name can be that of a policy item's destination, so that `apply` may fail.
    const to = chance.pick(this.#isHostile ? typedKinds : typedKinds.slice(0, -1));
    const taken = this.#isHostile ? "pol_first-reporting" : "typed";
    const name = chance.pick(["typed", taken, `typed-${this.#processes}`]);
    const force = chance.is(0.5);
    const option: DestinationOption =
      to === "file"
        ? { kind: "file", path: `/${name}` }
        : to === "store"
          ? { kind: "store", to: `memory:${name}` }
          : to === "command"
            ? { kind: "command", command: "cat" }
            : { kind: "profile", name: to === "acting" ? actingProfile : "target" };
    const place =
      to === "file"
        ? `${machine.name}:file:/${name}`
        : to === "store"
          ? `store:memory:${name}`
          : to === "command"
            ? "command"
            : `${machine.name}:profile:${to === "acting" ? actingProfile : "target"}`;
    const isKey = chance.is(0.4);
    this.#typed.add(place);
    this.#reliance.addPlaces("typed", [place]);
    const scope = chance.pick(["entity:read", "organization:read"]);
    this.#start(
      `create ${isKey ? "key" : "client"} to ${place}${force ? " --force" : ""}`,
      machine,
      async (context, process) => {
        if (force) this.#reliance.addConsents(process, [place]);
        const bench = await workbenchOf(context);
        const yields = isKey ? "access_key" : "oauth_client";
        const options = { to: [option], force: force && to !== "command", yields } as const;
        const destination = await context.secrets.destination(options, async () => {});
        if (isKey) {
          const request = {
            name: chance.pick(["nightly", "reporting"]),
            keyType: "user_bound",
            scopes: ["*"],
          } as const;
          return createAccessKey(bench, { request, marked: chance.is(0.5) }, { destination });
        }
        const request = { service_account_id: "sa_1", scopes: [scope] };
        const may = (entry: Entry): Promise<boolean> => mayReplace(context, entry);
        return createOAuthClient(bench, request, { destination, waitMs: 60_000, mayReplace: may });
      },
    );
  }

  #recover(machine: Machine): void {
    const isClaimed = this.#chance.is(0.5);
    this.#start("recover", machine, async (context, process) => {
      const journal = await context.journal();
      const open = await journal.unsettled();
      const roots = open.filter(({ parent }) => !open.some(({ id }) => id === parent));
      const taken = new TakenPlaces();
      const asked = { options: { to: [] }, isNamed: false, replaces: false };
      const results = await recover(journal, roots, {
        destinationOf: async (entry) => {
          const options = optionsFor(entry, asked);
          if (options === undefined) return refusingDestination(entry, asked);
          const place = await context.secrets.destination({ ...options, mayBeOwn: true }, async () => {});
          return taken.exclusive(place, entry.parent ?? entry.id);
        },
        mayReplace: (entry) => mayReplace(context, entry),
        mayRevokeUnproven: (entry) => mayRevokeUnproven(context, entry, ""),
        waitMs: 60_000,
        overlap: "leave",
        benchFor: (entry) => workbenchOf(context, { entry, account: () => accountOf(context, entry) }),
      });
      for (const { entry, failure } of results)
        if (failure) this.#world.turns.history.push(`  recover left ${entry.id}: ${failure.kind}: ${failure.message}`);
      if (isClaimed) await this.#claim(context, process, machine);
    });
  }

  async #claim(context: Context, _process: Process, machine: Machine): Promise<void> {
    const journal = await context.journal();
    for (const entry of await journal.unsettled()) {
      if (entry.state !== "undelivered" || !this.#reliance.isTyped(entry)) continue;
      const path = `/claimed-${entry.id}`;
      this.#reliance.addPlaces("typed", [`${machine.name}:file:${path}`]);
      const lease = await journal.lease(entry.id);
      try {
        const bench = await workbenchOf(context, { entry });
        const options = claimOptions(lease.entry, { to: [{ kind: "file", path }] });
        const destination = await context.secrets.destination(options, async () => {});
        if (lease.entry.state === "undelivered")
          await continueDelivery({ bench, lease, destination, claimedBy: "person" });
      } finally {
        await lease.release();
      }
    }
  }

  /** True if integ must assume that another machine's command has the secret: only that machine or a person can finish. */
  #needsOthers({ destinations: [to] }: PolicyItem): boolean {
    const isMoved = this.#world.machines.some(
      (machine) => machine.host !== machine.name || this.#folders.get(machine) !== "/state",
    );
    return to !== undefined && "command" in to && (this.#world.isTeam || isMoved);
  }

  #audit(): void {
    const { broken } = this.#world;
    broken.push(...this.#failures.map((what) => `a person was needed: ${what}`));
    for (const { policy } of this.#policies)
      for (const item of policy.items.filter((one) => !this.#needsOthers(one))) {
        broken.push(...this.#reliance.lacks(itemKey(item)));
        const own = this.#world.entries().filter(({ policy: of }) => of?.id === item.policy && of.item === item.name);
        const isWaiting = own.some(({ state }) => state === "waiting");
        for (const { id, state } of own.filter((one) => !isSettled(one.state) && one.state !== "waiting"))
          broken.push(`${id} is still ${state}`);
        // During an overlap both the old and the new credential work.
        const live = this.#reliance.live(itemKey(item));
        if (live.length !== (isWaiting ? 2 : 1))
          broken.push(`${itemKey(item)} has ${live.length} that work: ${live.join(", ")}`);
      }
  }
}

export function liveThroughNights(seed: number, isHostile: boolean): Promise<Outcome> {
  return new Nights(seed, isHostile).live();
}
