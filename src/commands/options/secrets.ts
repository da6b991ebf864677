import { type FlagsOf, sharedOptions } from "../verb.ts";
import type { Entry } from "../../journal/entry.ts";
import type { SecretOptions } from "../../secrets/destination.ts";
import type { SecretFormat } from "../../secrets/destination.ts";

/** Declares the secret options on a command that yields a one-time secret. */
export const addSecretOptions = sharedOptions((command) =>
  command
    .option("--secret-file <path>", "Write the secret to a new file, readable by you alone")
    .option("--secret-command <command>", "Give the secret to a command on its standard input")
    .option("--secret-profile <name>", "Make the secret that existing profile's credential")
    .addOption(
      command
        .createOption(
          "--secret-format <format>",
          "Format for --secret-file and --secret-command: raw, json or env (default: raw)",
        )
        .choices(["raw", "json", "env"] satisfies SecretFormat[]),
    )
    .option("--force", "Let --secret-file replace an existing file"),
);
export type SecretFlags = FlagsOf<typeof addSecretOptions>;

/** What a secret is and who issues it, as the entry says that it belongs to: never the profile that is chosen now. */
export function issuedAs({ operation, base_url, organization_id }: Entry): Pick<SecretOptions, "yields" | "issuedBy"> {
  return {
    yields: operation.startsWith("access_key.") ? "access_key" : "oauth_client",
    issuedBy: { baseUrl: base_url, organizationId: organization_id ?? undefined },
  };
}

/** The flags as the secrets room reads them; what contradicts itself is refused there. */
export function secretOptionsOf(flags: SecretFlags): SecretOptions {
  return {
    secretFile: flags.secretFile,
    secretCommand: flags.secretCommand,
    secretProfile: flags.secretProfile,
    secretFormat: flags.secretFormat,
    force: flags.force === true,
  };
}
