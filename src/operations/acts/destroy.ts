// The act `destroy`: the copy of a secret that is kept on this machine, or encrypted in a team's journal, is deleted. A delivery
// that succeeded once, or a client that is `disabled` or `expired`, is not evidence: the copy may be the only one that is left.
import type { Entry } from "../../journal/entry.ts";
import type { Journal } from "../../journal/journal.ts";
import type { AtDestination, Overwriting } from "./overwrite.ts";

export type DestroyEvidence =
  /** Each destination accepted the secret in this process, or was read and has it. */
  | AtDestination
  /** The service shows the client or key now. */
  | { readonly shown: string }
  /** A later rotation in place of the same key. */
  | { readonly rotatedAgain: Entry }
  /** A person typed `forget` or `claim`. */
  | { readonly typed: "forget" | "claim" };

type Opened = Pick<Entry, "id" | "resource_id">;

/** Deletes the kept copy of an entry's secret if the evidence suffices; safe to repeat. @returns false if the copy stays */
export async function destroy(bench: Overwriting, entry: Opened, evidence: DestroyEvidence): Promise<boolean> {
  if (!(await isEvidence(bench.journal, entry, evidence))) return false;
  await bench.secrets.destroyKept(entry.id);
  return true;
}

async function isEvidence(journal: Journal, entry: Opened, evidence: DestroyEvidence): Promise<boolean> {
  const { id, resource_id } = entry;
  if ("typed" in evidence) return true;
  if ("shown" in evidence) return evidence.shown === "revoked";
  if ("entry" in evidence) return evidence.entry === id;
  const { id: later, state, operation, detail } = evidence.rotatedAgain;
  const isLater = operation === "access_key.rotate" && detail.key_id === resource_id && later > id;
  // Its new secret came, so that no earlier one works.
  const hasSucceeded = state === "done" || state === "undelivered" || state === "secret_lost";
  return isLater && hasSucceeded && !(await journal.untrusted([later])).has(later);
}
