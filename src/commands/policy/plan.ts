import { statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { PlanDocument } from "../../policy/digest.ts";
import type { Decision } from "../../policy/decide.ts";
import type { Plan } from "../../policy/plan.ts";
import type { Policy } from "../../policy/policy.ts";
import { accountOf, warnOfDamage } from "../running/change.ts";
import { defineVerb } from "../verb.ts";
import { assertFolder, readTextFile } from "./text-file.ts";
import { actingFor, assertNames, planOptions, missingForItems } from "./acting.ts";
import { observe } from "./observe.ts";
import { planPage } from "./plan-page.ts";
import { addPolicyFile, fileWords, loadPolicy } from "./policy-file.ts";
import { assertSlots, planColumns, printPlanRows, summarizePlan, reportPlanNotes } from "./rows.ts";
import { flags, type NextStep, shell, stepAs, stepBeside } from "../../next-step.ts";
import { heldSteps, reportHeld } from "./held.ts";

export const command = defineVerb({
  isPaged: true,
  fields: planColumns.map(({ path }) => path),
  configure: (command) =>
    addPolicyFile(command)
      .option("--only <name...>", "Plan only these items; repeatable")
      .option("--exit-code", "Exit with 10 if apply would change something now")
      .option("--out <path>", "Write the plan to a file, for integ apply <path>"),
  examples: [
    { line: "integ plan", does: "show what integ apply would do; change nothing" },
    { line: "integ plan --out plan.json; integ apply plan.json", does: "apply exactly the reviewed plan" },
    { line: "integ plan --only reporting --json | jq -r '.data[].action'", does: "one item, for a script" },
  ],
  more: "Commands and destinations are shown in full: read them before you apply someone else's file. Exit 0; with --exit-code 10 if apply would change something now, not for items that a person must decide about.",
  neverAsks: true,
  async run(given, { options }) {
    const { policy, file } = await loadPolicy(given, options.file);
    const only = options.only ?? [];
    assertNames(policy, only, "--only");
    if (options.out !== undefined) await assertReplaceable(given, options.out);
    const context = actingFor(given, policy);
    const account = await accountOf(context);
    await warnOfDamage(context);
    const { observed } = await observe(context, { policy, account });
    const [{ planPolicy, runnable }, { planDocument }] = await Promise.all([
      import("../../policy/plan.ts"),
      import("../../policy/digest.ts"),
    ]);
    const plan = planPolicy(policy, observed, planOptions({ only }));
    const { profile, region, baseUrl } = account;
    const document = planDocument(plan, { policyFile: file, profile, region, baseUrl, only, policy, observed });
    if (options.out !== undefined) writePlan(context, options.out, document);
    const isDocument = context.output.format === "json" || context.output.format === "yaml";
    const isPage = context.output.format === "table" && context.output.fields === undefined;
    if (isDocument && context.output.fields === undefined) await context.output.document(document);
    else if (isPage)
      await context.output.page(({ width }) => planPage({ plan, file, as: `${profile} (${region})`, width }));
    else await printPlanRows(context, document.data);
    await summarizePlan(context, document.data);
    reportPlanNotes(context, plan, { file, profile: policy.profile, isPage });
    assertSlots(plan);
    await reportDue(context, { plan, profile, policy, source: applyArgumentsOf(options.out, file), file });
    if (options.exitCode && runnable(plan).length > 0)
      throw new Failure("findings", "The plan has pending changes.", { isReported: true });
  },
});

function applyArgumentsOf(out: string | undefined, file: string): readonly string[] {
  return out === undefined ? fileWords(file) : [out];
}

interface DueContext {
  readonly plan: Plan;
  readonly profile: string;
  readonly policy: Policy;
  readonly source: readonly string[];
  readonly file: string;
}

async function reportDue(
  { output, ...context }: Context,
  { plan, profile, policy, source, file }: DueContext,
): Promise<void> {
  const due = plan.items.map(({ decision }) => decision).filter(({ action }) => action !== "none" && action !== "wait");
  const runnable = due.filter(({ hold }) => hold === undefined);
  let missing: Failure | undefined;
  for (const kind of new Set(runnable.map(({ item }) => item.kind)))
    missing ??= await missingForItems({ output, ...context }, profile, kind);
  if (missing !== undefined) output.warn(`To apply this, a credential is missing: ${missing.message}`);
  // With `--out`, `source` is the plan's path, and `apply` of a written plan adopts nothing.
  const isAdopted = ({ hold, choices }: Decision): boolean =>
    source.length !== 1 && hold === "not_adopted" && choices?.length === 1;
  const held = due.filter(({ hold }) => hold !== undefined);
  const adopt = runnable.length > 0 && held.some(isAdopted) ? [flags.adopt] : [];
  const steps = heldSteps(runnable.length > 0 ? held.filter((one) => !isAdopted(one)) : held, file);
  const [{ step: first } = { step: {} as NextStep }, ...others] = steps;
  const isCommand = runnable.length === 0 && others.length === 0 && first.hint === undefined;
  if (!isCommand) reportHeld({ output, ...context }, steps, policy.profile);
  const apply: NextStep = runnable.length > 0 ? { nextCommand: shell`integ apply ${adopt} ${source}` } : {};
  const { hint, nextCommand } = missing?.details ?? (isCommand ? first : apply);
  if (hint !== undefined) output.note(stepBeside(policy.profile, hint));
  if (typeof nextCommand === "string")
    output.next(stepBeside(policy.profile, stepAs(context.settings.profile, nextCommand)));
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

async function assertReplaceable(context: Context, path: string): Promise<void> {
  const to = resolve(context.settings.cwd, path);
  if (!hasContent(to)) return assertFolder(to, path);
  const [{ isPlanText }, { longestPlan }] = await Promise.all([
    import("../../policy/digest.ts"),
    import("../../policy/read.ts"),
  ]);
  const read = readTextFile(to, longestPlan);
  if ("text" in read && isPlanText(read.text)) return;
  throw new Failure("usage", `The plan cannot be written to ${path}: the file exists and is not a plan.`, {
    meaning: "Nothing was sent, and the file was not changed.",
    hint: "Name another file with --out <path>.",
  });
}

/** False if the file cannot be inspected: writing the plan reports the error. */
function hasContent(path: string): boolean {
  try {
    const stats = statSync(path);
    return stats.isFile() && stats.size > 0;
  } catch {
    return false;
  }
}
