// Finds in the journal which credential's secret each destination has.
import { type Entry, isSettled, kindOf, revokedBy, wasClaimed } from "../journal/entry.ts";
import type { SingleDestination } from "../journal/entry-destination.ts";
import { mayHaveSuperseded } from "../journal/rotations.ts";
import { commandMark, describeDestination, placesOf, storeKindOf } from "../secrets/destination.ts";
import type { ItemDestination, PolicyItem } from "./policy.ts";
import { isOf, itemKey, type ItemKind, type ItemWorks, recordedItem, type WorkScope } from "./works.ts";

/** The credential whose secret a destination has, or will get. */
export interface Holder {
  readonly kind: ItemKind;
  readonly entry: string;
  readonly id: string | undefined;
  /** `itemKey` of the credential's item. */
  readonly item: string | undefined;
  readonly isUnfinished: boolean;
  /** Set if another service or organization issued the credential: integ cannot look it up there. */
  readonly issuer: string | undefined;
}

/**
 * @returns a text that identifies the destination; for a command, also by its format and the owner's kind and service
 * account, which the command may use to choose the place
 */
export function placeOf(destination: ItemDestination, owner?: PolicyItem): string {
  if ("file" in destination) return `file:${destination.file}`;
  if ("profile" in destination) return `profile:${destination.profile}`;
  if ("store" in destination) return storePlace(destination.store);
  return commandPlace(commandMark({ command: destination.command, as: destination.format }), {
    kind: owner?.kind,
    serviceAccount: owner?.kind === "oauth_client" ? owner.serviceAccount : undefined,
  });
}

function storePlace(to: string): string {
  // The allowed repositories after a GitHub organization's secret do not identify the secret.
  return `store:${storeKindOf(to)?.isAnyCase === true ? to.toLowerCase().replace(/(#\w+)\?.*$/, "$1") : to}`;
}

function commandPlace(mark: string, owner: { kind: string | undefined; serviceAccount: string | undefined }): string {
  return `command:${mark} ${owner.kind ?? ""} ${owner.serviceAccount ?? ""}`;
}

/** @returns a destination in the form of `placeOf`; undefined for standard output or a command without a mark */
export function placeIn(at: SingleDestination, entry: Pick<Entry, "operation" | "request_text">): string | undefined {
  if (at.kind === "file") return `file:${at.path}`;
  if (at.kind === "profile") return `profile:${at.name}`;
  if (at.kind === "store") return storePlace(at.to);
  if (at.kind === "stdout" || at.mark === undefined) return undefined;
  const kind = kindOf(entry);
  return commandPlace(at.mark, { kind, serviceAccount: kind === "oauth_client" ? accountIn(entry) : undefined });
}

function accountIn({ request_text }: Pick<Entry, "request_text">): string | undefined {
  return (JSON.parse(request_text) as { service_account_id?: string }).service_account_id;
}

export interface HolderScope {
  readonly scope: WorkScope;
  readonly works: ReadonlyMap<string, ItemWorks>;
  readonly places: ReadonlySet<string>;
  /** False if the destination, as seen from this machine, cannot have the entry's secret. */
  readonly isHere: (entry: Entry, at: SingleDestination) => boolean;
}

/**
 * @returns by place, the credential whose secret was delivered there last or will be, unless the credential was revoked
 * or rotated in place since
 */
export function holdersOf(
  entries: readonly Entry[],
  { scope, works, places, isHere }: HolderScope,
): Map<string, Holder> {
  const revoked = new Set(entries.map(revokedBy));
  const itemOf = itemsIn(works);
  const holders = new Map<string, Holder>();
  const seen = new Set<string>();
  const rotatedKeys = new Set<string>();
  const newestFirst = entries.filter(mayHold).sort((a, b) => (a.id < b.id ? 1 : -1));
  for (const entry of newestFirst) {
    const { id, resource_id, destination, state, base_url } = entry;
    const resourceId = resource_id ?? undefined;
    // A rotation in place invalidated the secrets of earlier entries.
    const isStale = resourceId !== undefined && rotatedKeys.has(resourceId);
    if (entry.detail.mode === "in_place" && state === "done" && resourceId !== undefined) rotatedKeys.add(resourceId);
    for (const at of placesOf(destination)) {
      const place = placeIn(at, entry);
      if (place === undefined || !places.has(place) || seen.has(place) || !isHere(entry, at)) continue;
      seen.add(place);
      if (isStale || (resourceId !== undefined && revoked.has(resourceId))) continue;
      const isOurs = isOf(entry, scope);
      holders.set(place, {
        kind: kindOf(entry),
        entry: id,
        id: resourceId,
        item: isOurs ? itemOf(entry) : undefined,
        isUnfinished: !isSettled(state) && state !== "waiting",
        issuer: isOurs ? undefined : base_url === scope.baseUrl ? "another organization" : base_url,
      });
    }
  }
  return holders;
}

export interface Delivered {
  readonly entry: Entry;
  readonly places: readonly SingleDestination[];
}

/** False while only the request names the destination: it may have been refused. */
export function hasDelivered({ state, operation }: Entry): boolean {
  return (state === "done" || state === "waiting") && !operation.endsWith(".revoke");
}

/** @returns the last delivery by resource id, with empty `places` for adopted credentials and claimed secrets */
export function deliveries(entries: readonly Entry[]): Map<string, Delivered> {
  const newest = new Map<string, Delivered>();
  const newestFirst = [...entries].sort((a, b) => (a.id < b.id ? 1 : -1));
  for (const entry of newestFirst) {
    const { resource_id: id, destination, operation } = entry;
    if (id === null || !hasDelivered(entry) || newest.has(id)) continue;
    const isByPerson = operation.endsWith(".adopt") || wasClaimed(entry);
    if (isByPerson) newest.set(id, { entry, places: [] });
    else if (destination !== null) newest.set(id, { entry, places: placesOf(destination) });
  }
  return newest;
}

/**
 * Finds overlaps whose new key may have been rotated in place later: `apply` then keeps the old key, because programs
 * may read the new key's earlier secret. A command with a check is left out, because only the check shows which secret
 * the command stored.
 * @returns names of the destinations that did not get the later secret, by the id of the waiting entry
 */
export function lostPlaces(
  entries: readonly Entry[],
  { scope, works }: Pick<HolderScope, "scope" | "works">,
): Map<string, readonly string[]> {
  const own = entries.filter((entry) => isOf(entry, scope));
  const lost = [...works.values()].flatMap(({ waiting }): [string, string[]][] => {
    const made = own.find(
      ({ parent, state }) => waiting !== undefined && parent === waiting.entry.id && state === "done",
    );
    if (waiting?.made === undefined || made?.resource_id !== waiting.made) return [];
    const later = own.filter(({ id }) => id > made.id);
    if (!later.some((entry) => mayHaveSuperseded(entry, made.resource_id))) return [];
    const served = new Set(
      later.filter(mayHold).flatMap((entry) => placesOf(entry.destination).map((at) => placeIn(at, entry))),
    );
    const names = placesOf(made.destination)
      .filter((at) => !(at.kind === "command" && at.proof !== undefined) && !served.has(placeIn(at, made)))
      .map((at) => describeDestination(at).name);
    return names.length === 0 ? [] : [[waiting.entry.id, names]];
  });
  return new Map(lost);
}

/** True if the entry has delivered its secret, or may still deliver it. */
export function mayHold({ destination, state, operation }: Entry): boolean {
  if (destination === null || operation.endsWith(".revoke")) return false;
  return state === "done" || !isSettled(state);
}

function itemsIn(works: ReadonlyMap<string, ItemWorks>): (entry: Entry) => string | undefined {
  const byResource = new Map<string, string>();
  const byEntry = new Map<string, string>();
  for (const [item, { candidates, works: itemWorks }] of works) {
    for (const id of candidates) byResource.set(id, item);
    for (const { entry } of itemWorks) byEntry.set(entry.id, item);
  }
  return (entry) => {
    const indexed = byResource.get(entry.resource_id ?? "") ?? byEntry.get(entry.id) ?? byEntry.get(entry.parent ?? "");
    if (indexed !== undefined) return indexed;
    const item = recordedItem(entry);
    return item && itemKey(item);
  };
}
