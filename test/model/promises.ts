// Checks integ's promises about the order of its steps. `broken` collects the violations.
import type { Attempt } from "../../src/api/call/attempt.ts";
import { type Entry, isSettled } from "../../src/journal/entry.ts";
import { isPartlyDelivered, missingPlaces, placesOf, type SingleRecord } from "../../src/secrets/destination.ts";
import type { Made, Request } from "../unit/operations/an-account.ts";
import type { Machine } from "./in-memory.ts";
import type { Surroundings, World } from "./simulated-world.ts";
import type { Process } from "./turns.ts";

export type Change = Extract<Request, "create" | "rotate" | "revoke">;

export interface Sending {
  readonly what: Change;
  readonly id?: string;
  readonly body?: string;
  readonly key?: string;
}

/** What all requests with one idempotency key must have in common. */
interface Sent {
  readonly body: string;
  readonly version: string;
  readonly organization: string | undefined;
}

const finished: ReadonlySet<string> = new Set(["done", "replaced", "abandoned"]);

export class Promises {
  readonly broken: string[] = [];
  readonly #world: World;
  readonly #sent = new Map<string, Sent>();
  /** How often each entry's creation or rotation was sent. */
  readonly #sendings = new Map<string, number>();
  /** Entries without an idempotency key whose request may have arrived. */
  readonly #mayHaveArrived = new Set<string>();
  /** Entries for which a person agreed to replace a lost secret, to repeat a request, or to revoke without a proof. */
  readonly #agreed = new Set<string>();
  /** Maps a request to the time before which no process may repeat the request. */
  readonly #notBefore = new Map<string, number>();
  /** Maps a process to the entry of its last response, and the time before which the process may not repeat the request. */
  readonly #ownNotBefore = new Map<Process, { readonly entry: Entry; readonly until: number }>();
  readonly #unrecorded = new Set<string>();
  /** Rotations whose old credential a process of `endsOverlap` started to revoke. */
  readonly #endedOverlaps = new Set<string>();
  /** Entries that the journal recorded as partly delivered, or whose secret a person claimed. */
  readonly #partlyDelivered = new Set<string>();
  /** Maps a process to the work (`workOf`) for which the process sent a change. */
  readonly #changing = new Map<Process, Set<string>>();
  /** Maps a process whose disk failed to the work for which the process had already sent a change. */
  readonly #failed = new Map<Process, Set<string>>();
  /** How many changes each process sent after an interruption. */
  readonly #afterInterruption = new Map<Process, number>();
  /** Maps a machine and a request to the idempotency key of a creation whose last response was 429. */
  readonly #tooEarly = new Map<string, string>();
  /** Maps an access key to its last rotation in place, if the new secret arrived. `at` is a value of `#moments`. */
  readonly #rotated = new Map<string, { readonly process: Process; readonly entry: string; readonly at: number }>();
  readonly #startedAt = new Map<Process, number>();
  #moments = 0;
  #isJournalChanged = false;
  /** Processes that end overlaps early (`overlap: "end"`). */
  readonly endsOverlap = new Set<Process>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Called after someone restored or lost a state folder, or removed an entry: the journal may lack earlier events. */
  forget(): void {
    this.#isJournalChanged = true;
    for (const known of [this.#sent, this.#sendings, this.#mayHaveArrived, this.#notBefore, this.#tooEarly])
      known.clear();
    for (const known of [this.#partlyDelivered, this.#rotated, this.#ownNotBefore]) known.clear();
  }

  agreed({ id }: Entry): void {
    this.#agreed.add(id);
  }

  /** Called before a change is sent. @returns the entry of the change, if the process has one */
  sending(process: Process, around: Surroundings, request: Sending, version: string): Entry | undefined {
    const entry = this.#entryOf(process, around.machine, request);
    const { what } = request;
    if (entry === undefined) {
      this.broken.push(`${what} ${request.id ?? ""} was sent, and no entry of the process asks for it`);
      return undefined;
    }
    this.#checkAfterFailure(process, entry, what);
    this.#changing.set(process, (this.#changing.get(process) ?? new Set()).add(workOf(entry)));
    this.#checkRetryAfter(process, entry);
    if (what === "revoke") this.#checkRevoke(process, around.machine, entry, request.id!);
    else {
      this.#checkAttempt(entry);
      this.#checkKey(around, entry, request, version);
      this.#checkRepetition(entry);
      this.#checkReserves(around, entry);
    }
    return entry;
  }

  answered(process: Process, entry: Entry | undefined, answer: Attempt<unknown>): void {
    if (entry === undefined) return;
    if (answer.kind === "refused" || answer.kind === "not_sent") this.#mayHaveArrived.delete(entry.id);
    const seconds = answer.kind === "refused" ? (answer.retryAfterSeconds ?? 0) : 0;
    this.#notBefore.delete(requestOf(entry));
    this.#ownNotBefore.set(process, { entry, until: this.#world.now + seconds * 1000 });
  }

  shareWait(process: Process): void {
    const { entry, until = 0 } = this.#ownNotBefore.get(process) ?? {};
    if (entry !== undefined) this.#notBefore.set(requestOf(entry), until);
  }

  ended(process: Process, machines: readonly Machine[]): void {
    if (process.isDead) return;
    this.shareWait(process);
    for (const { leases } of machines)
      for (const [id, by] of leases)
        if (by === process) this.broken.push(`${process.name} ended and kept the lease of ${id}`);
    if (this.#failed.has(process)) return;
    for (const { reserves, keptReserves } of machines) {
      for (const [path, { secret, by }] of reserves)
        if (by === process && secret === "") this.broken.push(`${process.name} ended and left the empty file ${path}`);
      for (const [room, by] of keptReserves)
        if (by === process) this.broken.push(`${process.name} ended and left the empty reserve of ${room}`);
    }
  }

  diskFailed(process: Process, id: string | undefined): void {
    const works = this.#failed.get(process) ?? new Set();
    this.#failed.set(process, works);
    const work = workOf(this.#find(id));
    if (this.#changing.get(process)?.has(work) === true) works.add(work);
  }

  /** Called after a failed record or disk call of an entry: later processes may not know of the step. */
  unrecorded(process: Process, id: string): void {
    this.#unrecorded.add(id);
    if (this.#ownNotBefore.get(process)?.entry.id === id) this.#ownNotBefore.delete(process);
  }

  recorded(process: Process, around: Surroundings, before: Entry, after: Entry): void {
    const { broken } = this;
    if (this.#ownNotBefore.get(process)?.entry.id === after.id) this.shareWait(process);
    if (after.detail.revoking === true && this.endsOverlap.has(process)) this.#endedOverlaps.add(after.id);
    // integ trusts a service that reports "pending" for a finished creation.
    if (finished.has(before.state) && !isSettled(after.state) && after.state !== "pending")
      broken.push(`${after.id} was ${before.state}, and is ${after.state} again`);
    if (after.attempts > before.attempts + 1) broken.push(`${after.id} counts ${after.attempts} attempts in one step`);
    if (isPartlyDelivered(after) || after.detail.secret_claimed === true) this.#partlyDelivered.add(after.id);
    // A journal that was restored or lost entries may lack the receipts of existing credentials.
    if (before.state === after.state || this.#isJournalChanged) return;
    const made = this.#madeBy(after);
    if (after.state === "done")
      // Someone else may have removed a secret that the journal recorded as delivered.
      for (const { id, secret } of made)
        if (!this.#isDelivered(secret) && !(this.#world.reliance && this.#partlyDelivered.has(after.id)))
          broken.push(`${after.id} is done before the secret of ${id} was delivered`);
    const { old_client, old_key, secret_claimed } = after.detail;
    const isStep = old_client === undefined && old_key === undefined && secret_claimed !== true;
    if (after.state === "done" && isStep && missingPlaces(after.destination).length > 0)
      broken.push(`${after.id} is done before all of its destinations have the secret`);
    if (after.state === "undelivered" && after.operation.endsWith(".create"))
      for (const { id, secret } of made)
        if (!this.#world.isSafe(secret))
          broken.push(`${after.id} is to be claimed, and no one kept the secret of ${id}`);
    if (after.state === "secret_lost" && !this.#failed.has(process))
      for (const { id, secret } of made)
        if (around.machine.kept.get(keptName(around, after.id))?.secret === secret)
          broken.push(`${after.id} calls the secret of ${id} lost, and it is kept here`);
        else if (this.#partlyDelivered.has(after.id) && this.#isReadable(around.machine, secret))
          broken.push(`${after.id} calls the secret of ${id} lost, and one of its destinations has it`);
  }

  destroying(around: Surroundings, id: string): void {
    const kept = around.machine.kept.get(keptName(around, id));
    const entry = this.#find(id);
    // integ trusts a service that falsely reports a revocation.
    if (kept === undefined || entry === undefined || this.#world.lie?.status !== undefined) return;
    if (!isSettled(entry.state) && entry.detail.secret_claimed !== true)
      this.broken.push(`the kept secret of ${id} was destroyed while the entry is ${entry.state}`);
    const made = this.#world.all().find(({ secret, status }) => secret === kept.secret && status !== "revoked");
    if (made && !this.#isDelivered(made.secret) && entry.state !== "replaced")
      this.broken.push(`the kept secret of ${made.id} was destroyed before it was delivered`);
  }

  /** A working credential may be revoked only if a person named it or agreed to it, its secret is lost, or a working one replaces it. */
  checkRevocation({ entries }: Machine, id: string): void {
    const going = this.#world.all().find((made) => made.id === id);
    if (going?.status !== "active") return;
    const isNamed = entries.some(
      (entry) => entry.operation.endsWith(".revoke") && entry.attempts > 0 && entry.resource_id === id,
    );
    if (isNamed) return;
    const maker = this.#world.makers.get(id)?.entry ?? "";
    if (this.#unrecorded.has(maker) && this.#agreed.has(maker)) return;
    if (!this.#world.mayBeRevoked.has(id)) {
      if (this.#world.isSafe(going.secret)) this.broken.push(`${id} was revoked, and its secret is delivered or kept`);
      return;
    }
    const others = this.#world
      .all()
      .filter((made) => made !== going && this.#world.makers.has(made.id) && made.status === "active");
    if (!others.some(({ secret }) => this.#world.isSafe(secret)))
      this.broken.push(`${id} was revoked, and nothing that works is in its place`);
  }

  /** A creation typed again after 429 must have the same idempotency key. @returns a callback for the response */
  tooEarly(
    machine: Machine,
    { idempotency_key: key, parent, replaces, request_text }: Entry,
    about: Omit<Sent, "body">,
  ): (answer: Attempt<unknown>) => void {
    if (this.#world.isSimultaneous || key === null || parent !== null || replaces !== null) return () => {};
    const id = JSON.stringify([machine.name, request_text, about]);
    const before = this.#tooEarly.get(id);
    if (before !== undefined && before !== key)
      this.broken.push(`${before} was refused as too early, and ${key} was sent for the same request`);
    return (answer) => {
      if (answer.kind === "refused" && answer.status === 429) this.#tooEarly.set(id, key);
      else this.#tooEarly.delete(id);
    };
  }

  /** Called before a rotation in place. @returns a callback for a changed secret, which takes true if the new secret arrived */
  rotating(id: string, by: { readonly process: Process; readonly entry: string }, secret: string | undefined) {
    const last = this.#rotated.get(id);
    const isSafe = secret !== undefined && this.#world.isSafe(secret);
    return (hasArrived: boolean): void => {
      if (isSafe && last !== undefined && by.entry < last.entry)
        this.broken.push(`${id} was rotated for ${by.entry}, and the secret of ${last.entry} was delivered or kept`);
      else this.stopsWorking(id, { process: by.process, isSafe });
      // If the new secret did not arrive, a later rotation invalidates no secret that anyone has.
      if (hasArrived) this.#rotated.set(id, { ...by, at: (this.#moments += 1) });
      else this.#rotated.delete(id);
    };
  }

  /**
   * No process may invalidate the new secret of another process's rotation while the other process runs. Afterwards, if the
   * secret is delivered or kept, only a process that started after the secret arrived may invalidate it.
   */
  stopsWorking(id: string, { process, isSafe }: { readonly process: Process; readonly isSafe: boolean }): void {
    const last = this.#rotated.get(id);
    if (last === undefined || last.process === process) return;
    // A rotation with `--new` may run beside a replacement, which revokes the key at its end.
    if (last.process.name.includes("--new")) return;
    const isUnderWay = !last.process.isDead && !last.process.isEnded;
    if (isUnderWay || (isSafe && this.#startedAt.get(process)! < last.at))
      this.broken.push(`the secret of ${id} for ${last.entry} stopped working at the same time as it came`);
  }

  started(process: Process): void {
    this.#startedAt.set(process, (this.#moments += 1));
  }

  /** A creation and its replacement send the same request: the later entry is the replacement. */
  #entryOf(process: Process, { entries, leases }: Machine, { what, id, body, key }: Sending): Entry | undefined {
    const own = entries.filter((entry) => leases.get(entry.id) === process);
    if (what === "create")
      return own.findLast(
        ({ attempts, request_text, idempotency_key }) =>
          attempts > 0 && request_text === body && idempotency_key === (key ?? null),
      );
    if (what === "rotate") return own.findLast(({ attempts, detail }) => attempts > 0 && detail.key_id === id);
    return (
      own.findLast(
        ({ operation, request_text }) => operation.endsWith(".revoke") && request_text.includes(`"${id}"`),
      ) ??
      own.findLast(({ resource_id, operation }) => resource_id === id && operation.endsWith(".create")) ??
      own.findLast(({ detail }) => detail.old_client === id || detail.old_key === id)
    );
  }

  /** After a change and a disk failure, no other change may be sent for the work. After an interruption, at most one may. */
  #checkAfterFailure(process: Process, entry: Entry, what: Change): void {
    if (this.#failed.get(process)?.has(workOf(entry)) === true)
      this.broken.push(`${what} was sent for ${entry.id} after the disk had failed`);
    if (!process.isInterrupted) return;
    const count = (this.#afterInterruption.get(process) ?? 0) + 1;
    this.#afterInterruption.set(process, count);
    if (count > 1) this.broken.push(`${process.name} sent ${count} changes after it was interrupted`);
  }

  /** No change may be sent before the end of a Retry-After that this process received or that the journal records. */
  #checkRetryAfter(process: Process, entry: Entry): void {
    const last = this.#ownNotBefore.get(process);
    const isRevocation = entry.operation.endsWith(".revoke");
    // Two revocations that were typed at the same time are two entries with the same request.
    const isSame =
      last?.entry.id === entry.id ||
      (last !== undefined && !isRevocation && requestOf(last.entry) === requestOf(entry));
    const own = isSame ? (last?.until ?? 0) : 0;
    // The recorded time is unreliable with a wrong clock.
    const isExempt = this.#world.isSkewed || (this.#world.isSimultaneous && isRevocation);
    const others = isExempt ? 0 : (this.#notBefore.get(requestOf(entry)) ?? 0);
    const early = Math.max(own, others) - this.#world.now;
    if (early > 0) this.broken.push(`${entry.id} was sent ${early} ms before the end of Retry-After`);
  }

  #checkAttempt({ id, attempts }: Entry): void {
    const before = this.#sendings.get(id) ?? 0;
    this.#sendings.set(id, before + 1);
    if (attempts <= before) this.broken.push(`${id} was sent ${before + 1} times, and ${attempts} are on disk`);
  }

  /** Requests with one idempotency key must have the same body, version and organization (§4.2). */
  #checkKey({ machine, organizationId }: Surroundings, entry: Entry, { body, key }: Sending, version: string): void {
    if (key === undefined) return;
    const others = machine.entries.filter(({ id, idempotency_key }) => idempotency_key === key && id !== entry.id);
    if (others.length > 0) this.broken.push(`${entry.id} was sent with the key of ${others[0]?.id}`);
    const id = `${machine.name} ${key}`;
    const now: Sent = { body: body ?? "", version, organization: organizationId };
    const before = this.#sent.get(id) ?? now;
    this.#sent.set(id, before);
    for (const name of ["body", "version", "organization"] as const)
      if (before[name] !== now[name])
        this.broken.push(`${key} was sent with ${name} ${before[name]}, then ${now[name]}`);
  }

  /** A request without an idempotency key that may have arrived must not be repeated without a person's consent. */
  #checkRepetition({ id, idempotency_key }: Entry): void {
    if (idempotency_key !== null) return;
    if (this.#mayHaveArrived.has(id) && !this.#agreed.has(id))
      this.broken.push(`${id} has no idempotency key, may have arrived, and was sent again`);
    this.#mayHaveArrived.add(id);
  }

  /** Before a request can return a secret, space for it must be reserved, and the journal must record its destination. */
  #checkReserves(around: Surroundings, { id, destination, detail, state }: Entry): void {
    const { machine, folder } = around;
    if (detail.attempted_at?.includes(`${machine.host}:${folder}`) !== true)
      this.broken.push(`${id} was sent, and the journal does not say that its secret may be here`);
    // A process that lost its lease may free the reserve of the process that has the lease.
    if (this.#world.weather.lostLeases > 0) return;
    if (
      isSettled(state) ||
      detail.secret_claimed === true ||
      this.#madeBy({ id }).some(({ secret }) => this.#isDelivered(secret))
    )
      return;
    const room = keptName(around, id);
    // If the secret is already kept, its destinations may be unreachable.
    if (machine.kept.has(room)) return;
    if (!machine.keptReserves.has(room)) this.broken.push(`${id} was sent without space to keep its secret`);
    if (destination === null) this.broken.push(`${id} was sent, and the journal does not say where its secret goes`);
    const missing =
      destination?.kind === "several" ? missingPlaces(destination) : destination ? placesOf(destination) : [];
    for (const place of missing)
      if (!this.#isReady(machine, place))
        this.broken.push(`${id} was sent before ${place.kind} was ready for its secret`);
  }

  #isReady(machine: Machine, place: SingleRecord): boolean {
    if (place.kind !== "file") return true;
    return place.reserved !== undefined && (machine.reserves.has(place.reserved) || machine.files.has(place.path));
  }

  #checkRevoke(process: Process, machine: Machine, entry: Entry, id: string): void {
    const going = this.#world.all().find((made) => made.id === id);
    const { operation, detail, attempts } = entry;
    if (operation.endsWith(".revoke")) {
      if (attempts === 0) this.broken.push(`the revocation of ${id} was sent and is not on disk`);
    } else if (operation.endsWith(".rotate")) {
      if (going?.status === "active") this.#checkReplaced(process, machine, entry, id);
    } else if (detail.revoking !== true) this.broken.push(`${id} was revoked as lost, and the journal does not say so`);
  }

  /** Before a rotation revokes the old credential, the new one must be delivered and proven, and the overlap must be over. */
  #checkReplaced(process: Process, machine: Machine, rotation: Entry, id: string): void {
    const { id: entry, detail } = rotation;
    const wrong = (what: string): void => void this.broken.push(`${id} was revoked for ${entry} ${what}`);
    if (detail.keep_old === true) wrong("although it was to be kept");
    const children = this.#world.entries().filter(({ parent }) => parent === entry);
    const followers = this.#followersOf(children);
    const made = [...children, ...followers]
      .flatMap((child) => this.#madeBy(child))
      .filter(({ status }) => status === "active");
    const delivered = made.filter(
      ({ secret }) => this.#isDelivered(secret) || this.#world.reliance?.couldNotSee(process, machine, secret),
    );
    if (delivered.length === 0) return wrong("before the new secret was delivered");
    const done = children.filter(({ state }) => state === "done");
    if (done.length === 0) wrong("before the journal said that the new secret was delivered");
    if (done.length > 0 && done.every(({ destination }) => missingPlaces(destination).length > 0))
      wrong("before all destinations had the new secret");
    if (detail.proven === undefined) wrong("before the journal said that the new one works");
    const isAccepted = this.#agreed.has(entry) || this.#world.reliance?.acceptsUnproven(rotation) === true;
    const isAgreed = isAccepted && detail.proven === "by the person";
    if (!isAgreed && !delivered.some(({ secret }) => this.#world.proven.has(secret)))
      wrong("before the new one was shown to work");
    const until = Date.parse(detail.overlap_until ?? "");
    if (!this.#world.isSkewed && !this.#endedOverlaps.has(rotation.id) && this.#world.now < until)
      wrong(`${until - this.#world.now} ms before the end of the overlap`);
  }

  /** The creations by which later rotations replaced the clients or keys of `creations`. */
  #followersOf(creations: readonly Entry[]): Entry[] {
    const olds = new Set(creations.map(({ resource_id }) => resource_id));
    const rotations = this.#world
      .entries()
      .filter(({ state, detail }) => state === "done" && olds.has(detail.old_client ?? detail.old_key ?? ""))
      .map(({ id }) => id);
    const next = this.#world.entries().filter(({ parent }) => rotations.includes(parent ?? ""));
    return next.length === 0 ? [] : [...next, ...this.#followersOf(next)];
  }

  #find(id: string | undefined): Entry | undefined {
    return this.#world.entries().find((entry) => entry.id === id);
  }

  #madeBy({ id }: Pick<Entry, "id">): Made[] {
    return this.#world
      .all()
      .filter((made) => made.status === "active" && this.#world.makers.get(made.id)?.entry === id);
  }

  #isReadable(machine: Machine, secret: string): boolean {
    return this.#world.reliance?.isReadableBy(machine, secret) ?? this.#isDelivered(secret);
  }

  #isDelivered(secret: string): boolean {
    return this.#world.isDelivered(secret);
  }
}

/** Revocations of one credential are the same request, even in different entries. */
function requestOf({ id, operation, request_text, service_version, organization_id }: Entry): string {
  return operation.endsWith(".revoke") ? JSON.stringify([request_text, service_version, organization_id]) : id;
}

function workOf(entry: Entry | undefined): string {
  return entry?.parent ?? entry?.id ?? "";
}

export function keptName({ folder }: Pick<Surroundings, "folder">, entry: string): string {
  return `${folder} ${entry}`;
}
