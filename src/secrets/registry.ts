// All destinations of a one-time secret: built from the options of a command, or from what the journal remembers.
import { Failure } from "../errors.ts";
import type { ProfileRooms } from "../profiles/configure.ts";
import type { ProfileStore } from "../profiles/store.ts";
import { commandDestination, type CommandTools } from "./command.ts";
import type { Destination, DestinationRecord, RememberedDestination, SecretOptions, ProofKeys } from "./destination.ts";
import { fileDestination, rememberedFile } from "./file.ts";
import { profileDestination, type ProfileTools, rememberedProfile } from "./profile.ts";
import { checkSecretFormat } from "./secret-format.ts";
import { outputDestination, type OutputTools } from "./stdout.ts";

export interface DestinationTools
  extends CommandTools,
    Pick<OutputTools, "print">,
    Pick<ProfileTools, "issuedBy" | "note"> {
  /** What a relative path is relative to. */
  readonly cwd: string;
  /** Files and folders of the program itself: no secret replaces the journal. */
  readonly own?: readonly string[];
  /** For the digest of a file that was delivered. */
  readonly keys?: ProofKeys;
  /** Descriptor of standard output (1). */
  readonly stdoutFd: number;
  /** The stored profiles and credentials; asked for only by `--secret-profile`. */
  readonly profiles: () => Promise<ProfileRooms>;
}

function checkTogether(options: SecretOptions): void {
  const given = [
    options.secretFile !== undefined && "--secret-file",
    options.secretCommand !== undefined && "--secret-command",
    options.secretProfile !== undefined && "--secret-profile",
  ].filter((flag) => flag !== false);
  if (given.length > 1) {
    throw new Failure("usage", `${given.join(" and ")} cannot stand together: a secret goes to one place.`);
  }
  if (options.secretFormat !== undefined && options.secretFile === undefined && options.secretCommand === undefined) {
    throw new Failure("usage", "--secret-format is for --secret-file and --secret-command.");
  }
  if (options.force === true && options.secretFile === undefined) {
    throw new Failure("usage", "--force lets --secret-file replace an existing file, and no --secret-file is given.", {
      hint: "Add --secret-file <path>, or leave --force out.",
    });
  }
  if (options.secretFile === "") throw new Failure("usage", "--secret-file names no file.");
  if (options.secretFile?.endsWith("/"))
    throw new Failure("usage", `The secret cannot go to ${options.secretFile}: that names a folder.`, {
      hint: `--secret-file ${options.secretFile}client.secret`,
    });
  if (options.secretProfile === "") throw new Failure("usage", "--secret-profile names no profile.");
}

/**
 * The destination that the secret options name; standard output if they name none. Touches nothing: `check` does.
 * @throws Failure `usage` if they contradict each other, or one of them could do nothing
 */
export async function destinationFor(options: SecretOptions, tools: DestinationTools): Promise<Destination> {
  checkTogether(options);
  const format = checkSecretFormat(options.secretFormat);
  if (options.secretFile !== undefined) {
    const target = { path: options.secretFile, format, force: options.force === true };
    return fileDestination(target, tools.cwd, tools);
  }
  if (options.secretCommand !== undefined) return commandDestination({ command: options.secretCommand, format }, tools);
  if (options.secretProfile !== undefined) {
    const { issuedBy, note } = tools;
    const target = { name: options.secretProfile, yields: options.yields };
    return profileDestination(target, { rooms: await tools.profiles(), issuedBy, note });
  }
  return outputDestination({ ...tools, fd: tools.stdoutFd });
}

/** A destination that leaves nothing to look at. */
const untraced: RememberedDestination = {
  completeDelivery: async () => false,
  removeReserve: () => {},
  reread: () => undefined,
};

/**
 * The destination that a journal entry remembers.
 * @param from.profiles the stored profiles; asked for only if a profile was the destination
 * @param from.keys for a file's digest
 */
export function rememberedDestination(
  record: DestinationRecord,
  { profiles, keys }: { readonly profiles: () => Promise<ProfileStore>; readonly keys?: ProofKeys },
): RememberedDestination {
  if (record.kind === "file") return rememberedFile(record, keys);
  if (record.kind === "profile") return rememberedProfile(record, profiles);
  return untraced;
}
