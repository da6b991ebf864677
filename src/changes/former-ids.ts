// Clients and keys that existed before an entry's own: what the entry makes cannot have the id of one, whatever an answer says.
import { keyDifferences, type AccessKeyRequest } from "../api/access-keys.ts";
import type { Entry } from "../journal/entry.ts";
import { learnedOfKey } from "./secret-delivery.ts";
import type { Workbench } from "./workbench.ts";

/** The ids of what a creation stands in for, of the lost one that it replaces, and of the key that asks for it. */
export async function formerIds({ account, journal }: Workbench, creation: Entry): Promise<readonly string[]> {
  const { parent, replaces } = creation;
  const ids = [parent, replaces].filter((id) => id !== null);
  const others = ids.length === 0 ? [] : await journal.select({ all: true, ids });
  const known = others.flatMap(({ id, detail, resource_id }) => [
    detail.old_client,
    detail.old_key,
    id === replaces ? resource_id : undefined,
  ]);
  return [account.keyId, ...known].filter((id) => typeof id === "string");
}

/**
 * What a secret that was kept says of its key. The answer may have been read by a process that ended before the journal
 * learned of it.
 */
export async function learnedOfKept(
  bench: Workbench,
  entry: Entry,
  id: string,
): Promise<ReturnType<typeof learnedOfKey>> {
  if (entry.operation !== "access_key.create") return learnedOfKey(entry, id);
  const request = JSON.parse(entry.request_text) as AccessKeyRequest;
  const seen = id || entry.resource_id || (await newKeyOf(bench, entry));
  const differs = keyDifferences({ id: seen }, request, await formerIds(bench, entry)) ?? entry.detail.differs;
  return learnedOfKey(entry, seen ?? "", { differs });
}

/** The rotation that an entry belongs to may have learned which key was made, if the entry itself could not be recorded. */
async function newKeyOf({ journal }: Workbench, { parent }: Entry): Promise<string | undefined> {
  const [rotation] = parent === null ? [] : await journal.select({ all: true, ids: [parent] });
  return rotation?.detail.new_key;
}
