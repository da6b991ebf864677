// The newest entries as the last lines of a journal's file say, unchecked: for a Tab, which waits longer for the loading of what
// checks a record than for the reading. They are shown and nothing else: what is typed then is looked up in the journal.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { isMissing } from "../../disk/error-words.ts";
import { careful } from "../../disk/write.ts";
import { type Entry, formatVersion, isSettled } from "../entry.ts";
import type { EntryFilter } from "../lookup.ts";

/** What a name is made of. */
export type GlancedEntry = Pick<
  Entry,
  "id" | "operation" | "profile" | "request_text" | "created_at" | "state" | "resource_id"
>;

/** The records of a hundred entries. */
const glanceBytes = 256 * 1024;

/**
 * @returns the newest first; undefined if the journal itself has to say: the file cannot be read, has a line that this version
 * did not write, or entries before the last lines that may be wanted
 */
export function glanceAt(
  path: string,
  { all, states, limit }: Pick<EntryFilter, "all" | "states" | "limit">,
): readonly GlancedEntry[] | undefined {
  const read = readEnd(path);
  if (read === "missing") return [];
  if (read === undefined || (!read.isWhole && (all !== true || states))) return undefined;
  const entries = new Map<string, GlancedEntry>();
  for (const line of read.text.split("\n")) {
    if (line === "") continue;
    const record = recordIn(line);
    if (record === undefined) return undefined;
    if (record.entry) entries.set(record.entry.id, record.entry);
  }
  return [...entries.values()]
    .filter(({ state }) => (states ? states.includes(state) : all === true || !isSettled(state)))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit);
}

/** The last lines of a file, each of them whole; undefined of one that cannot be read. */
function readEnd(path: string): { readonly text: string; readonly isWhole: boolean } | "missing" | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | careful);
    const stats = fstatSync(fd);
    if (!stats.isFile()) return undefined;
    const bytes = Buffer.alloc(Math.min(stats.size, glanceBytes));
    const length = readSync(fd, bytes, 0, bytes.length, stats.size - bytes.length);
    const isWhole = bytes.length === stats.size;
    const start = isWhole ? 0 : bytes.indexOf(10) + 1;
    return { text: bytes.toString("utf8", start, length), isWhole };
  } catch (error) {
    return isMissing(error) ? "missing" : undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** @returns an empty one of a header; undefined of what this version did not write, or of a header that leads elsewhere */
function recordIn(line: string): { readonly entry?: GlancedEntry } | undefined {
  let record: Partial<Record<string, unknown>>;
  try {
    record = JSON.parse(line) as typeof record;
  } catch {
    return undefined;
  }
  if (record.v !== formatVersion) return undefined;
  if (record.journal !== undefined) return record.moved_to === undefined ? {} : undefined;
  const { intent, now } = record as { intent?: GlancedEntry; now?: GlancedEntry };
  if (typeof intent?.id !== "string" || typeof now?.state !== "string") return undefined;
  const { id, operation, profile, request_text, created_at } = intent;
  return {
    entry: { id, operation, profile, request_text, created_at, state: now.state, resource_id: now.resource_id },
  };
}
