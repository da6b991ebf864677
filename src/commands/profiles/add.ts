import { addDryRun, defineVerb } from "../verb.ts";
import { addProfileOptions, askSecret, settingsOf, learnKeyId } from "./settings.ts";
import { assertJournalAnswers, warnOfHiddenEntries } from "./unfinished.ts";
import { tryCredential } from "./test-call.ts";
import { profileRow, profileView } from "./view.ts";
import type { Context } from "../../context.ts";
import { validationMessage } from "../../errors.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) =>
    addProfileOptions(
      addDryRun(command)
        .argument("<name>", "Name of the profile: letters, digits, . _ -")
        .option("--use", "Make the profile the default"),
    ),
  examples: [
    {
      line: "integ profiles add prod --region eu --base-url https://api.eu.example.com",
      does: "prompt for the API key, without showing it",
    },
    {
      line: "pass show integ | integ profiles add ci --region us --base-url https://api.us.example.com --api-key-stdin",
      does: "the key from another program",
    },
    {
      line: "integ profiles add vault --region us --base-url https://api.us.example.com --api-key-command 'vault read -field=key secret/integ'",
      does: "the command is run at each use; the key is never stored",
    },
  ],
  more: "integ stores the credential in the keychain if one is available, else in a file that only you can read, and sends it only to the profile's addresses.",
  asks: askName,
  async run(context, { args: [name], options }) {
    const { region, baseUrl } = options;
    const { output, settings } = context;
    // Refuses an invalid or existing name before the first question.
    const { checkProfileName, nameTaken } = await import("../../profiles/names.ts");
    checkProfileName(name);
    if ((await context.profiles.store()).get(name)) throw nameTaken(name);
    const chosenRegion = region ?? (await askRegion(context));
    const address = baseUrl ?? (await askBaseUrl(context));
    const typed = await settingsOf(context, { ...options, region: chosenRegion, baseUrl: address });
    const { checkBaseUrl } = await import("../../profiles/address.ts");
    const credential = typed.credential ?? {
      kind: "api_key" as const,
      basic_style: "apikey-user" as const,
      secret: await askSecret(context, "API key"),
    };
    const settingsToKeep = {
      ...typed,
      ...(settings.serviceVersion !== undefined && { service_version: settings.serviceVersion }),
      credential,
      name,
      region: typed.region!,
      base_url: checkBaseUrl(address, "--base-url"),
    };
    if (options.dryRun)
      return (await import("./dry-run.ts")).showSettings(context, `add the profile ${name}`, settingsToKeep);
    if (typed.journal && options.verify !== false) await assertJournalAnswers(context, typed.journal);
    const { profile, notes } = await context.profiles.add(settingsToKeep, { use: options.use === true });
    if (options.verify !== false) await tryCredential(context, profile, { mustAnswer: options.verify === true });
    for (const note of notes) output.note(note);
    if (profile.journal !== undefined) await warnOfHiddenEntries(context, { now: profile.journal });
    const isKnown = options.apiKeyId !== undefined || options.apiKeyCommand !== undefined;
    const shown = options.verify === false && isKnown ? profile : await learnKeyId(context, profile);
    const store = await context.profiles.store();
    await output.resource(profileRow(shown, store.default), profileView(shown));
    const { oauthOf } = await import("../../profiles/profile.ts");
    if (oauthOf(profile) === undefined)
      output.note(
        `Rotations of clients cannot be proven until you run ${shell`integ profiles edit ${name} --token-endpoint`} <url>.`,
      );
  },
});

export async function askName(context: Context): Promise<string> {
  const { checkProfileName } = await import("../../profiles/names.ts");
  const store = await context.profiles.store();
  return context.output.ask("Name of the profile", {
    flag: "<name>",
    validate: (name) =>
      validationMessage(() => checkProfileName(name)) ??
      (store.get(name) ? `Profile "${name}" already exists.` : undefined),
  });
}

export async function askRegion({ output }: Context): Promise<"us" | "eu"> {
  const choices = [{ value: "us" }, { value: "eu" }];
  return (await output.pick("Region", { choices, flag: "--region us|eu" })) as "us" | "eu";
}

export async function askBaseUrl({ output }: Context): Promise<string> {
  const { checkBaseUrl } = await import("../../profiles/address.ts");
  return output.ask("Base URL (https://…)", {
    flag: "--base-url <url>",
    validate: (address) => validationMessage(() => checkBaseUrl(address)),
  });
}
