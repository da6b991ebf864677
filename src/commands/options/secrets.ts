import type { Command } from "@commander-js/extra-typings";
import type { SecretOptions } from "../../secrets/destination.ts";
import type { SecretFormat } from "../../secrets/destination.ts";

export type SecretFlags = {
  secretFile?: string;
  secretCommand?: string;
  secretProfile?: string;
  secretFormat?: string;
  force?: true;
};

/** Declares the secret options on a command that yields a one-time secret. */
export function addSecretOptions<Args extends unknown[], Options extends Record<string, unknown>>(
  command: Command<Args, Options>,
): Command<Args, Options & SecretFlags> {
  return command
    .option("--secret-file <path>", "write the secret to a new file, readable by you alone")
    .option("--secret-command <command>", "give the secret to a command on its standard input")
    .option("--secret-profile <name>", "make the secret that existing profile's credential")
    .addOption(
      command
        .createOption("--secret-format <format>", "for --secret-file and --secret-command (raw)")
        .choices(["raw", "json", "env"] satisfies SecretFormat[]),
    )
    .option("--force", "let --secret-file replace an existing file") as unknown as Command<Args, Options & SecretFlags>;
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
