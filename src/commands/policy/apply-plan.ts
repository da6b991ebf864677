// Applies a plan in stages: adoptions, then unfinished changes and ends of overlaps, which free slots, then creations
// and rotations.
import type { Decision } from "../../policy/decide.ts";
import { type Plan, type PlannedItem, runnable } from "../../policy/plan.ts";
import { applyItem, type ApplyOptions, type ItemOutcome } from "./apply-item.ts";

export interface AppliedItem {
  readonly planned: PlannedItem;
  readonly outcome?: ItemOutcome;
  readonly postponed?: string | undefined;
}

export interface RunOptions {
  readonly parallel: number;
  readonly watch: (event: "begin" | "end", planned: PlannedItem, outcome?: ItemOutcome) => void;
}

export async function applyPlan(plan: Plan, options: ApplyOptions, run: RunOptions): Promise<AppliedItem[]> {
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
    all.filter((item) => createsCredential(item) && !isOwn(item)),
    // The profile's own credentials are changed last, because a failure may lock the profile out.
    all.filter((item) => createsCredential(item) && isOwn(item)),
  ]) {
    await applyStage(
      stage,
      { slots, parallel: run.parallel, isInterrupted: () => interruption.aborted },
      async (planned) => {
        run.watch("begin", planned);
        const outcome = await applyItem(planned.decision, options);
        outcomes.set(planned, outcome);
        run.watch("end", planned, outcome);
        return outcome;
      },
    );
  }
  const why = interruption.aborted ? "the run was interrupted" : "no free slot of its service account";
  return plan.items.map((planned) => {
    const outcome = outcomes.get(planned);
    const isUnstarted = outcome === undefined && all.includes(planned);
    return { planned, outcome, postponed: isUnstarted ? why : planned.postponed };
  });
}

function createsCredential({ decision: { step } }: Pick<PlannedItem, "decision">): boolean {
  return step.do === "create" || step.do === "replace";
}

interface Limits {
  readonly slots: Map<string, number>;
  readonly parallel: number;
  readonly isInterrupted: () => boolean;
}

/** A creation or rotation of a client starts only if its service account has a free slot. */
async function applyStage(
  items: readonly PlannedItem[],
  { slots, parallel, isInterrupted }: Limits,
  work: (item: PlannedItem) => Promise<ItemOutcome>,
): Promise<void> {
  const queue = [...items];
  const running = new Set<Promise<void>>();
  for (;;) {
    while (running.size < parallel && !isInterrupted()) {
      const index = queue.findIndex(({ decision }) => hasSlot(decision, slots));
      if (index === -1) break;
      const [item] = queue.splice(index, 1);
      changeFreeSlots(item!.decision, slots, -1);
      const task: Promise<void> = work(item!).then((outcome) => {
        running.delete(task);
        if (isSlotFree(item!.decision, outcome)) changeFreeSlots(item!.decision, slots, 1);
      });
      running.add(task);
    }
    if (running.size === 0) return;
    await Promise.race(running);
  }
}

function accountOf(decision: Decision): string | undefined {
  const { item } = decision;
  return item.kind === "oauth_client" && createsCredential({ decision }) ? item.serviceAccount : undefined;
}

function hasSlot(decision: Decision, slots: ReadonlyMap<string, number>): boolean {
  const account = accountOf(decision);
  return account === undefined || (slots.get(account) ?? 0) > 0;
}

function changeFreeSlots(decision: Decision, slots: Map<string, number>, by: number): void {
  const account = accountOf(decision);
  if (account !== undefined) slots.set(account, (slots.get(account) ?? 0) + by);
}

/** True if the change that took the slot revoked the old client, or created no client in this run. */
function isSlotFree({ step }: Decision, { result, entry }: ItemOutcome): boolean {
  return (step.do === "replace" && result === "done") || entry?.state === "refused" || result === "elsewhere";
}
