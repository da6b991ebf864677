// Counts each service account's used slots in a plan, and postpones rotations without a free slot.
import type { Decision } from "./decide.ts";
import { maxClients } from "../api/oauth-client-creation.ts";
import type { Observed } from "./observed.ts";

export interface SlotRefusal {
  readonly account: string;
  readonly used: number;
  readonly needed: number;
  /** The number of slots that the policy allows to be in use. */
  readonly limit: number;
}

interface SlotAssignment {
  /** The given decisions, with the action `wait` for each rotation without a free slot. */
  readonly decisions: readonly Decision[];
  /** Used slots before and after each row, by item name. */
  readonly spans: ReadonlyMap<string, { readonly before: number; readonly after: number }>;
  readonly refusals: readonly SlotRefusal[];
  readonly free: ReadonlyMap<string, number>;
}

export function assignSlots(decisions: readonly Decision[], observed: Observed, keepFree: number): SlotAssignment {
  const assigned = new Map<Decision, Decision>();
  const spans = new Map<string, { before: number; after: number }>();
  const refusals: SlotRefusal[] = [];
  const free = new Map<string, number>();
  const limit = maxClients - keepFree;
  for (const [account, own] of byAccount(decisions)) {
    const used = usedBy(account, observed);
    const ending = own.filter(({ action }) => action === "revoke_old").length;
    const { creates, rotations } = slotTakers(own);
    const left = limit - (used - ending);
    free.set(account, Math.max(0, left));
    const needed = creates.length + (rotations.length > 0 ? 1 : 0);
    const isFreedLater = own.some(({ action }) => action === "wait" || action === "revoke_old");
    if (creates.length > left || (needed > left && !isFreedLater)) refusals.push({ account, used, needed, limit });
    for (const late of rotationsWithoutSlot(rotations, left - creates.length))
      assigned.set(late, postponedForSlot(late, limit));
    let count = used;
    for (const decision of revocationsFirst(own)) {
      const before = count;
      count += slotChange(assigned.get(decision) ?? decision);
      spans.set(decision.item.name, { before, after: count });
    }
  }
  return { decisions: decisions.map((decision) => assigned.get(decision) ?? decision), spans, refusals, free };
}

function byAccount(decisions: readonly Decision[]): Map<string, Decision[]> {
  const accounts = new Map<string, Decision[]>();
  for (const decision of decisions) {
    const { item } = decision;
    if (item.kind === "oauth_client")
      accounts.set(item.serviceAccount, [...(accounts.get(item.serviceAccount) ?? []), decision]);
  }
  return accounts;
}

/** Unfinished creations count too, because each may have made a client. */
function usedBy(account: string, { clients, unresolved }: Observed): number {
  const inUse = [...clients.values()].filter(
    ({ serviceAccount, status }) => serviceAccount === account && status !== "revoked" && status !== "absent",
  );
  return inUse.length + (unresolved.get(account) ?? 0);
}

/** The rotations that are overdue longest get the free slots first. */
function slotTakers(decisions: readonly Decision[]): { creates: Decision[]; rotations: Decision[] } {
  const free = decisions.filter(({ hold }) => hold === undefined);
  return {
    creates: free.filter(({ step }) => step.do === "create"),
    rotations: free.filter(({ step }) => step.do === "replace").sort((a, b) => (a.dueMs ?? 0) - (b.dueMs ?? 0)),
  };
}

/** A rotation with an overlap needs a slot until the overlap ends. Those without an overlap use one slot in turn. */
function rotationsWithoutSlot(rotations: readonly Decision[], slots: number): Decision[] {
  let left = slots;
  return rotations.filter((decision) => {
    if (left <= 0) return true;
    if (overlaps(decision)) left -= 1;
    return false;
  });
}

function overlaps({ item }: Decision): boolean {
  return (item.rotate?.overlapMs ?? 0) > 0;
}

function postponedForSlot(decision: Decision, limit: number): Decision {
  const reason = `${decision.reason}; no free slot: ${limit} of ${maxClients} may be used`;
  return { ...decision, action: "wait", reason, step: { do: "nothing" } };
}

function revocationsFirst(decisions: readonly Decision[]): Decision[] {
  const rank = ({ action }: Decision): number => (action === "revoke_old" ? 0 : 1);
  return [...decisions].sort((a, b) => rank(a) - rank(b));
}

function slotChange(decision: Decision): number {
  const { action, step, hold } = decision;
  if (action === "revoke_old") return -1;
  if (hold !== undefined) return 0;
  if (step.do === "create") return 1;
  return step.do === "replace" && overlaps(decision) ? 1 : 0;
}
