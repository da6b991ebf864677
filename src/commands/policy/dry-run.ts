import type { Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { shortDuration } from "../../policy/decide.ts";
import { type Plan, type PlannedItem, runnable } from "../../policy/plan.ts";
import {
  clientCreationSteps,
  clientRotationSteps,
  keyCreationStep,
  keyReplacementSteps,
  recoverySteps,
} from "../running/dry-changes.ts";
import { deliverySteps, type DryStep, showSteps } from "../running/dry-run.ts";
import { adoptionStep } from "./adoption.ts";
import { clientRequest, clientRotation, keyCreation, keyReplacement } from "./apply-item.ts";
import { destinationOptions } from "./destinations.ts";

export async function showPlan(
  context: Context,
  { bench, plan }: { readonly bench: Workbench; readonly plan: Plan },
): Promise<void> {
  const steps: DryStep[] = [];
  for (const planned of runnable(plan)) {
    const itemSteps = await stepsOf(context, { bench, planned });
    steps.push(...itemSteps.map((step) => ({ ...step, what: `${planned.row.name}: ${step.what}` })));
  }
  await showSteps(context, steps);
}

async function stepsOf(
  context: Context,
  about: { readonly bench: Workbench; readonly planned: PlannedItem },
): Promise<DryStep[]> {
  const { bench, planned } = about;
  const { item, step, action } = planned.decision;
  if (step.do === "adopt") return [adoptionStep(item, step.credential.id)];
  const nowMs = context.clock.now();
  if (step.do === "finish") {
    const choice = { isEnded: action === "revoke_old", replaces: true, nowMs, secrets: bench.secrets };
    return recoverySteps(bench.journal, await bench.journal.find(step.entry), choice);
  }
  const secretOptions = { ...destinationOptions(item.destinations), yields: item.kind };
  const destination = await context.secrets.destination(secretOptions, async () => {});
  if (item.kind === "oauth_client")
    return step.do === "replace"
      ? clientRotationSteps(bench, { ...clientRotation(item, step.old), destination })
      : clientCreationSteps(bench, clientRequest(item), destination);
  const expiresIn = item.expiresInMs === undefined ? undefined : shortDuration(item.expiresInMs);
  return step.do === "replace"
    ? keyReplacementSteps(bench, { request: keyReplacement(bench, item, step.old), expiresIn, destination })
    : [keyCreationStep(bench, { creation: keyCreation(bench, item), expiresIn }), ...deliverySteps(destination.record)];
}
