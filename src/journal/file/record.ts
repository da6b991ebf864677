// Owns: one line of the journal: how a record is written with its checksum, and how a line is told sound from damaged. Pure.
// Must not know: files, locks, what an entry means to the work it belongs to.
//
// {"sum":"<16 hex of SHA-256 over all that follows>","v":1,"intent":{…what never changes…},"now":{…what a step changed…}}
// Every record of an entry carries the whole entry: a damaged one costs a transition, never a key.
import { hash } from "node:crypto";
import {
  type Entry,
  type EntryDestination,
  type EntryDetail,
  type EntryState,
  formatVersion,
  type LastError,
  type Operation,
} from "../entry.ts";

/** How every record begins; it cannot occur inside one, where quotes are escaped. */
export const recordStart = '{"sum":"';
const sumDigits = 16;
const bodyStart = recordStart.length + sumDigits + 2; // `",`
const intentStart = '"intent":{"id":"';
const nowStart = '},"now":{"';
/** Long enough for checksum, version and what kind of record it is. */
const headLength = 80;

/** Some of the bytes that were read: offsets cost nothing, a buffer for every line would. */
export interface Slice {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** A sound line. `intent` is the text of what never changes, compared as it stands; undefined in a newer format. */
export type SoundRecord =
  | { readonly kind: "header" | "other"; readonly format: number }
  | {
      readonly kind: "entry";
      readonly format: number;
      readonly id: string;
      readonly line: Slice;
      readonly intent: Slice | undefined;
    };

export function sameBytes(one: Slice, other: Slice): boolean {
  return one.bytes.compare(other.bytes, other.start, other.end, one.start, one.end) === 0;
}

function sumOf(body: Buffer | string): string {
  return hash("sha256", body, "hex").slice(0, sumDigits);
}

function seal(record: object): string {
  const body = JSON.stringify(record).slice(1);
  return `${recordStart}${sumOf(body)}",${body}\n`;
}

/** The first record of a file. @param file a random name of this file: a rewritten journal has another one. */
export function headerLine(file: string, createdAt: string): string {
  return seal({ v: formatVersion, journal: "integ", file, created_at: createdAt });
}

export function entryLine(entry: Entry): string {
  const intent = {
    id: entry.id, // first: found without parsing
    operation: entry.operation,
    idempotency_key: entry.idempotency_key,
    profile: entry.profile,
    profile_id: entry.profile_id,
    organization_id: entry.organization_id,
    region: entry.region,
    base_url: entry.base_url,
    service_version: entry.service_version,
    method: entry.method,
    path: entry.path,
    request_text: entry.request_text,
    twin: entry.twin,
    replaces: entry.replaces,
    parent: entry.parent,
    created_at: entry.created_at,
  };
  const now = {
    state: entry.state,
    resource_id: entry.resource_id,
    attempts: entry.attempts,
    updated_at: entry.updated_at,
    last_error: entry.last_error,
    destination: entry.destination,
    replaced_by: entry.replaced_by,
    detail: entry.detail,
  };
  return seal({ v: formatVersion, intent, now });
}

/**
 * A line without its newline as a record, or undefined where it is not sound. The checksum covers every byte after it,
 * so that any flipped bit is seen. Version and checksum stand at the same place in every format to come.
 */
export function readLine(line: Slice): SoundRecord | undefined {
  const { bytes, start, end } = line;
  const head = bytes.toString("latin1", start, Math.min(end, start + headLength));
  if (!head.startsWith(recordStart) || !head.startsWith('",', bodyStart - 2)) return undefined;
  const sum = head.slice(recordStart.length, recordStart.length + sumDigits);
  if (sum !== sumOf(bytes.subarray(start + bodyStart, end))) return undefined;
  const version = /^"v":([1-9][0-9]{0,8}),/.exec(head.slice(bodyStart));
  if (version === null) return undefined;
  const format = Number(version[1]);
  if (format > formatVersion) return newerRecord(line, format);
  return ownRecord(line, { head, format, at: bodyStart + version[0].length });
}

function ownRecord(line: Slice, read: { head: string; format: number; at: number }): SoundRecord | undefined {
  const { bytes, start, end } = line;
  const { head, format, at } = read;
  if (head.startsWith('"journal":"integ"', at)) return { kind: "header", format };
  if (!head.startsWith(intentStart, at)) return { kind: "other", format };
  const idAt = at + intentStart.length;
  const id = head.slice(idAt, head.indexOf('"', idAt));
  const nowAt = bytes.indexOf(nowStart, start + idAt, "latin1");
  if (nowAt < 0 || nowAt >= end) return undefined;
  return { kind: "entry", format, id, line, intent: { bytes, start: start + at, end: nowAt } };
}

/** The state that a record of our own format sets, read without parsing the rest; undefined of a newer one. */
export function stateOf(record: SoundRecord): string | undefined {
  if (record.kind !== "entry" || record.intent === undefined) return undefined;
  const { bytes, end } = record.intent;
  const from = end + '},"now":{"state":"'.length;
  const text = bytes.toString("latin1", from, Math.min(record.line.end, from + 20));
  return text.slice(0, text.indexOf('"'));
}

function newerRecord(line: Slice, format: number): SoundRecord | undefined {
  try {
    const read: unknown = JSON.parse(line.bytes.toString("utf8", line.start, line.end));
    if (!isObject(read)) return undefined;
    if (read.journal === "integ") return { kind: "header", format };
    const { intent } = read;
    if (!isObject(intent) || typeof intent.id !== "string") return { kind: "other", format };
    return { kind: "entry", format, id: intent.id, line, intent: undefined };
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
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
    isDetail(now.detail) &&
    hasNeededDetail(intent.operation, now.detail) &&
    (now.destination === null || isDestination(now.destination)) &&
    (now.last_error === null || isLastError(now.last_error))
  );
}

function isLastError(value: unknown): value is LastError {
  return isObject(value) && isText(value.kind) && isText(value.message);
}

/** What is not named here comes from a newer program of the same format, and is kept. */
const detailTypes: Readonly<Record<keyof EntryDetail, "text" | "text or null" | "flag" | "number">> = {
  secret_claimed: "flag",
  client_id: "text or null",
  revoked: "flag",
  old_client: "text",
  keep_old: "flag",
  overlap_ms: "number",
  overlap_until: "text",
  proven: "text",
  in_flight: "flag",
  sent_at: "text",
  created_by: "text or null",
  base_name: "text",
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

function isOfType(value: unknown, type: "text" | "text or null" | "flag" | "number"): boolean {
  if (type === "flag") return typeof value === "boolean";
  if (type === "number") return typeof value === "number";
  return isText(value) || (type === "text or null" && value === null);
}

const typesByKey = new Map(Object.entries(detailTypes));

function isDetail(value: unknown): value is EntryDetail {
  if (!isObject(value)) return false;
  for (const key in value) {
    const type = typesByKey.get(key);
    if (type !== undefined && !isOfType(value[key], type)) return false;
  }
  return true;
}

/** Whether the detail has what work of that operation cannot do without. */
function hasNeededDetail(operation: unknown, detail: EntryDetail): boolean {
  if (operation === "oauth_client.rotate") return detail.old_client !== undefined;
  if (operation === "access_key.revoke") return detail.key_id !== undefined;
  if (operation !== "access_key.rotate") return true;
  return detail.mode === "replacement"
    ? detail.old_key !== undefined
    : detail.mode === "in_place" && detail.key_id !== undefined;
}

function isDestination(value: unknown): value is EntryDestination {
  if (!isObject(value)) return false;
  const isOptional = (key: string): boolean => value[key] === undefined || isText(value[key]);
  switch (value.kind) {
    case "stdout":
      return true;
    case "command":
      return isOptional("mark");
    case "profile":
      return isText(value.name) && isText(value.profileId);
    case "file":
      return (
        isText(value.path) &&
        (value.format === "raw" || value.format === "json" || value.format === "env") &&
        typeof value.force === "boolean" &&
        ["device", "inode", "born", "reserved"].every(isOptional)
      );
    default:
      return false;
  }
}

/** Names of a newer format that this one does not know are shown as they stand. */
function isState(value: unknown): value is EntryState {
  return isText(value);
}

function isOperation(value: unknown): value is Operation {
  return isText(value);
}

/**
 * The entry that a sound record holds, or undefined where its shape is not one that this program wrote. Of a newer
 * format it is what this program understands, only ever to be shown.
 * @param formats of the record, and of the entry it is shown as: the highest of the entry's records and of the file.
 */
export function readEntry(
  line: Slice,
  formats: { readonly record: number; readonly entry: number },
): Entry | undefined {
  const read: unknown = JSON.parse(line.bytes.toString("utf8", line.start, line.end));
  if (!isObject(read) || !isObject(read.intent) || !isObject(read.now)) return undefined;
  const { intent, now } = read;
  if (formats.record <= formatVersion && !isOwnShape(intent, now)) return undefined;
  return entryOf(intent, now, formats.entry);
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
    organization_id: textOrNull(intent.organization_id),
    region: text(intent.region),
    base_url: text(intent.base_url),
    service_version: text(intent.service_version),
    method: isText(intent.method) ? intent.method : undefined,
    path: isText(intent.path) ? intent.path : undefined,
    request_text: text(intent.request_text),
    twin: text(intent.twin),
    replaces: textOrNull(intent.replaces),
    parent: textOrNull(intent.parent),
    created_at: text(intent.created_at),
    state,
    resource_id: textOrNull(now.resource_id),
    attempts: typeof now.attempts === "number" ? now.attempts : 0,
    updated_at: text(now.updated_at),
    last_error: isLastError(now.last_error) ? now.last_error : null,
    destination: isDestination(now.destination) ? now.destination : null,
    replaced_by: textOrNull(now.replaced_by),
    detail: isDetail(now.detail) ? now.detail : {},
    format,
  };
}

function text(value: unknown): string {
  return isText(value) ? value : "";
}

function textOrNull(value: unknown): string | null {
  return isText(value) ? value : null;
}
