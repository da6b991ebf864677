import { statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { PlanDocument } from "../../policy/digest.ts";
import type { Plan } from "../../policy/plan.ts";
import { mentionDamage } from "../running/change.ts";
import { defineVerb } from "../verb.ts";
import { readTextFile } from "./text-file.ts";
import { actingFor, assertNames, missingForItems, policyAccount } from "./acting.ts";
import { observe } from "./observe.ts";
import { addPolicyFile, fileWords, loadPolicy } from "./policy-file.ts";
import { assertSlots, planColumns, printPlanRows, summarizePlan, tellPlanNotes } from "./rows.ts";
import { shell } from "../../next-step.ts";
import { stepForAllHeld } from "./held.ts";

export const command = defineVerb({
  fields: planColumns.map(({ path }) => path),
  configure: (command) =>
    addPolicyFile(command)
      .option("--only <name...>", "Plan only these items; repeatable")
      .option("--out <path>", "Write the plan to a file, for integ apply <path>"),
  examples: [
    { line: "integ plan", does: "show what integ apply would do; change nothing" },
    { line: "integ plan --out plan.json; integ apply plan.json", does: "apply exactly the reviewed plan" },
    { line: "integ plan --only reporting --json | jq -r '.data[].action'", does: "one item, for a script" },
  ],
  more: "Exit 0: nothing to do. Exit 10: something to do.",
  neverAsks: true,
  async run(given, { options }) {
    const { policy, file } = await loadPolicy(given, options.file);
    const only = options.only ?? [];
    assertNames(policy, only, "--only");
    if (options.out !== undefined) await assertReplaceable(given, options.out);
    const context = actingFor(given, policy);
    const account = await policyAccount(context);
    await mentionDamage(context);
    const { observed } = await observe(context, { policy, account });
    const [{ isSomethingDue, planPolicy }, { planDocument }] = await Promise.all([
      import("../../policy/plan.ts"),
      import("../../policy/digest.ts"),
    ]);
    const choice = { only: new Set(only), retry: new Set<string>(), finish: new Set<string>(), includeOwn: false };
    const plan = planPolicy(policy, observed, choice);
    const { profile, region, baseUrl } = account;
    const document = planDocument(plan, { policyFile: file, profile, region, baseUrl, only, policy, observed });
    if (options.out !== undefined) writePlan(context, options.out, document);
    const isDocument = context.output.format === "json" || context.output.format === "yaml";
    if (isDocument && context.output.fields === undefined) await context.output.document(document);
    else await printPlanRows(context, document.data);
    await summarizePlan(context, document.data);
    tellPlanNotes(context, plan, file);
    assertSlots(plan);
    if (isSomethingDue(plan))
      throw await somethingDue(context, { plan, profile, source: sourceOf(options.out, file), file });
  },
});

/** Words that name what `apply` is to make so. */
function sourceOf(out: string | undefined, file: string): readonly string[] {
  return out === undefined ? fileWords(file) : [out];
}

interface DueAbout {
  readonly plan: Plan;
  readonly profile: string;
  /** Words that name what `apply` is to make so. */
  readonly source: readonly string[];
  readonly file: string;
}

async function somethingDue(context: Context, { plan, profile, source, file }: DueAbout): Promise<Failure> {
  const due = plan.items.filter(({ row: { action } }) => action !== "none" && action !== "wait");
  const message = `${due.length === 1 ? "1 item needs" : `${due.length} items need`} a change.`;
  const doable = due.filter(({ decision }) => decision.hold === undefined);
  // If apply leaves them all, a person does something about the first.
  if (doable.length === 0)
    return new Failure("findings", message, {
      meaning: "Nothing was changed.",
      ...stepForAllHeld(
        due.map(({ decision }) => decision),
        file,
      ),
    });
  let lack: Failure | undefined;
  for (const kind of new Set(doable.map(({ row }) => row.kind))) lack ??= await missingForItems(context, profile, kind);
  return new Failure("findings", message, {
    meaning: `Nothing was changed.${lack === undefined ? "" : ` To change them, a credential is missing: ${lack.message}`}`,
    hint: lack?.details.hint,
    nextCommand: lack?.details.nextCommand ?? shell`integ apply ${source}`,
  });
}

function writePlan({ settings, output }: Context, path: string, document: PlanDocument): void {
  try {
    writeFileSync(resolve(settings.cwd, path), `${JSON.stringify(document, undefined, 2)}\n`);
  } catch (error) {
    throw new Failure("usage", `The plan cannot be written to ${path}: ${(error as Error).message}.`, {
      hint: "Name another file with --out <path>.",
    });
  }
  output.note(`The plan is in ${path} (digest ${document.digest.slice(0, 12)}).`);
}

/** @throws Failure `usage` for a file that exists and is not a plan: the policy itself, most likely */
async function assertReplaceable(context: Context, path: string): Promise<void> {
  const to = resolve(context.settings.cwd, path);
  if (!isFilled(to)) return;
  const [{ beginsAsPlan }, { longestPlan }] = await Promise.all([
    import("../../policy/digest.ts"),
    import("../../policy/read.ts"),
  ]);
  const read = readTextFile(to, longestPlan);
  if ("text" in read && beginsAsPlan(read.text)) return;
  throw new Failure("usage", `The plan cannot be written to ${path}: the file exists and is not a plan.`, {
    meaning: "Nothing was sent, and the file was not changed.",
    hint: "Name another file with --out <path>.",
  });
}

/** What cannot be looked at is not written either, and says why. */
function isFilled(path: string): boolean {
  try {
    const stats = statSync(path);
    return stats.isFile() && stats.size > 0;
  } catch {
    return false;
  }
}
