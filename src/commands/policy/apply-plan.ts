// Applies the items of a plan in parallel: adoptions first, so that nothing existing is created again; then unfinished work and
// the ends of overlaps, which free slots for new work.
import type { Decision } from "../../policy/decide.ts";
import type { Plan, PlannedItem } from "../../policy/plan.ts";
import { applyItem, type ApplyOptions, type ItemOutcome } from "./apply-item.ts";

export interface AppliedItem {
  readonly planned: PlannedItem;
  readonly outcome?: ItemOutcome;
  /** Why a later run has to do it. */
  readonly postponed?: string | undefined;
}

export interface Running {
  readonly parallel: number;
  readonly watch: (event: "begin" | "end", planned: PlannedItem, outcome?: ItemOutcome) => void;
}

/** The items that `apply` changes, without finished, held and postponed items. */
export function runnable({ items }: Pick<Plan, "items">): PlannedItem[] {
  return items.filter(
    ({ decision: { step, hold }, postponed }) => step.do !== "nothing" && hold === undefined && postponed === undefined,
  );
}

export async function applyPlan(plan: Plan, options: ApplyOptions, running: Running): Promise<AppliedItem[]> {
  const outcomes = new Map<PlannedItem, ItemOutcome>();
  const all = runnable(plan);
  const isAdoption = ({ decision }: PlannedItem): boolean => decision.step.do === "adopt";
  const isFinish = ({ decision }: PlannedItem): boolean => decision.step.do === "finish";
  const isOwn = ({ decision }: PlannedItem): boolean => decision.current?.ownership === "own";
  const slots = new Map(plan.freeSlots);
  const { interruption } = options.bench.clock;
  for (const stage of [
    all.filter(isAdoption),
    all.filter(isFinish),
    all.filter((item) => isBeginning(item) && !isOwn(item)),
    // The caller's own credential comes last: a failure may lock the caller out.
    all.filter((item) => isBeginning(item) && isOwn(item)),
  ]) {
    await inSlots(stage, { slots, atOnce: running.parallel, isOver: () => interruption.aborted }, async (planned) => {
      running.watch("begin", planned);
      const outcome = await applyItem(planned.decision, options);
      outcomes.set(planned, outcome);
      running.watch("end", planned, outcome);
      return outcome;
    });
  }
  const why = interruption.aborted ? "the run was interrupted" : "no free slot of its service account";
  return plan.items.map((planned) => {
    const outcome = outcomes.get(planned);
    const isLeft = outcome === undefined && all.includes(planned);
    return { planned, outcome, postponed: isLeft ? why : planned.postponed };
  });
}

function isBeginning({ decision: { step } }: Pick<PlannedItem, "decision">): boolean {
  return step.do === "create" || step.do === "replace";
}

interface Limits {
  readonly slots: Map<string, number>;
  readonly atOnce: number;
  readonly isOver: () => boolean;
}

/** Each new client takes a slot of its service account; a rotation without an overlap frees it again. */
async function inSlots(
  items: readonly PlannedItem[],
  { slots, atOnce, isOver }: Limits,
  work: (item: PlannedItem) => Promise<ItemOutcome>,
): Promise<void> {
  const queue = [...items];
  const running = new Set<Promise<void>>();
  for (;;) {
    while (running.size < atOnce && !isOver()) {
      const index = queue.findIndex(({ decision }) => hasSlot(decision, slots));
      if (index === -1) break;
      const [item] = queue.splice(index, 1);
      takeSlots(item!.decision, slots, -1);
      const task: Promise<void> = work(item!).then((outcome) => {
        running.delete(task);
        if (isSlotFree(item!.decision, outcome)) takeSlots(item!.decision, slots, 1);
      });
      running.add(task);
    }
    if (running.size === 0) return;
    await Promise.race(running);
  }
}

function accountOf(decision: Decision): string | undefined {
  const { item } = decision;
  return item.kind === "oauth_client" && isBeginning({ decision }) ? item.serviceAccount : undefined;
}

function hasSlot(decision: Decision, slots: ReadonlyMap<string, number>): boolean {
  const account = accountOf(decision);
  return account === undefined || (slots.get(account) ?? 0) > 0;
}

function takeSlots(decision: Decision, slots: Map<string, number>, by: number): void {
  const account = accountOf(decision);
  if (account !== undefined) slots.set(account, (slots.get(account) ?? 0) + by);
}

/** True if the old client is revoked, or certainly nothing was created. */
function isSlotFree({ step }: Decision, { result, entry }: ItemOutcome): boolean {
  return (step.do === "replace" && result === "done") || entry?.state === "refused" || result === "elsewhere";
}
