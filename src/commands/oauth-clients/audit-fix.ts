// `oauth-clients audit --fix` revokes unusable clients, and rotates old ones whose secret has a recorded destination.
import { rotateOAuthClient } from "../../operations/client-rotation.ts";
import { revocationIntent, revokeNamed } from "../../operations/revocation.ts";
import type { Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import type { NextCommand } from "../../next-step.ts";
import type { Destination } from "../../secrets/destination.ts";
import { knownOptions } from "../policy/known-destination.ts";
import { actingAs, workbenchOf } from "../running/change.ts";
import { confirmFixes, reportFinding } from "../running/audit-fix.ts";
import { rotatedRow } from "../running/overlap-words.ts";
import { changeEach } from "../running/several.ts";
import { changedSince } from "../keys/audit-fix.ts";
import { type ClientFinding, unusableStatuses } from "./audit-rules.ts";
import { isTrustedClient, oauthClientView, readClient } from "./clients.ts";

/** The remedy in audit-rules.ts has the same overlap. */
const overlapMs = 24 * 3_600_000;
const waitMs = 60_000;

interface Fix {
  readonly finding: ClientFinding;
  readonly id: string;
  /** Absent for a revocation. */
  readonly destination?: Destination;
}

/** @returns the findings that a person must fix; none with `isTrial` */
export async function fixClients(
  context: Context,
  findings: readonly ClientFinding[],
  { isTrial }: { readonly isTrial: boolean },
): Promise<readonly ClientFinding[]> {
  const { output } = context;
  const journal = await context.journal();
  const fixes: Fix[] = [];
  for (const finding of findings) {
    const { client_id: id, rule, remedy } = finding;
    if (id === null || !remedy.startsWith("integ ")) continue;
    if (rule === "unusable" && (await isTrustedClient(journal, id))) fixes.push({ finding, id });
    const known = rule === "too_old" ? await knownOptions(context, id) : undefined;
    if (known === undefined) continue;
    const options = { ...known, yields: "oauth_client" } as const;
    fixes.push({ finding, id, destination: await context.secrets.destination(options, async () => {}) });
  }
  for (const finding of output.format === "table" ? [] : findings) {
    const fix = fixes.find((one) => one.finding === finding);
    const planned = fix?.destination ? "--fix rotates it, with an overlap of 24h." : "--fix revokes it.";
    const name = finding.client_id ?? String(finding.service_account_id);
    reportFinding(context, name, finding, fix && planned);
  }
  const bench = await workbenchOf(context);
  if (isTrial) {
    await showFixes(context, bench, fixes);
    return [];
  }
  const left = findings.filter((finding) => !fixes.some((fix) => fix.finding === finding));
  if (fixes.length === 0) return left;
  const places = fixes.map(({ id, destination }) => [id, destination] as const);
  const words = { as: actingAs(bench), verb: "rotate", left: "the old client valid for 24h" };
  await confirmFixes(context, places, words);
  const change = async (id: string): Promise<string> => {
    const { destination } = fixes.find((fix) => fix.id === id)!;
    if (destination === undefined) {
      const { status } = (await readClient(context, bench.account.service, id)).value;
      if (!unusableStatuses.has(status)) throw changedSince("client", id);
      return (await revokeNamed(bench, "client", id)).receipt;
    }
    return rotate(context, { bench, id, destination });
  };
  await changeEach(context, {
    ids: fixes.map(({ id }) => id),
    view: oauthClientView,
    change,
    states: ["fixing", "fixed"],
    ifOccupied: (id) => ({
      hint: "Move what is there away, or rotate the client to another destination.",
      nextCommand: fixes.find((fix) => fix.id === id)!.finding.remedy as NextCommand,
    }),
  });
  return left;
}

async function rotate(
  context: Context,
  { bench, id, destination }: { readonly bench: Workbench; readonly id: string; readonly destination: Destination },
): Promise<string> {
  const { value: old } = await readClient(context, bench.account.service, id);
  const rotation = { old, overlapMs, keepOld: false };
  const rotated = await rotateOAuthClient(bench, rotation, { destination, waitMs, overlap: "leave" });
  return rotatedRow(context, rotated, "client_secret");
}

async function showFixes(context: Context, bench: Workbench, fixes: readonly Fix[]): Promise<void> {
  const { requestStep, showSteps } = await import("../running/dry-run.ts");
  const { clientRotationSteps } = await import("../running/dry-changes.ts");
  const steps = [];
  for (const { id, destination } of fixes) {
    if (destination === undefined) {
      steps.push(requestStep(`revoke ${id}`, revocationIntent(bench, "client", id)));
      continue;
    }
    const { value: old } = await readClient(context, bench.account.service, id);
    const rotation = clientRotationSteps(bench, { old, overlapMs, keepOld: false, destination });
    steps.push(...rotation.map((step) => ({ ...step, what: `${id}: ${step.what}` })));
  }
  await showSteps(context, steps);
}
