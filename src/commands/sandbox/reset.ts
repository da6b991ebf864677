import { Failure } from "../../errors.ts";
import { defineVerb } from "../verb.ts";
import { throwSandboxFailure } from "./failure.ts";

export const command = defineVerb({
  configure: (command) => command,
  examples: [{ line: "integ sandbox reset --yes", does: "throw away all that was made in the sandbox" }],
  more: "Journal entries of the sandbox stay: what they point at is gone. integ journal forget <id> ends one.",
  async run(context) {
    const question = "Throw away everything that was made in the sandbox of this machine?";
    if (!(await context.output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was reset: the answer was no.");
    const { removeState } = await import("../../sandbox/store.ts");
    await removeState(context.settings.stateDir).catch(throwSandboxFailure);
    context.output.note("The sandbox is as new.");
  },
});
