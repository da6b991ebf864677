// The entry that a record holds, and whether it has the shape that this program writes.
import {
  type Entry,
  type EntryDetail,
  type EntryState,
  formatVersion,
  type LastError,
  type Operation,
} from "./entry.ts";
import { isObject, readDestination } from "./entry-destination.ts";
import { jsonIn, type Slice } from "./record.ts";

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

const intentTexts = [
  "id",
  "operation",
  "profile",
  "profile_id",
  "region",
  "base_url",
  "service_version",
  "request_text",
  "twin",
  "created_at",
];
const intentTextsOrNull = ["idempotency_key", "organization_id", "replaces", "parent"];

/** Whether both halves of a record have the shape that this program writes. */
function isOwnShape(intent: Record<string, unknown>, now: Record<string, unknown>): boolean {
  return (
    intentTexts.every((key) => isText(intent[key])) &&
    intentTextsOrNull.every((key) => isTextOrNull(intent[key])) &&
    isText(now.state) &&
    isText(now.updated_at) &&
    isTextOrNull(now.resource_id) &&
    isTextOrNull(now.replaced_by) &&
    Number.isInteger(now.attempts) &&
    (now.request_ids === undefined || isTexts(now.request_ids)) &&
    (now.clock_offset_ms === undefined || typeof now.clock_offset_ms === "number") &&
    isDetail(now.detail) &&
    hasNeededDetail(intent.operation, now.detail) &&
    (now.destination === null || readDestination(now.destination) !== undefined) &&
    (now.last_error === null || isLastError(now.last_error))
  );
}

function isLastError(value: unknown): value is LastError {
  return isObject(value) && isText(value.kind) && isText(value.message);
}

type DetailType = "text" | "texts" | "text or null" | "flag" | "number" | "proof or null" | "exchange or null";

/** What is not named here comes from a newer program of the same format, and is kept. */
const detailTypes: Readonly<Record<keyof EntryDetail, DetailType>> = {
  policy_name: "text",
  failures: "number",
  secret_claimed: "flag",
  attempted_at: "texts",
  kept_at: "text",
  differs: "text",
  client_id: "text or null",
  own_key: "flag",
  sent_as: "text",
  made_before: "flag",
  put_off: "flag",
  put_off_until: "text",
  revoked: "flag",
  old_client: "text",
  keep_old: "flag",
  proof: "proof or null",
  exchange: "exchange or null",
  overlap_ms: "number",
  overlap_until: "text",
  proven: "text",
  in_flight: "flag",
  sent_at: "text",
  created_by: "text or null",
  base_name: "text",
  asking_key: "text",
  marked: "flag",
  expiry: "text or null",
  orphan_certain: "flag",
  mode: "text",
  key_id: "text",
  old_key: "text",
  new_key: "text",
  bound_to: "text or null",
  revoking: "flag",
  update_profile: "flag",
};

function isOfType(value: unknown, type: DetailType): boolean {
  if (type === "texts") return isTexts(value);
  if (type === "proof or null") return value === null || isProof(value);
  if (type === "exchange or null") return value === null || isExchange(value);
  if (type === "flag") return typeof value === "boolean";
  if (type === "number") return typeof value === "number";
  return isText(value) || (type === "text or null" && value === null);
}

function isProof(value: unknown): boolean {
  return (
    isObject(value) &&
    isText(value.token_endpoint) &&
    (value.client_auth === "client_secret_basic" || value.client_auth === "client_secret_post") &&
    ["audience", "issuer"].every((key) => value[key] === undefined || isText(value[key]))
  );
}

function isExchange(value: unknown): boolean {
  if (!isObject(value)) return false;
  return value.kind === "command" || (value.kind === "endpoint" && isText(value.url));
}

const typesByKey = new Map(Object.entries(detailTypes));

export function isDetail(value: unknown): value is EntryDetail {
  if (!isObject(value)) return false;
  for (const key in value) {
    const type = typesByKey.get(key);
    if (type !== undefined && !isOfType(value[key], type)) return false;
  }
  return true;
}

/** Whether the detail has what work of that operation cannot do without. */
export function hasNeededDetail(operation: unknown, detail: EntryDetail): boolean {
  if (operation === "oauth_client.rotate") return detail.old_client !== undefined;
  if (operation === "access_key.revoke" || operation === "access_key.adopt") return detail.key_id !== undefined;
  if (operation !== "access_key.rotate") return true;
  return detail.mode === "replacement"
    ? detail.old_key !== undefined
    : detail.mode === "in_place" && detail.key_id !== undefined;
}

/** Names of a newer format that this one does not know are shown as they are. */
function isState(value: unknown): value is EntryState {
  return isText(value);
}

function isOperation(value: unknown): value is Operation {
  return isText(value);
}

/**
 * The entry that a sound record holds, or undefined if its shape is not one that this program wrote. Of a newer
 * format it is what this program understands, only ever to be shown.
 * @param formats of the record, and of the entry it is shown as: the highest of the entry's records and of the file.
 */
export function readEntry(
  line: Slice,
  formats: { readonly record: number; readonly entry: number },
): Entry | undefined {
  return entryIn(jsonIn(line.bytes.toString("utf8", line.start, line.end)), formats);
}

/** The same of a record's content, if a journal keeps it without its line. */
export function entryOfContent(content: string): Entry | undefined {
  const read = jsonIn(`{${content}}`);
  const format = isObject(read) && typeof read.v === "number" ? read.v : 0;
  return entryIn(read, { record: format, entry: format });
}

function entryIn(read: unknown, formats: { readonly record: number; readonly entry: number }): Entry | undefined {
  if (!isObject(read) || !isObject(read.intent) || !isObject(read.now)) return undefined;
  const { intent, now } = read;
  if (formats.record <= formatVersion && !isOwnShape(intent, now)) return undefined;
  const entry = entryOf(intent, now, formats.entry);
  return entry && typeof read.n === "number" ? { ...entry, sequence: read.n } : entry;
}

// One literal, not a spread: of ten thousand entries this is a third of the time to open a journal.
function entryOf(intent: Record<string, unknown>, now: Record<string, unknown>, format: number): Entry | undefined {
  const { operation } = intent;
  const { state } = now;
  if (!isOperation(operation) || !isState(state)) return undefined;
  return {
    id: text(intent.id),
    operation,
    idempotency_key: textOrNull(intent.idempotency_key),
    profile: text(intent.profile),
    profile_id: text(intent.profile_id),
    principal: isText(intent.principal) ? intent.principal : undefined,
    organization_id: textOrNull(intent.organization_id),
    region: text(intent.region),
    base_url: text(intent.base_url),
    service_version: text(intent.service_version),
    method: isText(intent.method) ? intent.method : undefined,
    path: isText(intent.path) ? intent.path : undefined,
    request_text: text(intent.request_text),
    fingerprint: text(intent.twin),
    replaces: textOrNull(intent.replaces),
    parent: textOrNull(intent.parent),
    created_at: text(intent.created_at),
    state,
    resource_id: textOrNull(now.resource_id),
    attempts: typeof now.attempts === "number" ? now.attempts : 0,
    request_ids: isTexts(now.request_ids) ? now.request_ids : [],
    clock_offset_ms: typeof now.clock_offset_ms === "number" ? now.clock_offset_ms : null,
    updated_at: text(now.updated_at),
    last_error: isLastError(now.last_error) ? now.last_error : null,
    destination: readDestination(now.destination) ?? null,
    replaced_by: textOrNull(now.replaced_by),
    detail: isDetail(now.detail) ? now.detail : {},
    sequence: 0,
    format,
  };
}

function text(value: unknown): string {
  return isText(value) ? value : "";
}

function textOrNull(value: unknown): string | null {
  return isText(value) ? value : null;
}
