// Computes the next step of an entry from its record and from facts that the caller has observed. It reads nothing, so
// that a first run, a repetition, `recover`, `apply` and `--dry-run` decide alike.
import { Failure, isInterruption, saysNothingWasDone } from "../errors.ts";
import { type Entry, isInPlace, isDeferred, isSettled, mayHaveArrived } from "../journal/entry.ts";
import { entryFailure } from "./workbench.ts";

export type Step =
  | "end"
  /** Other work replaces the entry, which ends without a request. */
  | "give way"
  /** A person claims the kept secret, or the profile takes it. */
  | "deliver"
  | "send"
  /** A request without idempotency key may have arrived, so the list is searched for its key. */
  | "look"
  /** With consent, a lost client or key is revoked and created again, or a key is rotated in place again. */
  | "replace"
  | "make the new one"
  | "prove the new one"
  | "wait"
  | "revoke the old one";

export interface Facts {
  /** Other work replaces the entry: a later rotation, another replacement, or a secret that was found. */
  readonly isOverrun?: boolean;
  /** The newest creation of a rotation that did not fail. */
  readonly child?: Pick<Entry, "state"> | undefined;
  readonly isDue?: boolean;
  /** True if someone else revoked the old client or key. */
  readonly isOldRevoked?: boolean;
}

/** Only these values are evidence that a new credential works. */
const evidence = ["token exchange", "by the person"] as const;
export type Proof = (typeof evidence)[number];

export function proofIn({ proven }: Entry["detail"]): Proof | undefined {
  return evidence.find((known) => known === proven);
}

/** The entry of a rotation records this if the service refused the new secret. */
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
  // A revocation that has started was due, whatever the clock says now.
  return isDue || detail.revoking === true ? "revoke the old one" : "wait";
}

/** The entry's state decides the kind of the failure, whatever stopped this run. */
export function withEntryOutcome(entry: Entry, failure: Failure): Failure {
  const { state } = entry;
  // A request that was refused as too early leaves the entry open, and its outcome is known.
  const isTooEarly = isDeferred(entry) || failure.kind === "rate_limited";
  const isLeft = state === "open" && !isTooEarly && (mayHaveArrived(entry) || !isInterruption(failure));
  const isLost = state === "secret_lost" && saysNothingWasDone(failure);
  const kind = state === "unknown" || isLeft ? "outcome_unknown" : isLost ? state : failure.kind;
  return entryFailure(entry, kind, failure.message, failure.details);
}
