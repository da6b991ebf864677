import { maxClients } from "../../api/oauth-client-creation.ts";
import { type Advice, type NextCommand, shell } from "../../next-step.ts";
import { roundedDuration } from "../../output/relative-time.ts";
import type { SeenCredential } from "../../policy/observed.ts";
import { adviceForItem, baseNameOf, freeName } from "../../policy/works.ts";

export interface ClientFinding {
  readonly object: "finding";
  /** `<rule>:<client id>`, or `slots:<service account id>`. */
  readonly id: string;
  readonly rule: "unusable" | "too_old" | "undeclared" | "slots";
  readonly severity: "high" | "medium" | "low";
  /** Null for a finding about a service account. */
  readonly client_id: string | null;
  readonly service_account_id: string | null;
  readonly message: string;
  readonly remedy: NextCommand | Advice;
}

export interface ClientAuditLimits {
  readonly maxAgeMs: number;
  readonly nowMs: number;
  /** Clients of policy items, by the journal. Undefined without a policy file, because then no client needs an item. */
  readonly declared: ReadonlySet<string> | undefined;
  /** Names of policy items by client id. For an old client of an item, the remedy is `apply`. */
  readonly items: ReadonlyMap<string, string>;
  /** Names of policy items. The audit adds each name that it suggests, so that it suggests none twice. */
  readonly names: Set<string>;
}

/** A client with one of these statuses holds a slot, and no program can use it. */
export const unusableStatuses: ReadonlySet<string | undefined> = new Set(["disabled", "expired"]);
const nearlyFull = 18;

/** At most one finding per client. No remedy revokes the caller's own client. */
export function auditClients(clients: readonly SeenCredential[], limits: ClientAuditLimits): ClientFinding[] {
  const existing = clients.filter(({ status }) => status !== "revoked" && status !== "absent");
  return [...existing.flatMap((client) => findingOf(client, limits) ?? []), ...fullAccounts(existing)];
}

function findingOf(
  client: SeenCredential,
  { maxAgeMs, nowMs, declared, items, names }: ClientAuditLimits,
): ClientFinding | undefined {
  const { id, status, serviceAccount = null, createdAt, ownership } = client;
  const finding = (
    rule: ClientFinding["rule"],
    severity: ClientFinding["severity"],
    words: Pick<ClientFinding, "message" | "remedy">,
  ): ClientFinding => ({
    object: "finding",
    id: `${rule}:${id}`,
    rule,
    severity,
    client_id: id,
    service_account_id: serviceAccount,
    ...words,
  });
  if (unusableStatuses.has(status)) {
    const message = `it is ${status} and uses a slot`;
    return finding("unusable", "high", {
      message,
      remedy:
        ownership === "own"
          ? "Give the profile another credential first: the profile authenticates with this client."
          : shell`integ oauth-clients revoke ${id}`,
    });
  }
  const ageMs = nowMs - Date.parse(createdAt ?? "");
  if (ageMs > maxAgeMs) {
    const message = `it is ${roundedDuration(ageMs, true)} old; the limit is ${roundedDuration(maxAgeMs, true)}`;
    const item = items.get(id);
    const remedy =
      item !== undefined
        ? adviceForItem(item)
        : ownership === "own"
          ? "Rotate it with another profile: this profile authenticates with this client."
          : shell`integ oauth-clients rotate ${id} --overlap 24h --secret-file ./client.secret`;
    return finding("too_old", "medium", { message, remedy });
  }
  if (declared === undefined || declared.has(id)) return undefined;
  return finding("undeclared", "low", {
    message: "it is in no policy item",
    remedy: shell`integ adopt oauth-client ${id} --name ${freeName(baseNameOf({ kind: "oauth_client", id, serviceAccount }), "oauth_client", names)}`,
  });
}

function fullAccounts(clients: readonly SeenCredential[]): ClientFinding[] {
  const counts = new Map<string, number>();
  for (const { serviceAccount } of clients)
    if (serviceAccount !== undefined) counts.set(serviceAccount, (counts.get(serviceAccount) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count >= nearlyFull)
    .map(([account, count]) => ({
      object: "finding",
      id: `slots:${account}`,
      rule: "slots",
      severity: count >= maxClients ? "high" : "medium",
      client_id: null,
      service_account_id: account,
      message: `at least ${count} of ${maxClients} slots are used`,
      remedy: shell`integ oauth-clients list --service-account ${account}`,
    }));
}
