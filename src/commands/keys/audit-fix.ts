// `keys audit --fix` revokes expired and unused keys, and replaces old or expiring keys whose secret has a recorded
// destination.
import { type KeyReplacementRequest, replaceAccessKey } from "../../operations/key-rotation.ts";
import { revocationIntent, revokeNamed } from "../../operations/revocation.ts";
import type { Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { type NextCommand, type NextStep, shell } from "../../next-step.ts";
import type { Destination } from "../../secrets/destination.ts";
import { knownOptions } from "../policy/known-destination.ts";
import { actingAs, workbenchOf } from "../running/change.ts";
import { confirmFixes, reportFinding } from "../running/audit-fix.ts";
import { rotatedRow } from "../running/overlap-words.ts";
import { changeEach } from "../running/several.ts";
import type { Finding, RuleName } from "./audit-rules.ts";
import { deliveredKeyView, revokedKeyView } from "./keys.ts";
import { requestOf } from "./replacement.ts";

const idleRules: ReadonlySet<RuleName> = new Set(["expired_active", "idle", "never_used"]);
const ageRules: ReadonlySet<RuleName> = new Set(["too_old", "expiring"]);
/** The remedies in audit-rules.ts have the same values. */
const [overlap, expiresIn] = ["1d", "90d"];
const waitMs = 60_000;

interface Replacement {
  readonly request: KeyReplacementRequest;
  readonly destination: Destination;
  readonly expiresIn: string | undefined;
}

/** Fixes by key id; undefined means a revocation. */
type Fixes = ReadonlyMap<string, Replacement | undefined>;

/** @returns the findings that a person must fix; none with `isTrial` */
export async function fixKeys(
  context: Context,
  findings: readonly Finding[],
  { isTrial, again }: { readonly isTrial: boolean; readonly again: () => Promise<readonly Finding[]> },
): Promise<readonly Finding[]> {
  const { output } = context;
  const bench = await workbenchOf(context);
  const fixes = await fixesOf(context, bench, findings);
  for (const finding of output.format === "table" ? [] : findings) {
    const { key_id, key_name } = finding;
    const planned = fixes.get(key_id ?? "") ? "--fix replaces it, with an overlap of 1d." : "--fix revokes it.";
    const isFixed = key_id !== null && fixes.has(key_id);
    reportFinding(context, key_id ?? key_name ?? "a key without id", finding, isFixed ? planned : undefined);
  }
  if (isTrial) {
    await showFixes(context, bench, fixes);
    return [];
  }
  const left = findings.filter(({ key_id }) => key_id === null || !fixes.has(key_id));
  if (fixes.size === 0) return left;
  const places = [...fixes].map(([id, one]) => [id, one?.destination] as const);
  await confirmFixes(context, places, {
    as: actingAs(bench),
    revoked: " (expired, idle or never used)",
    verb: "replace",
    left: `the old key valid for ${overlap}`,
  });
  const change = async (id: string): Promise<string> => {
    const replacement = fixes.get(id);
    if (replacement === undefined) {
      // The key may have been used or changed since the question.
      const current = (await again()).filter(isRevocable);
      if (!current.some(({ key_id }) => key_id === id)) throw changedSince("key", id);
      return (await revokeNamed(bench, "key", id)).receipt;
    }
    const { request, destination } = replacement;
    const options = { destination, waitMs, overlap: "leave" } as const;
    return rotatedRow(context, await replaceAccessKey(bench, request, options), "secret");
  };
  const createsKey = [...fixes.values()].some((one) => one !== undefined);
  const view = createsKey ? deliveredKeyView : revokedKeyView;
  const ifOccupied = (id: string): NextStep => ({
    hint: "Move what is there away, or replace the key with another destination.",
    nextCommand: findings.find(({ key_id }) => key_id === id)!.remedy as NextCommand,
  });
  await changeEach(context, { ids: [...fixes.keys()], view, change, states: ["fixing", "fixed"], ifOccupied });
  return left;
}

export function changedSince(noun: "client" | "key", id: string): Failure {
  return new Failure("conflict", `The ${noun} ${id} has changed since the question.`, {
    meaning: "It was not revoked.",
    nextCommand: noun === "key" ? shell`integ keys audit` : shell`integ oauth-clients audit`,
  });
}

async function fixesOf(context: Context, bench: Workbench, findings: readonly Finding[]): Promise<Fixes> {
  const fixes = new Map<string, Replacement | undefined>();
  for (const { key_id: id } of findings.filter(isRevocable)) fixes.set(id!, undefined);
  for (const { key_id: id } of findings.filter(({ rule }) => ageRules.has(rule))) {
    const ofKey = findings.filter(({ key_id }) => key_id === id);
    if (id === null || fixes.has(id) || !ofKey.every(isFixedByReplacement)) continue;
    const known = await knownOptions(context, id);
    if (known === undefined) continue;
    const lifetime = ofKey.some(({ rule }) => rule === "expiring") ? expiresIn : undefined;
    const options = { overlap, expiresIn: lifetime };
    const request = await requestOf(context, bench, { id, options }).catch(skipUnknownFields);
    if (request === undefined) continue;
    const secretOptions = { ...known, yields: "access_key" } as const;
    const destination = await context.secrets.destination(secretOptions, async () => {});
    fixes.set(id, { request: { ...request, updateProfile: false }, destination, expiresIn: lifetime });
  }
  return fixes;
}

/** A key whose replacement needs flags is left to a person. */
function skipUnknownFields(error: unknown): undefined {
  if (error instanceof Failure && error.kind === "usage") return undefined;
  throw error;
}

/**
 * The remedy of the caller's own key is never exactly `integ keys revoke <id>`. Low severity marks an unused key that
 * is younger than the idle limit.
 */
function isRevocable({ rule, severity, key_id, remedy }: Finding): boolean {
  return key_id !== null && idleRules.has(rule) && severity !== "low" && remedy === shell`integ keys revoke ${key_id}`;
}

/**
 * Excludes the caller's own key (`--update-profile`) and keys that may be the caller's (advice instead of a command).
 */
function isFixedByReplacement({ rule, key_id, remedy }: Finding): boolean {
  const start = shell`integ keys rotate ${key_id ?? ""} --by-replacement`;
  return ageRules.has(rule) && remedy.startsWith(start) && !remedy.includes("--update-profile");
}

async function showFixes(context: Context, bench: Workbench, fixes: Fixes): Promise<void> {
  const { requestStep, showSteps } = await import("../running/dry-run.ts");
  const { keyReplacementSteps } = await import("../running/dry-changes.ts");
  const steps = [...fixes].flatMap(([id, replacement]) =>
    replacement === undefined
      ? [requestStep(`revoke ${id}`, revocationIntent(bench, "key", id))]
      : keyReplacementSteps(bench, replacement).map((step) => ({ ...step, what: `${id}: ${step.what}` })),
  );
  await showSteps(context, steps);
}
