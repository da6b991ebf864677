// Computes an entry's next step from its record and the observed facts, without I/O, for runs and `--dry-run`.
import { Failure, isInterruption, saysNothingWasDone } from "../errors.ts";
import { type Entry, isInPlace, isDeferred, isSettled, mayHaveArrived } from "../journal/entry.ts";
import { entryFailure } from "./workbench.ts";

export type Step =
  | "end"
  /** Other work replaces the entry, which ends without a request. */
  | "give way"
  | "deliver"
  | "send"
  /** Search the list for the key whose request may have arrived. */
  | "look"
  /** With consent: revoke the client or key whose secret is lost and create another, or rotate the key in place again. */
  | "replace"
  | "make the new one"
  | "prove the new one"
  | "wait"
  | "revoke the old one";

export interface Facts {
  /** A later rotation replaces the entry. */
  readonly isOverrun?: boolean;
  /** The rotation's creation, as `currentChild` finds it. */
  readonly child?: Pick<Entry, "state"> | undefined;
  readonly isDue?: boolean;
  readonly isOldRevoked?: boolean;
}

const evidence = ["token exchange", "by the person"] as const;
export type Proof = (typeof evidence)[number];

export function proofIn({ proven }: Entry["detail"]): Proof | undefined {
  return evidence.find((known) => known === proven);
}

/** The value of `proven`, in a rotation's entry or its creation's, after the service refused the new secret. */
export const refusedProof = "refused";

type NextInput = Pick<Entry, "operation" | "state" | "attempts" | "detail" | "idempotency_key">;

export function next(entry: NextInput, facts: Facts = {}): Step {
  const { operation, state } = entry;
  if (isSettled(state)) return "end";
  if (facts.isOverrun === true) return "give way";
  if (operation === "oauth_client.revoke" || operation === "access_key.revoke") return "send";
  if (operation.endsWith(".rotate") && !isInPlace(entry)) return nextOfRotation(entry, facts);
  if (state === "undelivered") return "deliver";
  if (state === "secret_lost") return "replace";
  if (entry.idempotency_key !== null || !mayHaveArrived(entry)) return "send";
  return isInPlace(entry) ? "replace" : "look";
}

function nextOfRotation({ detail }: NextInput, { child, isDue = false, isOldRevoked = false }: Facts): Step {
  if (child?.state !== "done") return "make the new one";
  if (detail.keep_old === true) return "end";
  if (isOldRevoked) return "end";
  if (proofIn(detail) === undefined) return "prove the new one";
  // A revocation that has started was due.
  return isDue || detail.revoking === true ? "revoke the old one" : "wait";
}

export function withEntryOutcome(entry: Entry, failure: Failure): Failure {
  const { state } = entry;
  // A request that was refused with 429 changed nothing, so its outcome is known.
  const isTooEarly = isDeferred(entry) || failure.kind === "rate_limited";
  const isLeft = state === "open" && !isTooEarly && (mayHaveArrived(entry) || !isInterruption(failure));
  const isLost = state === "secret_lost" && saysNothingWasDone(failure);
  const kind = state === "unknown" || isLeft ? "outcome_unknown" : isLost ? state : failure.kind;
  return entryFailure(entry, kind, failure.message, failure.details);
}
