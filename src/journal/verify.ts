// What `journal verify` finds in the records of any journal: edited, removed or moved ones, and what contradicts.
import type { Finding } from "./journal.ts";
import type { Keys } from "./keys.ts";
import { brokenStep, entryIn, historyFinding, readRecord, recordHash } from "./record.ts";
import type { Store } from "./store.ts";

export async function verifyRecords(store: Pick<Store, "all">, keys: Keys): Promise<Finding[]> {
  const found: Finding[] = [];
  const ids = new Set<string>();
  const named: (readonly [id: string, other: string])[] = [];
  const ofKeys = new Map<string, string>();
  for await (const { id, records, hasKnownGap } of store.all()) {
    ids.add(id);
    const add = (severity: Finding["severity"], message: string): void =>
      void found.push({ severity, where: `entry ${id}`, message });
    const read = records.map((record) => ({
      ...record,
      hash: recordHash(record.content),
      is: readRecord(record.content),
    }));
    const broken = brokenStep(read.map(({ hash, is }) => ({ hash, prev: is?.prev ?? "" })));
    const misnumbered = read.findIndex(({ is }, at) => is !== undefined && is.n < (read[at - 1]?.is?.n ?? 0) + 1);
    if (broken !== undefined) found.push(historyFinding(id, broken, hasKnownGap));
    else if (misnumbered > 0) found.push(historyFinding(id, misnumbered, hasKnownGap));
    const judged = records.map((record) => keys.judge(record));
    const wrong = judged.indexOf("wrong");
    const unknown = judged.indexOf("unknown");
    if (wrong >= 0) add("problem", `the HMAC of its record ${wrong + 1} is wrong: the record was edited or made up`);
    else if (unknown >= 0)
      add(
        "warning",
        `untrusted: its record ${unknown + 1} is signed with no key of this machine; integ journal trust ${id} signs it after you have looked at it`,
      );
    const entry =
      read.findLast(({ is }) => is !== undefined) &&
      entryIn(records.findLast((_, at) => read[at]!.is !== undefined)!.content);
    if (entry === undefined || entry.id !== id) {
      add("problem", "its records are complete and do not form an entry");
      continue;
    }
    for (const other of [entry.parent, entry.replaces, entry.replaced_by]) if (other !== null) named.push([id, other]);
    if (entry.idempotency_key === null) continue;
    const key = JSON.stringify([entry.base_url, entry.idempotency_key]);
    const first = ofKeys.get(key);
    if (first === undefined) ofKeys.set(key, id);
    else add("problem", `it has the idempotency key of entry ${first}`);
  }
  for (const [id, other] of named)
    if (!ids.has(other))
      found.push({
        severity: "warning",
        where: `entry ${id}`,
        message: `it names entry ${other}, which is not in the journal`,
      });
  return found;
}
