import { addDryRun, defineVerb } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { throwSandboxFailure } from "./failure.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command),
  examples: [{ line: "integ sandbox reset --yes", does: "delete all that was created in the sandbox" }],
  more: "Journal entries of the sandbox stay, but their clients and keys no longer exist. integ journal forget <id> removes one from the list.",
  async run(context, { options }) {
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      return showSteps(context, [{ what: `delete the sandbox's state in ${context.settings.stateDir}` }]);
    }
    const question = "Delete everything created in this machine's sandbox?";
    if (!(await context.output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was reset: the answer was no.");
    const { removeState } = await import("../../sandbox/store.ts");
    await removeState(context.settings.stateDir).catch(throwSandboxFailure);
    context.output.note("The sandbox is empty.");
  },
});
