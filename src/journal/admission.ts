// Rules that decide whether a change gets a new entry, resumes one, or is refused.
import { Failure } from "../errors.ts";
import {
  type Entry,
  type EntryIdentity,
  type EntryProgress,
  isSameRequest,
  nextStep,
  type MoveMark,
  movedWords,
} from "./entry.ts";
import { shell, flags } from "../next-step.ts";

/** A change before its admission to the journal. */
export interface Intent extends Omit<EntryIdentity, "id" | "idempotency_key" | "replaces" | "parent" | "created_at"> {
  readonly idempotent: boolean;
  readonly destination?: EntryProgress["destination"];
  readonly parent?: string | null;
  readonly replaces?: string | null;
  readonly detail?: EntryProgress["detail"];
}

export function newEntry(intent: Intent, own: { id: string; key: string | null; at: string }): Entry {
  const { idempotent: _, destination = null, parent = null, replaces = null, detail = {}, ...rest } = intent;
  return {
    ...rest,
    id: own.id,
    idempotency_key: own.key,
    state: "open",
    resource_id: null,
    attempts: 0,
    request_ids: [],
    clock_offset_ms: null,
    last_error: null,
    destination,
    replaces,
    replaced_by: null,
    parent,
    detail,
    created_at: own.at,
    updated_at: own.at,
    sequence: 1,
  };
}

/**
 * Profile ids are local to a machine, so a team's journal also compares the acting clients. An API key does not name
 * its client, so it matches every client.
 */
export function isSameAccount(entry: Entry, intent: Intent, isShared: boolean): boolean {
  if (entry.profile_id === intent.profile_id) return true;
  const isUnknown = entry.principal === undefined || intent.principal === undefined;
  return isShared && (isUnknown || entry.principal === intent.principal);
}

/** @throws Failure `conflict` if the key belongs to another request or account */
export function entryOfKey(
  entries: readonly Entry[],
  intent: Intent,
  { key, isShared }: { readonly key: string; readonly isShared: boolean },
): Entry | undefined {
  // The oldest entry with the key counts, because its request was the first with this key.
  const entry = entries.findLast((other) => other.idempotency_key === key && other.base_url === intent.base_url);
  if (entry === undefined) return undefined;
  const isOther = !isSameAccount(entry, intent, isShared);
  if (isOther || !isSameRequest(entry, intent)) {
    const what = isOther ? `was used as profile "${entry.profile}"` : "was already used for a different request";
    throw new Failure("conflict", `This idempotency key ${what}.`, {
      meaning: "Nothing was sent and nothing changed. An idempotency key belongs to one request of one account.",
      nextCommand: shell`integ journal show ${entry.id}`,
      entry: entry.id,
    });
  }
  return entry;
}

/**
 * Refuses a request that is unfinished under another account, or that was started with an organization and is repeated
 * without one, or the reverse. Sending it could create a second credential (§4.2 rule 2).
 * @throws Failure `conflict`
 */
export function assertSameAccount(unfinished: readonly Entry[], intent: Intent, isShared: boolean): void {
  if ((intent.parent ?? intent.replaces ?? null) !== null || intent.operation.endsWith(".revoke")) return;
  const other = unfinished.find((entry) => {
    const { organization_id } = entry;
    const isOneMissing = (organization_id === null) !== (intent.organization_id === null);
    const isSame = isSameRequest(entry, isOneMissing ? { ...intent, organization_id } : intent);
    return isSame && entry.parent === null && (isOneMissing || !isSameAccount(entry, intent, isShared));
  });
  if (other === undefined) return;
  const { id } = other;
  const accountWords = ({ profile, organization_id: of }: Pick<Entry, "profile" | "organization_id">): string =>
    `as profile "${profile}" ${of === null ? "without an organization" : `for the organization ${of}`}`;
  throw new Failure(
    "conflict",
    `The same request is unfinished ${accountWords(other)}, and is now requested ${accountWords(intent)}.`,
    {
      meaning: `Nothing was sent. Recover it as it was started: integ journal recover ${id}; ${flags.new} creates another one anyway.`,
      nextCommand: shell`integ journal show ${id}`,
      entry: id,
    },
  );
}

export function entriesOfRequest(entries: readonly Entry[], intent: Intent, isShared: boolean): Entry[] {
  return entries
    .filter(
      (entry) =>
        isSameRequest(entry, intent) &&
        isSameAccount(entry, intent, isShared) &&
        entry.parent === (intent.parent ?? null) &&
        entry.replaces === (intent.replaces ?? null) &&
        !isCreationOfOtherSource(entry, intent),
    )
    .toReversed();
}

/** A policy item and a typed command do not share a creation, because each has its own destination. */
function isCreationOfOtherSource(entry: Entry, { operation, policy }: Intent): boolean {
  return operation.endsWith(".create") && (entry.policy === undefined) !== (policy === undefined);
}

export function isResumable({ state }: Entry): boolean {
  return state === "open" || state === "unknown" || state === "pending" || state === "waiting";
}

export function assertNoSecretLost(entries: readonly Entry[]): void {
  const lost = entries.findLast(({ state }) => state === "secret_lost" || state === "undelivered");
  if (lost === undefined) return;
  const kind = lost.state === "secret_lost" ? "secret_lost" : "undelivered";
  const what = kind === "secret_lost" ? "its one-time secret is lost" : "its secret is kept until you claim it";
  throw new Failure(kind, `The same request was sent before, and ${what}.`, {
    meaning: `Nothing was sent and nothing changed; ${flags.new} creates another one anyway.`,
    entry: lost.id,
    nextCommand: nextStep(lost) ?? undefined,
  });
}

export function journalMovedFailure(path: string, moved: MoveMark): Failure {
  const { to, isUnfinished } = moved;
  return new Failure("usage", movedWords(moved, `the journal ${path}`), {
    meaning: "Nothing was sent and nothing changed: a change that is recorded here would be missing there.",
    ...(isUnfinished
      ? {
          hint: "Wait until the move is finished, or run it again if it was interrupted.",
          nextCommand: shell`integ journal move ${flags.to} ${to}`,
        }
      : { hint: `Set INTEG_JOURNAL, or ${flags.journal} of the profile, to ${to}.` }),
  });
}
