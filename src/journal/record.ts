// Writes a record as a line with a checksum, and reads it.
//
// {"sum":"<16 hex of SHA-256 over the rest of the line>","v":3,"after":"<sum of the previous line>",
//  "mac":"<key and HMAC>","id":…,"n":…,"state":…,"at":…,"prev":"<hash of the entry's previous record>",
//  "intent":{…},"result":{…},"now":{…},"by":{…}}
// The content, from `id` on, is the same in every copy of the journal. Each record contains the whole entry, so that
// any readable record restores it.
import { hash } from "node:crypto";
import type { Actor } from "./actor.ts";
import { type Entry, formatVersion, type MoveMark } from "./entry.ts";
import type { EntryDestination } from "./entry-destination.ts";
import { intentKeys, type JournalRecord, nowKeys, RecordSchema } from "./record-schema.ts";
import { tryParseJson } from "../json.ts";

export interface Finding {
  readonly severity: "problem" | "warning";
  /** A place in a file, an entry, or the journal's server. */
  readonly where: string;
  readonly message: string;
}

/** `mac` is empty in an unsigned record. */
export interface Signed {
  readonly content: string;
  readonly mac: string;
}

/** The records of an entry, the oldest first. */
export interface EntryRecords {
  readonly id: string;
  readonly records: readonly Signed[];
  /** A record was already missing or edited when the file was last rewritten to remove damage. */
  readonly hasKnownGap?: boolean;
  /** How the entry's row in PostgreSQL contradicts its records. */
  readonly mismatch?: string | undefined;
}

/** This text cannot occur inside a JSON string, where quotes are escaped. */
export const recordStart = '{"sum":"';
const sumDigits = 16;
const bodyStart = recordStart.length + sumDigits + 2; // 2 is the length of `",`

/** Records are parsed up to their state, lines of other formats up to their version. */
type Line = { readonly sum: string } & (
  | ({ readonly kind: "header" } & HeaderFacts)
  | { readonly kind: "foreign"; readonly format: number }
  | { readonly kind: "record"; readonly after: string; readonly id: string; readonly n: number; readonly state: string }
);

function checksumOf(body: string | Uint8Array): string {
  return hash("sha256", body, "hex").slice(0, sumDigits);
}

function lineOf(body: string): string {
  return `${recordStart}${checksumOf(body)}",${body}\n`;
}

export function recordLine({ content, mac }: Signed, after = ""): string {
  return lineOf(`"v":${formatVersion},"after":"${after}","mac":"${mac}",${content}}`);
}

export function sumIn(line: string): string {
  return line.slice(recordStart.length, recordStart.length + sumDigits);
}

export interface HeaderFacts {
  readonly moved?: MoveMark | undefined;
  /** The highest id in the archive. */
  readonly archived?: string | undefined;
  /** Entries with a missing or edited record when the file was last rewritten to remove damage. */
  readonly gaps?: readonly string[] | undefined;
}

/** `file` is random, so that a rewritten file never starts like the earlier one. */
export function headerLine({ file, createdAt, ...facts }: HeaderFacts & { file: string; createdAt: string }): string {
  const all = { journal: "integ", ...facts, file, created_at: createdAt };
  return lineOf(`"v":${formatVersion},${JSON.stringify(all).slice(1)}`);
}

const recordHead =
  /^"v":3,"after":"([0-9a-f]{16}|)","mac":"([\w.-]{0,80})",(?="id":"([0-9a-z]{10})","n":([1-9]\d{0,8}),"state":"(\w{1,40})",)/;
const longestHead = 300;

/**
 * Every later format must keep the places of the checksum and the version.
 * @returns undefined if the line is damaged
 */
export function readLine(bytes: Buffer, start = 0, end = bytes.length): Line | undefined {
  if (end - start <= bodyStart) return undefined;
  const text = bytes.toString("latin1", start, Math.min(end, start + longestHead));
  if (!text.startsWith(recordStart) || !text.startsWith('",', bodyStart - 2)) return undefined;
  const sum = checksumOf(bytes.subarray(start + bodyStart, end));
  if (!text.startsWith(sum, recordStart.length)) return undefined;
  const body = text.slice(bodyStart);
  const head = recordHead.exec(body);
  // Array destructuring would be as slow as the checksum.
  if (head) return { kind: "record", sum, after: head[1]!, id: head[3]!, n: Number(head[4]), state: head[5]! };
  const format = Number(/^"v":([1-9]\d{0,8}),/.exec(body)?.[1]);
  if (Number.isNaN(format)) return undefined;
  if (format !== formatVersion) return { kind: "foreign", sum, format };
  if (!body.startsWith('"v":3,"journal":"integ"')) return undefined;
  return { kind: "header", sum, ...(tryParseJson(bytes.toString("utf8", start, end)) as HeaderFacts) };
}

/** Does not check the checksum. */
export function headIn(line: Buffer): { readonly id?: string; readonly state?: string } {
  const [, , , id, , state] = recordHead.exec(line.toString("latin1", bodyStart, longestHead)) ?? [];
  return { id, state };
}

export function signedIn(line: Buffer): Signed {
  const [head = "", , mac = ""] = recordHead.exec(line.toString("latin1", bodyStart, longestHead)) ?? [];
  return { content: line.toString("utf8", bodyStart + head.length, line.length - 1), mac };
}

/** The entry's next record contains this hash. */
export function recordHash(content: string): string {
  return hash("sha256", content, "hex");
}

export function historyHash(records: readonly Signed[]): string {
  return recordHash(records.map(({ content }) => recordHash(content)).join(""));
}

function resultOf(entry: Entry, before: Entry | undefined): JournalRecord["result"] {
  const at = entry.updated_at;
  if (before === undefined) return { step: "admit", begin: at, end: at };
  if (entry.attempts > before.attempts) return { step: "send", begin: at, end: null };
  return { step: "record", begin: before.updated_at, end: at };
}

function picked(entry: Entry, keys: readonly (keyof Entry)[]): Partial<Entry> {
  return Object.fromEntries(keys.map((key) => [key, entry[key]]));
}

/** @param before the entry as of its previous record, whose hash is `prev` */
export function recordContent(
  entry: Entry,
  { by, prev = "", before }: { readonly by: Actor; readonly prev?: string; readonly before?: Entry },
): string {
  const record = {
    id: entry.id, // the order must match `recordHead`
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
  return RecordSchema.safeParse(tryParseJson(`{${content}}`)).data;
}

export function entryIn(content: string): Entry | undefined {
  const record = readRecord(content);
  return record && entryOf(record);
}

/** Skips the schema check of `entryIn`, because searches read thousands of entries. */
export function finishedEntryIn(content: string): Entry | undefined {
  const record = tryParseJson(`{${content}}`) as Partial<JournalRecord> | undefined;
  const isEntry = typeof record?.intent?.request_text === "string" && typeof record.now?.detail === "object";
  return isEntry ? entryOf(record as JournalRecord) : undefined;
}

/** Keeps unknown states and operations of a newer program. */
function entryOf({ id, n, state, at, intent, now }: JournalRecord): Entry {
  return { id, ...intent, ...now, state, updated_at: at, sequence: n } as Entry;
}

export interface Step {
  readonly at: string;
  readonly state: string;
  readonly actor: Actor | null;
  readonly destination?: EntryDestination | undefined;
}

export function stepIn(content: string): Step {
  const { at = "", state = "", by = null, now } = readRecord(content) ?? {};
  return { at, state, actor: by, destination: now?.destination ?? undefined };
}

/** @returns the index of the first record that does not follow its predecessor; negative if there is none */
export function brokenStep(records: readonly Signed[]): number {
  return records.findIndex(({ content }, at) => {
    const before = records[at - 1];
    return /"prev":"([0-9a-f]*)"/.exec(content)?.[1] !== (before === undefined ? "" : recordHash(before.content));
  });
}
