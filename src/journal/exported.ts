// Reads the output of `journal export`. One invalid line fails the import, which would otherwise omit its record.
import { Failure } from "../errors.ts";
import { Contents } from "./file/contents.ts";
import { otherFormat } from "./file/safety.ts";
import { type Damage, type FoundRecord, scanBytes } from "./file/scan.ts";
import type { EntryRecords } from "./record.ts";

export function readExport(bytes: Buffer): EntryRecords[] {
  const scan = { found: [] as FoundRecord[], damage: [] as Damage[], torn: undefined as Damage | undefined };
  scanBytes(bytes, { offset: 0, line: 1 }, scan);
  for (const { record } of scan.found) if (record.kind === "foreign") throw otherFormat("The export", record.format);
  const contents = new Contents((offset, length) => bytes.subarray(offset, offset + length));
  for (const one of scan.found) contents.add(one, []);
  const line = scan.damage[0]?.line ?? scan.torn?.line ?? (contents.header === undefined ? 1 : undefined);
  if (line === undefined) return contents.ids().map((id) => ({ id, records: contents.records(id) }));
  throw new Failure("usage", `Line ${line} is not what integ journal export wrote.`, {
    meaning: "Nothing was imported: a record is damaged.",
    hint: "Run integ journal export again, or import the journal's own file.",
  });
}
