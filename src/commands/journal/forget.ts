import type { Context } from "../../context.ts";
import { destroy } from "../../operations/acts/destroy.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { isSettled, kindOf, type Entry, unfinishedStates } from "../../journal/entry.ts";
import type { EntryLease } from "../../journal/journal.ts";
import { askEntry } from "../options/known-names.ts";
import { secretKeepingOf } from "../running/change.ts";
import { entryView, publicEntry } from "./view.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<id>", "The entry to stop tracking"),
  examples: [
    { line: "integ journal forget 6k2f9", does: "show what may be left behind, then confirm" },
    { line: "integ journal forget 6k2f9 --yes", does: "skip the question" },
  ],
  more: "Use this for an entry that was finished elsewhere or can never be finished. integ sends nothing, and destroys the entry's kept secret.",
  asks: (context) =>
    askEntry(context, { question: "Which entry should no longer be tracked?", states: unfinishedStates }),
  async run(context, { args: [id], options }) {
    const journal = await context.journal();
    if (options.dryRun) return showForgotten(context, await journal.find(id));
    const lease = await journal.lease((await journal.find(id)).id);
    const steps: EntryLease[] = [];
    try {
      const { entry } = lease;
      if (isSettled(entry.state) && !(await destroyCopy(context, entry)))
        throw new Failure("usage", `The entry ${entry.id} is finished (${entry.state}): there is nothing to forget.`);
      if (isSettled(entry.state)) return await context.output.resource(publicEntry(entry), entryView);
      // Without the entry, a recovery would still finish its steps, so the command forgets these too.
      for (const step of await journal.select({ parent: entry.id, trusted: true }))
        steps.push(await journal.lease(step.id));
      // The entry is forgotten after its steps, so that after a crash the same command can forget the rest.
      const all = [...steps, lease];
      const keeping = await secretKeepingOf(context);
      const bench = { journal, secrets: keeping };
      for (const one of all) context.output.warn(forgetWarning(one.entry, keeping.isKept(one.entry.id)));
      const question = `Stop tracking the entry ${entry.id} (${entry.operation}, profile ${entry.profile}, ${entry.region})?`;
      if (!(await context.output.confirm(question, { destructive: true })))
        throw new Failure("usage", "Nothing was changed: the answer was no.");
      for (const one of all) {
        await one.record({ state: "abandoned" });
        await destroy(bench, one.entry, { typed: "forget" });
      }
      await context.output.resource(publicEntry(lease.entry), entryView);
    } finally {
      for (const one of [lease, ...steps]) await one.release();
    }
  },
});

async function destroyCopy(context: Context, { id, operation, resource_id }: Entry): Promise<boolean> {
  const secrets = await secretKeepingOf(context);
  if (!secrets.isKept(id)) return false;
  context.output.warn("The copy that is kept may be the only one of this secret. It will be destroyed.");
  const question = `Destroy the secret that is kept for ${id} (${operation})?`;
  if (!(await context.output.confirm(question, { destructive: true })))
    throw new Failure("usage", "Nothing was changed: the answer was no.");
  await destroy({ journal: await context.journal(), secrets }, { id, resource_id }, { typed: "forget" });
  return true;
}

async function showForgotten(context: Context, entry: Entry): Promise<void> {
  const { showSteps } = await import("../running/dry-run.ts");
  const steps = await (await context.journal()).select({ parent: entry.id, trusted: true });
  const keeping = await secretKeepingOf(context);
  await showSteps(
    context,
    (isSettled(entry.state) ? [entry] : [entry, ...steps]).flatMap((one) => [
      ...(isSettled(one.state) ? [] : [{ what: `stop tracking ${one.id} (${one.operation}, ${one.state})` }]),
      ...(keeping.isKept(one.id) ? [{ what: `destroy the secret that is kept for ${one.id}` }] : []),
    ]),
  );
}

function forgetWarning(entry: Entry, isKept: boolean): string {
  const what = kindOf(entry) === "access_key" ? "access key" : "OAuth client";
  const id = entry.resource_id ? ` (${entry.resource_id})` : "";
  if (isKept) return `The ${what}${id} exists. The only copy of its secret is kept and will be destroyed.`;
  const { old_client: old = entry.detail.old_key } = entry.detail;
  const isOldActive = entry.state === "waiting" || entry.state === "pending";
  if (old !== undefined && isOldActive)
    return `The new ${what}${id} exists, its secret was delivered, and the old one (${old}) is not revoked: both may work.`;
  switch (entry.state) {
    case "undelivered":
      return `The ${what}${id} exists, and its kept secret was destroyed.`;
    case "secret_lost":
      return `The ${what}${id} exists, uses a slot, and its secret is lost. Revoke it if you can.`;
    case "pending":
      return `The ${what}${id} may still be completed by the service. It would use a slot, and its secret would be lost.`;
    default:
      return entry.operation.endsWith(".create")
        ? `${what === "access key" ? "An access key" : "An OAuth client"} may exist without your knowledge. It would use a slot; its idempotency key is ${entry.idempotency_key ?? "none"}.`
        : `Whether the ${entry.operation} of${id || " it"} happened stays unknown.`;
  }
}
