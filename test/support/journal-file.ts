// Reads a journal file, or a team's tables, without the program's code, so that a mistake of the program cannot hide
// itself. A file has one record per line, and an entry's last valid record counts.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { askPsql } from "./postgres.ts";
import type { Home } from "./program.ts";

export interface ReadEntry {
  readonly id: string;
  readonly operation: string;
  readonly idempotency_key: string | null;
  readonly request_text: string;
  readonly base_url: string;
  readonly service_version: string;
  readonly parent: string | null;
  readonly replaces: string | null;
  readonly state: string;
  readonly resource_id: string | null;
  readonly attempts: number;
  readonly replaced_by: string | null;
  readonly destination: { readonly kind: string; readonly path?: string } | null;
}

export function readJournal(path: string): ReadEntry[] {
  if (!existsSync(path)) return [];
  const entries = new Map<string, ReadEntry>();
  for (const line of readFileSync(path, "utf8").split("\n")) {
    // A power cut can replace text by zeros, which then precede the next record on its line.
    const record = soundRecord(line.replace(/^\0+/, ""));
    if (record) entries.set(record.id, record);
  }
  return [...entries.values()];
}

export function journalOf(at: Pick<Home, "env" | "path">): ReadEntry[] {
  const { INTEG_JOURNAL: address = "", PGPASSWORD: password = "" } = at.env;
  if (!address.startsWith("postgresql:")) return readJournal(at.path("state", "journal.ndjson"));
  // JSON text has no raw newline, so each line is one row.
  const lines = askPsql(address, { password, text: "SELECT content FROM integ_entries ORDER BY id" }).split("\n");
  return lines.filter(Boolean).map((line) => {
    const { id, state, intent, now } = JSON.parse(`{${line}}`) as {
      id: string;
      state: string;
      intent: object;
      now: object;
    };
    return { id, state, ...intent, ...now } as ReadEntry;
  });
}

function soundRecord(line: string): ReadEntry | undefined {
  const sum = /^\{"sum":"([0-9a-f]{16})",/.exec(line)?.[1];
  if (sum === undefined) return undefined;
  const body = line.slice('{"sum":"'.length + 16 + '",'.length);
  if (createHash("sha256").update(body).digest("hex").slice(0, 16) !== sum) return undefined;
  const { id, state, intent, now } = JSON.parse(line) as { id?: string; state?: string; intent?: object; now?: object };
  return intent && now ? ({ id, state, ...intent, ...now } as ReadEntry) : undefined;
}

/** Edits an exported journal like someone without its key: every checksum is valid, and the HMACs of edited records are not. */
export function forged(exported: string, changes: readonly (readonly [from: string, to: string])[]): string {
  let before = "";
  const lines = exported.trimEnd().split("\n");
  return lines
    .map((line) => {
      const edited = changes.reduce((text, [from, to]) => text.replaceAll(from, to), line);
      const body = edited.slice(26).replace(/"after":"[^"]*"/, `"after":"${before}"`);
      before = createHash("sha256").update(body).digest("hex").slice(0, 16);
      return `{"sum":"${before}",${body}\n`;
    })
    .join("");
}

const settled = new Set(["done", "refused", "unusable", "replaced", "abandoned"]);

export function unsettledIn(entries: readonly ReadEntry[]): ReadEntry[] {
  return entries.filter(({ state }) => !settled.has(state));
}
