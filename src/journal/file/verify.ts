// What `journal verify` reports: damage with its place, contradictions, newer formats, modes, what was set aside.
import { flags } from "../../next-step.ts";
import * as fs from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Finding } from "../journal.ts";
import type { Fold, Misplaced } from "../fold.ts";
import type { Damage, LineStart, Piece } from "./scan.ts";
import type { PieceFacts } from "./piece-facts.ts";
import { ChainCheck } from "./chain.ts";
import { EntriesCheck } from "./entries-check.ts";
import type { Reading } from "./reading.ts";
import type { Watcher } from "./index/journal-index.ts";
import { octal } from "./safety.ts";

/** Looks at a journal while it is read, piece by piece: of a long one only a little is kept of each entry. */
export class Verification implements Watcher {
  readonly #path: string;
  readonly #chain = new ChainCheck();
  readonly #entries = new EntriesCheck();

  constructor(path: string) {
    this.#path = path;
  }

  readonly add = (piece: Piece, fold: Fold): void => {
    this.#chain.add(piece);
    this.#entries.add(fold);
  };

  readonly takes = (facts: PieceFacts): boolean => this.#chain.takes(facts);

  readonly addFacts = (facts: PieceFacts, start: LineStart, strays: Fold | undefined): void => {
    this.#chain.addFacts(facts, start);
    this.#entries.addFacts(facts);
    if (strays) this.#entries.add(strays);
  };

  /** All findings; the file's own modes and what is beside it are looked at here. */
  findings(reading: Reading): Finding[] {
    return [
      ...bytesFindings(this.#path, reading),
      ...this.#entries.findings(reading.fold),
      ...folderFindings(this.#path),
      ...this.#chain.findings(this.#path),
    ];
  }
}

function place(path: string, damage: Damage): string {
  return `${path}: line ${damage.line}, offset ${damage.offset}, ${damage.bytes.length} bytes`;
}

function bytesFindings(path: string, reading: Reading): Finding[] {
  const { fold } = reading;
  const found: Finding[] = [...fold.damage, ...reading.damage].map((damage) => ({
    severity: "problem",
    where: place(path, damage),
    message: `a record is damaged (${damage.reason}); its bytes are set aside, sound records are kept, \`integ journal prune ${flags.olderThan} 90d\` writes a new journal without it`,
  }));
  if (reading.torn) {
    found.push({
      severity: "warning",
      where: place(path, reading.torn),
      message:
        "a crash left an incomplete append; the next change sets it aside; the request that it announced was never sent",
    });
  }
  if (reading.isEmptied)
    found.push({ severity: "warning", where: path, message: "it is empty: the next change starts a new one" });
  // A first append that was cut short is all that is there: the next one starts the journal.
  if (reading.size > 0 && fold.format === 0 && reading.torn?.offset !== 0) {
    found.push({ severity: "problem", where: path, message: "the first record, which names the format, is damaged" });
  }
  if (fold.isNewer) {
    found.push({
      severity: "warning",
      where: path,
      message: `written by a newer integ (format ${fold.format}): shown, never changed; upgrade integ`,
    });
  }
  found.push(...misplacedFindings(path, fold.misplaced));
  return found;
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

function folderFindings(path: string): Finding[] {
  const folder = dirname(path);
  const found: Finding[] = [];
  const file = fs.lstatSync(path, { throwIfNoEntry: false });
  const mode = fs.statSync(folder, { throwIfNoEntry: false })?.mode ?? 0;
  if (file && process.geteuid !== undefined) {
    if (file.mode & 0o077) {
      found.push({
        severity: "warning",
        where: path,
        message: `others can read it (mode ${octal(file.mode)}); chmod 600`,
      });
    }
    if (mode & 0o022 && !(mode & 0o1000)) {
      const severity = mode & 0o002 ? "problem" : "warning";
      found.push({
        severity,
        where: folder,
        message: `others can rename files in it (mode ${octal(mode)}); chmod 700`,
      });
    }
  }
  if (mode === 0) return found;
  for (const name of fs.readdirSync(folder)) {
    if (!name.startsWith(`${basename(path)}.damaged-`) && !name.startsWith(`${basename(path)}.torn-`)) continue;
    found.push({
      severity: "warning",
      where: join(folder, name),
      message: "bytes that were set aside; delete it when you no longer need it",
    });
  }
  return found;
}
