// The last entries of a journal's file, for names: read from its end, one record for each.
import * as fs from "node:fs";
import { careful } from "../../disk/write.ts";
import { type Entry, isSettled } from "../entry.ts";
import { type EntryFilter, fits } from "../lookup.ts";
import { contentOf, finishedEntryIn, headIn, readLine } from "../record.ts";
import { checkFile } from "./safety.ts";
import { readBytes } from "./scan.ts";

const newline = 10;

/** @returns the entries worked on last, at most `limit`, the highest id first. Only their newest sound records are checked. */
export function newestIn(path: string, filter: EntryFilter & { readonly limit: number }): Entry[] {
  const bytes = bytesOf(path);
  const found: Entry[] = [];
  const seen = new Set<string>();
  for (let end = bytes.length; end > 0 && found.length < filter.limit; ) {
    const line = { bytes, start: bytes.lastIndexOf(newline, end - 1) + 1, end };
    end = line.start - 1;
    const head = headIn(line);
    if (head === undefined || seen.has(head.id)) continue;
    if (mayFit(head.state, filter)) {
      const record = readLine(line);
      // Of an append that was cut short the record before it counts.
      if (record?.kind !== "record") continue;
      const entry = finishedEntryIn(contentOf(record));
      if (entry !== undefined && fits(entry, filter)) found.push(entry);
    }
    seen.add(head.id);
  }
  return found.sort((one, other) => (one.id < other.id ? 1 : -1));
}

function mayFit(state: string, { states, all }: EntryFilter): boolean {
  return states === undefined ? all === true || !isSettled(state) : states.includes(state);
}

function bytesOf(path: string): Buffer {
  const fd = fs.openSync(path, fs.constants.O_RDONLY | careful);
  try {
    checkFile(fd, path);
    return readBytes(fd, 0, fs.fstatSync(fd).size);
  } finally {
    fs.closeSync(fd);
  }
}
