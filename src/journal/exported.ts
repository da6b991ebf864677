// What `journal export` wrote, read back: every line must be sound, since what is missing would be missed silently.
import { Failure } from "../errors.ts";
import { formatVersion } from "./entry.ts";
import type { EntryRecords } from "./merge.ts";
import { contentIn, readLine } from "./record.ts";

const newline = 10;

/** @throws Failure `usage` for damage, for a newer format, and for a file that is not an export */
export function readExport(bytes: Buffer): EntryRecords[] {
  const entries = new Map<string, string[]>();
  let hasHeader = false;
  let number = 0;
  for (let start = 0; start < bytes.length; ) {
    const cut = bytes.indexOf(newline, start);
    const end = cut < 0 ? bytes.length : cut;
    number += 1;
    if (end > start) {
      const line = { bytes, start, end };
      const record = readLine(line);
      if (record === undefined) throw damaged(number);
      if (record.format > formatVersion) throw newer(record.format);
      hasHeader ||= record.kind === "header";
      if (record.kind === "entry") entries.set(record.id, [...(entries.get(record.id) ?? []), contentIn(line)]);
    }
    start = end + 1;
  }
  if (!hasHeader) throw damaged(1);
  return [...entries].map(([id, contents]) => ({ id, contents }));
}

function damaged(line: number): Failure {
  return new Failure("usage", `Line ${line} is not what integ journal export wrote.`, {
    meaning: "Nothing was imported: a record is damaged or missing.",
    hint: "Run integ journal export again, or import the journal's own file.",
  });
}

function newer(format: number): Failure {
  return new Failure("usage", `It was exported by a newer integ (format ${format}).`, {
    meaning: "Nothing was imported.",
    hint: "Upgrade integ, then run the command again.",
  });
}
