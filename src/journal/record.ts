// How a record is written as a line with a checksum, and read.
//
// {"sum":"<16 hex of SHA-256 over all that follows>","v":3,"after":"<sum of the line before in its file>","mac":"<key and HMAC>",
//  "id":…,"n":…,"state":…,"at":…,"prev":"<hash of the entry's record before>","intent":{…},"result":{…},"now":{…},"by":{…}}
// The content, from `id` on, is the same in every journal that it is copied to; its hash is what the next record of the entry
// names. Every record of an entry carries the whole entry: a damaged one costs a step, never a key.
import { hash } from "node:crypto";
import type { Actor } from "./actor.ts";
import { type Entry, formatVersion, type Moved } from "./entry.ts";
import { type EntryDestination, isObject } from "./entry-destination.ts";
import { intentKeys, type JournalRecord, nowKeys, RecordSchema } from "./record-schema.ts";

/** What `journal verify` has to report. */
export interface Finding {
  readonly severity: "problem" | "warning";
  /** File with line and offset, or the entry. */
  readonly where: string;
  /** One sentence: what is wrong, and what to do if something can be done. */
  readonly message: string;
}

/** The content of a record with the HMAC that it came with; empty if it has none. */
export interface Signed {
  readonly content: string;
  readonly mac: string;
}

/** An entry with its records, the oldest first. */
export interface EntryRecords {
  readonly id: string;
  readonly records: readonly Signed[];
  /** Its history had a gap already when its journal was written again. */
  readonly hasKnownGap?: boolean;
}

/** How every line begins; it cannot occur inside one, where quotes are escaped. */
export const recordStart = '{"sum":"';
const sumDigits = 16;
const bodyStart = recordStart.length + sumDigits + 2; // `",`

/** Some of the bytes that were read: offsets cost nothing, a buffer for every line would. */
export interface Slice {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

export interface HeaderLine {
  readonly kind: "header";
  readonly sum: string;
  /** Where the entries of the file are now, if that is not here. */
  readonly moved: Moved | undefined;
  /** The highest id of an entry that is in the archive. */
  readonly archived: string | undefined;
  /** Entries whose history had a gap already when the file was written again: what was damaged or removed is lost. */
  readonly gaps: readonly string[];
}

/** A line of another format: nothing else is known of it. */
export interface ForeignLine {
  readonly kind: "foreign";
  readonly sum: string;
  readonly format: number;
}

/** A sound line with a record, of which only what its beginning says was read: places instead of texts, for thousands of lines. */
export interface RecordLine {
  readonly kind: "record";
  readonly sum: string;
  readonly after: string;
  readonly id: string;
  readonly n: number;
  readonly state: string;
  readonly content: Slice;
  /** Where the intent begins, which is the same in all records of an entry. The hash of the record before ends two bytes before it. */
  readonly intentStart: number;
  readonly prevLength: number;
  /** Where the HMAC ends. */
  readonly macEnd: number;
  readonly macLength: number;
}

export function macOf({ content: { bytes }, macEnd, macLength }: RecordLine): string {
  return bytes.toString("latin1", macEnd - macLength, macEnd);
}

/** The hash of the entry's record before, as this one names it; empty in the first. */
export function prevOf({ content: { bytes }, intentStart, prevLength }: RecordLine): string {
  return bytes.toString("latin1", intentStart - 2 - prevLength, intentStart - 2);
}

/** Who makes a record, and the hash of the one before in its entry. */
export interface RecordMaking {
  readonly by: Actor;
  readonly prev?: string | undefined;
  /** The entry as it was before. */
  readonly before?: Entry | undefined;
}

function sealed(body: string | Uint8Array): string {
  return hash("sha256", body, "hex").slice(0, sumDigits);
}

/** Views on bytes that are read and never kept: those of a plain array cost a third of a buffer's. */
function view({ buffer, byteOffset }: Buffer, start: number, end: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + start, end - start);
}

function lineWith(body: string): string {
  return `${recordStart}${sealed(body)}",${body}\n`;
}

/** A whole line. @param after the checksum of the line before it in its file */
export function recordLine({ content, mac }: Signed, after = ""): string {
  return lineWith(`"v":${formatVersion},"after":"${after}","mac":"${mac}",${content}}`);
}

/** The checksum of a line that was made here. */
export function sumIn(line: string): string {
  return line.slice(recordStart.length, recordStart.length + sumDigits);
}

interface HeaderFacts {
  /** A random name of this file: a rewritten journal has another one. */
  readonly file: string;
  readonly createdAt: string;
  readonly moved?: Moved | undefined;
  readonly archived?: string | undefined;
  readonly gaps?: readonly string[] | undefined;
}

/** The first line of a file. */
export function headerLine({ file, createdAt, moved, archived, gaps = [] }: HeaderFacts): string {
  const mark = moved && { moved_to: moved.to, ...(moved.isUnfinished ? { is_unfinished: true } : {}) };
  const facts = {
    journal: "integ",
    ...mark,
    archived,
    gaps: gaps.length === 0 ? undefined : gaps,
    file,
    created_at: createdAt,
  };
  return lineWith(`"v":${formatVersion},${JSON.stringify(facts).slice(1)}`);
}

/** @returns undefined of what is not JSON */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headerIn(line: string, sum: string): HeaderLine {
  const read = jsonIn(line);
  const { moved_to: to, is_unfinished, archived, gaps } = isObject(read) ? read : {};
  const moved = typeof to === "string" ? { to, isUnfinished: is_unfinished === true } : undefined;
  return {
    kind: "header",
    sum,
    moved,
    archived: typeof archived === "string" ? archived : undefined,
    gaps: Array.isArray(gaps) ? gaps.filter((id) => typeof id === "string") : [],
  };
}

const recordHead =
  /^"v":3,"after":"([0-9a-f]{16}|)","mac":"([\w.-]{0,80})",(?="id":"([0-9a-z]{10})","n":([1-9]\d{0,8}),"state":"(\w{1,40})","at":"[^"\\]{0,40}","prev":"([0-9a-f]{64}|)",)/;
const longestHead = 400;
const intentName = '"intent":';

/**
 * A line without its newline, or undefined if it is not sound: the checksum covers every byte after it, so that any flipped bit
 * is seen. Checksum and format are at the same place in every format to come.
 */
export function readLine({ bytes, start, end }: Slice): HeaderLine | ForeignLine | RecordLine | undefined {
  if (end - start <= bodyStart) return undefined;
  const text = bytes.toString("latin1", start, Math.min(end, start + longestHead));
  if (!text.startsWith(recordStart) || !text.startsWith('",', bodyStart - 2)) return undefined;
  const sum = sealed(view(bytes, start + bodyStart, end));
  if (!text.startsWith(sum, recordStart.length)) return undefined;
  const body = text.slice(bodyStart);
  const format = Number(/^"v":([1-9]\d{0,8}),/.exec(body)?.[1]);
  if (Number.isNaN(format)) return undefined;
  if (format !== formatVersion) return { kind: "foreign", sum, format };
  if (body.startsWith('"v":3,"journal":"integ"')) return headerIn(bytes.toString("utf8", start, end), sum);
  const head = recordHead.exec(body);
  if (head === null) return undefined;
  const [whole, { length: afterLength }, { length: macLength }, id, n, state, { length: prevLength }] =
    head as unknown as readonly [string, string, string, string, string, string, string];
  const intentAt = body.indexOf(intentName, whole.length);
  if (intentAt < 0) return undefined;
  const contentStart = start + bodyStart + whole.length;
  const macEnd = contentStart - 2;
  const afterEnd = macEnd - macLength - '","mac":"'.length;
  return {
    kind: "record",
    sum,
    // A part of a text keeps all of it in memory.
    after: bytes.toString("latin1", afterEnd - afterLength, afterEnd),
    id: bytes.toString("latin1", contentStart + 6, contentStart + 6 + id.length),
    n: Number(n),
    state,
    content: { bytes, start: contentStart, end: end - 1 },
    intentStart: start + bodyStart + intentAt,
    prevLength,
    macEnd,
    macLength,
  };
}

/** The id and the state that the beginning of a record's line says, without a check of the line. */
export function headIn({ bytes, start, end }: Slice): { readonly id: string; readonly state: string } | undefined {
  const text = bytes.toString("latin1", start + bodyStart, Math.min(end, start + longestHead));
  const [, , , id, , state] = recordHead.exec(text) ?? [];
  return id === undefined || state === undefined ? undefined : { id, state };
}

/** The record's content as it is hashed and carried. */
export function contentOf({ content: { bytes, start, end } }: RecordLine): string {
  return bytes.toString("utf8", start, end);
}

/** What the next record of the entry names as the one before. */
export function recordHash(content: string | Uint8Array): string {
  return hash("sha256", content, "hex");
}

export function hashOfLine({ content: { bytes, start, end } }: RecordLine): string {
  return recordHash(view(bytes, start, end));
}

/** What the step did between two records of an entry, as far as their attempts show: a request that left has no end yet. */
function resultOf(entry: Entry, before: Entry | undefined): JournalRecord["result"] {
  const at = entry.updated_at;
  if (before === undefined) return { step: "admit", begin: at, end: at };
  if (entry.attempts > before.attempts) return { step: "send", begin: at, end: null };
  return { step: "record", begin: before.updated_at, end: at };
}

function picked(entry: Entry, keys: readonly (keyof Entry)[]): Partial<Entry> {
  return Object.fromEntries(keys.map((key) => [key, entry[key]]));
}

/** The content of a record: a whole entry, who made it, and the record before it. */
export function recordContent(entry: Entry, { by, prev = "", before }: RecordMaking): string {
  const record = {
    id: entry.id, // the order is that of `recordHead`
    n: entry.sequence,
    state: entry.state,
    at: entry.updated_at,
    prev,
    intent: picked(entry, intentKeys),
    result: resultOf(entry, before),
    now: picked(entry, nowKeys),
    by,
  };
  return JSON.stringify(record).slice(1, -1);
}

/** @returns undefined if it is not what this format's records hold */
export function readRecord(content: string): JournalRecord | undefined {
  const read = RecordSchema.safeParse(jsonIn(`{${content}}`));
  return read.success ? read.data : undefined;
}

/** The entry as it was after that record. @returns undefined if the record is not what this format's records hold */
export function entryIn(content: string): Entry | undefined {
  const record = readRecord(content);
  return record && entryOf(record);
}

/**
 * The same of a finished entry, of which thousands may be looked through: its shape is checked as a whole where it is worked on,
 * carried or verified, and here only as far as it is looked up by.
 */
export function finishedEntryIn(content: string): Entry | undefined {
  const record = jsonIn(`{${content}}`) as Partial<JournalRecord> | undefined;
  if (!isObject(record?.intent) || !isObject(record.now) || !isObject(record.now.detail)) return undefined;
  const { operation, base_url, request_text } = record.intent;
  const isText = [operation, base_url, request_text, record.id, record.state, record.at].every(
    (value) => typeof value === "string",
  );
  return isText ? entryOf(record as JournalRecord) : undefined;
}

function entryOf(record: JournalRecord): Entry {
  const { id, n, state, at, intent, now } = record;
  // Of the shape that the schema has checked; names of states and operations that are not known are shown as they are.
  return { id, ...intent, ...now, state, updated_at: at, sequence: n } as Entry;
}

/** What a step of an entry's work left: when, as what, by whom. */
export interface Step {
  readonly at: string;
  readonly state: string;
  readonly actor: Actor | null;
  /** Where the secret was to go by then. */
  readonly destination?: EntryDestination | undefined;
}

export function stepIn(content: string): Step {
  const record = readRecord(content);
  if (record === undefined) return { at: "", state: "", actor: null };
  const { at, state, by, now } = record;
  return { at, state, actor: by, destination: now.destination ?? undefined };
}

/** @returns the place of the first record that does not follow the one before it; undefined if all do */
export function brokenStep(records: readonly { readonly prev: string; readonly hash: string }[]): number | undefined {
  const place = records.findIndex(({ prev }, at) => prev !== (records[at - 1]?.hash ?? ""));
  return place < 0 ? undefined : place;
}

/** @param isKnown the file was written again with it */
export function historyFinding(id: string, place: number, isKnown = false): Finding {
  const message = `its record ${Math.max(1, place)} or the next was edited, removed or moved since it was written`;
  return { severity: isKnown ? "warning" : "problem", where: `entry ${id}`, message };
}
