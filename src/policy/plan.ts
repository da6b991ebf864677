// Plans a policy: one row per item, with the slots of its service account.
import {
  changedCommands,
  decide,
  type Decision,
  type DecisionOptions,
  type PlanAction,
  shortDuration,
} from "./decide.ts";
import { durationText } from "./draft.ts";
import { type Observed, seenOf } from "./observed.ts";
import { destinationName, type Policy, type PolicyItem } from "./policy.ts";
import { assignSlots, type SlotRefusal } from "./slots.ts";
import { isOpen, opensAt } from "./window.ts";
import { itemKey, itemOf } from "./works.ts";

export interface PlanRow {
  readonly name: string;
  readonly kind: PolicyItem["kind"];
  /** The credential's access in words, such as `client of sa_1 with entity:read`. */
  readonly grants: string;
  readonly scopes: readonly string[];
  readonly service_account: string | null;
  readonly type: string | null;
  /** A key's lifetime, such as `30d`; null for a client, with `expires_at` or without an expiry. */
  readonly expires_in: string | null;
  readonly expires_at: string | null;
  readonly action: PlanAction;
  readonly reason: string;
  /** The credential's age, such as `61d`; null if unknown. */
  readonly age: string | null;
  /** ISO 8601 UTC. */
  readonly due_at: string | null;
  /** Used slots of the service account; null for keys. */
  readonly slots_before: number | null;
  readonly slots_after: number | null;
  /** Commands are shown in full, because they receive the secret. */
  readonly destinations: readonly string[];
  /** Commands that did not receive the current secret. */
  readonly changed: readonly string[];
  readonly state: string;
  readonly resource_id: string | null;
  readonly entry: string | null;
}

export interface PlannedItem {
  readonly decision: Decision;
  readonly row: PlanRow;
  /** Why `apply` leaves the item to a later run. */
  readonly postponed?: string | undefined;
}

export interface Plan {
  readonly items: readonly PlannedItem[];
  readonly refusals: readonly SlotRefusal[];
  /** Slots that `apply` may use after the plan's revocations, by the id of the service account. */
  readonly freeSlots: ReadonlyMap<string, number>;
  readonly unmanaged: readonly Unmanaged[];
  /** ISO 8601 UTC; undefined unless the window is closed. */
  readonly opensAt?: string | undefined;
}

export interface Unmanaged {
  readonly kind: PolicyItem["kind"];
  readonly id: string;
  readonly name: string | null;
  readonly service_account_id: string | null;
  readonly state: "active" | "pending" | "expired";
  readonly created_at: string | null;
  readonly ownership: "own" | "maybe" | "other";
}

export interface PlanOptions extends Omit<DecisionOptions, "maxFailures" | "items"> {
  /** True to adopt a credential if it fits one item only, and the item fits no other credential. */
  readonly adopt?: boolean | undefined;
  /** The time that decides whether the window is open; default: the time of the observation. */
  readonly windowMs?: number | undefined;
  /** Names of the items to plan; empty means all. */
  readonly only: ReadonlySet<string>;
}

export function planPolicy(policy: Policy, observed: Observed, options: PlanOptions): Plan {
  const { only } = options;
  const names = new Set(policy.items.map(itemKey));
  const all = policy.items.map((item) =>
    decide(item, observed, { ...options, maxFailures: policy.maxFailures, items: names }),
  );
  const decisions = resolveAmbiguity(all, options).filter(({ item: { name } }) => only.size === 0 || only.has(name));
  const slots = assignSlots(decisions, observed, policy.keepFreeSlots);
  const later = postponedByLimit(slots.decisions, policy);
  const { windowMs = observed.nowMs } = options;
  const opens =
    policy.window && !isOpen(policy.window, windowMs)
      ? new Date(opensAt(policy.window, windowMs)).toISOString()
      : undefined;
  const items = slots.decisions.map((decision): PlannedItem => {
    const row = rowOf(decision, observed, slots.spans.get(decision.item.name));
    const isBeginning = decision.step.do === "create" || decision.step.do === "replace";
    const closed = opens && `the window is closed until ${opens}`;
    const postponed =
      isBeginning && decision.hold === undefined ? (closed ?? later.get(decision.item.name)) : undefined;
    return { decision, row, postponed };
  });
  return {
    items,
    refusals: slots.refusals,
    freeSlots: slots.free,
    unmanaged: policy.unmanaged === "report" ? unmanagedIn(policy, observed, decisions) : [],
    opensAt: opens,
  };
}

/** If a credential fits several items, a person chooses one, even with `adopt`. */
function resolveAmbiguity(decisions: readonly Decision[], { adopt = false }: PlanOptions): Decision[] {
  const claims = new Map<string, string[]>();
  for (const { item, choices = [] } of decisions)
    for (const { id } of choices) claims.set(id, [...(claims.get(id) ?? []), item.name]);
  return decisions.map((decision) => {
    const [credential, ...more] = decision.choices ?? [];
    if (credential === undefined || more.length > 0) return decision;
    const others = claims.get(credential.id)!.filter((name) => name !== decision.item.name);
    const fact = `exists as ${credential.id}, not adopted`;
    if (others.length > 0)
      return {
        ...decision,
        current: undefined,
        reason: `${fact}; it may be ${others.join(", ")} too: adopt it as one of them`,
      };
    if (!adopt) return decision;
    return { ...decision, reason: fact, hold: undefined, step: { do: "adopt", credential } };
  });
}

function postponedByLimit(decisions: readonly Decision[], { changesPerRun }: Policy): Map<string, string> {
  const starting = decisions
    .filter(({ step, hold }) => hold === undefined && (step.do === "create" || step.do === "replace"))
    .sort((a, b) => (a.dueMs ?? 0) - (b.dueMs ?? 0));
  const why = `a later run: changes_per_run is ${changesPerRun}`;
  return new Map(starting.slice(changesPerRun).map(({ item }) => [item.name, why]));
}

function rowOf(
  { item, action, reason, state, step, current, dueMs }: Decision,
  observed: Observed,
  slots: { readonly before: number; readonly after: number } | undefined,
): PlanRow {
  const { nowMs } = observed;
  const created = Date.parse(current?.createdAt ?? "");
  return {
    name: item.name,
    kind: item.kind,
    grants: grantWords(item),
    ...grantOf(item),
    action,
    reason,
    age: Number.isNaN(created) ? null : shortDuration(Math.max(0, nowMs - created)),
    due_at: dueMs === undefined ? null : new Date(dueMs).toISOString(),
    slots_before: slots?.before ?? null,
    slots_after: slots?.after ?? null,
    destinations: item.destinations.map(destinationName),
    changed: current === undefined ? [] : changedCommands(item, current, observed),
    state,
    resource_id: current?.id ?? null,
    entry: step.do === "finish" ? step.entry : null,
  };
}

function grantOf(item: PolicyItem): Pick<PlanRow, "scopes" | "service_account" | "type" | "expires_in" | "expires_at"> {
  const { scopes } = item;
  if (item.kind === "oauth_client")
    return { scopes, service_account: item.serviceAccount, type: null, expires_in: null, expires_at: null };
  const { type, expiresInMs, expiresAt = null } = item;
  const expires_in = expiresInMs === undefined ? null : durationText(expiresInMs);
  return { scopes, service_account: null, type, expires_in, expires_at: expiresAt };
}

export function grantWords(item: PolicyItem): string {
  const { scopes, service_account, type, expires_in, expires_at } = grantOf(item);
  const expiry = expires_in ? `, valid for ${expires_in}` : expires_at ? `, valid until ${expires_at}` : "";
  return `${type === null ? `client of ${service_account}` : `${type} key`} with ${scopes.join(", ")}${expiry}`;
}

function unmanagedIn(
  { id: policyId, items }: Policy,
  { works, clients, keys, nowMs, unsettled = new Set() }: Observed,
  decisions: readonly Decision[],
): Unmanaged[] {
  const shown = decisions.flatMap(({ current, choices = [] }) => [current?.id, ...choices.map(({ id }) => id)]);
  const managed = new Set([...unsettled, ...shown]);
  // Credentials of other policies count as managed: `adopt` refuses them.
  for (const [key, { candidates }] of works)
    if (itemOf(key).policy !== policyId) for (const id of candidates) managed.add(id);
  for (const item of items) {
    const itemWorks = works.get(itemKey(item));
    const { candidates: [newest] = [], waiting, unfinished } = itemWorks ?? {};
    for (const id of [newest, waiting?.old, waiting?.made, unfinished?.old, unfinished?.made]) if (id) managed.add(id);
    const seen = seenOf(item, { clients, keys });
    const current = itemWorks?.candidates.find((id) => seen.get(id)?.status === "active");
    if (current) managed.add(current);
  }
  const of = (kind: PolicyItem["kind"], seen: Observed["clients"]): Unmanaged[] =>
    [...seen.values()]
      .filter(({ id, status }) => (status === "active" || status === "pending") && !managed.has(id))
      .map(({ id, name = null, serviceAccount = null, status, createdAt = null, expiresAt, ownership }) => ({
        kind,
        id,
        name,
        service_account_id: serviceAccount,
        state: Date.parse(expiresAt ?? "") <= nowMs ? "expired" : status === "pending" ? "pending" : "active",
        created_at: createdAt,
        ownership,
      }));
  return [...of("oauth_client", clients), ...of("access_key", keys)];
}

/** The items that `apply` would change now. */
export function runnable({ items }: Pick<Plan, "items">): PlannedItem[] {
  return items.filter(
    ({ decision: { step, hold }, postponed }) => step.do !== "nothing" && hold === undefined && postponed === undefined,
  );
}
