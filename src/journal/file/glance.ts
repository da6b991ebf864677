// The newest entries as the last lines of a journal's file say, unchecked: for a Tab, which waits longer for the loading of what
// checks a record than for the reading. They are shown and nothing else: what is typed then is looked up in the journal.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { isMissing } from "../../disk/error-words.ts";
import { careful } from "../../disk/write.ts";
import { type Entry, formatVersion, isSettled } from "../entry.ts";
import { type EntryFilter, isOfUnsettled } from "../lookup.ts";
import { type GlancedIndex, glanceAtIndex } from "./index/glance-index.ts";

/** What a name is made of. */
export type GlancedEntry = Pick<
  Entry,
  "id" | "operation" | "profile" | "request_text" | "created_at" | "state" | "resource_id"
>;

/** The records of a hundred entries. */
const glanceBytes = 256 * 1024;
/** More than is behind an index. */
const unindexedBytes = 640 * 1024;

/**
 * @returns the newest first; undefined if the journal itself has to say: the file cannot be read, has a line that this version
 * did not write, or entries before the last lines that may be wanted and that its index does not name
 */
export function glanceAt(
  path: string,
  filter: Pick<EntryFilter, "all" | "states" | "limit">,
): readonly GlancedEntry[] | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | careful);
    const stats = fstatSync(fd);
    return stats.isFile() ? entriesIn({ path, fd, size: stats.size }, filter) : undefined;
  } catch (error) {
    return isMissing(error) ? [] : undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

interface OpenJournal {
  readonly path: string;
  readonly fd: number;
  readonly size: number;
}

type Lines = ReadonlyMap<string, string>;

function entriesIn(
  journal: OpenJournal,
  { all, states, limit }: Pick<EntryFilter, "all" | "states" | "limit">,
): readonly GlancedEntry[] | undefined {
  const isUnfinished = isOfUnsettled({ all, states });
  const least = Math.max(0, journal.size - (isUnfinished ? unindexedBytes : glanceBytes));
  const index = isUnfinished && least > 0 ? glanceAtIndex(journal) : undefined;
  // From the new line behind its last record on.
  const from = index?.end ?? least;
  if (from < least) return undefined;
  const last = lastLines(journal, from);
  if (last === undefined) return undefined;
  // All entries: the newest are in the last lines.
  const isWhole = least === 0 || (all === true && !states);
  const before = isWhole ? [] : index && linesBefore(index, { last, limit: states ? undefined : limit });
  if (before === undefined) return undefined;
  // Parsing takes longest: of what is shown alone.
  const isWanted = (state = ""): boolean =>
    states ? states.some((one) => one === state) : all === true || !isSettled(state);
  const shown = [...last, ...before]
    .filter(([, line]) => isWanted(stateOf.exec(line)?.[1]))
    .sort(([a], [b]) => (a < b ? 1 : -1))
    .slice(0, limit);
  const entries = shown.map(([id, line]) => ({ id, entry: recordIn(line)?.entry }));
  return entries.every(({ id, entry }) => entry?.id === id) ? entries.map(({ entry }) => entry!) : undefined;
}

const newline = 10;
/** What a record of this version has between its checksum and the id of its entry. */
const usualStart = `","v":${formatVersion},"intent":{"id":"`;
const [sumEnd, idLength] = [24, 10];
const idAt = sumEnd + usualStart.length;
/** Quotes in a text have a backslash before them: this is found nowhere else. */
const stateOf = /"now":\{"state":"([a-z_]+)"/;

/** The last line of each entry in the last lines of the file. */
function lastLines({ fd, size }: OpenJournal, from: number): Lines | undefined {
  const bytes = Buffer.allocUnsafe(size - from);
  const length = readSync(fd, bytes, 0, bytes.length, from);
  // An append that is under way has no end yet.
  if (length > 0 && bytes[length - 1] !== newline) return undefined;
  const first = from === 0 ? 0 : bytes.indexOf(newline) + 1;
  const lines = new Map<string, string>();
  for (let end = length, at = end; end > first; end = at) {
    at = Math.max(first, end < 2 ? 0 : bytes.lastIndexOf(newline, end - 2) + 1);
    if (end - at < 2) continue;
    const start = bytes.toString("latin1", at + sumEnd, at + idAt + idLength + 1);
    const isUsual = start.startsWith(usualStart) && start.endsWith('"');
    const id = isUsual ? start.slice(usualStart.length, -1) : undefined;
    if (id !== undefined && lines.has(id)) continue;
    const line = bytes.toString("utf8", at, end - 1);
    const record = id === undefined ? recordIn(line) : { entry: { id } };
    if (record === undefined) return undefined;
    if (record.entry && !lines.has(record.entry.id)) lines.set(record.entry.id, line);
  }
  return lines;
}

/** The newest records of the unfinished entries that are not in the last lines, as the index says. */
function linesBefore(
  index: GlancedIndex,
  { last, limit }: { readonly last: Lines; readonly limit: number | undefined },
): (readonly [string, string])[] | undefined {
  const others = index.unsettled.filter((id) => !last.has(id));
  const ids = others.sort((a, b) => (a < b ? 1 : -1)).slice(0, limit);
  return index.lines(ids)?.map((line, at) => [ids[at]!, line]);
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
