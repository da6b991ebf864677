// Collects a plan's input from the journal, the service and this machine.
import { type AccessKey, readKeys } from "../../api/access-keys.ts";
import type { OAuthClient } from "../../api/oauth-clients.ts";
import type { Account } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { type Entry, revokedBy } from "../../journal/entry.ts";
import { deliveries, type Holder, holdersOf, lostPlaces, placeOf } from "../../policy/holders.ts";
import type { Observed, SeenCredential } from "../../policy/observed.ts";
import type { Policy } from "../../policy/policy.ts";
import {
  ClientInventory,
  isOf,
  itemOf,
  rotatedInPlace,
  unsettledIn,
  type WorkScope,
  worksByName,
} from "../../policy/works.ts";
import { isLoopback } from "../../profiles/address.ts";
import { ownershipIn } from "../keys/own-key.ts";
import { eachInParallel } from "../../parallel.ts";
import { isHere, unusablePlaces } from "./places.ts";
import { read, readAnswer, serviceNow, whereOf } from "../running/read.ts";

const parallelRequests = 16;

/** For an observation that concerns no policy. */
export const noItems: Policy = {
  id: "",
  items: [],
  maxFailures: 1,
  changesPerRun: 1,
  keepFreeSlots: 0,
  unmanaged: "ignore",
};

export interface Observation {
  readonly observed: Observed;
  readonly entries: readonly Entry[];
}

export async function observe(
  context: Context,
  { policy, account }: { policy: Policy; account: Account },
): Promise<Observation> {
  const journal = await context.journal();
  const entries = await journal.entries();
  const scope = scopeOf(account);
  const untrusted = await journal.untrusted(entries.map(({ id }) => id));
  const works = worksByName(entries, scope, untrusted);
  const { known, unresolved } = new ClientInventory(scope, entries);
  const ids = new Set(known.map(({ id }) => id));
  for (const {
    works: [newest],
    candidates,
    waiting,
  } of works.values())
    if (newest?.kind === "oauth_client")
      for (const id of [candidates[0], waiting?.old, waiting?.made]) if (id !== undefined) ids.add(id);
  const holders = holdersIn(entries, { policy, scope, works, machine: context.secrets.machine.find() });
  for (const { kind, id, issuer } of holders.values())
    if (kind === "oauth_client" && id !== undefined && issuer === undefined) ids.add(id);
  const clients = await seenClients(context, account, [...ids]);
  const keys = [...policy.items, ...holders.values()].some(({ kind }) => kind === "access_key")
    ? await seenKeys(context, account, {
        rotatedAtMs: rotatedInPlace(entries, scope),
        known: knownKeys(
          entries.filter(({ id }) => !untrusted.has(id)),
          works,
          holders,
        ),
      })
    : new Map<string, SeenCredential>();
  const nowMs = serviceNow(context, account.service);
  const delivered = deliveries(entries.filter((entry) => isOf(entry, scope)));
  // Only active credentials count: an earlier one may have had the same destination on another machine or server.
  const live = [...delivered].flatMap(([id, one]) =>
    (clients.get(id) ?? keys.get(id))?.status === "active" ? [one] : [],
  );
  const { vanished, elsewhere } = await unusablePlaces(context, live, journal.isShared);
  const observed = { nowMs, profile: account.profile, works, clients, keys, unresolved, holders, delivered };
  const lost = lostPlaces(entries, { scope, works });
  const unsettled = unsettledIn(entries, scope);
  return { entries, observed: { ...observed, vanished, elsewhere, untrusted, lost, unsettled } };
}

/**
 * Keys that items or destinations may have now: an incomplete list may lack them although they work.
 * @param trusted entries that may show a key as revoked
 */
function knownKeys(
  trusted: readonly Entry[],
  works: Observed["works"],
  holders: ReadonlyMap<string, Holder>,
): ReadonlySet<string> {
  const held = [...holders.values()].map(({ kind, id }) => ({ kind, ids: id === undefined ? [] : [id] }));
  const ofItems = [...works].map(([key, { candidates }]) => ({ kind: itemOf(key).kind, ids: candidates }));
  const revoked = new Set(trusted.map(revokedBy));
  const keys = [...held, ...ofItems].filter(({ kind }) => kind === "access_key");
  return new Set(keys.flatMap(({ ids }) => ids).filter((id) => !revoked.has(id)));
}

function holdersIn(
  entries: readonly Entry[],
  {
    policy,
    machine,
    ...about
  }: {
    readonly policy: Policy;
    readonly machine: string | undefined;
    readonly scope: WorkScope;
    readonly works: Observed["works"];
  },
): Map<string, Holder> {
  const places = new Set(policy.items.flatMap((item) => item.destinations.map((one) => placeOf(one, item))));
  // A loopback address belongs to a sandbox, and the secrets of another sandbox than the acting one need no protection.
  const mayExist = ({ base_url }: Entry): boolean =>
    base_url === about.scope.baseUrl || !isLoopback(new URL(base_url).hostname);
  return holdersOf(entries, { ...about, places, isHere: (entry, at) => mayExist(entry) && isHere(entry, at, machine) });
}

export function scopeOf({ baseUrl, organizationId }: Account): WorkScope {
  return { baseUrl, organizationId };
}

async function seenClients(
  context: Context,
  account: Account,
  ids: readonly string[],
): Promise<Map<string, SeenCredential>> {
  const clients = new Map<string, SeenCredential>();
  if (ids.length === 0) return clients;
  const where = await whereOf(context);
  const own = await ownClientId(context);
  const progress = context.output.progress(`Reading ${ids.length} ${ids.length === 1 ? "client" : "clients"}`);
  try {
    await eachInParallel(ids, parallelRequests, async (id) => {
      const what = { what: `get OAuth client ${id}`, where };
      try {
        const { value } = await readAnswer(context, what, () => account.service.oauthClients.get(id));
        clients.set(id, seenClient(value, own));
      } catch (error) {
        if (!(error instanceof Failure) || error.kind !== "not_found") throw error;
        clients.set(id, { id, status: "absent", ownership: "other" });
      }
    });
  } finally {
    progress.done();
  }
  return clients;
}

async function ownClientId(context: Context): Promise<string | undefined> {
  const credential = await (await context.profiles.active()).credential();
  return credential.kind === "client_credentials" ? credential.clientId : undefined;
}

function seenClient(client: OAuthClient, own: string | undefined): SeenCredential {
  const { id, status, service_account_id: serviceAccount, client_id: clientId, scopes, created_at: createdAt } = client;
  const ownership = own !== undefined && clientId === own ? "own" : "other";
  return { id, status, serviceAccount, clientId, scopes, createdAt, ownership };
}

async function seenKeys(
  context: Context,
  account: Account,
  { rotatedAtMs, known }: { rotatedAtMs: ReadonlyMap<string, number>; known: ReadonlySet<string> },
): Promise<Map<string, SeenCredential>> {
  const { value: rows } = await read(context, "list access keys", () => account.service.accessKeys.list());
  const ownership = ownershipIn({ keyId: account.keyId, rows, now: serviceNow(context, account.service) });
  const listed = readKeys(rows);
  const unlisted = listed.isWhole ? [] : [...known];
  const keys = new Map(
    unlisted.map((id): [string, SeenCredential] => [id, { id, status: "unlisted", ownership: "maybe" }]),
  );
  for (const key of listed.keys)
    if (key.id !== undefined)
      keys.set(key.id, { ...seenKey(key, rotatedAtMs.get(key.id)), id: key.id, ownership: ownership(key.id) });
  return keys;
}

function seenKey(
  { status = "active", createdAt, ...key }: AccessKey,
  rotatedAtMs: number | undefined,
): Omit<SeenCredential, "id" | "ownership"> {
  const { keyType: type, scopes, name, lastUsedAt, expiresAt, createdByUserId: createdBy } = key;
  // A key's age counts from its rotation in place.
  const isRotated = rotatedAtMs !== undefined && !(Date.parse(createdAt ?? "") > rotatedAtMs);
  return {
    status,
    type,
    scopes,
    name,
    expiresAt,
    lastUsedAt,
    createdBy,
    createdAt: isRotated ? new Date(rotatedAtMs).toISOString() : createdAt,
  };
}
