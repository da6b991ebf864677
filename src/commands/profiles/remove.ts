import { addDryRun, defineVerb } from "../verb.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { askProfile } from "../options/known-names.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<name>", "The profile to remove"),
  examples: [{ line: "integ profiles remove old", does: "ask first; the stored credential is removed too" }],
  asks: askProfile("Which profile should be removed?"),
  async run(context, { args: [name], options }) {
    const store = await context.profiles.store();
    const profile = store.get(name);
    if (!profile)
      throw new Failure("usage", `Profile "${name}" not found.`, {
        nextCommand: shell`integ profiles list`,
      });
    await warnOfUnfinished(context, profile.id).catch((error: unknown) => {
      // A journal that cannot be read keeps no one from removing a credential.
      if (!(error instanceof Failure)) throw error;
      context.output.warn(`It is not known whether it has unfinished changes: ${error.message}`);
    });
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      return showSteps(context, [{ what: `remove the profile ${name} and its stored credential` }]);
    }
    const question = `Remove the profile ${name} and its stored credential from this machine?`;
    if (!(await context.output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was removed: the answer was no.");
    const wasDefault = store.default === name;
    await context.profiles.remove(name);
    context.output.note(wasDefault ? `${name} is removed; no profile is the default now.` : `${name} is removed.`);
  },
});

/** What only this profile can finish: one that is added again under its name is another one. */
async function warnOfUnfinished(context: Context, profileId: string): Promise<void> {
  const journal = await context.journal();
  const unfinished = (await journal.unsettled()).filter(
    ({ profile_id, parent }) => profile_id === profileId && parent === null,
  );
  if (unfinished.length === 0) return;
  const are = unfinished.length === 1 ? "1 change is" : `${unfinished.length} changes are`;
  const ids = unfinished.map(({ id, operation, state }) => `${id} (${operation}, ${state})`).join(", ");
  const whom = journal.isShared ? "a profile of the same account, here or on another machine" : "this profile";
  context.output.warn(
    `${are} unfinished, and cannot be finished without ${whom}: ${ids}. First: integ journal recover ${unfinished.map(({ id }) => id).join(" ")}`,
  );
}
