// What `journal verify` reports of the files themselves: damage with its place, a broken order, modes, what was set aside.
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { flags } from "../../next-step.ts";
import type { Finding } from "../journal.ts";
import type { Misplaced } from "./contents.ts";
import type { Reading } from "./record-file.ts";
import { octal } from "./safety.ts";
import type { Damage } from "./scan.ts";

function place(path: string, damage: Damage): string {
  return `${path}: line ${damage.line}, offset ${damage.offset}, ${damage.bytes.length} bytes`;
}

export function fileFindings(path: string, reading: Reading): Finding[] {
  const { contents, damage, torn, isEmptied, size } = reading;
  const found: Finding[] = [...contents.damage, ...damage].map((one) => ({
    severity: "problem",
    where: place(path, one),
    message: `a record is damaged (${one.reason}); its bytes are set aside, sound records are kept, \`integ journal prune ${flags.olderThan} 90d\` writes a new journal without it`,
  }));
  if (torn) {
    found.push({
      severity: "warning",
      where: place(path, torn),
      message:
        "a crash left an incomplete append; the next change sets it aside; the request that it announced was never sent",
    });
  }
  if (isEmptied)
    found.push({ severity: "warning", where: path, message: "it is empty: the next change starts a new one" });
  // A first append that was cut short is all that is there: the next one starts the journal.
  if (size > 0 && contents.header === undefined && torn?.offset !== 0)
    found.push({ severity: "problem", where: path, message: "the first record, which names the format, is damaged" });
  for (const line of contents.breaks) {
    const message = "a record was edited, removed or moved since it was written";
    found.push({ severity: "problem", where: `${path}: before line ${line}`, message });
  }
  return [...found, ...misplacedFindings(path, contents.misplaced)];
}

/** One finding for each entry: a file that was doubled has hundreds of such records. */
function misplacedFindings(path: string, misplaced: readonly Misplaced[]): Finding[] {
  return [...new Set(misplaced.map(({ id }) => id))].map((id) => {
    const lines = misplaced.filter((one) => one.id === id).map(({ line }) => line);
    const what = id === undefined ? "the first record of a journal" : `a record of entry ${id}`;
    const more = lines.length === 1 ? "" : `, and ${lines.length - 1} more`;
    return {
      severity: "problem",
      where: `${path}: line ${lines[0]}${more}`,
      message: `${what} is repeated or out of order; it is ignored, \`integ journal prune ${flags.olderThan} 90d\` writes a new journal without it`,
    };
  });
}

/** @param paths files of one folder */
export function folderFindings(paths: readonly string[]): Finding[] {
  const folder = dirname(paths[0]!);
  const found: Finding[] = [];
  const mode = fs.statSync(folder, { throwIfNoEntry: false })?.mode ?? 0;
  if (mode === 0) return found;
  const there = paths.flatMap((path) => {
    const stats = fs.lstatSync(path, { throwIfNoEntry: false });
    return stats === undefined ? [] : [{ path, mode: stats.mode }];
  });
  if (process.geteuid !== undefined) {
    for (const file of there)
      if (file.mode & 0o077) {
        const message = `others can read it (mode ${octal(file.mode)}); chmod 600`;
        found.push({ severity: "warning", where: file.path, message });
      }
    if (there.length > 0 && mode & 0o022 && !(mode & 0o1000)) {
      const message = `others can rename files in it (mode ${octal(mode)}); chmod 700`;
      found.push({ severity: mode & 0o002 ? "problem" : "warning", where: folder, message });
    }
  }
  const isAside = (name: string): boolean =>
    paths.some((path) => [".damaged-", ".torn-"].some((start) => name.startsWith(`${basename(path)}${start}`)));
  for (const name of fs.readdirSync(folder).filter(isAside))
    found.push({
      severity: "warning",
      where: join(folder, name),
      message: "bytes that were set aside; delete it when you no longer need it",
    });
  return found;
}
