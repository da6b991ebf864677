import { Failure } from "../../errors.ts";
import { askProfile } from "../options/known-names.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command.argument("<name>", "The profile to remove"),
  examples: [{ line: "integ profiles remove old", does: "asks first; the stored credential goes too" }],
  asks: askProfile("Which profile is to be removed?"),
  async run(context, { args: [name] }) {
    const store = await context.profiles.store();
    if (!store.get(name))
      throw new Failure("usage", `There is no profile "${name}" to remove.`, { hint: "integ profiles list" });
    const question = `Remove the profile ${name} and its stored credential from this machine?`;
    if (!(await context.output.confirm(question, { destructive: true })))
      throw new Failure("usage", "Nothing was removed: the answer was no.");
    const wasDefault = store.default === name;
    await context.profiles.remove(name);
    context.output.note(wasDefault ? `${name} is removed; no profile is the default now.` : `${name} is removed.`);
  },
});
