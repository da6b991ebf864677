// Finds recently changed entries at the end of a journal's file, for fast shell completion.
import * as fs from "node:fs";
import { carefulOpen } from "../../disk/write.ts";
import { isSettled, type Entry } from "../entry.ts";
import { type EntryFilter, fits, excludesFinished } from "../lookup.ts";
import { finishedEntryIn, headIn, readLine, signedIn } from "../record.ts";
import { checkFile } from "./safety.ts";

/** @returns at most `limit` recently changed entries, each from its newest valid record, the highest id first */
export function newestIn(path: string, filter: EntryFilter & { readonly limit: number }): Entry[] {
  const fd = fs.openSync(path, fs.constants.O_RDONLY | carefulOpen);
  let bytes: Buffer;
  try {
    checkFile(fd, path);
    bytes = fs.readFileSync(fd);
  } finally {
    fs.closeSync(fd);
  }
  const found: Entry[] = [];
  const seen = new Set<string>();
  for (let end = bytes.length; end > 0 && found.length < filter.limit; ) {
    const start = bytes.lastIndexOf("\n", end - 1) + 1;
    const line = bytes.subarray(start, end);
    end = start - 1;
    const { id, state } = headIn(line);
    if (id === undefined || state === undefined || seen.has(id)) continue;
    const isWanted = filter.states?.includes(state) ?? !(excludesFinished(filter) && isSettled(state));
    // A damaged record is skipped: the entry's previous record counts.
    if (isWanted && readLine(line) === undefined) continue;
    const entry = isWanted ? finishedEntryIn(signedIn(line).content) : undefined;
    if (entry !== undefined && fits(entry, filter)) found.push(entry);
    seen.add(id);
  }
  return found.sort((one, other) => (one.id < other.id ? 1 : -1));
}
