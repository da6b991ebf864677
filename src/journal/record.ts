// How a record is written as a line with a checksum, and read.
//
// {"sum":"<16 hex of SHA-256 over all that follows>","v":2,"intent":{…what never changes…},"now":{…what a step changed…},
//  "by":{…who…},"prev":"<hash of the record before in its entry>","n":2,"after":"<sum of the line before in its file>"}
// Every record of an entry carries the whole entry: a damaged one costs a transition, never a key. Its hash is that of its
// content, from `v` to `n`: the same in every journal that it is copied to.
import { hash } from "node:crypto";
import { type Actor, readActor } from "./actor.ts";
import { type Entry, formatVersion } from "./entry.ts";
import { type EntryDestination, isObject, readDestination } from "./entry-destination.ts";

/** What `journal verify` has to report. */
export interface Finding {
  readonly severity: "problem" | "warning";
  /** File with line and offset, or the entry. */
  readonly where: string;
  /** One sentence: what is wrong, and what to do if something can be done. */
  readonly message: string;
}

/** How every record begins; it cannot occur inside one, where quotes are escaped. */
export const recordStart = '{"sum":"';
export const sumDigits = 16;
const bodyStart = recordStart.length + sumDigits + 2; // `",`
const intentStart = '"intent":{"id":"';
const nowStart = '},"now":{"';
const ownVersion = `"v":${formatVersion},`;

/** Some of the bytes that were read: offsets cost nothing, a buffer for every line would. */
export interface Slice {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** A sound line. `intent` is the text of what never changes, compared as it is; undefined in a newer format. */
export type SoundRecord = { readonly format: number; readonly sum: string; readonly after?: string | undefined } & (
  | { readonly kind: "header"; readonly kept?: KeptPart | undefined }
  | { readonly kind: "other" }
  | {
      readonly kind: "entry";
      readonly id: string;
      readonly line: Slice;
      readonly intent: Slice | undefined;
      /** The hash of the record before it in its entry. */
      readonly prev: string | undefined;
      /** Counts the records of its entry; undefined in those of earlier versions. */
      readonly sequence: number | undefined;
    }
);

/** What a journal that was written again begins with: so many records, and a digest of their checksums. */
export interface KeptPart {
  readonly records: number;
  readonly digest: string;
  /** Entries whose history had a gap already: what was damaged or removed is lost. */
  readonly gaps: readonly string[];
}

/** Who makes a record, and the hash of the one before in its entry. */
export interface RecordMaking {
  readonly by: Actor;
  readonly prev?: string | undefined;
}

export function sameBytes(one: Slice, other: Slice): boolean {
  return Buffer.compare(view(one.bytes, one.start, one.end), view(other.bytes, other.start, other.end)) === 0;
}

function sumOf(body: Uint8Array | string): string {
  return hash("sha256", body, "hex").slice(0, sumDigits);
}

function contentOf(record: object): string {
  return JSON.stringify(record).slice(1, -1);
}

/** A whole line. @param after the checksum of the line before it in its file */
export function seal(content: string, after?: string): string {
  const body = `${content}${after === undefined ? "" : `,"after":"${after}"`}}`;
  return `${recordStart}${sumOf(body)}",${body}\n`;
}

/** The checksum of a line that was sealed here. */
export function sumIn(line: string): string {
  return line.slice(recordStart.length, recordStart.length + sumDigits);
}

/**
 * The first record of a file.
 * @param about.file a random name of this file: a rewritten journal has another one
 */
export function headerLine(about: HeaderFacts): string {
  const { file, createdAt, kept, moved } = about;
  const mark = moved && { moved_to: moved.to, ...(moved.isUnfinished ? { is_unfinished: true } : {}) };
  return seal(contentOf({ v: formatVersion, journal: "integ", ...mark, file, created_at: createdAt, kept }));
}

/** What the mark of a journal says whose entries are elsewhere. */
export interface Moved {
  readonly to: string;
  /** They are being copied: neither journal may have all of them. */
  readonly isUnfinished: boolean;
}

/** What the mark of a journal says, in a sentence. */
export function movedWords({ to, isUnfinished }: Moved, journal = "this journal"): string {
  return `The entries of ${journal} ${isUnfinished ? "are being" : "were"} moved to ${to}.`;
}

interface HeaderFacts {
  readonly file: string;
  readonly createdAt: string;
  readonly kept?: KeptPart | undefined;
  /** Where the entries of the file are now. */
  readonly moved?: Moved | undefined;
}

/** Whether the first line of a file, or its first 100 bytes, says that its entries are elsewhere. */
export function isMoved(head: string): boolean {
  return /^\{"sum":"[0-9a-f]{16}","v":\d+,"journal":"integ","moved_to":"/.test(head);
}

/** Where the header of a file says that its entries are now. @param head the beginning of the file */
export function movedToIn(head: string): Moved | undefined {
  const mark =
    /^\{"sum":"[0-9a-f]{16}","v":\d+,"journal":"integ","moved_to":("(?:[^"\\]|\\.)*")(,"is_unfinished":true)?/;
  const [, to, unfinished] = mark.exec(head) ?? [];
  const place = to && jsonIn(to);
  return typeof place === "string" ? { to: place, isUnfinished: unfinished !== undefined } : undefined;
}

/** A record of an entry, without what belongs to the place where it stands. */
export function recordContent(entry: Entry, { by, prev }: RecordMaking): string {
  const intent = {
    id: entry.id, // first: found without parsing
    operation: entry.operation,
    idempotency_key: entry.idempotency_key,
    profile: entry.profile,
    profile_id: entry.profile_id,
    principal: entry.principal,
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
    request_ids: entry.request_ids.length === 0 ? undefined : entry.request_ids,
    clock_offset_ms: entry.clock_offset_ms ?? undefined,
    updated_at: entry.updated_at,
    last_error: entry.last_error,
    destination: entry.destination,
    replaced_by: entry.replaced_by,
    detail: entry.detail,
  };
  return contentOf({ v: formatVersion, intent, now, by, prev, n: entry.sequence });
}

/** Views on bytes that are read and never kept: those of a plain array cost a third of a buffer's. */
function view({ buffer, byteOffset }: Buffer, start: number, end: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + start, end - start);
}

/**
 * A line without its newline as a record, or undefined if it is not sound. The checksum covers every byte after it,
 * so that any flipped bit is seen. Version and checksum are at the same place in every format to come.
 */
export function readLine(line: Slice): SoundRecord | undefined {
  const { bytes, start, end } = line;
  // Once as text, and nothing of it is kept: a part of a string holds all of it in memory.
  const text = bytes.toString("latin1", start, end);
  if (!text.startsWith(recordStart) || !text.startsWith('",', bodyStart - 2)) return undefined;
  const sum = sumOf(view(bytes, start + bodyStart, end));
  if (!text.startsWith(sum, recordStart.length)) return undefined;
  if (text.startsWith(ownVersion, bodyStart))
    return ownRecord(line, { text, format: formatVersion, sum, at: bodyStart + ownVersion.length });
  const version = /^"v":([1-9][0-9]{0,8}),/.exec(text.slice(bodyStart, bodyStart + 16));
  if (version === null) return undefined;
  const format = Number(version[1]);
  if (format > formatVersion) return newerRecord(line, { format, sum });
  return ownRecord(line, { text, format, sum, at: bodyStart + version[0].length });
}

interface Head {
  readonly text: string;
  readonly format: number;
  readonly sum: string;
  readonly at: number;
}

function ownRecord(line: Slice, { text, format, sum, at }: Head): SoundRecord | undefined {
  const { bytes, start } = line;
  if (text.startsWith('"journal":"integ"', at)) return { kind: "header", format, sum, kept: keptIn(line) };
  const { prev, sequence, after } = tailOf(line);
  if (!text.startsWith(intentStart, at)) return { kind: "other", format, sum, after };
  const idAt = at + intentStart.length;
  const id = idIn(line, { text, from: idAt });
  const nowAt = text.indexOf(nowStart, idAt);
  if (nowAt < 0) return undefined;
  const intent = { bytes, start: start + at, end: start + nowAt };
  return { kind: "entry", format, sum, after, id, line, intent, prev, sequence };
}

/** Ids are short; one that is not must not hold its whole line in memory. */
function idIn({ bytes, start }: Slice, { text, from }: { readonly text: string; readonly from: number }): string {
  const to = text.indexOf('"', from);
  return to - from === 10 ? text.slice(from, to) : bytes.toString("latin1", start + from, start + to);
}

const afterStart = ',"after":"';
const afterLength = afterStart.length + sumDigits + 1;
const longestTail = 160;

interface Tail {
  readonly prev: string | undefined;
  readonly sequence: number | undefined;
  readonly after: string | undefined;
}

const [prevStart, countStart] = [',"prev":"', ',"n":'];
const hashDigits = 64;
const mostCountDigits = 15;

/** Read from the end, without parsing the rest: they are there in this order. Earlier versions have `}}` there. */
function tailOf({ bytes, start, end }: Slice): Tail {
  const text = bytes.toString("latin1", Math.max(start, end - longestTail), end);
  let to = text.length - 1;
  if (text[to] !== "}") return { prev: undefined, sequence: undefined, after: undefined };
  const after = hexBefore(text, { to, label: afterStart, digits: sumDigits });
  if (after !== undefined) to -= afterLength;
  const sequence = countBefore(text, to);
  if (sequence !== undefined) to = text.lastIndexOf(",", to - 1);
  return { prev: hexBefore(text, { to, label: prevStart, digits: hashDigits }), sequence, after };
}

/** The number that ends there, if it is one from 1 with its label before it. */
function countBefore(text: string, to: number): number | undefined {
  let [at, value, unit] = [to, 0, 1];
  for (let code = text.charCodeAt(at - 1); code >= 48 && code <= 57; code = text.charCodeAt(at - 1)) {
    value += (code - 48) * unit;
    unit *= 10;
    at -= 1;
  }
  const digits = to - at;
  if (digits === 0 || digits > mostCountDigits || text[at] === "0") return undefined;
  return text.startsWith(countStart, at - countStart.length) ? value : undefined;
}

/** The digits of a member that ends there, if it has that label and so many. */
function hexBefore(
  text: string,
  { to, label, digits }: { to: number; label: string; digits: number },
): string | undefined {
  const at = to - 1 - digits;
  if (text[to - 1] !== '"' || at < label.length || !text.startsWith(label, at - label.length)) return undefined;
  const found = text.slice(at, to - 1);
  return notHex.test(found) ? undefined : found;
}

/** Every record has eighty digits: a loop over them is so hot that V8 would optimize it, which takes as long as a short journal. */
const notHex = /[^0-9a-f]/;

function keptIn({ bytes, start, end }: Slice): KeptPart | undefined {
  const { kept } = parsed(bytes.toString("utf8", start, end));
  if (!isObject(kept)) return undefined;
  const { records, digest, gaps } = kept;
  if (typeof records !== "number" || typeof digest !== "string" || !Array.isArray(gaps)) return undefined;
  return { records, digest, gaps: gaps.filter((id) => typeof id === "string") };
}

/** The hash of a content as `recordContent` made it. */
export function recordHash(content: string | Uint8Array): string {
  return hash("sha256", content, "hex");
}

/** What the next record of its entry names as the one before: the hash of its content. @param line a sound one */
export function hashOfRecord(line: Slice): string {
  return recordHash(contentBytes(line));
}

/** The content of a sound line, as `recordContent` made it. */
export function contentIn(line: Slice): string {
  return Buffer.from(contentBytes(line)).toString("utf8");
}

function contentBytes({ bytes, start, end }: Slice): Uint8Array {
  const cut = end - 1 - afterLength;
  const hasAfter = cut > start && bytes.toString("latin1", cut, cut + afterStart.length) === afterStart;
  return view(bytes, start + bodyStart, hasAfter ? cut : end - 1);
}

/** The state that a record of our own format sets, read without parsing the rest; undefined of a newer one. */
export function stateOf(record: SoundRecord): string | undefined {
  if (record.kind !== "entry" || record.intent === undefined) return undefined;
  return stateBehind(record.intent, record.line.end);
}

/** The same, of a record whose `intent` that is. */
export function stateBehind({ bytes, end }: Slice, lineEnd: number): string {
  const from = end + '},"now":{"state":"'.length;
  const text = bytes.toString("latin1", from, Math.min(lineEnd, from + 20));
  return text.slice(0, text.indexOf('"'));
}

function newerRecord(line: Slice, { format, sum }: Pick<Head, "format" | "sum">): SoundRecord | undefined {
  const read = jsonIn(line.bytes.toString("utf8", line.start, line.end));
  if (!isObject(read)) return undefined;
  if (read.journal === "integ") return { kind: "header", format, sum };
  const { intent, prev: named } = read;
  if (!isObject(intent) || typeof intent.id !== "string") return { kind: "other", format, sum };
  const prev = typeof named === "string" ? named : undefined;
  return { kind: "entry", format, sum, id: intent.id, line, intent: undefined, prev, sequence: undefined };
}

// The records of one entry as its history, and whether each follows the one before.

/** What a step of an entry's work left: when, as what, by whom. */
export interface Step {
  readonly at: string;
  readonly state: string;
  /** null in records of earlier versions. */
  readonly actor: Actor | null;
  /** Where the secret was to go by then. */
  readonly destination?: EntryDestination | undefined;
}

/** @returns undefined of what is not JSON: a record that someone edited may have a checksum that fits, or none to fit */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parsed(text: string): Record<string, unknown> {
  const read = jsonIn(text);
  return isObject(read) ? read : {};
}

export function stepOf(line: Slice): Step {
  return stepIn(parsed(line.bytes.toString("utf8", line.start, line.end)));
}

/** The same of a record's content, if a journal keeps it without its line. */
export function stepOfContent(content: string): Step {
  return stepIn(parsed(`{${content}}`));
}

function stepIn({ now, by }: Record<string, unknown>): Step {
  const { updated_at, state, destination } = isObject(now) ? now : {};
  return {
    at: typeof updated_at === "string" ? updated_at : "",
    state: typeof state === "string" ? state : "",
    actor: readActor(by),
    destination: readDestination(destination),
  };
}

export type EntryRecord = Extract<SoundRecord, { kind: "entry" }>;

/**
 * Whether each record follows the one before it in its entry. Those of format 1 name none before them.
 * @param from the first that is looked at; those before it were looked at already
 * @returns the place of the first that does not; undefined if all do
 */
export function brokenStep(records: readonly EntryRecord[], from = 0): number | undefined {
  for (let place = from; place < records.length; place += 1) {
    const { prev, format } = records[place]!;
    if (format === 1 && prev === undefined) continue;
    const before = records[place - 1];
    if (prev !== (before && hashOfRecord(before.line))) return place;
  }
  return undefined;
}

/** @param isKnown the journal was written again with it */
export function historyFinding(id: string, place: number, isKnown: boolean): Finding {
  const message = `its record ${Math.max(1, place)} or the next was edited, removed or moved since it was written`;
  return { severity: isKnown ? "warning" : "problem", where: `entry ${id}`, message };
}
