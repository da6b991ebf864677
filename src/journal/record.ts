// Owns: one line of the journal: how a record is written with its checksum, and how a line is told sound from damaged. Pure.
// Must not know: files, locks, what an entry means to the work it belongs to.
//
// {"sum":"<16 hex of SHA-256 over all that follows>","v":1,"intent":{…what never changes…},"now":{…what a step changed…}}
// Every record of an entry carries the whole entry: a damaged one costs a transition, never a key.
import { hash } from "node:crypto";
import { type Entry, type EntryState, formatVersion, type LastError, type Operation } from "./entry.ts";

/** How every record begins; it cannot occur inside one, where quotes are escaped. */
export const recordStart = '{"sum":"';
const sumDigits = 16;
const bodyStart = recordStart.length + sumDigits + 2; // `",`
const intentStart = '"intent":{"id":"';
const nowStart = '},"now":{"';
/** Long enough for checksum, version and what kind of record it is. */
const headLength = 80;

/** A sound line. `intent` is the text of what never changes, compared as it stands; both are slices of what was read. */
export type SoundRecord =
  | { readonly kind: "header"; readonly format: number }
  | {
      readonly kind: "entry";
      readonly format: number;
      readonly id: string;
      readonly intent: Buffer;
      readonly line: Buffer;
    }
  | { readonly kind: "other"; readonly format: number };

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
export function readLine(line: Buffer): SoundRecord | undefined {
  const head = line.toString("latin1", 0, headLength);
  if (!head.startsWith(recordStart) || !head.startsWith('",', bodyStart - 2)) return undefined;
  const sum = head.slice(recordStart.length, recordStart.length + sumDigits);
  if (sum !== sumOf(line.subarray(bodyStart))) return undefined;
  const version = /^"v":([1-9][0-9]{0,8}),/.exec(head.slice(bodyStart));
  if (version === null) return undefined;
  const format = Number(version[1]);
  if (format > formatVersion) return newerRecord(line, format);
  return ownRecord(line, { head, format, at: bodyStart + version[0].length });
}

function ownRecord(line: Buffer, read: { head: string; format: number; at: number }): SoundRecord | undefined {
  const { head, format, at } = read;
  if (head.startsWith('"journal":"integ"', at)) return { kind: "header", format };
  if (!head.startsWith(intentStart, at)) return { kind: "other", format };
  const idAt = at + intentStart.length;
  const nowAt = line.indexOf(nowStart, idAt, "latin1");
  const idEnd = line.indexOf('"', idAt, "latin1");
  if (nowAt < 0 || idEnd > nowAt) return undefined;
  return { kind: "entry", format, id: line.toString("latin1", idAt, idEnd), intent: line.subarray(at, nowAt), line };
}

function newerRecord(line: Buffer, format: number): SoundRecord | undefined {
  try {
    const read: unknown = JSON.parse(line.toString("utf8"));
    if (!isObject(read)) return undefined;
    if (read.journal === "integ") return { kind: "header", format };
    const intent = read.intent;
    if (!isObject(intent) || typeof intent.id !== "string") return { kind: "other", format };
    return { kind: "entry", format, id: intent.id, intent: Buffer.alloc(0), line };
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

const texts = [
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
  "state",
  "updated_at",
];
const textsOrNull = ["idempotency_key", "organization_id", "replaces", "parent", "resource_id", "replaced_by"];

/** The entry that a sound record holds, or undefined where its shape is not one that this program wrote. */
export function readEntry(line: Buffer, format: number): Entry | undefined {
  const read: unknown = JSON.parse(line.toString("utf8"));
  if (!isObject(read) || !isObject(read.intent) || !isObject(read.now)) return undefined;
  const all = { ...read.intent, ...read.now };
  if (format > formatVersion) return newerEntry(all, format);
  return isEntry(all) ? { ...all, format } : undefined;
}

function isEntry(all: Record<string, unknown>): all is Omit<Entry, "format"> & Record<string, unknown> {
  return (
    texts.every((key) => isText(all[key])) &&
    textsOrNull.every((key) => isTextOrNull(all[key])) &&
    Number.isInteger(all.attempts) &&
    isObject(all.detail) &&
    (all.destination === null || isObject(all.destination)) &&
    (all.last_error === null || isLastError(all.last_error))
  );
}

function isLastError(value: unknown): value is LastError {
  return isObject(value) && isText(value.kind) && isText(value.message);
}

/** Names of a newer format that this one does not know are shown as they stand. */
function isState(value: unknown): value is EntryState {
  return isText(value);
}

function isOperation(value: unknown): value is Operation {
  return isText(value);
}

/** An entry of a newer format, as far as this program understands it: only ever shown. */
function newerEntry(all: Record<string, unknown>, format: number): Entry | undefined {
  const text = (key: string): string => (isText(all[key]) ? all[key] : "");
  const textOrNull = (key: string): string | null => (isText(all[key]) ? all[key] : null);
  const { operation, state } = all;
  if (!isOperation(operation) || !isState(state)) return undefined;
  return {
    id: text("id"),
    operation,
    state,
    idempotency_key: textOrNull("idempotency_key"),
    profile: text("profile"),
    profile_id: text("profile_id"),
    organization_id: textOrNull("organization_id"),
    region: text("region"),
    base_url: text("base_url"),
    service_version: text("service_version"),
    request_text: text("request_text"),
    twin: text("twin"),
    replaces: textOrNull("replaces"),
    replaced_by: textOrNull("replaced_by"),
    parent: textOrNull("parent"),
    resource_id: textOrNull("resource_id"),
    attempts: typeof all.attempts === "number" ? all.attempts : 0,
    created_at: text("created_at"),
    updated_at: text("updated_at"),
    last_error: isLastError(all.last_error) ? all.last_error : null,
    destination: isObject(all.destination) ? all.destination : null,
    detail: isObject(all.detail) ? all.detail : {},
    format,
  };
}
