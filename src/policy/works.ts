// What the journal says of the items of a policy: which work was done for each, and which client or key it left. Pure.
import { randomBytes } from "node:crypto";
import { type Entry, type EntryState, isSettled, revokedBy, revokedFirst } from "../journal/entry.ts";

export type ItemKind = "oauth_client" | "access_key";

/** One piece of work for an item: a creation, a rotation or an adoption, as its entry stands. */
export interface Work {
  readonly entry: Entry;
  readonly kind: ItemKind;
  /** The client or key that it made, if that is known. */
  readonly made: string | undefined;
  /** The client or key that it replaces. */
  readonly old: string | undefined;
}

export interface ItemWorks {
  /** The newest first, without those that ended without effect before anything failed. */
  readonly works: readonly Work[];
  /** Failures in a row since the last success. */
  readonly failures: number;
  /** The oldest work that is not finished; a running overlap does not count. */
  readonly unfinished: Work | undefined;
  /** A rotation whose overlap runs. */
  readonly waiting: Work | undefined;
  /** The clients or keys that may be the item's, the newest first. */
  readonly candidates: readonly string[];
}

/** The address and the organization whose entries count. */
export interface WorkScope {
  readonly baseUrl: string;
  readonly organizationId: string | null;
}

export function isOf({ base_url, organization_id }: Entry, { baseUrl, organizationId }: WorkScope): boolean {
  return base_url === baseUrl && organization_id?.toLowerCase() === organizationId?.toLowerCase();
}

/** Names of items: unique in a policy file, and part of the journal. */
export const itemName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Ids of policies. */
export const policyId = /^[A-Za-z0-9_-]{8,64}$/;

export function newPolicyId(): string {
  return `pol_${randomBytes(8).toString("hex")}`;
}

/** An item of a policy, which no other policy has, whatever it calls its own items. */
export interface ItemRef {
  readonly policy: string;
  readonly kind: ItemKind;
  readonly name: string;
}

/** A name for an item, from an id or a name that may have characters that no item's name has. */
export function nameOf(called: string, kind: ItemKind): string {
  const name = called.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, 90);
  return name.replaceAll(/^[._-]+|[._-]+$/g, "") || kind.replace("_", "-");
}

export function itemKey({ policy, kind, name }: ItemRef): string {
  return `${policy}/${kind}/${name}`;
}

export function isSameItem(one: ItemRef, other: ItemRef): boolean {
  return itemKey(one) === itemKey(other);
}

/** The item that a key names. */
export function itemOf(key: string): ItemRef {
  const [policy = "", kind, name = ""] = key.split("/");
  return { policy, kind: kind as ItemKind, name };
}

/** The item that an entry was recorded for. */
export function recordedItem({ policy, operation }: Pick<Entry, "policy" | "operation">): ItemRef | undefined {
  return policy && { policy: policy.id, kind: kindOf(operation), name: policy.item };
}

export function kindOf(operation: string): ItemKind {
  return operation.startsWith("access_key.") ? "access_key" : "oauth_client";
}

/**
 * The works of each item, by `itemKey`. Work without a name belongs to an item too if it replaces the item's client or key:
 * a rotation that a person typed.
 * @param entries of one journal, in any order
 */
export function worksByName(entries: readonly Entry[], scope: WorkScope): Map<string, ItemWorks> {
  const works = new Map<string, Work[]>();
  const nameOfEntry = new Map<string, string>();
  const nameOfResource = new Map<string, string>();
  const oldestFirst = entries.filter((entry) => mayBeNamed(entry, scope)).sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const entry of oldestFirst) {
    const work = workIn(entry);
    if (work === undefined) continue;
    const inherited = entry.replaces === null ? undefined : nameOfEntry.get(entry.replaces);
    const replaced = work.old === undefined ? undefined : nameOfResource.get(work.old);
    const own = recordedItem(entry);
    const name = own === undefined ? (inherited ?? replaced) : itemKey(own);
    if (name === undefined) continue;
    nameOfEntry.set(entry.id, name);
    works.set(name, [work, ...(works.get(name) ?? [])]);
    if (work.made !== undefined) nameOfResource.set(work.made, name);
  }
  return new Map([...works].map(([name, found]) => [name, summary(name, found, nameOfResource)]));
}

/** False of an entry that belongs to no item, whatever else is in the journal: `worksByName` is the same without it. */
export function mayBeNamed(entry: Entry, scope: WorkScope): boolean {
  if (!isOf(entry, scope)) return false;
  const work = workIn(entry);
  return work !== undefined && (entry.policy ?? entry.replaces ?? work.old) != null;
}

/** `worksByName` of a journal that is read one entry at a time: most of a long one are kept by no item. */
export async function worksIn(entries: AsyncIterable<Entry>, scope: WorkScope): Promise<Map<string, ItemWorks>> {
  const named: Entry[] = [];
  for await (const entry of entries) if (mayBeNamed(entry, scope)) named.push(entry);
  return worksByName(named, scope);
}

/** Steps of larger work, revocations and rotations in place leave the item's client or key what it is. */
export function workIn(entry: Entry): Work | undefined {
  const { operation, parent, resource_id, detail } = entry;
  if (parent !== null || operation.endsWith(".revoke") || detail.mode === "in_place") return undefined;
  const made = resource_id ?? undefined;
  return {
    entry,
    kind: kindOf(operation),
    made,
    old: operation.endsWith(".rotate") ? (detail.old_client ?? detail.old_key) : undefined,
  };
}

/** States whose work left a client or key that may be in use. */
const leftOne: ReadonlySet<EntryState> = new Set(["done", "waiting"]);

function summary(name: string, works: readonly Work[], nameOfResource: ReadonlyMap<string, string>): ItemWorks {
  const open = works.filter(({ entry }) => !isSettled(entry.state));
  const made = works
    .filter(({ entry, made: id }) => id !== undefined && leftOne.has(entry.state))
    .map(({ made: id }) => id!);
  // What a rotation was to replace is the item's again if the rotation had no effect.
  const before = works.flatMap(({ old }) => (old === undefined ? [] : [old]));
  return {
    works,
    failures: failuresOf(works),
    unfinished: open.findLast(({ entry }) => entry.state !== "waiting"),
    waiting: open.findLast(({ entry }) => entry.state === "waiting"),
    candidates: [...new Set([...made, ...before])].filter((id) => (nameOfResource.get(id) ?? name) === name),
  };
}

function failuresOf(works: readonly Work[]): number {
  let failures = 0;
  for (const { entry } of works) {
    if (leftOne.has(entry.state)) break;
    // One that was refused without an error made space for another process.
    failures += entry.detail.failures ?? (entry.state === "refused" && entry.last_error !== null ? 1 : 0);
  }
  return failures;
}

/** When the secret of a key was last made again in place, milliseconds since 1970. */
export function rotatedInPlace(entries: readonly Entry[], scope: WorkScope): Map<string, number> {
  const found = new Map<string, number>();
  for (const entry of entries) {
    const { operation, state, detail, resource_id, updated_at } = entry;
    const id = resource_id ?? detail.key_id;
    if (operation !== "access_key.rotate" || detail.mode !== "in_place" || state !== "done" || id === undefined)
      continue;
    if (isOf(entry, scope)) found.set(id, Math.max(found.get(id) ?? 0, Date.parse(updated_at)));
  }
  return found;
}

/** A client that the journal knows, and its service account. */
export interface KnownClient {
  readonly id: string;
  readonly serviceAccount: string;
  /** ISO 8601; of a client that integ created. */
  readonly createdAt?: string | undefined;
}

export interface ClientInventory {
  /** Those that the journal did not see revoked. */
  readonly known: readonly KnownClient[];
  /** Creations that may have made a client which no one can name yet, by service account. */
  readonly unresolved: ReadonlyMap<string, number>;
}

export function inventoryOf(entries: readonly Entry[], scope: WorkScope): ClientInventory {
  const here = entries.filter((entry) => isOf(entry, scope));
  const gone = new Set(here.map(revokedBy));
  const replaced = new Set(here.map(revokedFirst));
  const known = new Map<string, KnownClient>();
  const unresolved = new Map<string, number>();
  for (const { id: entry, operation, state, attempts, resource_id: id, request_text, created_at } of here) {
    if (operation !== "oauth_client.create" && operation !== "oauth_client.adopt") continue;
    const { service_account_id: serviceAccount } = JSON.parse(request_text) as { service_account_id: string };
    if (id !== null && !gone.has(id) && state !== "replaced" && !replaced.has(entry))
      known.set(id, { id, serviceAccount, createdAt: operation === "oauth_client.create" ? created_at : undefined });
    if (id === null && !isSettled(state) && attempts > 0)
      unresolved.set(serviceAccount, (unresolved.get(serviceAccount) ?? 0) + 1);
  }
  return { known: [...known.values()], unresolved };
}
