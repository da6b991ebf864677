// The next step of an entry, computed from its record and from facts that the caller has observed. It reads nothing, so that a first
// run, a repetition, `recover`, `apply` and `--dry-run` decide alike.
import { Failure, isInterruption, saysNothingWasDone } from "../errors.ts";
import { type Entry, isInPlace, isPutOff, isSettled, mayHaveArrived } from "../journal/entry.ts";
import { entryFailure } from "./workbench.ts";

export type Step =
  | "end"
  /** Other work has taken its place: it ends, and nothing is sent. */
  | "give way"
  /** A person or the profile takes the secret that is kept. */
  | "deliver"
  /** The stored request leaves, under its key if the contract has one. */
  | "send"
  /** The contract has no idempotency keys, and the request may have arrived: the list is searched for the new key. */
  | "look"
  /** The secret is lost: the client or key is revoked and another made, or a key rotated in place again, if that is agreed to. */
  | "replace"
  | "make the new one"
  | "prove the new one"
  | "wait"
  | "revoke the old one";

export interface Facts {
  /** Other work replaces it: a later rotation, another replacement, a secret that was found. */
  readonly isOverrun?: boolean;
  /** The newest creation of a rotation that did not fail. */
  readonly child?: Pick<Entry, "state"> | undefined;
  /** True if the overlap is over, or the command ends it now. */
  readonly isDue?: boolean;
  /** True if someone else revoked the old client or key. */
  readonly isOldRevoked?: boolean;
}

/** How it was shown that a new credential works. What else an entry may say is not evidence. */
const evidence = ["token exchange", "by the person"] as const;
export type Proof = (typeof evidence)[number];

/** The evidence that an entry has of its new credential. */
export function proofIn({ proven }: Entry["detail"]): Proof | undefined {
  return evidence.find((known) => known === proven);
}

/** Recorded in a rotation's entry if the service refused the new secret. */
export const refusedProof = "refused";

type Known = Pick<Entry, "operation" | "state" | "attempts" | "detail" | "idempotency_key">;

/** @param facts as far as they matter in the entry's state */
export function next(entry: Known, facts: Facts = {}): Step {
  const { operation, state } = entry;
  if (isSettled(state)) return "end";
  if (facts.isOverrun === true) return "give way";
  if (operation === "oauth_client.revoke" || operation === "access_key.revoke") return "send";
  if (operation.endsWith(".rotate") && !isInPlace(entry)) return ofRotation(entry, facts);
  if (state === "undelivered") return "deliver";
  if (state === "secret_lost") return "replace";
  if (entry.idempotency_key !== null || !mayHaveArrived(entry)) return "send";
  return isInPlace(entry) ? "replace" : "look";
}

function ofRotation({ detail }: Known, { child, isDue = false, isOldRevoked = false }: Facts): Step {
  if (child?.state !== "done") return "make the new one";
  if (detail.keep_old === true) return "end";
  if (isOldRevoked) return "end";
  if (proofIn(detail) === undefined) return "prove the new one";
  // A revocation that has started was due, whatever the clock says now.
  return isDue || detail.revoking === true ? "revoke the old one" : "wait";
}

/** The failure whose kind fits the entry's state: the state decides, whatever stopped this run. */
export function withEntryOutcome(entry: Entry, failure: Failure): Failure {
  const { state } = entry;
  // Refused as too early: the entry stays open, and nothing of it is unknown.
  const isTooEarly = isPutOff(entry) || failure.kind === "rate_limited";
  const isLeft = state === "open" && !isTooEarly && (mayHaveArrived(entry) || !isInterruption(failure));
  const isLost = state === "secret_lost" && saysNothingWasDone(failure);
  const kind = state === "unknown" || isLeft ? "outcome_unknown" : isLost ? state : failure.kind;
  return entryFailure(entry, kind, failure.message, failure.details);
}
