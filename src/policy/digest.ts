// The plan document. Its digest detects edits; the digests of its inputs detect changes since the plan was made.
import { createHash } from "node:crypto";
import { Failure } from "../errors.ts";
import { placeOf } from "./holders.ts";
import { type Observed, type SeenCredential, seenOf } from "./observed.ts";
import type { Plan, PlanRow, Unmanaged } from "./plan.ts";
import type { Policy, PolicyItem } from "./policy.ts";
import { itemKey } from "./works.ts";
import { shell, flags } from "../next-step.ts";
import { tryParseJson } from "../json.ts";

/** The output of `integ plan --json` and `--out`. Increase the version when you remove or change a field. */
export interface PlanDocument {
  readonly object: "plan";
  readonly version: 1;
  readonly digest: string;
  /** ISO 8601 UTC, by the service's clock. */
  readonly made_at: string;
  readonly policy_file: string;
  readonly profile: string;
  readonly region: string;
  readonly base_url: string;
  /** Names of the planned items; empty means all. */
  readonly only: readonly string[];
  readonly data: readonly PlanRow[];
  readonly unmanaged: readonly Unmanaged[];
  /** Digests of the inputs: `policy` for the file's settings, `item <name>` for each item. */
  readonly made_from: Readonly<Record<string, string>>;
}

export interface PlanOrigin {
  readonly policyFile: string;
  readonly profile: string;
  readonly region: string;
  readonly baseUrl: string;
  readonly only: readonly string[];
}

interface MadeFrom {
  readonly policy: Policy;
  readonly observed: Observed;
  readonly only: readonly string[];
}

export function planDocument(plan: Plan, { policy, observed, ...about }: PlanOrigin & MadeFrom): PlanDocument {
  const { policyFile: policy_file, profile, region, baseUrl: base_url, only } = about;
  const made_from = fingerprints({ policy, observed, only });
  const document = {
    object: "plan",
    version: 1,
    made_at: new Date(observed.nowMs).toISOString(),
    policy_file,
    profile,
    region,
    base_url,
    only,
    data: plan.items.map(({ row }) => row),
    unmanaged: plan.unmanaged,
    made_from,
  } as const;
  return { ...document, digest: digestOf(document) };
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

export function fingerprints({ policy, observed, only }: MadeFrom): Record<string, string> {
  const { items, ...settings } = policy;
  const chosen = items.filter(({ name }) => only.length === 0 || only.includes(name));
  return {
    policy: shortDigest(settings),
    ...Object.fromEntries(chosen.map((item) => [`item ${item.name}`, shortDigest([item, observedOf(item, observed)])])),
  };
}

function shortDigest(value: unknown): string {
  return digestOf(value).slice(0, 16);
}

function observedOf(item: PolicyItem, observed: Observed): unknown {
  const itemWorks = observed.works.get(itemKey(item));
  const seen = seenOf(item, observed);
  const resources = [...(itemWorks?.candidates ?? []), itemWorks?.waiting?.old, itemWorks?.waiting?.made];
  return [
    itemWorks?.works.map(({ entry }) => [entry.id, entry.state, entry.sequence]) ?? [],
    resources.flatMap((id) => (id === undefined ? [] : [[id, seenFacts(seen.get(id))]])),
    holdersAt(item, observed),
  ];
}

function holdersAt(item: PolicyItem, observed: Observed): unknown {
  return item.destinations.flatMap((destination) => {
    const holder = observed.holders.get(placeOf(destination, item));
    if (holder === undefined || holder.item === itemKey(item)) return [];
    const { id, entry, isUnfinished } = holder;
    return [[entry, isUnfinished, seenFacts(seenOf(holder, observed).get(id ?? ""))]];
  });
}

function seenFacts(credential: SeenCredential | undefined) {
  if (credential === undefined) return null;
  const { status, serviceAccount, scopes, type, createdAt, expiresAt } = credential;
  return [status, serviceAccount, scopes && [...scopes].sort(), type, createdAt, expiresAt];
}

/** @throws Failure `usage` unless the text is an unedited plan of this version */
export function readPlanDocument(text: string, file: string): PlanDocument {
  const read = Object(tryParseJson(text)) as Record<string, unknown>;
  const isDocument = read.object === "plan" && typeof read.made_at === "string" && Array.isArray(read.only);
  const isWhole = isDocument && typeof read.digest === "string" && typeof read.policy_file === "string";
  if (!isWhole || typeof read.made_from !== "object" || read.made_from === null)
    throw notPlanFailure(file, `it is not a plan that integ plan ${flags.out} wrote`);
  if (read.version !== 1)
    throw notPlanFailure(file, `it has version ${String(read.version)}, and this integ reads version 1`, true);
  const { digest, ...content } = read;
  if (digestOf(content) !== digest) throw notPlanFailure(file, "its digest does not belong to its content", true);
  return read as unknown as PlanDocument;
}

/** Without `isPlan`, the file is probably a policy, which the next step must not overwrite with a plan. */
function notPlanFailure(file: string, why: string, isPlan = false): Failure {
  return new Failure("usage", `${file} cannot be applied: ${why}.`, {
    meaning: "Nothing was sent.",
    ...(isPlan
      ? { nextCommand: shell`integ plan ${flags.out} ${file}` }
      : {
          hint: `Name a file that integ plan ${flags.out} wrote, or apply the policy file itself.`,
          nextCommand: shell`integ apply -f ${file}`,
        }),
  });
}

/** True also for an incomplete plan or a plan of another version. */
export function isPlanText(text: string): boolean {
  return /^\s*\{\s*"object":\s*"plan"/.test(text);
}

export function assertUnchanged(plan: PlanDocument, now: Readonly<Record<string, string>>, baseUrl: string): void {
  const names = [...new Set([...Object.keys(plan.made_from), ...Object.keys(now)])];
  const changed = names.filter((name) => plan.made_from[name] !== now[name]);
  if (plan.base_url !== baseUrl) changed.unshift("the address");
  if (changed.length === 0) return;
  const what = changed.map((name) => (name === "policy" ? "the settings of the policy" : name.replace(/^item /, "")));
  const shown = what.slice(0, 10).join(", ");
  throw new Failure(
    "usage",
    `The plan no longer matches the current state. Changed: ${shown}${what.length > 10 ? " and more" : ""}.`,
    {
      meaning: "Nothing was sent.",
      nextCommand: shell`integ plan`,
    },
  );
}
