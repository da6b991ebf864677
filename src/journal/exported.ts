// What `journal export` wrote, read back: every line must be sound, since what is missing would be missed silently.
import { Failure } from "../errors.ts";
import { formatVersion } from "./entry.ts";
import type { EntryRecords } from "./record.ts";
import { readLine, type Signed, signedIn } from "./record.ts";

const newline = 10;

/** @throws Failure `usage` for damage, for another format, and for a file that is not an export */
export function readExport(bytes: Buffer): EntryRecords[] {
  const entries = new Map<string, Signed[]>();
  let hasHeader = false;
  let number = 0;
  for (let start = 0; start < bytes.length; ) {
    const cut = bytes.indexOf(newline, start);
    const end = cut < 0 ? bytes.length : cut;
    number += 1;
    if (end > start) {
      const line = readLine({ bytes, start, end });
      if (line === undefined) throw damaged(number);
      if (line.kind === "foreign") throw otherFormat(line.format);
      if (line.kind === "header") hasHeader = true;
      else {
        const records = entries.get(line.id) ?? [];
        entries.set(line.id, records);
        records.push(signedIn({ bytes, start, end }));
      }
    }
    start = end + 1;
  }
  if (!hasHeader) throw damaged(1);
  return [...entries].map(([id, records]) => ({ id, records }));
}

function damaged(line: number): Failure {
  return new Failure("usage", `Line ${line} is not what integ journal export wrote.`, {
    meaning: "Nothing was imported: a record is damaged or missing.",
    hint: "Run integ journal export again, or import the journal's own file.",
  });
}

function otherFormat(format: number): Failure {
  const isNewer = format > formatVersion;
  return new Failure("usage", `It was exported by ${isNewer ? "a newer" : "an earlier"} integ (format ${format}).`, {
    meaning: "Nothing was imported.",
    ...(isNewer && { hint: "Upgrade integ, then run the command again." }),
  });
}
