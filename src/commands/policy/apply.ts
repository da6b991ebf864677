import { DiskHealth } from "../../disk/disk-health.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { resolve } from "node:path";
import { serviceTime } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure, invalidValue } from "../../errors.ts";
import { isSettled } from "../../journal/entry.ts";
import type { PlanDocument } from "../../policy/digest.ts";
import type { Observed } from "../../policy/observed.ts";
import { type Plan, planPolicy, type PlanRow, runnable } from "../../policy/plan.ts";
import type { Policy } from "../../policy/policy.ts";
import { parseDuration } from "../options/global.ts";
import { actingAs, warnOfDamage, workbenchOf } from "../running/change.ts";
import { releaseSettled, cleanUp } from "../running/settled.ts";
import type { ItemOutcome } from "./apply-item.ts";
import { actingFor, assertNames, planOptions } from "./acting.ts";
import type { LiveTable } from "../../output/live-view.ts";
import {
  appliedColumns,
  appliedFields,
  confirmPlan,
  conclude,
  printApplied,
  reportIdle,
  reportOutcomes,
} from "./applied.ts";
import { applyPlan } from "./apply-plan.ts";
import { observe, scopeOf } from "./observe.ts";
import { loadPolicy, standardFile } from "./policy-file.ts";
import { assertSlots, reportPlanNotes } from "./rows.ts";
import { readTextFile } from "./text-file.ts";
import { revokeUnmanaged } from "./unmanaged.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  fields: appliedColumns.map(({ path }) => path),
  result: appliedFields,
  configure: (command) =>
    addDryRun(command)
      .argument("[plan]", "A plan that integ plan --out wrote")
      .option("-f, --file <path>", `Policy file (default: ${standardFile})`)
      .option("--only <name...>", "Apply only these items; repeatable")
      .option("--parallel <count>", "Number of items to change at the same time, 1 to 32", "4")
      .option("--finish <name...>", "End the overlap of these items now: revoke the old client or key")
      .option(
        "--retry <name...>",
        "Try these stalled items again; if an item's client or key is disabled, expired or not found, create another",
      )
      .option(
        "--redeliver <name...>",
        "Rotate these items now if you changed their destinations, or if the file or profile with the secret no longer exists",
      )
      .option("--adopt", "First adopt existing credentials that match an item, instead of creating new ones")
      .option("--include-own", "Also rotate the profile's own credential, after all others")
      .option("--revoke-unmanaged", "For each client and key that is in no item, ask whether to revoke it")
      .option("--wait <duration>", "Time to wait for a pending client; 0s: do not wait", "1m"),
  examples: [
    { line: "integ apply", does: "show the changes, confirm, and apply them" },
    { line: "integ apply --yes", does: "in a nightly job; a later run revokes old credentials after their overlap" },
    { line: "integ apply plan.json", does: "exactly what a plan says; exit 2 if something has changed since" },
    { line: "integ apply --adopt", does: "adopt what exists already, then create what is missing" },
    { line: "integ apply --finish reporting --yes", does: "revoke the old client before its overlap is over" },
  ],
  more: "An item that fails does not stop the others. After a crash, run integ apply again. Exit 0 also if an overlap is running or the policy's window for changes is closed; exit 10 if an item is stalled or needs a decision.",
  async run(given, { args: [planFile], options }) {
    const parallel = countOf(options.parallel);
    const waitMs = parseDuration(options.wait, "--wait");
    const { document, policy, file } = await policyAndPlan(given, { planFile, file: options.file, only: options.only });
    const only = options.only ?? document?.only ?? [];
    const { finish = [], retry = [], redeliver = [], includeOwn, adopt = false } = options;
    const named = { "--only": only, "--finish": finish, "--retry": retry, "--redeliver": redeliver };
    for (const [flag, names] of Object.entries(named)) assertNames(policy, names, flag);
    if (options.revokeUnmanaged) assertTerminal(given);
    if (adopt && document !== undefined) throw adoptWithPlanFailure();
    const context = actingFor(given, policy);
    const disk = new DiskHealth();
    const bench = await workbenchOf(context, { disk });
    await warnOfDamage(context);
    const { observed, entries } = await observe(context, { policy, account: bench.account });
    if (document !== undefined)
      await assertCurrent(document, { policy, observed, only, baseUrl: bench.account.baseUrl });
    const choice = planOptions({ only, retry, redeliver, finish, includeOwn, adopt });
    // A saved plan is applied as of its time: an action that became due later needs another plan.
    const at = document === undefined ? observed : { ...observed, nowMs: Date.parse(document.made_at) };
    const plan = planPolicy(policy, at, { ...choice, windowMs: observed.nowMs });
    assertInOverlap(plan, finish);
    assertSlots(plan);
    if (options.dryRun) return (await import("./dry-run.ts")).showPlan(context, { bench, plan });
    const asked = await confirmPlan(context, { plan, as: actingAs(bench), file });
    const table = context.output.liveTable(
      "Applying",
      runnable(plan).map(({ row }) => row.name),
    );
    const entriesAtPlan = new Set(entries.map(({ id }) => id));
    const applied = await applyPlan(
      plan,
      { context, bench, disk, scope: scopeOf(bench.account), entriesAtPlan, waitMs },
      { parallel, watch: updateRows(table) },
    ).finally(() => table.done());
    // Earlier runs may have left reserved space or copies of secrets for entries that are finished now.
    const unfinished = entries.filter(({ state }) => !isSettled(state)).map(({ id }) => id);
    await cleanUp(context, () => releaseSettled(context, { ids: unfinished, newestCount: 0 }));
    await printApplied(context, applied, { file });
    reportPlanNotes(context, plan, { file, profile: policy.profile, isPage: asked });
    reportIdle(context, plan, { retry, redeliver, file });
    reportOutcomes(context, applied, serviceTime(bench));
    if (options.revokeUnmanaged) await revokeUnmanaged(context, bench, { unmanaged: plan.unmanaged, entriesAtPlan });
    conclude(context, applied, { file, profile: policy.profile });
    if (only.length > 0) return;
    const why = context.lastApply.write(policy.id, scopeOf(bench.account), serviceTime(bench));
    if (why !== undefined) context.output.warn(`The time of this apply was not stored: ${why}.`);
  },
});

function countOf(text: string): number {
  const count = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= 32) return count;
  throw invalidValue("--parallel", text, {
    why: "it is not a whole number from 1 to 32",
    hint: "Write it like --parallel 4.",
  });
}

interface Source {
  readonly planFile: string | undefined;
  readonly file: string | undefined;
  readonly only: readonly string[] | undefined;
}

async function policyAndPlan(
  context: Context,
  { planFile, file, only }: Source,
): Promise<{ readonly document?: PlanDocument; readonly policy: Policy; readonly file: string }> {
  if (planFile === undefined) return loadPolicy(context, file ?? standardFile);
  if (file !== undefined || only !== undefined)
    throw new Failure("usage", "A plan already names its policy file and its items.", {
      meaning: "Nothing was sent.",
      hint: `Leave ${file === undefined ? "--only" : "--file"} out, or the plan.`,
    });
  const { longestPlan } = await import("../../policy/read.ts");
  const { readPlanDocument } = await import("../../policy/digest.ts");
  const read = readTextFile(resolve(context.settings.cwd, planFile), longestPlan);
  if ("why" in read)
    throw new Failure("usage", `The plan ${planFile} cannot be read: ${read.why}.`, {
      meaning: "Nothing was sent.",
      // `plan --out` refuses an existing file that is not a plan, so integ suggests this command only for a missing
      // file.
      ...(read.isMissing
        ? { nextCommand: shell`integ plan --out ${planFile}` }
        : { hint: "Name a file that integ plan --out wrote." }),
    });
  const document = readPlanDocument(read.text, planFile);
  return { document, ...(await loadPolicy(context, document.policy_file)) };
}

async function assertCurrent(
  document: PlanDocument,
  now: {
    readonly policy: Policy;
    readonly observed: Observed;
    readonly only: readonly string[];
    readonly baseUrl: string;
  },
): Promise<void> {
  const { assertUnchanged, fingerprints } = await import("../../policy/digest.ts");
  assertUnchanged(document, fingerprints(now), now.baseUrl);
}

function adoptWithPlanFailure(): Failure {
  return new Failure("usage", "--adopt needs the policy file: a saved plan adopts nothing.", {
    meaning: "Nothing was sent.",
    hint: "Run integ adopt --all first and make another plan, or leave the plan out.",
  });
}

function assertTerminal({ output, settings }: Context): void {
  if (output.interactive && !settings.yes) return;
  throw new Failure("usage", "--revoke-unmanaged asks for each client and key: it needs a terminal, without --yes.", {
    meaning: "Nothing was sent.",
    hint: "Revoke them one by one with integ oauth-clients revoke or integ keys revoke.",
  });
}

function assertInOverlap({ items }: Plan, finish: readonly string[]): void {
  const other = finish.find(
    (name) => items.find(({ decision }) => decision.item.name === name)?.decision.state !== "waiting",
  );
  if (other === undefined) return;
  throw new Failure("usage", `--finish: ${other} has no running overlap.`, {
    meaning: "Nothing was sent.",
    nextCommand: shell`integ plan`,
  });
}

function updateRows(table: LiveTable) {
  return (
    event: "begin" | "end",
    { row }: { readonly row: Pick<PlanRow, "name" | "action"> },
    outcome?: ItemOutcome,
  ) => (event === "begin" ? table.set(row.name, row.action) : table.end(row.name, outcome?.result ?? "finished"));
}
