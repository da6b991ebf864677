// The act `destroy`: deletes the kept copy of a secret. It may be the only copy, so a recorded delivery is not enough evidence.
import type { Entry } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import type { AtDestination, Overwriting } from "./overwrite.ts";

export type DestroyEvidence =
  | AtDestination
  | { readonly shown: string }
  | { readonly rotatedAgain: Entry }
  | { readonly typed: "forget" | "claim" };

type KeptEntry = Pick<Entry, "id" | "resource_id">;

export async function destroy(bench: Overwriting, entry: KeptEntry, evidence: DestroyEvidence): Promise<boolean> {
  if (!(await isEvidence(bench.journal, entry, evidence))) return false;
  await bench.secrets.destroyKept(entry.id);
  return true;
}

async function isEvidence(journal: Journal, entry: KeptEntry, evidence: DestroyEvidence): Promise<boolean> {
  const { id, resource_id } = entry;
  if ("typed" in evidence) return true;
  if ((await journal.untrusted([id])).size > 0) return false;
  if ("shown" in evidence) return evidence.shown === "revoked";
  if ("entry" in evidence) return evidence.entry === id;
  const { id: later, state, operation, detail } = evidence.rotatedAgain;
  const isLater = operation === "access_key.rotate" && detail.key_id === resource_id && later > id;
  // In these states of the later rotation, the key's earlier secrets no longer work.
  const hasSucceeded = state === "done" || state === "undelivered" || state === "secret_lost";
  return isLater && hasSucceeded && !(await journal.untrusted([later])).has(later);
}
