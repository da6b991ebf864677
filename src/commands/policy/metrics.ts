// The samples of `integ status -o openmetrics`.
import type { AccessKey } from "../../api/access-keys.ts";
import type { Entry } from "../../journal/entry.ts";
import type { Sample } from "../../output/formats/openmetrics.ts";
import type { Observed } from "../../policy/observed.ts";

export interface StatusFacts {
  /** Labels of every sample, so that one collector can read several profiles' files. */
  readonly common: Readonly<Record<"profile" | "region", string>>;
  readonly observed: Observed;
  readonly keys: readonly AccessKey[];
  readonly areKeysRead: boolean;
  readonly unfinished: readonly Entry[];
  /** Number of clients by service account, with creations that may have made one. */
  readonly slots: ReadonlyMap<string, number>;
  readonly actions: readonly string[];
  /** `at` is when `apply` of the policy last ended well for all items on this machine, ISO 8601. */
  readonly lastApply: TimeSource;
}

type TimeSource = { readonly labels: Readonly<Record<string, string>>; readonly at: string | null | undefined };

/** Times are in seconds since 1970. Unknown values have no sample. */
export function samplesOf(facts: StatusFacts): Sample[] {
  return ownSamples(facts).map((sample) => ({ ...sample, labels: { ...sample.labels, ...facts.common } }));
}

function ownSamples(facts: StatusFacts): Sample[] {
  const { observed, keys, areKeysRead, unfinished, slots, actions, lastApply } = facts;
  const clients = [...observed.clients.values()].filter(({ status }) => status !== "revoked" && status !== "absent");
  const live = keys.filter(({ status }) => status !== "revoked");
  const labelsOf = ({ id = "", name = "" }: AccessKey) => ({ kind: "access_key", id, name });
  const created: TimeSource[] = [
    ...clients.map(({ id, createdAt }) => ({ labels: { kind: "oauth_client", id, name: "" }, at: createdAt })),
    ...live.map((key) => ({ labels: labelsOf(key), at: key.createdAt })),
  ];
  const countSamples = (metric: string, help: string, label: string, words: readonly string[]): Sample[] =>
    [...countOf(words)].map(([word, value]) => ({ metric, help, labels: { [label]: word }, value }));
  return [
    ...timeSamples("integ_credential_created_timestamp_seconds", "When a live credential was created.", created),
    ...timeSamples(
      "integ_credential_expiry_timestamp_seconds",
      "When a live access key expires; a key without expiry has no sample.",
      live.map((key) => ({ labels: labelsOf(key), at: key.expiresAt })),
    ),
    ...timeSamples(
      "integ_credential_last_used_timestamp_seconds",
      "When an access key was used last; a key that was never used has no sample.",
      live.map((key) => ({ labels: labelsOf(key), at: key.lastUsedAt })),
    ),
    ...countSamples(
      "integ_changes_unfinished",
      "Changes in the journal that are not finished.",
      "state",
      unfinished.map(({ state }) => state),
    ),
    ...[...slots].map(([account, value]) => ({
      metric: "integ_client_slots_used",
      help: "OAuth clients of a service account that the journal knows; 20 is the limit.",
      labels: { service_account: account },
      value,
    })),
    ...countSamples(
      "integ_policy_items",
      "Items of the policy by what the next apply does with them.",
      "action",
      actions,
    ),
    ...timeSamples(
      "integ_policy_last_successful_apply_timestamp_seconds",
      "When integ apply last ended well for all items of the policy on this machine, with or without changes.",
      [lastApply],
    ),
    {
      metric: "integ_read_ok",
      help: "0 if the profile has no way to this source, which then has no samples.",
      labels: { what: "access_keys" },
      value: areKeysRead ? 1 : 0,
    },
    { metric: "integ_status_timestamp_seconds", help: "When these figures were made.", value: observed.nowMs / 1000 },
  ];
}

function timeSamples(metric: string, help: string, all: readonly TimeSource[]): Sample[] {
  return all.flatMap(({ labels, at }) => {
    const value = Date.parse(at ?? "") / 1000;
    return Number.isNaN(value) ? [] : [{ metric, help, labels, value }];
  });
}

function countOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}
