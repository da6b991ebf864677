// Applies one item of a plan as an ordinary change with a journal entry.
import type { DiskHealth } from "../../disk/disk-health.ts";
import { createAccessKey, type KeyCreation, keyCreationIntent } from "../../operations/key.ts";
import { keyReplacementIntent, type KeyReplacementRequest, replaceAccessKey } from "../../operations/key-rotation.ts";
import { type NamedJournal, namedJournal } from "./item-journal.ts";
import { creationIntent, createOAuthClient } from "../../operations/client.ts";
import { clientRotationIntent, rotateOAuthClient } from "../../operations/client-rotation.ts";
import { withEntryOutcome } from "../../operations/next.ts";
import { resumeWork, rootOf } from "../../operations/recovery.ts";
import { withLease, serviceTime, type Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure, isInterruption } from "../../errors.ts";
import { type Advice, flags, shell } from "../../next-step.ts";
import { withoutForce } from "../running/several.ts";
import { type Entry, isSettled, mayBeCreatedElsewhere, lastErrorOf, otherPlaces } from "../../journal/entry.ts";
import type { EntryLease, Intent, Journal } from "../../journal/journal.ts";
import type { Decision } from "../../policy/decide.ts";
import type { SeenCredential } from "../../policy/observed.ts";
import type { ClientItem, ItemDestination, KeyItem, PolicyItem } from "../../policy/policy.ts";
import { isOf, isSameItem, recordedItem, type WorkScope, workIn } from "../../policy/works.ts";
import { issuedAs } from "../options/secrets.ts";
import { workbenchOf } from "../running/change.ts";
import { missingFor } from "../running/missing.ts";
import { missingForItems } from "./acting.ts";
import { adopt, adoptionIntent } from "./adoption.ts";
import type { EntryDestination, SingleDestination } from "../../journal/entry-destination.ts";
import {
  type Destination,
  type DestinationOption,
  isLocal,
  placesOf,
  type SecretOptions,
} from "../../secrets/destination.ts";
import { destinationOptions } from "./destinations.ts";

export interface ApplyOptions {
  readonly context: Context;
  readonly bench: Workbench;
  readonly disk: DiskHealth;
  readonly scope: WorkScope;
  readonly entriesAtPlan: ReadonlySet<string>;
  /** How long to wait for a pending client. */
  readonly waitMs: number;
}

export interface ItemOutcome {
  /** `elsewhere`: another process works on the item or has just finished it. */
  readonly result: "done" | "waiting" | "elsewhere" | "failed";
  readonly entry?: Entry | undefined;
  readonly failure?: Failure;
}

export async function applyItem(decision: Decision, options: ApplyOptions): Promise<ItemOutcome> {
  const { item, step } = decision;
  const { bench, scope, entriesAtPlan } = options;
  const current = decision.current?.id;
  const resumedEntry = step.do === "finish" ? step.entry : undefined;
  const isWork = (entry: Entry): boolean => {
    const change = isOf(entry, scope) ? workIn(entry) : undefined;
    const named = recordedItem(entry);
    const isOwn = named === undefined ? change?.old !== undefined && change.old === current : isSameItem(named, item);
    return change?.kind === item.kind && (isOwn || entry.id === resumedEntry);
  };
  const named = namedJournal(bench.journal, { item, entriesAtPlan, current, resumedEntry, isWork });
  const work: ItemWork = {
    decision,
    options,
    bench: benchFor(bench, { journal: named.journal, name: item.name }),
    named,
  };
  try {
    if (step.do === "adopt") return await adoptAs(work, step.credential);
    const missing = await missingCredentialFor(work);
    if (missing !== undefined) return { result: "failed", ...missing };
    if (step.do === "finish") {
      const finished = await resume(work, step.entry);
      if (finished === undefined || isRefusedUnsent(finished))
        return { result: "elsewhere", entry: await named.newest() };
      // The refused entry's consent to replace content still applies, because the plan did not ask again.
      if (finished.state === "refused") await start(work, finished.destination);
    } else await start(work);
    const entry = await named.newest();
    return { result: entry?.state === "waiting" ? "waiting" : "done", entry };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return handleFailure(
      work,
      withoutForce(error, { hint: occupiedAdvice(item), nextCommand: shell`integ apply --only ${item.name}` }),
    );
  }
}

/** Since the plan, another item may have adopted the credential. */
async function adoptAs(
  { decision: { item }, options: { entriesAtPlan, scope }, bench, named }: ItemWork,
  credential: SeenCredential,
): Promise<ItemOutcome> {
  const { id } = credential;
  const entries = await bench.journal.select({ all: true, resource: id });
  const other = entries.find((entry) => !entriesAtPlan.has(entry.id) && isOf(entry, scope));
  if (other !== undefined) return { result: "elsewhere", entry: other };
  const intent = adoptionIntent(bench, { item, credential });
  return { result: "done", entry: await adopt(named.journal, intent, id) };
}

/**
 * If the profile lacks a credential, that must not count as the item's failure, so integ looks for the credential
 * before the first record. The delivery of a kept secret needs no credential.
 */
async function missingCredentialFor({ decision: { item, step }, options: { context }, bench }: ItemWork) {
  const entry = step.do === "finish" ? await rootOf(bench.journal, step.entry) : undefined;
  if (entry?.state === "undelivered") return undefined;
  const failure = await (entry === undefined
    ? missingForItems(context, bench.account.profile, item.kind)
    : missingFor(context, entry));
  if (failure === undefined) return undefined;
  return { failure: entry === undefined ? failure : withEntryOutcome(entry, failure), entry };
}

interface ItemWork {
  readonly decision: Decision;
  readonly options: ApplyOptions;
  readonly bench: Workbench;
  readonly named: NamedJournal;
}

/** Items run in parallel, so messages start with the item's name, and no item shows its progress. */
function benchFor(
  bench: Workbench,
  { journal, name }: { readonly journal: Journal; readonly name: string },
): Workbench {
  const { tell } = bench;
  return {
    ...bench,
    journal,
    tell: {
      note: (text) => tell.note(`${name}: ${text}`),
      warn: (text) => tell.warn(`${name}: ${text}`),
      waiting: () => () => {},
      busy: () => () => {},
    },
  };
}

function occupiedAdvice({ name, destinations }: PolicyItem): Advice {
  const [first] = destinations;
  // With several destinations, the occupied one may not be the profile.
  if (destinations.length > 1 || first === undefined || !("profile" in first))
    return "Move the current content away, or name another destination in the policy file: integ replaces only secrets that it delivered.";
  return `Name another profile in the policy file. Or create the credential yourself with ${flags.secretProfile} ${first.profile}, which replaces the profile's credential, and adopt it as the item ${name}.`;
}

async function destinationOf(
  { decision: { item, current }, options: { context }, bench }: ItemWork,
  entry?: Entry,
  before = entry?.destination,
): Promise<Destination> {
  if (item.destinations.length === 0)
    throw new Failure("usage", `The destination of the secret of ${item.name} is unknown.`, {
      meaning: "Nothing was sent for it.",
      hint: "Name the destination in the policy file: replace `secret: unknown`.",
    });
  const { profile } = bench.account;
  const isActing = (one: ItemDestination): boolean => "profile" in one && one.profile === profile;
  const others = item.destinations.filter((one) => !isActing(one));
  const isOwn = current?.ownership === "own";
  const { to } = destinationOptions(isOwn ? [...others, { profile }] : item.destinations, before);
  const record = entry?.destination;
  const secretOptions: SecretOptions = {
    mayBeOwn: true,
    to: isOwn ? to.map((one) => updatingOwn(one, profile)) : to,
    yields: item.kind,
    remembered: record?.kind === "several" ? record : undefined,
    ...(entry && issuedAs(entry)),
  };
  const print = (): Promise<void> => Promise.reject(new Error("a policy has no secret for the screen"));
  return context.secrets.destination(secretOptions, print);
}

/**
 * `--include-own` lets integ replace the credential that the profile has now. A recorded destination with `own` keeps
 * its consent, which identifies the credential to replace.
 */
function updatingOwn(option: DestinationOption, profile: string): DestinationOption {
  const isUpdate = option.kind === "profile" && option.name === profile && option.own !== true;
  return isUpdate ? { ...option, own: true, force: true } : option;
}

/**
 * `apply` may replace a credential whose secret is lost, unless the secret may be in use: another program may have
 * created the client, or another machine may have delivered the secret to a destination that integ cannot check.
 */
function mayReplace({ secrets }: Workbench): (entry: Entry) => Promise<boolean> {
  const isCheckable = (at: SingleDestination): boolean => {
    if (at.kind === "stdout" || at.kind === "command") return false;
    return !isLocal(at) || !("machine" in at) || at.machine === secrets.machine.find();
  };
  return async (entry) => {
    if (mayBeCreatedElsewhere(entry)) return false;
    if (otherPlaces(entry, secrets).length === 0) return true;
    return entry.destination !== null && placesOf(entry.destination).every(isCheckable);
  };
}

function consents({ options: { waitMs }, decision: { item }, bench }: ItemWork) {
  const mayRevokeUnproven = async (_entry: Entry, _words: string, isUsual: boolean) =>
    isUsual && item.acceptsUnproven === true;
  return { waitMs, mayReplace: mayReplace(bench), mayRevokeUnproven, overlap: "leave" } as const;
}

/** @param before destination of the refused entry that this change repeats */
async function start(work: ItemWork, before?: EntryDestination | null): Promise<unknown> {
  const { bench, options } = work;
  const { item, step } = work.decision;
  const old = step.do === "replace" ? step.old : undefined;
  const reconnect = async () => options.context.connect(await options.context.profiles.named(bench.account.profile));
  const choices = { ...consents(work), destination: await destinationOf(work, undefined, before), reconnect };
  if (item.kind === "oauth_client")
    return old === undefined
      ? createOAuthClient(bench, clientRequest(item), choices)
      : rotateOAuthClient(bench, clientRotation(item, old), choices);
  return old === undefined
    ? createAccessKey(bench, keyCreation(bench, item), choices)
    : replaceAccessKey(bench, keyReplacement(bench, item, old), choices);
}

export function clientRequest({ serviceAccount, scopes }: ClientItem): {
  service_account_id: string;
  scopes: readonly string[];
} {
  return { service_account_id: serviceAccount, scopes };
}

export function clientRotation(item: ClientItem, { id }: SeenCredential): Parameters<typeof rotateOAuthClient>[1] {
  const old = { ...clientRequest(item), id, status: "active" };
  return { old, overlapMs: item.rotate?.overlapMs ?? 0, keepOld: false };
}

/** With the random mark, integ finds the key after a lost response and need not ask a person. */
export function keyCreation(bench: Workbench, { name, type, scopes, expiresInMs, expiresAt }: KeyItem): KeyCreation {
  const at = expiresInMs === undefined ? expiresAt : new Date(serviceTime(bench) + expiresInMs).toISOString();
  const expiry = expiresInMs === undefined ? (expiresAt ?? "never") : `in ${expiresInMs} ms`;
  return { request: { name, keyType: type, scopes, expiresAt: at }, expiry, marked: true };
}

export function keyReplacement(
  bench: Workbench,
  item: KeyItem,
  { id, type, createdBy, ownership }: SeenCredential,
): KeyReplacementRequest {
  const isBound = item.type === "user_bound" && type === "user_bound";
  return {
    oldId: id,
    boundTo: isBound ? createdBy : undefined,
    creation: keyCreation(bench, item),
    overlapMs: item.rotate?.overlapMs ?? 0,
    unusedMs: item.rotate?.unusedMs,
    updateProfile: ownership === "own",
  };
}

/** True for an entry that integ refused without sending it, for example because another entry makes the same change. */
function isRefusedUnsent({ state, attempts }: Entry): boolean {
  return state === "refused" && attempts === 0;
}

async function resume(work: ItemWork, id: string): Promise<Entry | undefined> {
  const { named, options, decision } = work;
  const { context, disk } = options;
  const { journal } = named;
  const lease = await journal.tryLease((await rootOf(journal, id)).id);
  if (lease === null) return undefined;
  return withLease(lease, async () => {
    if (isSettled(lease.entry.state)) return undefined;
    const own = await workbenchOf(context, { entry: lease.entry, disk });
    const bench = benchFor(own, { journal, name: decision.item.name });
    const finishing = { ...work, bench };
    await resumeWork(bench, lease, {
      ...consents(work),
      claimedBy: "policy",
      overlap: decision.action === "revoke_old" && !decision.rechecksUse ? "end" : "leave",
      destinationOf: (entry) => destinationOf(finishing, entry),
    });
    return lease.entry;
  });
}

async function handleFailure(work: ItemWork, failure: Failure): Promise<ItemOutcome> {
  const other = await work.named.newestOfOthers();
  if (other !== undefined) return { result: "elsewhere", entry: other };
  await countFailure(work, failure);
  return { result: "failed", failure, entry: await work.named.newest() };
}

const temporaryKinds: ReadonlySet<string> = new Set(["unreachable", "rate_limited"]);

/**
 * The count of failures, which can stall the item, is kept in an entry. A change that failed without an entry gets an
 * entry in the state `refused`.
 */
async function countFailure(work: ItemWork, failure: Failure): Promise<void> {
  const { decision, named, bench } = work;
  if (isInterruption(failure) || temporaryKinds.has(failure.kind) || decision.item.destinations.length === 0) return;
  if (decision.step.do === "adopt") return;
  // On a machine that uses another server of the store, the failure says nothing about the item.
  for (const place of placesOf((await named.newest())?.destination ?? null))
    if (await work.options.context.secrets.isOfOtherServer(place)) return;
  const entry = [...named.admitted][0] ?? (decision.step.do === "finish" ? decision.step.entry : undefined);
  try {
    const lease = entry === undefined ? await addRefusedEntry(work) : await bench.journal.tryLease(entry);
    if (lease === null) return;
    const { detail, last_error } = lease.entry;
    const failed = { ...detail, failures: (detail.failures ?? 0) + 1 };
    await withLease(lease, () => lease.record({ detail: failed, last_error: last_error ?? lastErrorOf(failure) }));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    bench.tell.warn(`The failure could not be recorded. ${error.message}`);
  }
}

async function addRefusedEntry(work: ItemWork): Promise<EntryLease> {
  const { lease } = await work.bench.journal.admit(intentOf(work));
  await lease.record({ state: "refused" });
  return lease;
}

function intentOf({ decision: { item, step }, bench }: ItemWork): Intent {
  if (item.kind === "oauth_client")
    return step.do === "replace"
      ? clientRotationIntent(bench, clientRotation(item, step.old))
      : creationIntent(bench, clientRequest(item));
  return step.do === "replace"
    ? keyReplacementIntent(bench, keyReplacement(bench, item, step.old))
    : keyCreationIntent(bench, keyCreation(bench, item), { mark: "" });
}
