import { addDryRun, defineVerb } from "../verb.ts";
import { Failure } from "../../errors.ts";
import { askProfile } from "../options/known-names.ts";
import { addProfileOptions, settingsOf, learnKeyId } from "./settings.ts";
import { testCall } from "./test-call.ts";
import { assertJournalAnswers, isBoundElsewhere, warnOfHiddenEntries, warnOfUnfinished } from "./unfinished.ts";
import { profileRow, profileView } from "./view.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) => addProfileOptions(addDryRun(command).argument("<name>", "The profile to change")),
  examples: [
    { line: "integ profiles edit prod --organization-id 6f1c…", does: "change one setting, keep the rest" },
    { line: "pass show integ | integ profiles edit prod --api-key-stdin", does: "another key for the same address" },
    {
      line: "integ profiles edit prod --base-url https://api.example.com",
      does: "another origin: removes the credential, its token endpoint and the legacy token settings, and says so",
    },
  ],
  asks: askProfile("Which profile should be changed?"),
  async run(context, { args: [name], options }) {
    const store = await context.profiles.store();
    const before = store.named(name);
    const typed = await settingsOf(context, options, before);
    const version = context.settings.serviceVersion;
    const changes = { ...typed, ...(version !== undefined && { service_version: version }) };
    if (Object.keys(changes).length === 0)
      throw new Failure("usage", "No setting to change was given.", { nextCommand: shell`integ help profiles edit` });
    if (options.dryRun)
      return (await import("./dry-run.ts")).showSettings(context, `change the profile ${name}`, changes);
    if (changes.journal && options.verify !== false) await assertJournalAnswers(context, changes.journal);
    const { profile, notes } = await context.profiles.edit(name, changes);
    for (const note of notes) context.output.warn(note);
    await warnOfHiddenEntries(context, { before: before.journal, now: profile.journal });
    if (isBoundElsewhere(before, profile)) await warnOfUnfinished(context, profile, "moved");
    const hasNewKey = options.apiKeyStdin === true || options.accessTokenEndpoint !== undefined;
    const isIdUnknown = hasNewKey && options.apiKeyId === undefined;
    const shown = isIdUnknown ? await learnKeyId(context, profile) : profile;
    await context.output.resource(profileRow(shown, (await context.profiles.store()).default), profileView(shown));
    if (options.verify) await testCall(context, name);
  },
});
