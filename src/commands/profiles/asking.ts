// Owns: what a person is asked about a new profile, each answer checked as the flag would be.
// Must not know: where profiles and secrets are kept.
import type { Context } from "../../context.ts";
import { complaintOf } from "../complaint.ts";

/** The name of a profile that is not there yet. @throws Failure `usage` where nobody can be asked or no answer is given */
export async function askName(context: Context): Promise<string> {
  const { checkProfileName } = await import("../../profiles/profile.ts");
  const store = await context.profiles.store();
  return context.output.ask("Name of the profile", {
    flag: "<name>",
    validate: (name) =>
      complaintOf(() => checkProfileName(name)) ??
      (store.get(name) ? `There is a profile "${name}" already.` : undefined),
  });
}

/** The region of the organization (§1). @throws Failure as `askName` does */
export function askRegion({ output }: Context): Promise<string> {
  return output.pick("Region", { choices: [{ value: "us" }, { value: "eu" }], flag: "--region us|eu" });
}

/** The organization's regional API host. @throws Failure as `askName` does */
export async function askBaseUrl({ output }: Context): Promise<string> {
  const { checkBaseUrl } = await import("../../profiles/address.ts");
  return output.ask("Base URL (https://…)", {
    flag: "--base-url <url>",
    validate: (address) => complaintOf(() => checkBaseUrl(address)),
  });
}
