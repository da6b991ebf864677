// How a record is written as a line with a checksum, and read.
//
// {"sum":"<16 hex of SHA-256 over all that follows>","v":3,"after":"<sum of the line before in its file>","mac":"<key and HMAC>",
//  "id":…,"n":…,"state":…,"at":…,"prev":"<hash of the entry's record before>","intent":{…},"result":{…},"now":{…},"by":{…}}
// The content, from `id` on, is the same in every journal that it is copied to; its hash is what the next record of the entry
// names. Every record of an entry carries the whole entry: a damaged one costs a step, never a key.
import { hash } from "node:crypto";
import type { Actor } from "./actor.ts";
import { type Entry, formatVersion, type Moved } from "./entry.ts";
import type { EntryDestination } from "./entry-destination.ts";
import { intentKeys, type JournalRecord, nowKeys, RecordSchema } from "./record-schema.ts";

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
  /** What is kept beside its records to find it says something else, in words. */
  readonly astray?: string | undefined;
}

/** How every line begins; it cannot occur inside one, where quotes are escaped. */
export const recordStart = '{"sum":"';
const sumDigits = 16;
const bodyStart = recordStart.length + sumDigits + 2; // `",`

/** A sound line. Of one with a record its beginning is read, and the rest when it is asked for; of another format, nothing else. */
type Line = { readonly sum: string } & (
  | ({ readonly kind: "header" } & HeaderFacts)
  | { readonly kind: "foreign"; readonly format: number }
  | { readonly kind: "record"; readonly after: string; readonly id: string; readonly n: number; readonly state: string }
);

function sealed(body: string | Uint8Array): string {
  return hash("sha256", body, "hex").slice(0, sumDigits);
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

export interface HeaderFacts {
  /** Where the entries of the file are now, if that is not here. */
  readonly moved?: Moved | undefined;
  /** The highest id of an entry that is in the archive. */
  readonly archived?: string | undefined;
  /** Entries whose history had a gap already when the file was written again: what was damaged or removed is lost. */
  readonly gaps?: readonly string[] | undefined;
}

/** The first line of a file. `file` is a random name of it: a rewritten journal has another one. */
export function headerLine({ file, createdAt, ...facts }: HeaderFacts & { file: string; createdAt: string }): string {
  const all = { journal: "integ", ...facts, file, created_at: createdAt };
  return lineWith(`"v":${formatVersion},${JSON.stringify(all).slice(1)}`);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const recordHead =
  /^"v":3,"after":"([0-9a-f]{16}|)","mac":"([\w.-]{0,80})",(?="id":"([0-9a-z]{10})","n":([1-9]\d{0,8}),"state":"(\w{1,40})",)/;
const longestHead = 300;

/**
 * Reads a line without its newline. The checksum covers every byte after it, so that any flipped bit is seen. Checksum and format
 * are at the same place in every format to come.
 * @returns undefined if the line is not sound
 */
export function readLine(bytes: Buffer, start = 0, end = bytes.length): Line | undefined {
  if (end - start <= bodyStart) return undefined;
  const text = bytes.toString("latin1", start, Math.min(end, start + longestHead));
  if (!text.startsWith(recordStart) || !text.startsWith('",', bodyStart - 2)) return undefined;
  const sum = sealed(bytes.subarray(start + bodyStart, end));
  if (!text.startsWith(sum, recordStart.length)) return undefined;
  const body = text.slice(bodyStart);
  const head = recordHead.exec(body);
  // Array destructuring would take as long as the checksum.
  if (head) return { kind: "record", sum, after: head[1]!, id: head[3]!, n: Number(head[4]), state: head[5]! };
  const format = Number(/^"v":([1-9]\d{0,8}),/.exec(body)?.[1]);
  if (Number.isNaN(format)) return undefined;
  if (format !== formatVersion) return { kind: "foreign", sum, format };
  if (!body.startsWith('"v":3,"journal":"integ"')) return undefined;
  return { kind: "header", sum, ...(jsonIn(bytes.toString("utf8", start, end)) as HeaderFacts) };
}

/** The id and the state that the beginning of a record's line says, without a check of the line. */
export function headIn(line: Buffer): { readonly id?: string; readonly state?: string } {
  const [, , , id, , state] = recordHead.exec(line.toString("latin1", bodyStart, longestHead)) ?? [];
  return { id, state };
}

/** The record of a sound line, as it is hashed and carried. */
export function signedIn(line: Buffer): Signed {
  const [head = "", , mac = ""] = recordHead.exec(line.toString("latin1", bodyStart, longestHead)) ?? [];
  return { content: line.toString("utf8", bodyStart + head.length, line.length - 1), mac };
}

/** What the next record of the entry names as the one before. */
export function recordHash(content: string): string {
  return hash("sha256", content, "hex");
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

/**
 * The content of a record: a whole entry, who made it, and the record before it.
 * @param about.prev the hash of that record; `before` is the entry as it was then
 */
export function recordContent(
  entry: Entry,
  { by, prev = "", before }: { readonly by: Actor; readonly prev?: string; readonly before?: Entry },
): string {
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

function readRecord(content: string): JournalRecord | undefined {
  return RecordSchema.safeParse(jsonIn(`{${content}}`)).data;
}

/** The entry as it was after that record. @returns undefined if the record is not what this format's records hold */
export function entryIn(content: string): Entry | undefined {
  const record = readRecord(content);
  return record && entryOf(record);
}

/**
 * The same of a finished entry, of which thousands may be looked through: its shape is checked as a whole where it is worked on,
 * carried or verified, and here only that it has one.
 */
export function finishedEntryIn(content: string): Entry | undefined {
  const record = jsonIn(`{${content}}`) as Partial<JournalRecord> | undefined;
  const isOne = typeof record?.intent?.request_text === "string" && typeof record.now?.detail === "object";
  return isOne ? entryOf(record as JournalRecord) : undefined;
}

/** Names of states and operations that are not known are shown as they are. */
function entryOf({ id, n, state, at, intent, now }: JournalRecord): Entry {
  return { id, ...intent, ...now, state, updated_at: at, sequence: n } as Entry;
}

/** What a step of an entry's work left: when, as what, by whom. */
export interface Step {
  readonly at: string;
  readonly state: string;
  /** null: the record cannot be read. */
  readonly actor: Actor | null;
  /** Where the secret was to go by then. */
  readonly destination?: EntryDestination | undefined;
}

export function stepIn(content: string): Step {
  const { at = "", state = "", by = null, now } = readRecord(content) ?? {};
  return { at, state, actor: by, destination: now?.destination ?? undefined };
}

/** @returns the place of the first record that does not follow the one before it; negative if all do */
export function brokenStep(records: readonly Signed[]): number {
  return records.findIndex(({ content }, at) => {
    const before = records[at - 1];
    return /"prev":"([0-9a-f]*)"/.exec(content)?.[1] !== (before === undefined ? "" : recordHash(before.content));
  });
}
