// What an intent is, and which entry of the journal already stands for it: by its key, or by the same request.
import { Failure } from "../errors.ts";
import { type Entry, type EntryIdentity, type EntryProgress, formatVersion, isSameRequest, nextStep } from "./entry.ts";

/** A change that somebody asked for, before it has a key. */
export interface Intent
  extends Pick<
    EntryIdentity,
    | "operation"
    | "profile"
    | "profile_id"
    | "organization_id"
    | "region"
    | "base_url"
    | "service_version"
    | "request_text"
    | "fingerprint"
    | "method"
    | "path"
  > {
  /** Whether the contract has an idempotency key for it. */
  readonly idempotent: boolean;
  readonly destination?: EntryProgress["destination"];
  /** Entry of the larger piece of work; it and `replaces` must be the same in an entry that is resumed. */
  readonly parent?: string | null;
  readonly replaces?: string | null;
  readonly detail?: EntryProgress["detail"];
}

export function newEntry(intent: Intent, made: { id: string; key: string | null; at: string }): Entry {
  const { idempotent: _, destination = null, parent = null, replaces = null, detail = {}, ...rest } = intent;
  return {
    ...rest,
    id: made.id,
    idempotency_key: made.key,
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
    created_at: made.at,
    updated_at: made.at,
    sequence: 1,
    format: formatVersion,
  };
}

/** The entry itself, if this program may change it: one that a newer program has written is only shown. */
export function changeable(entry: Entry): Entry {
  if (entry.format <= formatVersion) return entry;
  throw new Failure("usage", `The journal entry ${entry.id} was written by a newer integ (format ${entry.format}).`, {
    meaning: "This one shows it and does not change it; nothing was sent, nothing changed.",
    hint: "upgrade integ, then run the command again",
    entry: entry.id,
  });
}

/**
 * The entry that holds a key given by hand, within one base URL; undefined where none does.
 * @throws Failure `conflict` where it holds it for another request.
 */
export function entryOfKey(entries: readonly Entry[], intent: Intent, key: string): Entry | undefined {
  // The oldest one: should two ever hold a key, the first was sent first.
  const entry = entries.findLast((other) => other.idempotency_key === key && other.base_url === intent.base_url);
  if (entry === undefined) return undefined;
  if (!isSameRequest(entry, intent)) {
    throw new Failure("conflict", "This idempotency key stands in the journal with another request.", {
      meaning: "Nothing was sent, nothing changed. A key belongs to one request for ever.",
      hint: `integ journal show ${entry.id}`,
      entry: entry.id,
    });
  }
  return changeable(entry);
}

/**
 * A request that is unfinished with an organization, asked for without one, or the other way about: most likely one shell
 * has the variable and the other has not, and another client would be made in silence.
 * @throws Failure `conflict`; nothing was sent
 */
export function assertSameOrganization(unsettled: readonly Entry[], intent: Intent): void {
  const other = unsettled.find((entry) => {
    const isOneMissing = (entry.organization_id === null) !== (intent.organization_id === null);
    return isOneMissing && isSameRequest(entry, { ...intent, organization_id: entry.organization_id });
  });
  if (other === undefined || (intent.parent ?? intent.replaces ?? null) !== null) return;
  const said = (id: string | null): string => (id === null ? "without an organization" : `for the organization ${id}`);
  const [begun, now] = [said(other.organization_id), said(intent.organization_id)];
  throw new Failure("conflict", `The same request is unfinished ${begun}, and is asked for ${now}.`, {
    meaning: "Nothing was sent. Set or unset INTEG_ORGANIZATION_ID as it was; --new makes another one all the same.",
    hint: `integ journal show ${other.id}`,
    entry: other.id,
  });
}

/** Unsettled entries of the same request in the same role, the oldest first. */
export function entriesOfRequest(entries: readonly Entry[], intent: Intent): Entry[] {
  return entries
    .filter(
      (entry) =>
        isSameRequest(entry, intent) &&
        entry.parent === (intent.parent ?? null) &&
        entry.replaces === (intent.replaces ?? null),
    )
    .toReversed();
}

export function isResumable({ state }: Entry): boolean {
  return state === "open" || state === "unknown" || state === "pending" || state === "waiting";
}

/**
 * Stops an intent whose request was made before and lacks its secret.
 * @throws Failure `secret_lost` or `undelivered` with the next step of that entry.
 */
export function assertNoneLost(entries: readonly Entry[]): void {
  const lost = entries.findLast(({ state }) => state === "secret_lost" || state === "undelivered");
  if (lost === undefined) return;
  changeable(lost);
  const kind = lost.state === "secret_lost" ? "secret_lost" : "undelivered";
  const what = kind === "secret_lost" ? "its one-time secret is lost" : "its secret waits to be claimed";
  throw new Failure(kind, `The same request was made before, and ${what}.`, {
    meaning: "Nothing was sent, nothing changed; --new makes another one all the same.",
    entry: lost.id,
    hint: nextStep(lost) ?? undefined,
  });
}
