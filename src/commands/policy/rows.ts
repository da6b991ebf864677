import { maxClients } from "../../api/oauth-client-creation.ts";
import { hash } from "node:crypto";
import type { Context } from "../../context.ts";
import type { Plan, PlanRow, Unmanaged } from "../../policy/plan.ts";
import type { Column } from "../../output/formats/format.ts";
import { Failure } from "../../errors.ts";
import { baseNameOf, freeName } from "../../policy/works.ts";
import { unmanagedWords } from "./plan-page.ts";
import { adoptionCommand } from "./held.ts";
import { type NextCommand, shell, stepAs } from "../../next-step.ts";

export const planColumns: readonly Column[] = [
  { path: "name", heading: "name", kind: "id" },
  { path: "kind", heading: "kind" },
  { path: "grants", heading: "grants", kind: "sentence" },
  { path: "action", heading: "action", kind: "status" },
  { path: "reason", heading: "reason", kind: "sentence" },
  { path: "age", heading: "age", isDetail: true },
  { path: "due_at", heading: "due", kind: "time" },
  { path: "slots_before", heading: "slots before", isDetail: true },
  { path: "slots_after", heading: "slots after", isDetail: true },
  { path: "destinations", heading: "destinations", kind: "list" },
  { path: "state", heading: "state", kind: "status" },
];

const planView = { columns: planColumns, singular: "item", plural: "items", empty: "The policy has no items." };

export function summarizePlan({ output }: Context, rows: readonly PlanRow[]): Promise<void> {
  const texts = rows.map((row) => JSON.stringify({ ...row, destinations: row.destinations.map(summaryText) }));
  return output.summary("integ plan", planView, texts);
}

/** A job's summary has more readers than the policy, so it shows only a command's digest. */
function summaryText(destination: string): string {
  if (!destination.startsWith("command: ")) return destination;
  return `command (sha256 ${hash("sha256", destination.slice("command: ".length), "hex").slice(0, 12)}…)`;
}

export async function printPlanRows(context: Context, rows: readonly PlanRow[]): Promise<void> {
  await context.output.list(planView).whole(rows);
}

export function reportPlanNotes(
  { output, settings }: Context,
  { opensAt, unmanaged, items }: Plan,
  { file, profile, isPage = false }: { readonly file: string; readonly profile?: string; readonly isPage?: boolean },
): void {
  if (opensAt !== undefined)
    output.note(
      `The window is closed; it opens ${output.when(opensAt)}. integ still finishes changes that have already started.`,
    );
  if (unmanaged.length === 0) return;
  const command = adoption(unmanaged[0]!, { file, taken: new Set(items.map(({ row }) => row.name)) });
  const next = stepAs(settings.profile ?? profile, command);
  const words = `For each client and key in no item: add an item to ${file} and adopt the credential, or revoke it. For example: ${next}`;
  // The page already lists the unmanaged credentials.
  output.note(isPage ? words : `${unmanagedWords(unmanaged)}. ${words}`);
}

function adoption(
  { kind, id, name, service_account_id: serviceAccount, state, ownership }: Unmanaged,
  { file, taken }: { readonly file: string; readonly taken: Set<string> },
): NextCommand {
  if (kind === "access_key" && state === "expired" && ownership === "other") return shell`integ keys revoke ${id}`;
  const item = freeName(baseNameOf({ kind, id, name, serviceAccount }), kind, taken);
  return adoptionCommand({ kind, name: item }, id, file);
}

export function assertSlots({ refusals }: Plan): void {
  const [first] = refusals;
  if (first === undefined) return;
  const reasons = refusals.map(
    ({ account, used, needed, limit }) =>
      `${account} has at least ${used} and needs ${needed} more, but may have ${limit === maxClients ? limit : `${limit}: keep_free_slots leaves ${maxClients - limit} of ${maxClients} free`}`,
  );
  throw new Failure("conflict", `The plan needs more clients of ${first.account} than it may have.`, {
    meaning: `${reasons.join("; ")}. Nothing was sent.`,
    nextCommand: shell`integ oauth-clients list --service-account ${first.account}`,
  });
}
