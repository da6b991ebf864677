// Makes a long journal without running the program: with linked entries, entries whose records are far apart, and unfinished
// entries.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type Intent, newEntry } from "../../src/journal/admission.ts";
import type { Entry, EntryProgress } from "../../src/journal/entry.ts";
import { idOf } from "../../src/journal/lookup.ts";
import { headerLine, recordContent, recordHash, recordLine, sumIn } from "../../src/journal/record.ts";
import { ada, intent } from "../unit/journal/intent.ts";

const started = Date.UTC(2026, 5, 1);

export function idAt(number: number): string {
  return idOf(1_500_000_000_000 + number * 1_000_003);
}

interface LongJournalOptions {
  /** True to finish every entry and write all its records in a row. */
  readonly isSettled?: boolean;
  /** A text that lengthens records, for a long file with few records. */
  readonly padding?: string;
  readonly intent?: Partial<Intent>;
}

function stepsOf(number: number, { isSettled, padding }: LongJournalOptions): Partial<EntryProgress>[] {
  const detail = { client_id: `cid_${number}`, ...(padding && { differs: padding }) };
  const made = { resource_id: `oac_${number}`, detail };
  if (!isSettled && number % 50 === 7) return [{ state: "unknown", attempts: 1 }];
  if (!isSettled && number % 50 === 8) return [{ state: "secret_lost", ...made }];
  return [
    { state: "unknown", attempts: 1 },
    { state: "done", ...made },
  ];
}

function firstRecord(number: number, changes: Partial<Intent> | undefined): Entry {
  const at = new Date(started + number * 60_000).toISOString();
  const links = {
    parent: number % 20 === 3 ? idAt(number - 2) : null,
    replaces: number % 20 === 4 ? idAt(number - 3) : null,
  };
  const made = { id: idAt(number), key: `key-${number}`, at };
  return newEntry(intent({ fingerprint: `request ${number}`, profile: `p${number % 3}`, ...links, ...changes }), made);
}

/** @returns lines; without `isSettled`, every tenth entry's last step comes a hundred entries later, or is missing at the end */
export function longJournal(entries: number, options: LongJournalOptions = {}): string[] {
  const file = `long-${entries}`;
  const lines = [headerLine({ file: "long", createdAt: new Date(started).toISOString() })];
  const late: (() => void)[] = [];
  const add = (entry: Entry, prev: string | undefined): string => {
    const content = recordContent(entry, { by: ada, prev });
    lines.push(recordLine({ content, mac: "" }, sumIn(lines.at(-1) ?? file)));
    return recordHash(content);
  };
  for (let number = 0; number < entries; number += 1) {
    let entry = firstRecord(number, options.intent);
    let prev = add(entry, undefined);
    for (const [index, step] of stepsOf(number, options).entries()) {
      const work = (): void => {
        const sequence = entry.sequence + 1;
        entry = { ...entry, ...step, sequence, updated_at: new Date(started + lines.length * 30_000).toISOString() };
        prev = add(entry, prev);
      };
      if (!options.isSettled && number % 10 === 0 && index > 0) late[number + 100] = work;
      else work();
    }
    late[number]?.();
  }
  return lines;
}

export function writeJournal(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, lines.join(""), { mode: 0o600 });
}
