// Owns: when a command ends with which code, in words. The codes themselves stand in errors.ts. Source: cli.md §2.
import type { ExitCode } from "../../completion/surface.ts";
import { exitCodes, type FailureKind } from "../../errors.ts";

const when: Readonly<Record<FailureKind, string>> = {
  failed: "anything not below; a read that still meets 5xx",
  usage: "bad flags or input, caught before anything was sent",
  auth: "no credential, or 401 or 403",
  not_found: "404",
  conflict: "409",
  rate_limited: "429, and the time of --retry-for is spent",
  outcome_unknown: "a change may or may not have happened; the journal keeps it",
  pending: "accepted, not complete",
  secret_lost: "the resource exists and its one-time secret cannot be had",
  findings: "a check ran and found something wrong; warnings alone are 0",
  unreachable:
    "nothing was sent or no change was asked for: name, connection, TLS, proxy, time-out of a read, a broken response",
  undelivered: "the change happened, its secret could not be delivered; it is kept for integ journal claim",
  unusable: "the resource is revoked, disabled or expired",
  interrupted: "interrupted with Ctrl-C, the journal true; 7 instead where a change that was sent is unknown",
  terminated: "ended by SIGTERM, as with Ctrl-C",
};

/** Every exit code, in order. */
export const exitCodeList: readonly ExitCode[] = [
  { code: 0, kind: null, when: "done" },
  ...Object.entries(exitCodes).map(([kind, code]) => ({ code, kind, when: when[kind as FailureKind] })),
];
