// What the columns of a row repeat from the content of its newest record, so that the server can look for it. Pure.
import { hash } from "node:crypto";
import type { Actor } from "../actor.ts";
import { type Entry, isSettled, requestKey, resourcesOf } from "../entry.ts";
import { itemName } from "../lookup.ts";

/** Text as a column can hold it: a name that came from the service may have a character that none can. */
export function plain(text: string | null | undefined): string | null {
  return text?.replaceAll("\0", "\ufffd") ?? null;
}

/** What an entry is looked for by, as a column keeps it: the clients and keys that it names, and the item of a policy. */
function resourcesIn(entry: Entry): (string | null)[] {
  const { policy } = entry;
  return [...resourcesOf(entry), ...(policy === undefined ? [] : [itemName(policy.item)])].map(plain);
}

/** The same for the same request, whatever account and organization it is for. */
export function fingerprintOf(entry: Parameters<typeof requestKey>[0]): string {
  return hash("sha256", requestKey(entry), "hex");
}

/** Columns of an entry, by their names. */
export function entryColumns(entry: Entry) {
  return {
    operation: entry.operation,
    state: entry.state,
    is_settled: isSettled(entry.state),
    profile: plain(entry.profile),
    base_url: entry.base_url,
    idempotency_key: entry.idempotency_key,
    fingerprint: fingerprintOf(entry),
    parent: entry.parent,
    replaces: entry.replaces,
    resources: resourcesIn(entry),
    updated_at: entry.updated_at,
  };
}

/** Columns of a record, by their names. */
export function recordColumns(actor: Actor | null) {
  return { actor_user: plain(actor?.user), actor_host: plain(actor?.host), actor_run: plain(actor?.run) };
}

/** Names of columns of a row that do not say what they should. */
export function columnsAstray(
  row: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
): string[] {
  return Object.keys(wanted).filter((name) => JSON.stringify(row[name]) !== JSON.stringify(wanted[name]));
}
