// The journal as a stranger reads it: one file, a record a line, the last sound record of an entry counts. Shares nothing
// with the program, so that it cannot share a mistake.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";

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

/** The entries of the journal in a file, oldest first; none where there is no file. */
export function readJournal(path: string): ReadEntry[] {
  if (!existsSync(path)) return [];
  const entries = new Map<string, ReadEntry>();
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const record = soundRecord(line);
    if (record) entries.set(record.id, record);
  }
  return [...entries.values()];
}

function soundRecord(line: string): ReadEntry | undefined {
  const sum = /^\{"sum":"([0-9a-f]{16})",/.exec(line)?.[1];
  if (sum === undefined) return undefined;
  const body = line.slice('{"sum":"'.length + 16 + '",'.length);
  if (createHash("sha256").update(body).digest("hex").slice(0, 16) !== sum) return undefined;
  const { intent, now } = JSON.parse(line) as { intent?: object; now?: object };
  return intent && now ? ({ ...intent, ...now } as ReadEntry) : undefined;
}

const settled = new Set(["done", "refused", "unusable", "replaced", "abandoned"]);

export function unsettledIn(entries: readonly ReadEntry[]): ReadEntry[] {
  return entries.filter(({ state }) => !settled.has(state));
}
