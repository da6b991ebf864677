import { dueAt, type Entry, nextStep } from "../../journal/entry.ts";
import type { NextCommand } from "../../next-step.ts";
import type { ListView, ResourceView } from "../../output/formats/format.ts";
import type { OneTimeSecret } from "../../secrets/destination.ts";
import { tryParseJson } from "../../json.ts";

const columns = [
  { path: "id", heading: "id" },
  { path: "operation", heading: "operation" },
  { path: "state", heading: "state", kind: "status", isNeeded: true },
  { path: "profile", heading: "profile" },
  { path: "resource_id", heading: "resource" },
  { path: "attempts", heading: "attempts", isHidden: true },
  { path: "updated_at", heading: "updated", kind: "time" },
  { path: "due_at", heading: "due", kind: "time" },
  { path: "next_step", heading: "next step", kind: "command" },
] as const;

const holderColumns = [
  { path: "holder.user", heading: "held by" },
  { path: "holder.host", heading: "on" },
  { path: "holder.since", heading: "since", kind: "time" },
] as const;

export const entryView: ResourceView = {
  columns: [
    ...columns.slice(0, 3),
    { path: "idempotency_key", heading: "idempotency key" },
    { path: "profile", heading: "profile" },
    { path: "region", heading: "region" },
    { path: "base_url", heading: "base url" },
    { path: "service_version", heading: "service version" },
    { path: "request", heading: "request" },
    { path: "resource_id", heading: "resource" },
    { path: "attempts", heading: "attempts" },
    { path: "request_ids", heading: "request ids" },
    { path: "created_at", heading: "created", kind: "time" },
    { path: "updated_at", heading: "updated", kind: "time" },
    { path: "last_error", heading: "last error" },
    { path: "due_at", heading: "due", kind: "time" },
    { path: "next_step", heading: "next step" },
  ],
  nulls: [],
};

/** Columns that a table shows only with `--fields`. */
const extraColumns = [
  "object",
  "replaces",
  "replaced_by",
  "parent",
  "policy_name",
  "policy_id",
  "needs",
  "untrusted",
].map((path) => ({
  path,
  heading: path,
}));

export const entriesView: ListView = {
  columns: [...columns],
  extraColumns: [...entryView.columns, ...holderColumns, ...extraColumns],
  singular: "entry",
  plural: "entries",
};

export const sharedEntriesView: ListView = { ...entriesView, columns: [...columns, ...holderColumns] };

/** @param count the number of entries, of which `ids` may be only the first */
export function untrustedWords(ids: readonly string[], count = ids.length): string {
  const [id] = ids;
  if (count === 1)
    return `The entry ${id} is untrusted: a record of it has no valid HMAC. Look at it (integ journal show ${id}), then integ journal trust ${id}.`;
  const more = count > ids.length ? ` and ${count - ids.length} more` : "";
  return `The entries ${ids.join(", ")}${more} are untrusted: a record of each has no valid HMAC. Look at each (integ journal show ${id}), then integ journal trust <id…>.`;
}

export const entryWithHolderView: ResourceView = { ...entryView, columns: [...entryView.columns, ...holderColumns] };

export const historyView: ListView = {
  columns: [
    { path: "at", heading: "at", kind: "time" },
    { path: "state", heading: "state", kind: "status" },
    { path: "actor.user", heading: "user" },
    { path: "actor.host", heading: "host" },
    { path: "actor.run", heading: "run" },
  ],
  singular: "step",
  plural: "steps",
};

export async function receiptViewOf(kind: OneTimeSecret["kind"]): Promise<ResourceView> {
  if (kind === "access_key") return (await import("../keys/keys.ts")).accessKeyView;
  return (await import("../oauth-clients/clients.ts")).oauthClientView;
}

/** Keeps valid JSON as text: parsing would round large integers. */
function requestJson(text: string): string {
  if (text === "") return "null";
  return tryParseJson(text) === undefined ? JSON.stringify(text) : text;
}

export interface EntryExtras {
  readonly isUntrusted?: boolean | undefined;
  readonly holder?: object | undefined;
  /** Replaces the entry's next step: what this machine needs first, and the command for that; empty for no step. */
  readonly first?: { readonly needs: string | undefined; readonly command: NextCommand | null } | undefined;
  /** In a table, replaces the object `last_error`. */
  readonly lastError?: string | undefined;
  readonly destinations?: readonly object[] | undefined;
  readonly history?: readonly object[] | undefined;
}

/** Keys are in the order of docs/design/journal.md; `request` is the exact body. */
export function publicEntry(entry: Entry, { first, isUntrusted, lastError, ...rest }: EntryExtras = {}): string {
  const before = {
    id: entry.id,
    object: "journal_entry",
    operation: entry.operation,
    state: entry.state,
    idempotency_key: entry.idempotency_key,
    profile: entry.profile,
    region: entry.region,
    base_url: entry.base_url,
    service_version: entry.service_version,
  };
  const after = {
    resource_id: entry.resource_id,
    attempts: entry.attempts,
    request_ids: entry.request_ids,
    created_at: entry.created_at,
    updated_at: entry.updated_at,
    last_error: lastError ?? entry.last_error,
    next_step: first === undefined ? nextStep(entry) : first.command,
    due_at: dueAt(entry),
    replaces: entry.replaces ?? undefined,
    replaced_by: entry.replaced_by ?? undefined,
    parent: entry.parent ?? undefined,
    policy_name: entry.policy?.item,
    policy_id: entry.policy?.id,
    needs: first?.needs,
    untrusted: isUntrusted === true ? true : undefined,
    ...rest,
  };
  return `${JSON.stringify(before).slice(0, -1)},"request":${requestJson(entry.request_text)},${JSON.stringify(after).slice(1)}`;
}
