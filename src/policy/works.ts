// Finds each item's work in the journal, and the resulting client or key.
import { randomBytes } from "node:crypto";
import {
  type Entry,
  type EntryState,
  isSettled,
  kindOf,
  mayBeSameOrganization,
  revokedBy,
  revokedEntry,
} from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { type Advice, shell } from "../next-step.ts";

export type ItemKind = "oauth_client" | "access_key";

/** A creation, rotation or adoption for an item. */
export interface Work {
  readonly entry: Entry;
  readonly kind: ItemKind;
  /** Id of the created or adopted client or key, if known. */
  readonly made: string | undefined;
  readonly old: string | undefined;
}

export interface ItemWorks {
  /** The newest first. */
  readonly works: readonly Work[];
  readonly failures: number;
  /** The oldest unfinished work that is not a rotation in its overlap. */
  readonly unfinished: Work | undefined;
  /** The oldest rotation in its overlap. */
  readonly waiting: Work | undefined;
  /** Ids that may be the item's client or key: first the made, then the replaced ones, each the newest first. */
  readonly candidates: readonly string[];
}

export interface WorkScope {
  readonly baseUrl: string;
  readonly organizationId: string | null;
}

export function isOf({ base_url, organization_id }: Entry, { baseUrl, organizationId }: WorkScope): boolean {
  return base_url === baseUrl && mayBeSameOrganization(organization_id, organizationId);
}

export const itemName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export const policyId = /^[A-Za-z0-9_-]{8,64}$/;

export function newPolicyId(): string {
  return `pol_${randomBytes(8).toString("hex")}`;
}

/** Names the policy, because items of other policies may have the same name and kind. */
export interface ItemRef {
  readonly policy: string;
  readonly kind: ItemKind;
  readonly name: string;
}

/** Makes a valid item name from any text. */
export function nameOf(text: string, kind: ItemKind): string {
  const name = text.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, 90);
  return name.replaceAll(/^[._-]+|[._-]+$/g, "") || kind.replace("_", "-");
}

interface NamedCredential {
  readonly kind: ItemKind;
  readonly id: string;
  readonly name?: string | null | undefined;
  readonly serviceAccount?: string | null | undefined;
}

export function baseNameOf({ kind, id, name, serviceAccount }: NamedCredential): string {
  return (kind === "access_key" ? name : serviceAccount?.replace(/^sa_/, "")) ?? id;
}

export function freeName(baseName: string, kind: ItemKind, taken: Set<string>): string {
  const base = nameOf(baseName, kind);
  let name = base;
  for (let number = 2; taken.has(name); number++) name = `${base}-${number}`;
  taken.add(name);
  return name;
}

/** For a finding of an audit that only the policy can fix. */
export function adviceForItem(name: string): Advice {
  return `Correct its item ${name} in the policy file, then apply the policy: ${shell`integ apply`}`;
}

export function itemKey({ policy, kind, name }: ItemRef): string {
  return `${policy}/${kind}/${name}`;
}

export function isSameItem(one: ItemRef, other: ItemRef): boolean {
  return itemKey(one) === itemKey(other);
}

export function itemOf(key: string): ItemRef {
  const [policy = "", kind, name = ""] = key.split("/");
  return { policy, kind: kind as ItemKind, name };
}

export function recordedItem({ policy, operation }: Pick<Entry, "policy" | "operation">): ItemRef | undefined {
  return policy && { policy: policy.id, kind: kindOf({ operation }), name: policy.item };
}

/**
 * Work without an item, such as `integ oauth-clients rotate`, belongs to the item whose client, key or entry it
 * replaces. An untrusted entry takes no credential from another item.
 * @param entries of one journal, in any order. @param untrusted ids of entries. @returns works by `itemKey`
 */
export function worksByName(
  entries: readonly Entry[],
  scope: WorkScope,
  untrusted: ReadonlySet<string> = new Set(),
): Map<string, ItemWorks> {
  const works = new Map<string, Work[]>();
  const nameOfEntry = new Map<string, string>();
  const nameOfResource = new Map<string, string>();
  const claimed = new Map<string, string>();
  const oldestFirst = entries.filter((entry) => mayBelongToItem(entry, scope)).sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const entry of oldestFirst) {
    const work = workIn(entry);
    if (work === undefined) continue;
    const inherited = entry.replaces === null ? undefined : nameOfEntry.get(entry.replaces);
    const replaced = work.old === undefined ? undefined : (nameOfResource.get(work.old) ?? claimed.get(work.old));
    const own = recordedItem(entry);
    const name = own === undefined ? (inherited ?? replaced) : itemKey(own);
    if (name === undefined) continue;
    nameOfEntry.set(entry.id, name);
    works.set(name, [work, ...(works.get(name) ?? [])]);
    if (work.made !== undefined) (untrusted.has(entry.id) ? claimed : nameOfResource).set(work.made, name);
  }
  const names = new Map([...claimed, ...nameOfResource]);
  return new Map([...works].map(([name, itemWorks]) => [name, summary(name, itemWorks, names)]));
}

/** False for an entry that `worksByName` never uses, whatever other entries exist. */
function mayBelongToItem(entry: Entry, scope: WorkScope): boolean {
  if (!isOf(entry, scope)) return false;
  const work = workIn(entry);
  return work !== undefined && (entry.policy ?? entry.replaces ?? work.old) != null;
}

/** A journal can be large, so only the relevant entries are kept in memory. */
export async function worksIn(
  journal: Pick<Journal, "each" | "untrusted">,
  scope: WorkScope,
  watch?: (entry: Entry) => void,
): Promise<Map<string, ItemWorks>> {
  const named: Entry[] = [];
  for await (const entry of journal.each({ all: true })) {
    watch?.(entry);
    if (mayBelongToItem(entry, scope)) named.push(entry);
  }
  return worksByName(named, scope, await journal.untrusted(named.map(({ id }) => id)));
}

/** @returns undefined for an entry with a parent, a revocation or a rotation in place */
export function workIn(entry: Entry): Work | undefined {
  const { operation, parent, resource_id, detail } = entry;
  if (parent !== null || operation.endsWith(".revoke") || detail.mode === "in_place") return undefined;
  const made = resource_id ?? undefined;
  return {
    entry,
    kind: kindOf({ operation }),
    made,
    old: operation.endsWith(".rotate") ? (detail.old_client ?? detail.old_key) : undefined,
  };
}

const leavesCredential: ReadonlySet<EntryState> = new Set(["done", "waiting"]);

function summary(name: string, works: readonly Work[], nameOfResource: ReadonlyMap<string, string>): ItemWorks {
  const open = works.filter(({ entry }) => !isSettled(entry.state));
  const made = works
    .filter(({ entry, made: id }) => id !== undefined && leavesCredential.has(entry.state))
    .map(({ made: id }) => id!);
  // An old credential is a candidate too, because the item keeps it if the rotation fails.
  const replaced = works.flatMap(({ old }) => (old === undefined ? [] : [old]));
  return {
    works,
    failures: failuresOf(works),
    unfinished: open.findLast(({ entry }) => entry.state !== "waiting"),
    waiting: open.findLast(({ entry }) => entry.state === "waiting"),
    candidates: [...new Set([...made, ...replaced])].filter((id) => (nameOfResource.get(id) ?? name) === name),
  };
}

function failuresOf(works: readonly Work[]): number {
  let failures = 0;
  for (const { entry } of works) {
    if (leavesCredential.has(entry.state)) break;
    // A refusal without an error is not a failure: for example, the entry gave way to another process.
    failures += entry.detail.failures ?? (entry.state === "refused" && entry.last_error !== null ? 1 : 0);
  }
  return failures;
}

/** @returns ids of the clients and keys that unfinished entries and unfinished rotations made or will replace */
export function unsettledIn(entries: readonly Entry[], scope: WorkScope): Set<string> {
  const open = new Set(entries.filter((entry) => !isSettled(entry.state)).map(({ id }) => id));
  const made = entries.filter((entry) => isOf(entry, scope) && (open.has(entry.id) || open.has(entry.parent ?? "")));
  return new Set(made.flatMap((entry) => [entry.resource_id ?? [], workIn(entry)?.old ?? []].flat()));
}

/** @returns each key's last rotation in place, in milliseconds since 1970 */
export function rotatedInPlace(entries: readonly Entry[], scope: WorkScope): Map<string, number> {
  const times = new Map<string, number>();
  for (const entry of entries) {
    const { operation, state, detail, resource_id, updated_at } = entry;
    const id = resource_id ?? detail.key_id;
    if (operation !== "access_key.rotate" || detail.mode !== "in_place" || state !== "done" || id === undefined)
      continue;
    if (isOf(entry, scope)) times.set(id, Math.max(times.get(id) ?? 0, Date.parse(updated_at)));
  }
  return times;
}

export interface KnownClient {
  readonly id: string;
  readonly serviceAccount: string;
  /** ISO 8601; only if integ created the client. */
  readonly createdAt?: string | undefined;
}

export class ClientInventory {
  /** Number of unfinished creations that may have made a client of unknown id, by service account. */
  readonly unresolved = new Map<string, number>();
  readonly #scope: WorkScope;
  readonly #created: (KnownClient & { readonly entry: string })[] = [];
  readonly #revoked = new Set<string | undefined>();
  readonly #replaced = new Set<string | null>();

  constructor(scope: WorkScope, entries: readonly Entry[] = []) {
    this.#scope = scope;
    for (const entry of entries) this.add(entry);
  }

  add(entry: Entry): void {
    if (!isOf(entry, this.#scope)) return;
    this.#revoked.add(revokedBy(entry));
    this.#replaced.add(revokedEntry(entry));
    const { operation, state, attempts, resource_id: id, created_at } = entry;
    if (operation !== "oauth_client.create" && operation !== "oauth_client.adopt") return;
    const { service_account_id: serviceAccount } = JSON.parse(entry.request_text) as { service_account_id: string };
    const createdAt = operation === "oauth_client.create" ? created_at : undefined;
    if (id !== null && state !== "replaced") this.#created.push({ entry: entry.id, id, serviceAccount, createdAt });
    if (id === null && !isSettled(state) && attempts > 0)
      this.unresolved.set(serviceAccount, (this.unresolved.get(serviceAccount) ?? 0) + 1);
  }

  /** Created and adopted clients that the journal does not show as revoked or replaced. */
  get known(): readonly KnownClient[] {
    const live = this.#created.filter(({ id, entry }) => !this.#revoked.has(id) && !this.#replaced.has(entry));
    return [...new Map(live.map((client) => [client.id, client])).values()];
  }
}
