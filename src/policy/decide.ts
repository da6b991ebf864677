// Decides the next action of a policy item from the observed state, without I/O.
import type { SingleDestination } from "../journal/entry-destination.ts";
import { overlapEnd } from "../journal/entry.ts";
import { roundedDuration } from "../output/relative-time.ts";
import { describeDestination } from "../secrets/destination.ts";
import { type Holder, placeIn, placeOf } from "./holders.ts";
import { type Observed, type SeenCredential, seenOf } from "./observed.ts";
import { destinationName, type PolicyItem } from "./policy.ts";
import { itemKey, itemOf, type ItemWorks, nameOf, type Work } from "./works.ts";

export type PlanAction = "create" | "rotate" | "change_scopes" | "wait" | "revoke_old" | "adopt" | "redeliver" | "none";

type PlanStep =
  | { readonly do: "nothing" }
  | { readonly do: "create" }
  | { readonly do: "adopt"; readonly credential: SeenCredential }
  | { readonly do: "replace"; readonly old: SeenCredential }
  | { readonly do: "finish"; readonly entry: string };

export interface Decision {
  readonly item: PolicyItem;
  readonly action: PlanAction;
  readonly reason: string;
  /** A credential's status, an entry's state, or `expired`, `stalled` or `untrusted`. */
  readonly state: string;
  readonly step: PlanStep;
  readonly current?: SeenCredential | undefined;
  /** When the action, or for `none` and `wait` the next one, is due; milliseconds since 1970. */
  readonly dueMs?: number | undefined;
  /** True if `apply` must read the old key's last use again before it revokes the key. */
  readonly rechecksUse?: boolean;
  /** Why `apply` leaves the action to a person. */
  readonly hold?:
    | "stalled"
    | "own"
    | "no_destination"
    | "not_adopted"
    | "occupied"
    | "astray"
    | "untrusted"
    | "uncertain"
    | "lost"
    | undefined;
  /** With the hold `lost`, the old credential. */
  readonly old?: string | undefined;
  /** The profile that may authenticate with the credential. */
  readonly mayBeOwnOf?: string | undefined;
  readonly entry?: string | undefined;
  readonly holder?: Holder | undefined;
  /** Unmanaged credentials that the item could adopt. */
  readonly choices?: readonly SeenCredential[] | undefined;
}

export interface DecisionOptions {
  readonly maxFailures: number;
  readonly retry: ReadonlySet<string>;
  /** Items that the user lets integ rotate if their secret is not where the policy file says. */
  readonly redeliver: ReadonlySet<string>;
  /** Items whose overlap the user ends early. */
  readonly finish: ReadonlySet<string>;
  readonly includeOwn: boolean;
  /** `itemKey` of every item of the policy. */
  readonly items: ReadonlySet<string>;
}

const noStep: PlanStep = { do: "nothing" };
const noWork: ItemWorks = { works: [], failures: 0, unfinished: undefined, waiting: undefined, candidates: [] };

export function decide(item: PolicyItem, observed: Observed, options: DecisionOptions): Decision {
  const works = observed.works.get(itemKey(item)) ?? noWork;
  const decision = baseDecision(item, observed, { works, options });
  const deliveries = works.candidates.flatMap((id) => observed.delivered.get(id) ?? []);
  const untrusted = [...works.works, ...deliveries].find(({ entry }) => observed.untrusted?.has(entry.id));
  if (untrusted !== undefined && decision.step.do !== "nothing") return holdAsUntrusted(decision, untrusted);
  return holdForPerson(holdIfOccupied(decision, observed, options), { works, options }, observed.profile);
}

/** An untrusted entry must not cause a replacement, a revocation or another creation. */
function holdAsUntrusted(decision: Decision, { entry: { id } }: Pick<Work, "entry">): Decision {
  const reason = `its journal entry ${id} is untrusted: none of the keys of the journal signed it`;
  return { ...decision, reason, state: "untrusted", hold: "untrusted", entry: id };
}

function baseDecision(
  item: PolicyItem,
  observed: Observed,
  { works, options }: { readonly works: ItemWorks; readonly options: DecisionOptions },
): Decision {
  if (works.unfinished) return decideUnfinished(item, works.unfinished);
  if (works.waiting) return decideOverlap(item, works.waiting, { observed, isEnded: options.finish.has(item.name) });
  const seen = seenOf(item, observed);
  const candidates = works.candidates.map((id) => seen.get(id) ?? absent(id));
  const current = candidates.find((one) => isUsable(one, observed.nowMs) || one.status === "unlisted");
  if (current === undefined || current.status === "unlisted")
    return decideMissing(item, current ?? candidates[0], { observed, options });
  return decideExisting(item, current, { observed, options });
}

function absent(id: string): SeenCredential {
  return { id, status: "absent", ownership: "other" };
}

function isUsable({ status, expiresAt }: SeenCredential, nowMs: number): boolean {
  return status === "active" && !(Date.parse(expiresAt ?? "") <= nowMs);
}

function decideUnfinished(item: PolicyItem, { entry, old }: Work): Decision {
  const why =
    entry.state === "undelivered" ? "its secret is kept and not delivered yet" : `unfinished (${entry.state})`;
  return {
    item,
    action: old === undefined ? "create" : "rotate",
    reason: `${why}: journal entry ${entry.id} continues`,
    state: entry.state,
    step: { do: "finish", entry: entry.id },
    dueMs: Date.parse(entry.created_at),
  };
}

function decideOverlap(
  item: PolicyItem,
  work: Work,
  { observed, isEnded }: { readonly observed: Observed; readonly isEnded: boolean },
): Decision {
  const { entry, old = "", made = "" } = work;
  const seen = seenOf(item, observed);
  const { overlap_unused_ms: unusedMs } = entry.detail;
  const lastUsedAt = seen.get(old)?.lastUsedAt;
  const dueMs = overlapEnd(entry.detail, lastUsedAt);
  const unused = unusedMs === undefined ? "" : `: ${lastUseWords(old, lastUsedAt, observed.nowMs)}`;
  const current = seen.get(made);
  const oldStatus = seen.get(old)?.status;
  const common = { item, state: "waiting", current, dueMs } as const;
  const end = (reason: string): Decision => ({
    ...common,
    action: "revoke_old",
    reason,
    step: { do: "finish", entry: entry.id },
  });
  const isDue = isEnded || dueMs <= observed.nowMs;
  const rechecksUse = !isEnded && unusedMs !== undefined;
  if (oldStatus === "revoked") return end(`${old} is revoked already`);
  // `apply` proves an unlisted key again before it revokes the old one.
  if (current !== undefined && current.status !== "active" && current.status !== "unlisted") {
    const { works } = observed.works.get(itemKey(item)) ?? noWork;
    const { made: next } = works.find((one) => one.old === made && one.entry.state === "done") ?? {};
    const fact = `the new one, ${made}, is ${current.status}`;
    if (next === undefined) return { ...end(`${fact}: the rotation ends, and ${old} is kept`), action: "rotate" };
    const reason = `${fact}: ${old} is revoked if ${next}, which followed, works and is in all its places`;
    if (isDue) return { ...end(reason), rechecksUse };
  }
  const lost = observed.lost?.get(entry.id);
  const why = lost && `${made} was rotated later, and its secret in ${lost.join(", ")} no longer works`;
  if (why !== undefined && isDue)
    return { ...end(`the overlap is over, but ${old} is kept: ${why}`), hold: "lost", old };
  if (why !== undefined)
    return { ...common, action: "wait", reason: `${old} is kept after the overlap: ${why}`, step: noStep };
  if (isEnded) return end(`the overlap ends now, and ${old} is revoked`);
  if (isDue) return { ...end(`the overlap is over, and ${old} is revoked${unused}`), rechecksUse };
  const until =
    unusedMs === undefined
      ? `after the overlap, which ends in ${longDuration(dueMs - observed.nowMs)}`
      : `in which it was unused for ${longDuration(unusedMs)} since the rotation`;
  return {
    ...common,
    action: "wait",
    reason: `${old} is revoked by the first run ${until}${unused}`,
    step: noStep,
  };
}

export function lastUseWords(id: string, lastUsedAt: string | null | undefined, nowMs: number): string {
  if (lastUsedAt === null) return `${id} was never used`;
  const ms = nowMs - Date.parse(lastUsedAt ?? "");
  if (Number.isNaN(ms)) return `the API does not show when ${id} was last used`;
  return `${id} was last used ${ms < -60_000 ? `at ${lastUsedAt}` : `${longDuration(ms)} ago`}`;
}

interface Situation {
  readonly observed: Observed;
  readonly options: DecisionOptions;
}

function decideMissing(item: PolicyItem, last: SeenCredential | undefined, { observed, options }: Situation): Decision {
  // The service may still complete this client; then a second one would be a duplicate.
  if (last?.status === "pending") {
    const reason = `${last.id} is pending: the service has not completed its creation`;
    return { item, current: last, action: "wait", reason, state: "pending", step: noStep };
  }
  // Only a revocation is final: a disabled client may be enabled again, and a 404 may have another cause (§4.2).
  if (last !== undefined && isUncertain(item.kind, last) && !options.retry.has(item.name)) {
    const { id, status } = last;
    const reason =
      status === "unlisted"
        ? `the list of keys is incomplete and lacks ${id}, which may work, so no other key is created`
        : `${id} is ${status === "absent" ? "not found" : status} and may work again, so no other client is created`;
    return { item, current: last, action: "create", reason, state: status, step: noStep, hold: "uncertain" };
  }
  // A secret at the item's destination is better evidence than equal settings: `holdIfOccupied` uses it.
  const needsName = last === undefined && holderAtDestination(item, observed) === undefined;
  const similar = needsName ? adoptionDecision(item, observed, options) : [];
  if (similar.length > 0) return notAdopted(item, similar);
  const isExpired = last?.status === "active";
  const state = last === undefined ? "absent" : isExpired ? "expired" : last.status;
  const reason =
    last === undefined
      ? `it does not exist yet${renameHint(item, observed, options)}`
      : `${last.id} is ${state === "absent" ? "not found" : state}`;
  return {
    item,
    action: "create",
    reason,
    state,
    step: { do: "create" },
    dueMs: observed.nowMs,
  };
}

/** Keys have a list, so a key that a complete list lacks counts as nonexistent. Clients have none. */
function isUncertain(kind: PolicyItem["kind"], { status }: SeenCredential): boolean {
  return kind === "oauth_client" ? status !== "revoked" && status !== "active" : status === "unlisted";
}

function notAdopted(item: PolicyItem, choices: readonly SeenCredential[]): Decision {
  const [first, ...more] = choices;
  const common = { item, choices, action: "adopt", step: noStep, hold: "not_adopted" } as const;
  if (more.length === 0)
    return {
      ...common,
      current: first,
      reason: `exists as ${first?.id}, not adopted`,
      state: first?.status ?? "absent",
    };
  const ids = choices.map(({ id }) => id).join(", ");
  return {
    ...common,
    reason: `exists as one of ${ids}, not adopted`,
    state: "absent",
  };
}

/**
 * Candidates are usable, belong to no item and have the item's settings.
 * @returns the candidates with the item's name; if there are none and the item has no destination, all candidates
 * except keys with the name of another item
 */
function adoptionDecision(item: PolicyItem, observed: Observed, { items }: DecisionOptions): SeenCredential[] {
  const inItems = new Set([
    ...[...observed.works.values()].flatMap(({ candidates, unfinished }) => [
      ...candidates,
      ...(unfinished === undefined ? [] : [unfinished.made, unfinished.old]),
    ]),
    // A credential whose secret is at a destination of the policy belongs to the item with that destination.
    ...[...observed.holders.values()].map(({ id }) => id),
    ...(observed.unsettled ?? []),
  ]);
  const similar = [...seenOf(item, observed).values()].filter(
    (one) =>
      isUsable(one, observed.nowMs) &&
      !inItems.has(one.id) &&
      one.scopes !== undefined &&
      differences(item, one) === undefined,
  );
  const itemKeyOf = ({ name }: SeenCredential): string | undefined =>
    item.kind === "access_key" && name !== undefined ? itemKey({ ...item, name: nameOf(name, item.kind) }) : undefined;
  const named = similar.filter((one) => itemKeyOf(one) === itemKey(item));
  if (named.length > 0) return named;
  if (item.destinations.length > 0) return [];
  // `policy init` adds a number to the item names of keys that share a name.
  const unnumbered = itemKey({ ...item, name: item.name.replace(/-\d+$/, "") });
  return similar.filter((one) => itemKeyOf(one) === unnumbered || !items.has(itemKeyOf(one) ?? ""));
}

/** If exactly one similar item was removed from the file, the user probably renamed it. */
function renameHint(item: PolicyItem, observed: Observed, { items }: DecisionOptions): string {
  const seen = seenOf(item, observed);
  const similar = [...observed.works].flatMap(([key, { candidates }]) => {
    const { policy, kind, name } = itemOf(key);
    if (items.has(key) || policy !== item.policy || kind !== item.kind) return [];
    const current = candidates.map((id) => seen.get(id)).find((one) => one && isUsable(one, observed.nowMs));
    if (current === undefined || current.scopes === undefined || differences(item, current) !== undefined) return [];
    return [`; ${current.id} of ${name}, which is not in the file, is alike: adopt it if you renamed the item`];
  });
  return similar.length === 1 ? similar[0]! : "";
}

/** A new secret must not overwrite another credential's secret, which may be in use. */
function holdIfOccupied(decision: Decision, observed: Observed, { items }: DecisionOptions): Decision {
  const { item, step } = decision;
  if (step.do !== "create" && step.do !== "replace") return decision;
  if (replacesOwnCredential(decision, observed.profile)) {
    const reason = `${decision.reason}; its secret would replace the credential of profile ${observed.profile}, which this run uses`;
    return { ...decision, hold: "occupied", reason };
  }
  const holder = holderAtDestination(item, observed);
  if (holder === undefined) return decision;
  const { id, kind, item: other, isUnfinished, issuer } = holder;
  const current = seenOf(item, observed).get(id ?? "");
  const isAdoptable = step.do === "create" && kind === item.kind && !isUnfinished && issuer === undefined;
  const isWorking = current !== undefined && isUsable(current, observed.nowMs);
  const isFree = other === undefined || (itemOf(other).policy === item.policy && !items.has(other));
  const isSettled = !observed.unsettled?.has(current?.id ?? "");
  if (isAdoptable && isWorking && isFree && isSettled) {
    const reason =
      other === undefined
        ? `exists as ${current.id}, not adopted`
        : `the secret of ${current.id} (item ${itemOf(other).name}) is at its destination: adopt it if you renamed the item, or choose another destination`;
    return {
      ...decision,
      current,
      holder,
      action: "adopt",
      step: noStep,
      reason,
      state: current.status,
      hold: "not_adopted",
      choices: other === undefined ? [current] : undefined,
    };
  }
  return { ...decision, holder, hold: "occupied", reason: `${decision.reason}; ${occupation(holder, item)}` };
}

function holderAtDestination(item: PolicyItem, observed: Observed): Holder | undefined {
  return item.destinations
    .map((destination) => observed.holders.get(placeOf(destination, item)))
    .find((found) => found !== undefined && found.item !== itemKey(item) && isInUse(found, observed));
}

/** True if the new secret would overwrite the acting profile's credential without rotating that credential. */
function replacesOwnCredential({ item: { destinations }, step }: Decision, profile: string): boolean {
  const isOwn = step.do === "replace" && step.old.ownership === "own";
  return !isOwn && destinations.some((one) => "profile" in one && one.profile === profile);
}

function isInUse(holder: Holder, observed: Observed): boolean {
  if (holder.isUnfinished || holder.issuer !== undefined) return true;
  const credential = seenOf(holder, observed).get(holder.id ?? "");
  return credential !== undefined && (isUsable(credential, observed.nowMs) || isUncertain(holder.kind, credential));
}

function occupation({ id, entry, item, isUnfinished, issuer }: Holder, own: PolicyItem): string {
  const whose = item === undefined ? "" : ` of ${itemLabel(item, own)}`;
  if (isUnfinished) return `unfinished journal entry ${entry}${whose} delivers to the same destination`;
  const from = issuer === undefined ? "" : `, issued by ${issuer},`;
  return `the secret of ${id ?? `journal entry ${entry}`}${whose}${from} is at its destination`;
}

function itemLabel(key: string, own: PolicyItem): string {
  const { policy, name } = itemOf(key);
  return policy === own.policy ? `item ${name}` : `item ${name} of policy ${policy}`;
}

function decideExisting(item: PolicyItem, current: SeenCredential, { observed, options }: Situation): Decision {
  const { nowMs } = observed;
  const replace = { item, current, state: current.status, step: { do: "replace", old: current } } as const;
  const change = differences(item, current);
  const due = dueOf(item, current, nowMs);
  const misplaced = misplacement(item, current, observed);
  // A person must agree if a program may read the secret at its current place, or if only its place requires rotation.
  const needsDecision = misplaced !== undefined && (misplaced.mayBeInUse || (change === undefined && !due.isDue));
  if (needsDecision && !options.redeliver.has(item.name))
    return { ...replace, action: "redeliver", reason: misplaced.reason, hold: "astray", dueMs: nowMs };
  if (change !== undefined) return { ...replace, action: "change_scopes", reason: change, dueMs: nowMs };
  if (due.isDue) return { ...replace, action: "rotate", reason: due.reason, dueMs: due.ms };
  if (misplaced !== undefined) return { ...replace, action: "redeliver", reason: misplaced.reason, dueMs: nowMs };
  return { item, current, state: current.status, action: "none", reason: due.reason, step: noStep, dueMs: due.ms };
}

/**
 * `mayBeInUse`: a program may read the secret at its current place.
 * @returns undefined unless the secret is known to be missing from a destination of the item
 */
function misplacement(
  item: PolicyItem,
  { id }: SeenCredential,
  { delivered, vanished, elsewhere }: Observed,
): { readonly reason: string; readonly mayBeInUse: boolean } | undefined {
  const last = delivered.get(id);
  if (last === undefined || last.places.length === 0) return undefined;
  const deliveredTo = new Set(last.places.map((at) => placeIn(at, last.entry)));
  for (const destination of item.destinations) {
    const place = placeOf(destination, item);
    const name = destinationName(destination);
    // A changed command may still deliver to the same place, so it causes no new delivery; the plan shows the change.
    const isChanged = "command" in destination && last.places.some(({ kind }) => kind === "command");
    if (!deliveredTo.has(place) && !isChanged)
      return { reason: `its secret is not in ${name}: it went to ${placesWords(last.places)}`, mayBeInUse: true };
    const other = "store" in destination && !destination.store.startsWith("keychain:") ? "server" : "machine";
    if (elsewhere.has(place)) return { reason: `its secret is in ${name} of another ${other}`, mayBeInUse: true };
    if (vanished.has(place)) return { reason: `nothing is in ${name} any more`, mayBeInUse: false };
  }
  return undefined;
}

function placesWords(places: readonly SingleDestination[]): string {
  return places.map((at) => describeDestination(at).name).join(", ");
}

export function changedCommands(item: PolicyItem, { id }: SeenCredential, { delivered }: Observed): string[] {
  const last = delivered.get(id);
  if (last === undefined) return [];
  const deliveredTo = new Set(last.places.map((at) => placeIn(at, last.entry)));
  return item.destinations
    .filter((destination) => "command" in destination && !deliveredTo.has(placeOf(destination, item)))
    .map(destinationName);
}

/** A field that the service does not show counts as equal. */
function differences(item: PolicyItem, current: SeenCredential): string | undefined {
  const { scopes } = current;
  if (
    item.kind === "oauth_client" &&
    current.serviceAccount !== undefined &&
    current.serviceAccount !== item.serviceAccount
  )
    return `it belongs to ${current.serviceAccount}, and the file says ${item.serviceAccount}`;
  if (item.kind === "access_key" && current.type !== undefined && current.type !== item.type)
    return `it is a ${current.type} key, and the file says ${item.type}`;
  if (scopes === undefined) return undefined;
  const added = item.scopes.filter((scope) => !scopes.includes(scope));
  const removed = [...new Set(scopes)].filter((scope) => !item.scopes.includes(scope));
  const parts = [...added.map((scope) => `+${scope}`), ...removed.map((scope) => `-${scope}`)];
  return parts.length === 0 ? undefined : `other scopes: ${parts.join(", ")}`;
}

interface Due {
  readonly isDue: boolean;
  readonly reason: string;
  readonly ms?: number;
}

function dueOf({ rotate }: PolicyItem, { createdAt, expiresAt }: SeenCredential, nowMs: number): Due {
  if (rotate === undefined) return { isDue: false, reason: "it has no rotate rule" };
  const { everyMs, beforeExpiryMs, unknownAge } = rotate;
  const created = Date.parse(createdAt ?? "");
  const end = Date.parse(expiresAt ?? "");
  const limits: Due[] = [];
  if (beforeExpiryMs !== undefined && !Number.isNaN(end)) {
    const ms = end - beforeExpiryMs;
    const left = `expires in ${longDuration(end - nowMs)}`;
    limits.push({ isDue: nowMs > ms, ms, reason: `${left}, rotation due ${longDuration(beforeExpiryMs)} before` });
  }
  if (everyMs !== undefined && !Number.isNaN(created)) {
    const ms = created + everyMs;
    limits.push({
      isDue: nowMs > ms,
      ms,
      reason: `${longDuration(nowMs - created)} old (limit: ${longDuration(everyMs)})`,
    });
  }
  const first = limits.sort((a, b) => a.ms! - b.ms!)[0];
  if (first !== undefined) return first;
  if (everyMs === undefined) return { isDue: false, reason: "it has no expiry" };
  return { isDue: unknownAge === "rotate", reason: "its age is unknown" };
}

function holdForPerson(
  decision: Decision,
  { works: { failures, works }, options }: { readonly works: ItemWorks; readonly options: DecisionOptions },
  profile: string,
): Decision {
  const { item, action, step, current } = decision;
  if (step.do === "nothing" || decision.hold !== undefined) return decision;
  if (failures >= options.maxFailures && !options.retry.has(item.name)) {
    const last = works[0]?.entry.last_error?.message;
    const lastError = last === undefined ? "" : ` The last one: ${last}`;
    return { ...decision, state: "stalled", hold: "stalled", reason: `${failures} failures in a row.${lastError}` };
  }
  if (action === "revoke_old") return decision;
  if (item.destinations.length === 0 && step.do !== "finish")
    return {
      ...decision,
      // Without a destination, `apply` cannot create a credential, so a person adopts an existing one.
      action: action === "create" && works.length === 0 ? "adopt" : action,
      hold: "no_destination",
      reason: `${decision.reason}; the destination of its secret is unknown`,
    };
  const ownership = step.do === "replace" ? current?.ownership : undefined;
  if (ownership === undefined || ownership === "other" || (ownership === "own" && options.includeOwn)) return decision;
  const isOwn = ownership === "own";
  const reason = `${decision.reason}; ${isOwn ? "" : "integ does not know whether "}profile ${profile} authenticates with it`;
  return { ...decision, hold: "own", mayBeOwnOf: isOwn ? undefined : profile, reason };
}

const units: readonly (readonly [suffix: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

/** @returns a duration as in a policy file, rounded down, such as `61d` */
export function shortDuration(ms: number): string {
  const [suffix, unit] = units.find(([, size]) => ms >= 2 * size || (ms >= size && ms % size === 0)) ?? ["s", 1000];
  return `${Math.max(0, Math.floor(ms / unit))}${suffix}`;
}

function longDuration(ms: number): string {
  return ms < 1000 ? "0 seconds" : roundedDuration(ms, true);
}
