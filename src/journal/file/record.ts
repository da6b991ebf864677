// How records are written as lines with a checksum, and how the bytes of a file are cut into sound records and damage.
//
// {"sum":"<16 hex of SHA-256 over all that follows>","v":1,"intent":{…what never changes…},"now":{…what a step changed…},"n":1}
// Every record of an entry carries the whole entry: a damaged one costs a transition, never a key.
import { hash } from "node:crypto";
import { type Entry, formatVersion } from "../entry.ts";

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
      /** Counts the records of its entry; undefined in those of earlier versions. */
      readonly sequence: number | undefined;
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
    twin: entry.fingerprint,
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
  return seal({ v: formatVersion, intent, now, n: entry.sequence });
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
  const intent = { bytes, start: start + at, end: nowAt };
  return { kind: "entry", format, id, line, intent, sequence: sequenceOf(line) };
}

/** Read without parsing the rest: it stands at the end, where earlier versions have `}}`. */
function sequenceOf({ bytes, start, end }: Slice): number | undefined {
  const digits = /\},"n":([1-9][0-9]{0,14})\}$/.exec(bytes.toString("latin1", Math.max(start, end - 32), end))?.[1];
  return digits === undefined ? undefined : Number(digits);
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
    return { kind: "entry", format, id: intent.id, line, intent: undefined, sequence: undefined };
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A place in the file that holds no sound record. */
export interface Damage {
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
  readonly bytes: Buffer;
  readonly reason: string;
}

export interface Found {
  readonly record: SoundRecord;
  readonly offset: number;
  readonly line: number;
  readonly text: Slice;
}

export interface Scan {
  readonly found: Found[];
  readonly damage: Damage[];
  /** What stands after the last newline and is no sound record: an append that a crash cut short, or one under way. */
  readonly torn: Damage | undefined;
}

const newline = 10;

/**
 * Cuts bytes that begin at the start of a line into records. Blank lines are no damage: a torn end is followed by one.
 * @param from where the bytes begin in the file
 */
export function scanBytes(bytes: Buffer, from: { readonly offset: number; readonly line: number }): Scan {
  const scan: Draft = { found: [], damage: [], torn: undefined };
  let line = from.line;
  for (let start = 0; start < bytes.length; line += 1) {
    const cut = bytes.indexOf(newline, start);
    const end = cut < 0 ? bytes.length : cut;
    if (end > start) {
      const text = { bytes, start, end };
      const record = readLine(text);
      if (record !== undefined) scan.found.push({ record, offset: from.offset + start, line, text });
      else scanBadLine(text, { base: from.offset, line, ended: cut >= 0, scan });
    }
    start = end + 1;
  }
  return scan;
}

interface Draft {
  readonly found: Found[];
  readonly damage: Damage[];
  torn: Damage | undefined;
}

/**
 * A line that is not sound as a whole: two records whose newline was lost, or damage. Every start of a record in it is
 * tried up to the next start, then without the one byte before that (the former newline).
 */
function scanBadLine(text: Slice, at: { base: number; line: number; ended: boolean; scan: Draft }): void {
  const { base, line, ended, scan } = at;
  const { bytes } = text;
  const starts = recordStarts(text);
  for (const [index, start] of starts.entries()) {
    const next = starts[index + 1] ?? text.end;
    let left = start;
    for (const end of [next - 1, next]) {
      const record = readLine({ bytes, start, end });
      if (record === undefined) continue;
      scan.found.push({ record, offset: base + start, line, text: { bytes, start, end } });
      left = end;
    }
    if (left === next) continue;
    const rest = { offset: base + left, line, bytes: bytes.subarray(left, next) };
    if (next === text.end && !ended) scan.torn = { ...rest, reason: "an append that was cut short" };
    else if (left === start) scan.damage.push({ ...rest, reason: "its checksum does not fit" });
    else scan.damage.push({ ...rest, reason: "a byte that ended a line is another" });
  }
}

/** Where records may begin in a bad line: its beginning and every place that looks like one. */
function recordStarts(text: Slice): number[] {
  const { bytes, start, end } = text;
  const starts = [start];
  for (let at = bytes.indexOf(recordStart, start + 1, "latin1"); at >= 0 && at < end; ) {
    starts.push(at);
    at = bytes.indexOf(recordStart, at + 1, "latin1");
  }
  return starts;
}
