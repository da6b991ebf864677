// A seed determines a history: people's commands on some machines, the order of their steps, and their failures.
import { createAccessKey } from "../../src/operations/key.ts";
import { replaceAccessKey } from "../../src/operations/key-rotation.ts";
import { revokeNamed } from "../../src/operations/revocation.ts";
import { rotateAccessKey } from "../../src/operations/in-place.ts";
import { continueDelivery } from "../../src/operations/secret-delivery.ts";
import { createOAuthClient } from "../../src/operations/client.ts";
import { rotateOAuthClient } from "../../src/operations/client-rotation.ts";
import { recover } from "../../src/operations/recovery.ts";
import type { Workbench } from "../../src/operations/workbench.ts";
import type { Failure } from "../../src/errors.ts";
import { type Entry, isSettled } from "../../src/journal/entry.ts";
import { prunable } from "../../src/journal/prunable.ts";
import type { Machine } from "./in-memory.ts";
import { calm, type Surroundings, type Wanted, type FaultRates, World } from "./simulated-world.ts";
import { Chance, type Process } from "./turns.ts";

const day = 24 * 60 * 60_000;

interface Wish {
  readonly noun: "client" | "key";
  readonly verb: "create" | "rotate" | "rotate in place" | "revoke";
  readonly old?: string;
  /** The scope of a created client, by which `#typedEntries` finds the wish's entries. */
  readonly scope?: string;
  readonly name?: string;
  readonly key?: string;
}

interface Typed {
  readonly wish: Wish;
  readonly keepOld: boolean;
  readonly overlapMs: number;
  readonly path: string;
  readonly fresh: boolean;
}

const lies: readonly Readonly<Record<string, unknown>>[] = [
  { service_account_id: "sa_2" },
  { scopes: ["entity:read", "entity:write"] },
  { id: "of what is replaced" },
  { status: "revoked" },
];

/** Rare situations: a rotation whose new credential someone revokes, and keys of one name in two folders. */
type Theme = "a rotation by hand" | "keys of one name";

export interface Outcome {
  readonly broken: readonly string[];
  readonly history: readonly string[];
  readonly processes: number;
  readonly kills: number;
  readonly entries: readonly Entry[];
  readonly refusals?: number;
}

class History {
  readonly #chance: Chance;
  readonly #world: World;
  readonly #weather: FaultRates;
  readonly #isSimultaneous: boolean;
  readonly #home: Machine;
  readonly #lie: Readonly<Record<string, unknown>> | undefined;
  /** True if commands after the first round may have other surroundings (`#around`), such as another folder. */
  readonly #isElsewhere: boolean;
  readonly #skewMs: number;
  /** The probability that someone revokes a credential by hand after a round. */
  readonly #handRate: number;
  /** True if recoveries run at the same time as the typed commands of the second round. */
  readonly #recoversDuringWork: boolean;
  readonly #theme: Theme | undefined;
  /** A second random sequence, whose draws do not shift those of the first. */
  readonly #later: Chance;
  readonly #kinds = new Map<Wish, Wanted["kind"]>();
  #processes = 0;

  constructor(seed: number) {
    this.#chance = new Chance(seed);
    this.#later = new Chance(seed ^ 0x2545f491);
    this.#recoversDuringWork = new Chance(~seed).is(0.2);
    const themes = new Chance(seed ^ 0x51ed270b);
    this.#theme = themes.is(0.2) ? themes.pick(["a rotation by hand", "keys of one name"]) : undefined;
    const dice = new Chance(seed ^ 0x1b873593);
    this.#world = new World(this.#chance, dice);
    const chance = this.#chance;
    this.#weather = {
      faults: chance.pick([0, 0.1, 0.3]),
      kills: this.#theme === "a rotation by hand" ? 0.03 : chance.pick([0, 0.02, 0.08]),
      lostLeases: chance.pick([0, 0, 0.02]),
      disk: dice.pick([0, 0, 0, 0.02, 0.08]),
      interruptions: dice.pick([0, 0, 0, 0.02]),
    };
    this.#home = this.#world.machine("1");
    this.#isSimultaneous = chance.is(0.1);
    this.#world.isSimultaneous = this.#isSimultaneous || this.#recoversDuringWork;
    this.#handRate = this.#theme === "a rotation by hand" ? 0.6 : chance.pick([0, 0, 0.4]);
    this.#lie = chance.is(0.15) ? chance.pick(lies) : undefined;
    this.#isElsewhere = chance.is(0.3) || this.#theme === "keys of one name";
    this.#skewMs = chance.is(0.2) ? chance.pick([-day, day]) : 0;
    for (const id of ["old-client", "named-client"]) this.#world.account.addExisting("client", id);
    for (const id of ["old-key", "named-key"])
      this.#world.account.addExisting("key", id, { name: "old", at: this.#world.now - day });
    this.#world.mayBeRevoked.add("old-client").add("old-key");
  }

  async live(): Promise<Outcome> {
    const world = this.#world;
    const wishes = this.#wishes();
    const unfinished: Wish[] = [];
    world.weather = this.#weather;
    // With `#lie`, the service sends false receipts until the final recoveries.
    world.lie = this.#lie;
    world.isLiar = this.#lie !== undefined;
    for (let round = 0; round < 2; round += 1) {
      const typed = wishes.filter(() => round === 0 || this.#chance.is(0.7));
      const batch = typed.flatMap((wish) => (this.#isSimultaneous && round === 0 ? [wish, wish] : [wish]));
      for (const wish of batch) this.#type(wish, round);
      if (round > 0 && this.#recoversDuringWork) this.#startRecoveries(round);
      await world.live();
      if (round === 0) unfinished.push(...wishes.filter((wish) => this.#isUnfinished(wish)));
      world.now += 120_000;
      this.#byHand();
    }
    const middle = this.#chance.below(3);
    for (let round = 0; round < middle; round += 1) {
      await this.#recoverAll(round);
      this.#byHand();
    }
    world.lie = undefined;
    world.weather = calm;
    for (let round = 0; round < 4; round += 1) await this.#recoverAll(-1);
    this.#audit(unfinished);
    const kills = world.turns.history.filter((line) => line.includes("is killed")).length;
    return {
      entries: world.entries(),
      broken: world.broken,
      history: world.turns.history,
      processes: this.#processes,
      kills,
    };
  }

  #byHand(): void {
    if (!this.#chance.is(this.#handRate)) return;
    const made = [...this.#world.makers.keys()];
    const ids = this.#theme === "a rotation by hand" && made.length > 0 ? made : [...made, "old-client", "old-key"];
    this.#world.revokeByHand(this.#chance.pick(ids));
  }

  #wishes(): Wish[] {
    const chance = this.#chance;
    const all: Wish[] = [
      { noun: "client", verb: "create", scope: "entity:read" },
      { noun: "client", verb: "create", scope: "organization:read", key: chance.is(0.5) ? "nightly-1" : undefined },
      { noun: "client", verb: "rotate", old: "old-client" },
      { noun: "client", verb: "revoke", old: "named-client" },
      { noun: "key", verb: "create", name: "ci" },
      { noun: "key", verb: chance.is(0.5) ? "rotate" : "rotate in place", old: "old-key" },
      { noun: "key", verb: "revoke", old: "named-key" },
    ];
    if (this.#theme === "a rotation by hand")
      return [chance.is(0.5) ? all[2]! : { noun: "key", verb: "rotate", old: "old-key" }];
    if (this.#theme === "keys of one name") return [all[4]!, all[4]!];
    const some = all.filter(() => chance.is(0.35));
    const key = some.find(({ old }) => old === "old-key");
    if (key !== undefined && this.#later.is(0.15))
      some.push({ ...key, verb: key.verb === "rotate" ? "rotate in place" : "rotate" });
    return some.length > 0 ? some : [chance.pick(all)];
  }

  #around(isLater: boolean): Surroundings {
    const chance = this.#chance;
    const isOther = isLater && this.#isElsewhere;
    return {
      machine: this.#home,
      serviceVersion: isOther && chance.is(0.5) ? "2020-01-01" : undefined,
      organizationId: undefined,
      proves: !(isOther && chance.is(0.5)),
      skewMs: isLater ? 0 : this.#skewMs,
      folder: isOther && chance.is(0.3) ? "/other" : "/state",
    };
  }

  #type(wish: Wish, round: number): void {
    this.#processes += 1;
    const chance = this.#chance;
    const isFresh = wish.key !== undefined && round > 0 && chance.is(0.5);
    const machine = isFresh ? this.#world.machine(`${this.#world.machines.length + 1}`) : this.#home;
    const organizationId = round > 0 && this.#isElsewhere && chance.is(0.3) ? "org_1" : undefined;
    const around = { ...this.#around(round > 0), machine, organizationId };
    const path = `/${wish.noun}-${this.#processes}`;
    const fresh = this.#later.is(0.2);
    const typed: Typed = { wish, keepOld: chance.is(0.2), overlapMs: chance.pick([0, 0, 1_800_000]), path, fresh };
    this.#world.start(
      `process ${this.#processes} (${wish.noun} ${wish.verb}${fresh ? " --new" : ""})`,
      around,
      (bench, self) => this.#work(bench, { process: self, typed, machine }),
      (how) => this.#auditEnd(typed, how),
    );
  }

  #work(
    bench: Workbench,
    { process, typed, machine }: { readonly process: Process; readonly typed: Typed; readonly machine: Machine },
  ): Promise<unknown> {
    const { wish, keepOld, overlapMs, path, fresh } = typed;
    const { old = "" } = wish;
    const around = { ...this.#around(false), machine };
    const destination = this.#world.destination(process, around, { kind: this.#kindOf(wish), path });
    const agreeing = this.#world.recovering(process, around, bench);
    const rotation = { ...agreeing, destination };
    const request = { overlapMs, keepOld };
    if (wish.verb === "revoke") return revokeNamed(bench, wish.noun, old);
    if (wish.noun === "client" && wish.verb === "create") {
      const asked = { service_account_id: "sa_1", scopes: [wish.scope ?? "entity:read"] };
      return createOAuthClient(bench, asked, {
        key: wish.key,
        waitMs: 60_000,
        destination,
        mayReplace: async (entry) => keepOld && agreeing.mayReplace(entry),
      });
    }
    if (wish.noun === "client") {
      const before = { id: old, service_account_id: "sa_1", scopes: ["entity:read"], status: this.#find(old)!.status };
      return rotateOAuthClient(bench, { old: before, ...request }, rotation);
    }
    if (wish.verb === "create")
      // Only a team's journal can lose a lease, and a team's keys have marked names by default.
      return createAccessKey(
        bench,
        { request: { name: wish.name ?? "ci" }, marked: this.#weather.lostLeases > 0 },
        { destination },
      );
    if (wish.verb === "rotate in place")
      return rotateAccessKey(bench, { id: old, updateProfile: false }, { destination, fresh });
    const creation = { request: { name: "new" }, marked: true };
    return replaceAccessKey(bench, { oldId: old, creation, overlapMs, updateProfile: false }, { ...rotation, fresh });
  }

  #kindOf(wish: Wish): Wanted["kind"] {
    const kind = this.#kinds.get(wish) ?? this.#later.pick(["stdout", "file", "file", "store", "both"]);
    this.#kinds.set(wish, kind);
    return kind;
  }

  async #recoverAll(round: number): Promise<void> {
    this.#world.now += 3_600_000;
    this.#startRecoveries(round);
    await this.#world.live();
  }

  #startRecoveries(round: number): void {
    const world = this.#world;
    for (let index = 0; index < (round >= 0 && this.#chance.is(0.3) ? 2 : 1); index += 1) {
      for (const machine of world.machines) {
        const around = { ...this.#around(round >= 0), machine, skewMs: 0 };
        this.#processes += 1;
        world.start(
          `recovery ${this.#processes}`,
          around,
          async (bench, process) => {
            const unsettled = await bench.journal.unsettled();
            const roots = unsettled.filter(({ parent }) => !unsettled.some(({ id }) => id === parent));
            await recover(bench.journal, roots, world.recovering(process, around, bench));
            for (const { id, state } of await bench.journal.unsettled())
              if (state === "undelivered") await this.#claim(bench, { id, process, around });
          },
          () => {},
        );
      }
    }
  }

  async #claim(
    bench: Workbench,
    { id, process, around }: { readonly id: string; readonly process: Process; readonly around: Surroundings },
  ): Promise<void> {
    const lease = await bench.journal.lease(id);
    try {
      if (lease.entry.state === "undelivered")
        await continueDelivery({
          bench,
          lease,
          claimedBy: "person",
          destination: this.#world.destination(process, around, { kind: "file", path: `/claimed-${id}` }),
        });
    } finally {
      await lease.release();
    }
  }

  #find(id: string) {
    return this.#world.all().find((made) => made.id === id);
  }

  #auditEnd(
    { wish, keepOld }: Typed,
    { value, failure }: { readonly value?: unknown; readonly failure?: Failure },
  ): void {
    const { broken, revokedByHand } = this.#world;
    if (failure !== undefined || wish.old === undefined || this.#isSimultaneous || revokedByHand.has(wish.old)) return;
    // During an overlap the old credential still works.
    if (value !== null && typeof value === "object" && "dueAt" in value && value.dueAt !== undefined) return;
    const status = this.#find(wish.old)?.status;
    if (wish.verb === "revoke" && status !== "revoked")
      broken.push(`${wish.old} is ${status}, and its revocation is done`);
    if (wish.verb === "rotate" && wish.noun === "client") {
      if (keepOld && status !== "active") broken.push(`--keep-old was asked for, and ${wish.old} is ${status}`);
      if (!keepOld && status === "active")
        broken.push(`${wish.old} still works, and its rotation without --keep-old is done`);
    }
  }

  #audit(unfinished: readonly Wish[]): void {
    const { broken, machines } = this.#world;
    const entries = machines.flatMap((machine) => machine.entries.map((entry) => ({ machine, entry })));
    for (const { entry } of entries) this.#auditEntry(entry);
    for (const machine of machines) this.#auditPrune(machine);
    for (const [id, { machine, entry: maker }] of this.#world.makers) {
      const made = this.#find(id)!;
      const entry = machine.entries.find((one) => one.id === maker)!;
      if (made.status !== "active" || this.#world.isSafe(made.secret)) continue;
      if (
        isSettled(entry.state) &&
        entry.state !== "unusable" &&
        entry.state !== "abandoned" &&
        !this.#isOfSameRequest(id, entry)
      )
        broken.push(`${id} is live, no one has its secret, and its entry ${maker} is ${entry.state}`);
    }
    this.#auditReplacements(entries.map(({ entry }) => entry));
    // A repeated command must resume the unfinished creation.
    if (!this.#isSimultaneous && !this.#recoversDuringWork)
      // With another service version the command sends another request (§4.2 rule 2).
      for (const wish of unfinished)
        if (this.#typedEntries(wish).length > new Set(this.#typedEntries(wish).map((one) => one.service_version)).size)
          broken.push(`${wish.scope} was typed again while it was unfinished, and has two requests`);
    const isCalm =
      this.#lie === undefined &&
      this.#handRate === 0 &&
      !this.#isElsewhere &&
      this.#skewMs === 0 &&
      this.#weather.lostLeases === 0 &&
      this.#weather.disk === 0;
    if (isCalm) for (const { entry } of entries) this.#auditSettled(entry);
  }

  /** True if an unfinished entry with the same request records the key as its own. */
  #isOfSameRequest(id: string, { operation, request_text, base_url }: Entry): boolean {
    if (operation !== "access_key.create") return false;
    return this.#world.machines.some(({ entries }) =>
      entries.some(
        (one) =>
          one.resource_id === id &&
          !isSettled(one.state) &&
          one.operation === operation &&
          one.request_text === request_text &&
          one.base_url === base_url,
      ),
    );
  }

  #auditReplacements(entries: readonly Entry[]): void {
    for (const { id } of entries) {
      const made = entries.filter(({ replaces }) => replaces === id).flatMap((entry) => this.#madeBy(entry));
      if (made.length > 1) this.#world.broken.push(`${id} was lost, and ${made.join(" and ")} are in its place`);
    }
  }

  #madeBy({ id }: Entry): string[] {
    const made = [...this.#world.makers].filter(([, maker]) => maker.entry === id).map(([name]) => name);
    return made.filter((name) => this.#find(name)?.status === "active");
  }

  #auditPrune({ entries }: Machine): void {
    // `prune` trusts a service that falsely reports a revocation, and no entry names a credential whose reported id is false.
    if (this.#lie?.status !== undefined || this.#lie?.id !== undefined) return;
    const { removable } = prunable(entries, { before: "2030-01-01T00:00:00.000Z", leased: new Set() });
    for (const [id, { entry }] of this.#world.makers)
      if (removable.has(entry) && this.#find(id)?.status === "active" && this.#isSafe(this.#find(id)!))
        this.#world.broken.push(`${id} is live, its secret delivered, and its entry ${entry} may be pruned`);
  }

  get #isUndisturbed(): boolean {
    return this.#weather.kills === 0 && this.#weather.lostLeases === 0 && this.#weather.disk === 0;
  }

  #isSafe({ secret }: { readonly secret: string }): boolean {
    return this.#world.isSafe(secret);
  }

  #auditSettled({ id, operation, state, last_error, detail }: Entry): void {
    // An overlap that started with a person's consent in the last recovery may still be running.
    const isAccepted = state === "waiting" && detail.proven === "by the person";
    const needsPerson =
      isAccepted || state === "pending" || state === "secret_lost" || operation.startsWith("access_key");
    if (isSettled(state) || needsPerson) return;
    this.#world.broken.push(`${operation} ${id} is still ${state}: ${last_error?.message}`);
  }

  #auditEntry(entry: Entry): void {
    const { broken } = this.#world;
    const { id, state, operation, resource_id } = entry;
    const made = resource_id === null ? undefined : this.#find(resource_id);
    if (state === "done" && operation.endsWith(".revoke") && made?.status === "active")
      broken.push(`${id} says that ${resource_id} is revoked, and it is active`);
    if (state === "done" && operation.endsWith(".create")) {
      if (!made) broken.push(`${id} is done, and ${resource_id} does not exist`);
      else if (made.status === "active" && !this.#isSafe(made))
        broken.push(`${id} is done, and no one has the secret of ${resource_id}`);
    }
    if (state === "refused")
      for (const [other, maker] of this.#world.makers)
        if (maker.entry === id && this.#find(other)?.status === "active" && !this.#isOfSameRequest(other, entry))
          broken.push(`${id} says that nothing was made, and ${other} is live`);
    if (state === "done" && operation === "oauth_client.create" && this.#world.lied.has(id) && this.#isUndisturbed)
      broken.push(`${id} is done, and its receipt was not what was asked for`);
    if (state === "replaced" && this.#world.endedByHand.has(id))
      broken.push(`${resource_id} was revoked by hand, and another was made in its place`);
    const isByHand = this.#world.revokedByHand.has(resource_id ?? "");
    if (
      state === "refused" &&
      operation.endsWith(".revoke") &&
      made?.status === "revoked" &&
      entry.attempts > 0 &&
      !isByHand
    )
      if (!this.#world.machines.some(({ entries }) => entries.some((one) => isRevocation(one, id, resource_id))))
        broken.push(`${id} says that nothing was done, and ${resource_id} is revoked`);
  }

  #typedEntries(wish: Wish): Entry[] {
    return this.#home.entries.filter(
      ({ operation, parent, replaces, request_text }) =>
        operation === "oauth_client.create" &&
        parent === null &&
        replaces === null &&
        request_text.includes(wish.scope ?? "nothing"),
    );
  }

  #isUnfinished(wish: Wish): boolean {
    const isCreation = wish.noun === "client" && wish.verb === "create" && wish.key === undefined;
    return isCreation && this.#typedEntries(wish).some(({ state }) => ["open", "unknown", "pending"].includes(state));
  }
}

/** True for another entry that revoked, or may have revoked, the same credential. */
function isRevocation({ id, operation, state, resource_id }: Entry, but: string, resource: string | null): boolean {
  return id !== but && operation.endsWith(".revoke") && resource_id === resource && state !== "refused";
}

export function liveThrough(seed: number): Promise<Outcome> {
  return new History(seed).live();
}
