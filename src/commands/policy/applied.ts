import type { Context } from "../../context.ts";
import { Failure, worstOf, isInterruption } from "../../errors.ts";
import { dueAt } from "../../journal/entry.ts";
import { timeAhead } from "../../output/relative-time.ts";
import { type Plan, runnable } from "../../policy/plan.ts";
import type { AppliedItem } from "./apply-plan.ts";
import { nounOf } from "./adoption.ts";
import { adoptionCommands, heldSteps, reportHeld } from "./held.ts";
import { planPage, unchangedWords } from "./plan-page.ts";

export const appliedColumns = [
  { path: "name", heading: "name", kind: "id" },
  { path: "kind", heading: "kind", kind: "text", isDetail: true },
  { path: "action", heading: "action", kind: "status" },
  { path: "result", heading: "result", kind: "status" },
  { path: "resource_id", heading: "resource", isDetail: true },
  { path: "due_at", heading: "due", kind: "time", isDetail: true },
  // A narrow table moves a text column below its row, but an id column can turn each row into a block.
  { path: "entry", heading: "entry", kind: "text" },
  { path: "message", heading: "message", kind: "sentence" },
] as const;

export const appliedFields = [...appliedColumns, ...["choices", "error"].map((path) => ({ path, heading: path }))];

/** @returns true if integ showed the whole plan as a page. @throws Failure `usage` if the person declines */
export async function confirmPlan(
  { output, settings }: Context,
  { plan, as, file }: { readonly plan: Plan; readonly as: string; readonly file: string },
): Promise<boolean> {
  const items = runnable(plan);
  if (items.length === 0) return false;
  const isAdoption = items.every(({ decision: { step } }) => step.do === "adopt");
  const shown = isAdoption ? { ...plan, items, unmanaged: [] } : plan;
  const isPage = output.interactive && output.isTable && (isAdoption || !settings.yes);
  if (isPage) await output.page(({ width }) => planPage({ plan: shown, file, as, width }));
  else if (output.interactive)
    for (const { row, decision } of items.slice(0, 50)) {
      const to = decision.step.do === "adopt" ? "" : ` → ${row.destinations.join(", ")}`;
      output.note(`${row.name}: ${row.action} (${row.reason})${to}`);
    }
  const [verb, one, several] = isAdoption
    ? ["adopt", "existing credential as an item", "existing credentials as items"]
    : ["apply", "change", "changes"];
  const what = `${items.length} ${items.length === 1 ? one : several}`;
  if (!(await output.confirm(`${as}: ${verb} ${what} of ${file}?`, { destructive: true })))
    throw new Failure("usage", `Nothing was ${isAdoption ? "adopted" : "applied"}: the answer was no.`);
  return isPage && !isAdoption;
}

function resultOf({ planned, outcome, postponed }: AppliedItem): string {
  if (outcome !== undefined) return outcome.result;
  if (postponed !== undefined) return "postponed";
  const { action, hold } = planned.decision;
  if (hold === "stalled") return "stalled";
  return hold === undefined ? (action === "wait" ? "waiting" : "none") : "left";
}

/** Results for a person, in the words of the run's last line. */
const resultWords: Readonly<Record<string, string>> = { left: "to decide", none: "unchanged" };

function messageOf({ planned, outcome, postponed }: AppliedItem): string {
  const { action, reason } = planned.row;
  if (outcome?.result === "done") return actionsDone[action] ?? reason;
  if (outcome?.result === "waiting" && planned.decision.step.do === "replace")
    return `rotated; the old ${nounOf(planned.row.kind)} is revoked at the end of the overlap`;
  return outcome?.failure?.message ?? postponed ?? reason;
}

const actionsDone: Readonly<Record<string, string>> = {
  create: "created, its secret delivered",
  rotate: "rotated, its new secret delivered",
  change_scopes: "replaced by one with the scopes of the policy",
  revoke_old: "the old one is revoked",
  redeliver: "rotated, its new secret delivered",
  adopt: "adopted; its secret is unchanged",
};

export async function printApplied(
  { output }: Context,
  applied: readonly AppliedItem[],
  { file, empty = "The policy has no items." }: { readonly file: string; readonly empty?: string },
): Promise<void> {
  const rowOf = (item: AppliedItem, isForPerson: boolean): string => {
    const { name, kind, action, resource_id, due_at, entry } = item.planned.row;
    const work = item.outcome?.entry;
    const message = messageOf(item);
    const id = work?.resource_id ?? resource_id;
    const result = resultOf(item);
    return JSON.stringify({
      name,
      kind,
      action,
      result: isForPerson ? (resultWords[result] ?? result) : result,
      resource_id: output.isTable && id !== null && message.includes(id) ? null : id,
      due_at: work === undefined ? due_at : (dueAt(work) ?? null),
      entry: work?.id ?? entry,
      message,
      choices: adoptionCommands(item.planned.decision, file),
      error: item.outcome?.failure && { kind: item.outcome.failure.kind, exit_code: item.outcome.failure.exitCode },
    });
  };
  // A table omits unchanged items, because the line of counts includes them.
  const shown = output.isTable ? applied.filter((item) => resultOf(item) !== "none") : applied;
  const nothing = applied.length > 0 ? unchangedWords(applied.length, file) : empty;
  const view = { columns: [...appliedColumns], singular: "item", plural: "items", empty: nothing, isWhole: true };
  const isForPerson = output.format === "table" || output.format === "markdown";
  await output.report(view).list.whole(shown.map((item) => rowOf(item, isForPerson)));
  const summary = applied.map((item) => rowOf(item, true));
  await output.summary("integ apply", view, summary);
}

export function reportOutcomes({ output }: Context, applied: readonly AppliedItem[], nowMs: number): void {
  for (const { planned, outcome } of applied) {
    const due = outcome?.result === "waiting" ? outcome.entry?.detail.overlap_until : undefined;
    const { name } = planned.row;
    const isByUse = outcome?.entry?.detail.overlap_unused_ms !== undefined;
    const revokes = isByUse
      ? "a run revokes the old one once it is unused, at the latest after the overlap ends"
      : "the first run after the overlap revokes the old one; the overlap ends";
    if (due !== undefined) output.note(`${name}: the old and the new one work; ${revokes} ${timeAhead(due, nowMs)}.`);
    if (outcome?.result === "elsewhere") output.note(`${name}: another process works on it, or has just done it.`);
  }
}

/** Says why nothing was done for an item that an option names. */
export function reportIdle(
  { output }: Context,
  { items }: Plan,
  { retry, redeliver, file }: Record<"retry" | "redeliver", readonly string[]> & { readonly file: string },
): void {
  for (const { decision } of items.filter(({ row }) => row.action === "none")) {
    const { name } = decision.item;
    const isIdle = decision.hold === undefined;
    if (isIdle && retry.includes(name))
      output.note(
        `${name}: --retry has nothing to do: the item is not stalled, and its ${nounOf(decision.item.kind)} works.`,
      );
    if (isIdle && redeliver.includes(name))
      output.note(`${name}: --redeliver has nothing to do: its secret is where ${file} says, by the journal.`);
  }
}

/**
 * @throws Failure an unknown outcome, else an interruption, else the worst failure; without a failure, `findings` if an
 * item needs a person
 */
export function conclude(
  context: Context,
  applied: readonly AppliedItem[],
  {
    file,
    profile,
    isAdoption = false,
  }: {
    readonly file: string;
    readonly profile: string | undefined;
    readonly isAdoption?: boolean;
  },
): void {
  const { output } = context;
  const failures = applied.flatMap(({ outcome, planned }) =>
    outcome?.failure ? [{ name: planned.row.name, failure: outcome.failure, entry: outcome.entry! }] : [],
  );
  const interrupted = failures.find(({ failure }) => isInterruption(failure))?.failure;
  const severest = worstOf(failures.filter(({ failure }) => !isInterruption(failure)));
  const worst = severest?.kind === "outcome_unknown" ? severest : (interrupted ?? severest);
  for (const { name, failure } of failures) if (failure !== worst) output.warn(`${name}: ${failure.message}`);
  const left = applied.filter((item) => ["stalled", "left"].includes(resultOf(item)));
  const steps = heldSteps(
    left.map(({ planned }) => planned.decision),
    file,
  );
  if (steps.length > 1 || worst !== undefined) reportHeld(context, steps, profile);
  if (applied.length > 1) output.ending(countWords(applied, isAdoption));
  if (worst !== undefined) throw worst;
  if (left.length === 0) return;
  const count = left.length === 1 ? "1 item needs" : `${left.length} items need`;
  const names = steps.length === 1 ? `: ${steps[0]!.names.join(", ")}` : "";
  // The table above already gives the reason.
  const reason = `${left[0]!.planned.row.name}: ${messageOf(left[0]!).replace(/\.$/, "")}.`;
  const meaning = output.isTable ? {} : { meaning: reason };
  throw new Failure(
    "findings",
    `${count} a decision${names}.`,
    steps.length === 1 ? { ...meaning, ...steps[0]!.step } : {},
  );
}

function countWords(applied: readonly AppliedItem[], isAdoption: boolean): string {
  const count = (is: (item: AppliedItem, result: string) => boolean): number =>
    applied.filter((item) => is(item, resultOf(item))).length;
  const done = (actions: readonly string[]): number =>
    count(({ planned }, result) => (result === "done" || result === "waiting") && actions.includes(planned.row.action));
  const [adopted, revoked] = [done(["adopt"]), done(["revoke_old"])];
  const left = count((_, result) => result === "left" || result === "stalled");
  const postponed = count((_, result) => result === "postponed");
  const waiting = count(({ planned }, result) => result === "waiting" && planned.row.action === "wait");
  const failed = `${count((_, result) => result === "failed")} failed`;
  if (isAdoption) return `Applied: ${adopted} adopted, ${failed}, ${left} to decide.`;
  return `Applied: ${[
    ...(adopted > 0 ? [`${adopted} adopted`] : []),
    `${done(["create"])} created`,
    `${done(["rotate", "change_scopes", "redeliver"])} rotated`,
    ...(revoked > 0 ? [`${revoked} revoked`] : []),
    failed,
    ...(left > 0 ? [`${left} to decide`] : []),
    ...(postponed > 0 ? [`${postponed} postponed`] : []),
    ...(waiting > 0 ? [`${waiting} waiting`] : []),
    `${count((_, result) => ["none", "elsewhere"].includes(result))} unchanged`,
  ].join(", ")}.`;
}
