import { addDryRun, defineVerb } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { askProfile } from "../options/known-names.ts";
import { warnOfUnfinished } from "./unfinished.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<name>", "The profile to remove"),
  examples: [{ line: "integ profiles remove old", does: "confirm first; the stored credential is removed too" }],
  asks: askProfile("Which profile should be removed?"),
  async run(context, { args: [name], options }) {
    const store = await context.profiles.store();
    const profile = store.named(name);
    await warnOfUnfinished(context, profile, "removed");
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      return showSteps(context, [{ what: `remove the profile ${name} and its stored credential` }]);
    }
    const question = `Remove the profile ${name} and its stored credential from this machine?`;
    if (!(await context.output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was removed: the answer was no.");
    const wasDefault = store.default === name;
    await context.profiles.remove(profile);
    context.output.note(wasDefault ? `${name} is removed; no profile is the default now.` : `${name} is removed.`);
  },
});
