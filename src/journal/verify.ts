// Lists the findings of `journal verify` in records: edited, removed or moved records, and contradictions between
// entries.
import { keyName } from "./entry.ts";
import type { Keys } from "./keys.ts";
import { brokenStep, entryIn, type Finding } from "./record.ts";
import type { Store } from "./store.ts";

export async function verifyRecords(store: Pick<Store, "records">, keys: Keys): Promise<Finding[]> {
  const found: Finding[] = [];
  const add = (severity: Finding["severity"], id: string, message: string): void =>
    void found.push({ severity, where: `entry ${id}`, message });
  const ids = new Set<string>();
  const links: (readonly [id: string, other: string])[] = [];
  const ofKeys = new Map<string, string>();
  for await (const { id, records, mismatch, hasKnownGap } of store.records()) {
    ids.add(id);
    if (mismatch !== undefined) add("problem", id, mismatch);
    const broken = brokenStep(records);
    if (broken >= 0) {
      const message = `its record ${Math.max(1, broken)} or the next was edited, removed or moved since it was written`;
      add(hasKnownGap === true ? "warning" : "problem", id, message);
    }
    const judged = records.map((record) => keys.judge(record));
    const [wrong, unknown] = [judged.indexOf("wrong"), judged.indexOf("unknown")];
    if (wrong >= 0)
      add("problem", id, `the HMAC of its record ${wrong + 1} is wrong: the record was edited or made up`);
    else if (unknown >= 0) {
      const step = `integ journal trust ${id} signs it after you have looked at it`;
      add("warning", id, `untrusted: its record ${unknown + 1} is signed with no key of this machine; ${step}`);
    }
    const entry = records.map(({ content }) => entryIn(content)).findLast((read) => read !== undefined);
    if (entry === undefined || entry.id !== id) {
      add("problem", id, "its records are complete and do not form an entry");
      continue;
    }
    for (const other of [entry.parent, entry.replaces, entry.replaced_by]) if (other !== null) links.push([id, other]);
    const key = keyName(entry);
    if (key === null) continue;
    const first = ofKeys.get(key);
    if (first === undefined) ofKeys.set(key, id);
    else add("problem", id, `it has the idempotency key of entry ${first}`);
  }
  for (const [id, other] of links)
    if (!ids.has(other)) add("warning", id, `it names entry ${other}, which is not in the journal`);
  return found;
}
