import { askProfile, everyProfile } from "../options/known-names.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  configure: (command) => command.argument("<name>", "The profile that commands use if none is named"),
  examples: [{ line: "integ profiles use prod", does: "prod is the default from now on" }],
  asks: askProfile("Which profile should be the default?", everyProfile),
  async run(context, { args: [name] }) {
    await (await context.profiles.store()).use(name);
    context.output.note(`${name} is the default profile.`);
  },
});
