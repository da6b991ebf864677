import { addDryRun, defineVerb } from "../verb.ts";
import { askProfile, everyProfile } from "../options/known-names.ts";

export const command = defineVerb({
  configure: (command) => addDryRun(command).argument("<name>", "The profile to use by default"),
  examples: [{ line: "integ profiles use prod", does: "prod is the default from now on" }],
  asks: askProfile("Which profile should be the default?", everyProfile),
  async run(context, { args: [name], options }) {
    const store = await context.profiles.store();
    if (options.dryRun) {
      const { showSteps } = await import("../running/dry-run.ts");
      return showSteps(context, store.default === name ? [] : [{ what: `make ${name} the default profile` }]);
    }
    await store.use(name);
    context.output.note(`${name} is the default profile.`);
    if (context.output.format !== "table") await context.output.document({ object: "default_profile", name });
  },
});
