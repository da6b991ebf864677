// Lists the findings of `journal verify` in files: damage, broken order, copies of damaged bytes.
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { flags } from "../../next-step.ts";
import type { Finding } from "../record.ts";
import type { Reading } from "./record-file.ts";
import type { Damage } from "./scan.ts";

function placeWords(path: string, damage: Damage): string {
  return `${path}: line ${damage.line}, offset ${damage.offset}, ${damage.bytes.length} bytes`;
}

export function fileFindings(path: string, reading: Reading): Finding[] {
  const { contents, damage, torn, isEmptied, size } = reading;
  const found: Finding[] = damage.map((one) => ({
    severity: "problem",
    where: placeWords(path, one),
    message: `a record is damaged (${one.reason}); its bytes are set aside, valid records are kept, ${fix}`,
  }));
  const add = (severity: Finding["severity"], where: string, message: string): void =>
    void found.push({ severity, where, message });
  if (torn)
    add(
      "warning",
      placeWords(path, torn),
      "a crash left an incomplete append; the next change sets it aside; the request that it announced was never sent",
    );
  if (isEmptied) add("warning", path, "it is empty: the next change starts a new one");
  // The next append repairs a file with only an incomplete first append.
  if (size > 0 && contents.header === undefined && torn?.offset !== 0)
    add("problem", path, "the first record, which names the format, is damaged");
  for (const line of contents.breaks)
    add("problem", `${path}: before line ${line}`, `a record was edited, removed, repeated or moved; ${fix}`);
  return found;
}

const fix = `\`integ journal prune ${flags.olderThan} 90d\` writes a new journal without it`;

export function setAsideFindings(paths: readonly string[]): Finding[] {
  const folder = dirname(paths[0]!);
  if (!fs.existsSync(folder)) return [];
  const starts = paths.flatMap((path) => [`${basename(path)}.damaged-`, `${basename(path)}.torn-`]);
  const names = fs.readdirSync(folder).filter((name) => starts.some((start) => name.startsWith(start)));
  const message = "a file of bytes that were set aside; delete it when you no longer need it";
  return names.map((name) => ({ severity: "warning", where: join(folder, name), message }));
}
