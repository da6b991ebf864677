// Finds valid settings of a policy file that are probably mistakes.
import { maxClients } from "../api/oauth-client-creation.ts";
import type { Policy, PolicyItem } from "./policy.ts";

export interface PolicyFinding {
  readonly object: "finding";
  readonly id: string;
  readonly rule:
    | "secret_unknown"
    | "secret_in_file"
    | "no_rotation"
    | "expires_first"
    | "age_too_long"
    | "too_many_clients"
    | "destination";
  /** An item's name, or a service account's id. */
  readonly item: string;
  readonly message: string;
}

const day = 86_400_000;
/** Matches known prefixes of tokens and keys, and a literal value of 16 or more characters after a word like `bearer`. */
const secretText =
  /\b(?:gh[pousr]_|github_pat_|hvs\.|glpat-|xox[bp]-|AKIA|eyJ[\w-]{8})[\w-]{8}|-----BEGIN |(?:password|token|secret|api[_-]?key|bearer)["']?[=: ] ?["']?[A-Za-z0-9+/_-]{16}/i;

export function policyFinding(rule: PolicyFinding["rule"], item: string, message: string): PolicyFinding {
  return { object: "finding", id: `${rule}:${item}`, rule, item, message };
}

export function findingsOf({ items }: Policy): PolicyFinding[] {
  return [...items.flatMap(findingsOfItem), ...crowdedAccounts(items)];
}

function findingsOfItem(item: PolicyItem): PolicyFinding[] {
  const { name, rotate, destinations } = item;
  const findings: PolicyFinding[] = [];
  const add = (rule: PolicyFinding["rule"], message: string): void =>
    void findings.push(policyFinding(rule, name, message));
  if (destinations.length === 0)
    add("secret_unknown", "the destination of the secret is unknown: integ cannot create or rotate this credential");
  if (destinations.some((one) => "command" in one && secretText.test(`${one.command} ${one.check ?? ""}`)))
    add(
      "secret_in_file",
      "a command has what looks like a secret: put it into a variable or a store, and replace it there",
    );
  if (rotate === undefined) add("no_rotation", "it has no rotate rule: it is created and never rotated");
  if (rotate?.everyMs !== undefined && rotate.everyMs > 366 * day)
    add("age_too_long", "it is rotated less than once a year");
  if (item.kind !== "access_key" || rotate === undefined) return findings;
  const { expiresInMs, expiresAt } = item;
  const expiresFirst =
    rotate.beforeExpiryMs === undefined &&
    (expiresAt !== undefined || (expiresInMs ?? Infinity) <= (rotate.everyMs ?? 0));
  if (expiresFirst) add("expires_first", "it expires before it is rotated: add before_expiry, or a longer lifetime");
  return findings;
}

function crowdedAccounts(items: readonly PolicyItem[]): PolicyFinding[] {
  const counts = new Map<string, number>();
  for (const item of items)
    if (item.kind === "oauth_client") counts.set(item.serviceAccount, (counts.get(item.serviceAccount) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count >= maxClients)
    .map(([account, count]) =>
      policyFinding(
        "too_many_clients",
        account,
        `it has ${count} clients in the file; ${maxClients} are allowed, and a rotation needs one more while it runs`,
      ),
    );
}
