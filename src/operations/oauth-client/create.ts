// The creation of an OAuth client, from the intent on disk to the secret at its destination: the decision table of §4.2
// followed step by step, retried under one key, resumable by any later process.
import { flags } from "../../next-step.ts";
import {
  checkCreation,
  clientDifferences,
  type CreationDecision,
  type CreationRequest,
  decideCreation,
  creationBody,
  isUndocumented,
} from "../../api/oauth-client-creation.ts";
import { type Attempt, failureOf, type Salvage } from "../../api/call/attempt.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import { Failure } from "../../errors.ts";
import { type Entry, type EntryProgress, isPutOff, wasClaimed } from "../../journal/entry.ts";
import type { EntryLease, Admission, Intent } from "../../journal/journal.ts";
import type { OneTimeSecret, Destination } from "../../secrets/destination.ts";
import {
  isTooEarly,
  untilDue,
  attemptedHere,
  delayBeforeNext,
  exchanged,
  wait,
  beginning,
  tellAlongside,
  admitTo,
  tellSimultaneous,
  stillPending,
  untilNotPending,
  noSlot,
} from "../sending.ts";
import {
  completeDelivery,
  deliverWhatIsKept,
  findSecret,
  keptUnnamed,
  formerIds,
  isPartlyDelivered,
  keepDelivered,
} from "../delivery-recovery.ts";
import {
  assertAsAsked,
  deliverSecret,
  destroyCopy,
  keepStray,
  reserveDestination,
  type SecretDelivery,
  settleDelivered,
  releaseReserved,
} from "../secret-delivery.ts";
import {
  detailsOf,
  lastErrorOf,
  outcomeUnknown,
  recordAfterwards,
  withRequestId,
  type Workbench,
  madeAs,
  madeFor,
} from "../workbench.ts";

export interface CreationOptions {
  readonly destination: Destination;
  /** How long a pending creation is waited for, milliseconds; 0 inspects once. */
  readonly waitMs: number;
  /** `--idempotency-key` */
  readonly key?: string;
  /** `--new`: leave an unfinished creation of the same request alone. */
  readonly fresh?: boolean;
}

/** How a creation ended. A lost secret is an end too: what follows is another piece of work. */
export interface CreationEnd {
  /** `delivered_before`: by an earlier process; the receipt shows the client as it is now. */
  readonly kind: "delivered" | "delivered_before" | "secret_lost";
  readonly entry: Entry;
  readonly receipt: string;
  /** Of the response that showed the client without its secret. */
  readonly requestId?: string | undefined;
}

/** The intent of a creation as the journal admits it. @param begun the entry whose work it is a step of */
export function creationIntent({ account }: Workbench, request: CreationRequest, begun?: Entry): Intent {
  // The same service account and the same set of scopes are the same intent.
  const fingerprint = [request.service_account_id, [...new Set(request.scopes)].sort()];
  return {
    ...(begun ? madeAs(begun) : madeFor(account)),
    operation: "oauth_client.create",
    method: "POST",
    path: "/v1/oauth_clients",
    request_text: creationBody(request),
    fingerprint: JSON.stringify(fingerprint),
    idempotent: true,
    detail: { own_key: true },
  };
}

/** As it was typed: a client that is delivered needs no space at its destination. */
function admitCreation(
  bench: Workbench,
  intent: Intent,
  { destination, fresh, key }: CreationOptions,
): Promise<Admission> {
  const detail = { ...intent.detail, own_key: key === undefined };
  return admitTo(
    bench,
    { ...intent, detail },
    {
      destination,
      choice: { fresh, key },
      isThere: async (lease) => (await completeDelivery(bench, lease)) || isPartlyDelivered(lease.entry),
    },
  );
}

/**
 * Creates an OAuth client, or finishes the unfinished creation of the same one.
 * @throws Failure of every kind that the decision table knows; the journal holds what may have happened
 */
export async function createOAuthClient<T>(
  bench: Workbench,
  request: CreationRequest,
  options: CreationOptions & { readonly conclude: (end: CreationEnd, lease: EntryLease) => Promise<T> },
): Promise<T> {
  checkCreation({ ...request, idempotencyKey: options.key });
  const since = beginning(bench);
  const admission = await admitCreation(bench, creationIntent(bench, request), options);
  const { kind, lease } = admission;
  try {
    tellAlongside(bench, admission);
    if (kind === "resumed")
      bench.tell.note(
        `Resuming the unfinished creation ${lease.entry.id}, under its own key (${flags.new} starts another).`,
      );
    const concluded = await options.conclude(await finishCreation(bench, lease, options), lease);
    // After an older entry of a team others may have come that ended long ago.
    if (kind === "new" || !bench.journal.isShared) await tellSimultaneous(bench, lease.entry, since);
    return concluded;
  } finally {
    await lease.release();
  }
}

/**
 * Sends the stored request under its key until the service has said what became of it, and delivers the secret.
 * @param lease the entry, held by this process alone
 */
export function finishCreation(bench: Workbench, lease: EntryLease, options: CreationOptions): Promise<CreationEnd> {
  return new CreationRun(bench, lease, options).finish();
}

const creating = { what: "create the OAuth client", change: true } as const;

/** Of a credential that cannot be had. */
const unsendable = { kind: "not_sent", reason: "unsendable", detail: "there is no credential" } as const;

/** One attempt to finish a creation: what it knows of earlier attempts, and when it started. */
class CreationRun {
  readonly #work: SecretDelivery;
  readonly #bench: Workbench;
  readonly #lease: EntryLease;
  readonly #waitMs: number;
  /** Clients that existed before: a receipt that shows one of them is not of a new client. */
  #formerIds: readonly string[] = [];
  readonly #startedAt: number;
  /** The key was typed with this command. */
  readonly #isKeyTyped: boolean;
  /** The entry was settled before: a key given again. What the journal says of it does not change. */
  readonly #settledBefore: boolean;
  /** An attempt of this or an earlier process may have made the client. */
  #uncertain: boolean;
  /** The remembered destination holds the secret already. */
  #deliveredBefore = false;
  #attempt = 0;
  /** `Request-Id` of the response to the last POST, if that showed the client. */
  #requestId: string | undefined;
  /** An earlier attempt was made with another credential: to the service that may be another request (§4.2 rule 2). */
  #isOtherCredential = false;
  /** The secret could neither be delivered nor kept: it may be whole in what was reserved, and recovery looks there. */
  #leaveReserve = false;

  constructor(bench: Workbench, lease: EntryLease, options: CreationOptions) {
    const { state, attempts } = lease.entry;
    this.#work = { bench, lease, destination: options.destination };
    this.#bench = bench;
    this.#lease = lease;
    this.#waitMs = options.waitMs;
    this.#startedAt = bench.clock.elapsed();
    this.#isKeyTyped = options.key !== undefined;
    this.#settledBefore = state === "done" || state === "replaced" || state === "unusable";
    this.#uncertain = !this.#settledBefore && state !== "refused" && attempts > 0 && !isPutOff(lease.entry);
  }

  get #entry(): Entry {
    return this.#lease.entry;
  }

  #record(change: Partial<EntryProgress>): Promise<void> {
    return recordAfterwards(this.#bench, this.#lease, change);
  }

  async finish(): Promise<CreationEnd> {
    try {
      this.#formerIds = await formerIds(this.#bench, this.#entry);
      this.#deliveredBefore =
        wasClaimed(this.#entry) || (await completeDelivery(this.#bench, this.#lease).catch(this.#orGiveUp));
      if (!this.#deliveredBefore) await keepDelivered(this.#bench, this.#lease).catch(this.#orGiveUp);
      await this.#untilDue();
      for (;;) {
        const end = await this.#attemptCreation();
        if (end) return end.kind === "secret_lost" ? { ...end, requestId: this.#requestId } : end;
      }
    } catch (error) {
      throw error instanceof Failure ? withRequestId(await keptUnnamed(this.#work, error), this.#requestId) : error;
    } finally {
      if (!this.#leaveReserve) await releaseReserved(this.#bench, this.#entry, this.#work.destination);
    }
  }

  readonly #orGiveUp = async (error: unknown): Promise<never> => {
    throw error instanceof Failure ? await this.#giveUp(error) : error;
  };

  /** Waits as the service asked. What an earlier attempt may have made stays unknown, or pending, if that is too long. */
  async #untilDue(): Promise<void> {
    try {
      await untilDue(this.#bench, this.#entry);
    } catch (error) {
      throw error instanceof Failure && this.#uncertain ? await this.#giveUp(error) : error;
    }
  }

  /** One POST and what it leads to; nothing if another one is due. */
  async #attemptCreation(): Promise<CreationEnd | undefined> {
    this.#attempt += 1;
    await this.#makeReady().catch(this.#orGiveUp);
    const { request_text, idempotency_key } = this.#entry;
    const answer = await exchanged(this.#bench, this.#lease, () =>
      this.#bench.account.service.oauthClients.create(request_text, idempotency_key!),
    );
    this.#requestId = answer.kind === "answered" ? answer.requestId : undefined;
    const decision = decideCreation(answer);
    if ("client" in decision && decision.kind !== "unusable") await this.#compare(decision.client, decision.kind);
    switch (decision.kind) {
      case "store_secret":
        return this.#deliver(decision);
      case "secret_lost":
        return this.#withoutSecret(decision.client, decision.text);
      case "pending":
        return this.#inspect(decision.client);
      case "unusable":
        throw await this.#unusable(decision.client);
      case "unknown":
        // 5xx, cut, timeout, broken body: the client may exist. The secret of a settled creation was delivered before.
        this.#uncertain = !this.#settledBefore;
        if (decision.secret !== undefined && !this.#settledBefore) await this.#keepSalvage(decision.secret);
        return this.#againLater(answer, this.#settledBefore ? this.#entry.state : "unknown");
      case "key_reuse":
        throw await this.#giveUp(this.#keyReuse(answer));
      case "refused": {
        const refusal = await this.#giveUp(failureOf(answer, creating));
        throw await noSlot(this.#bench, this.#entry, { refusal, keep: this.#formerIds });
      }
      case "wait":
      case "not_sent":
        return this.#againLater(answer, this.#entry.state);
    }
  }

  /** Everything that must be in place before a request may leave: a destination for the secret, and the attempt on disk. */
  async #makeReady(): Promise<void> {
    if (this.#bench.clock.interruption.aborted) throw this.#bench.clock.interruption.reason;
    this.#bench.disk.assertHealthy();
    // The receipt of a client that is delivered, or that was finished, has no secret: nothing is reserved for one.
    const isOver = this.#deliveredBefore || this.#settledBefore;
    const { destination: to } = this.#work;
    // Of several destinations those that can be reached get a secret that is kept.
    const isKept = this.#entry.destination?.kind === "several" && this.#bench.secrets.isKept(this.#entry.id);
    const record = isOver ? undefined : await reserveDestination(this.#bench, this.#lease, { destination: to, isKept });
    await this.#bench.secrets.reserve(this.#entry.id);
    const sent_as = await this.#credentialOfAttempt();
    const { state, destination } = this.#entry;
    await this.#lease.record({
      attempts: this.#entry.attempts + 1,
      state: this.#uncertain || this.#settledBefore ? state : "open",
      destination: record ? { ...record } : destination,
      // From here on a crash leaves an attempt whose outcome no one knows.
      detail: { ...attemptedHere(this.#bench, this.#entry), in_flight: !this.#settledBefore, sent_as },
    });
  }

  /** What the entry keeps of the credential: that of the first attempt which the service may have stored. */
  async #credentialOfAttempt(): Promise<string> {
    const { account, tell } = this.#bench;
    const { id, detail } = this.#entry;
    const now = await account.credentialDigest(id).catch((error: unknown) => {
      const isFailure = error instanceof Failure;
      throw isFailure ? failureOf({ ...unsendable, failure: error }, creating) : error;
    });
    const first = isPutOff(this.#entry) ? undefined : detail.sent_as;
    if (first !== undefined && first !== now && !this.#isOtherCredential) {
      this.#isOtherCredential = true;
      tell.note(
        `Profile ${account.profile} has another credential than at the first attempt of ${id}. The service continues the creation if both belong to one service account.`,
      );
    }
    return first ?? now;
  }

  /** The failure of a key that the service knows with another request (§4.2), with what a person can do about it. */
  #keyReuse(answer: Attempt<OAuthClient>): Failure {
    if (this.#isOtherCredential)
      return failureOf(answer, {
        ...creating,
        step: {
          hint: `Give profile ${this.#bench.account.profile} the credential of the first attempt again, or another one of the same service account: the credential changed since.`,
        },
      });
    if (this.#isKeyTyped) return failureOf(answer, creating);
    return failureOf(answer, {
      ...creating,
      step: {
        hint: "Check that the credential belongs to the service account that first sent this request, in the same region.",
      },
    });
  }

  async #deliver({ client, secret, text }: Extract<CreationDecision, { kind: "store_secret" }>): Promise<CreationEnd> {
    const { id, client_id } = client;
    const mine: OneTimeSecret = { secret, kind: "oauth_client", id, clientId: client_id ?? undefined, receipt: text };
    try {
      await deliverSecret(this.#work, mine, { learned: this.#learned(client) });
    } catch (error) {
      this.#leaveReserve = error instanceof Failure && error.kind === "secret_lost";
      throw error;
    }
    return { kind: "delivered", entry: this.#entry, receipt: text };
  }

  #learned(client: OAuthClient): Partial<EntryProgress> {
    const { id, client_id } = client;
    const differs = this.#differences(client);
    return {
      resource_id: id,
      last_error: null,
      detail: { ...this.#entry.detail, client_id, differs, in_flight: false },
    };
  }

  #differences(client: OAuthClient): string | undefined {
    const { request_text, resource_id } = this.#entry;
    const request = JSON.parse(request_text) as CreationRequest;
    return clientDifferences(client, request, { id: resource_id, notIds: this.#formerIds });
  }

  /**
   * A receipt that shows something else than was asked for ends the work. A secret that arrived with it is delivered first;
   * nothing of such a client is ever revoked, since it may be someone's.
   */
  async #compare(client: OAuthClient, kind: CreationDecision["kind"]): Promise<void> {
    const differs = this.#differences(client);
    if (differs === undefined || kind === "store_secret") return;
    const detail = { ...this.#entry.detail, differs };
    if (!this.#settledBefore)
      await this.#record({ state: "unusable", resource_id: client.id, last_error: null, detail });
    assertAsAsked({ ...this.#entry, state: "unusable", resource_id: client.id, detail });
  }

  /** `active` without a secret (§4.2): delivered by an earlier process, kept here, or lost. */
  async #withoutSecret(client: OAuthClient, receipt: string): Promise<CreationEnd> {
    const learned = this.#learned(client);
    if (this.#settledBefore) return { kind: "delivered_before", entry: this.#entry, receipt };
    const found = this.#deliveredBefore ? "delivered" : await findSecret(this.#work, { ...this.#entry, ...learned });
    if (found !== "nowhere") {
      await (found === "kept" ? deliverWhatIsKept(this.#work, learned) : settleDelivered(this.#work, learned));
      return { kind: "delivered_before", entry: this.#entry, receipt };
    }
    await this.#record({ ...learned, state: "secret_lost" });
    return { kind: "secret_lost", entry: this.#entry, receipt };
  }

  /** `pending` (§4.2): the key is kept, the client inspected, nothing created again. */
  async #inspect(client: OAuthClient): Promise<undefined> {
    this.#uncertain = true;
    const detail = { ...this.#entry.detail, in_flight: false };
    await this.#record({ state: "pending", resource_id: client.id, last_error: null, detail });
    const settled = await untilNotPending(this.#bench, { entry: this.#entry, id: client.id, waitMs: this.#waitMs });
    if (settled.status !== "active") throw await this.#unusable(settled);
    return undefined; // The next replay shows whether it still has a secret for us.
  }

  /** The failure of a creation whose client must not be used (§4.2): a secret that came for it is useless. */
  async #unusable(client: OAuthClient): Promise<Failure> {
    if (!this.#settledBefore || this.#entry.state === "done")
      await this.#record({ state: "unusable", resource_id: client.id, last_error: null });
    if (!isUndocumented(client)) await destroyCopy(this.#work);
    return new Failure("unusable", `The client ${client.id} is ${client.status}: it must not be used.`, {
      ...detailsOf(this.#entry),
      meaning: "The same idempotency key always returns this client.",
      hint: "Create another one under a new key.",
      nextCommand: { add: [flags.new], without: [`${flags.idempotencyKey} <k>`], of: "create" },
    });
  }

  /** Keeps a secret that came in a broken response, before anything else: a crash must not find it nowhere. */
  async #keepSalvage(salvage: Salvage): Promise<void> {
    const { refusal } = await keepStray(this.#work, salvage);
    if (refusal !== undefined)
      this.#bench.tell.warn(`An incomplete response contained a secret, and it could not be kept: ${refusal}`);
  }

  /** The same request again, when it is due. */
  async #againLater(answer: Attempt<OAuthClient>, state: Entry["state"]): Promise<undefined> {
    const { interruption } = this.#bench.clock;
    const failure = failureOf(answer, creating);
    await this.#noteError(failure, state);
    const because = (): Failure =>
      interruption.aborted && interruption.reason instanceof Failure ? interruption.reason : failure;
    const delay = delayBeforeNext(this.#bench, answer, { attempt: this.#attempt, startedAt: this.#startedAt });
    if (delay === null || interruption.aborted) throw await this.#giveUp(because(), failure);
    await this.#waitOr(delay, `${failure.message} Trying again under the same key`, () =>
      this.#giveUp(because(), failure),
    );
  }

  /** A wait that Ctrl-C ends: the failure then says what became of the work, not that a key was pressed. */
  async #waitOr(ms: number, label: string, instead: () => Promise<Failure>): Promise<void> {
    try {
      await wait(this.#bench, ms, label);
    } catch (error) {
      throw error instanceof Failure ? await instead() : error;
    }
  }

  /**
   * Ends this run without a client: the journal stays uncertain if any attempt is, and is settled if none is.
   * @param met what the last request met, if something else ends the run
   */
  async #giveUp(failure: Failure, met: Failure = failure): Promise<Failure> {
    const { state } = this.#entry;
    if (this.#settledBefore || !this.#uncertain) {
      if (this.#settledBefore) await this.#noteError(failure, state);
      else await (isTooEarly(met) ? this.#noteError(met, "open") : this.#noteError(failure, "refused"));
      return new Failure(failure.kind, failure.message, detailsOf(this.#entry, failure.details));
    }
    await this.#noteError(failure, state === "pending" ? state : "unknown");
    return state === "pending" ? stillPending(this.#entry, failure) : outcomeUnknown(this.#entry, failure);
  }

  #noteError(failure: Failure, state: Entry["state"]): Promise<void> {
    const detail = { ...this.#entry.detail, in_flight: this.#uncertain && state !== "pending" };
    return this.#record({ state, last_error: lastErrorOf(failure), detail });
  }
}
