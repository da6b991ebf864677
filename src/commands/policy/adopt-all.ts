import { DiskHealth } from "../../disk/disk-health.ts";
import { actingAs, warnOfDamage, workbenchOf } from "../running/change.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { actingFor, planOptions } from "./acting.ts";
import { appliedColumns, appliedFields, confirmPlan, conclude, printApplied, reportOutcomes } from "./applied.ts";
import { applyPlan } from "./apply-plan.ts";
import { observe, scopeOf } from "./observe.ts";
import { addPolicyFile, loadPolicy } from "./policy-file.ts";

export const command = defineVerb({
  fields: appliedColumns.map(({ path }) => path),
  result: appliedFields,
  configure: (command) =>
    addDryRun(addPolicyFile(command)).option(
      "--all",
      "Adopt the existing credential of each item, if the match is unique",
    ),
  examples: [
    { line: "integ adopt --all", does: "after integ policy init: list what exists, confirm, and adopt it" },
    { line: "integ adopt --all --dry-run", does: "show what would be adopted" },
  ],
  more: "With --all, integ adopts a client or key if it matches one item and that item matches nothing else; no secret changes. For each item with another match, integ says what to choose (exit 10).",
  async run(given, { options }) {
    const { policy, file } = await loadPolicy(given, options.file);
    const context = actingFor(given, policy);
    const disk = new DiskHealth();
    const bench = await workbenchOf(context, { disk });
    await warnOfDamage(context);
    const { observed, entries } = await observe(context, { policy, account: bench.account });
    const { planPolicy } = await import("../../policy/plan.ts");
    const whole = planPolicy(policy, observed, planOptions({ adopt: true }));
    const items = whole.items.filter(({ decision: { step, hold } }) => step.do === "adopt" || hold === "not_adopted");
    const plan = { ...whole, items };
    if (options.dryRun) return (await import("./dry-run.ts")).showPlan(context, { bench, plan });
    await confirmPlan(context, { plan, as: actingAs(bench), file });
    const entriesAtPlan = new Set(entries.map(({ id }) => id));
    const applied = await applyPlan(
      plan,
      { context, bench, disk, scope: scopeOf(bench.account), entriesAtPlan, waitMs: 0 },
      { parallel: 1, watch: () => {} },
    );
    await printApplied(context, applied, { file, empty: "Nothing to adopt." });
    reportOutcomes(context, applied, observed.nowMs);
    conclude(context, applied, { file, profile: policy.profile, isAdoption: true });
  },
});
