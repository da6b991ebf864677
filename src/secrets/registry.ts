// All destinations of a one-time secret: built from the options of a command, or from what the journal remembers.
import { Failure } from "../errors.ts";
import type { ProfileRooms } from "../profiles/configure.ts";
import type { Environment } from "../profiles/environment.ts";
import type { ProfileStore } from "../profiles/store.ts";
import { commandDestination } from "./command.ts";
import type {
  Destination,
  DestinationRecord,
  OneTimeSecret,
  RememberedDestination,
  SecretOptions,
} from "./destination.ts";
import { fileDestination, rememberedFile } from "./file.ts";
import { type Issuer, profileDestination, rememberedProfile } from "./profile.ts";
import { checkSecretFormat } from "./secret-format.ts";
import { outputDestination } from "./stdout.ts";

export interface DestinationTools {
  readonly env: Environment;
  /** What a relative path is relative to. */
  readonly cwd: string;
  /** Files and folders of the program itself: no secret replaces the journal. */
  readonly own?: readonly string[];
  /** Descriptor of standard output (1). */
  readonly stdoutFd: number;
  /** Writes the receipt, secret and all, to standard output; returns when every byte was taken. */
  readonly print: (receipt: string) => Promise<void>;
  /** Writes to standard error as it is: what a command prints, and the mask for GitHub Actions. */
  readonly onStderr: (chunk: Uint8Array) => void;
  /** The stored profiles and credentials; asked for only by `--secret-profile`. */
  readonly profiles: () => Promise<ProfileRooms>;
  /** Whose service issues the secret. */
  readonly issuedBy?: Issuer;
  /** Tells a person something on the side. */
  readonly note?: (text: string) => void;
  /** Time `--secret-command` may take (default 60 s). */
  readonly commandLimitMs?: number;
  /** Ends `--secret-command` when it is aborted. */
  readonly signal?: AbortSignal;
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

async function toProfile(
  name: string,
  yields: OneTimeSecret["kind"] | undefined,
  tools: DestinationTools,
): Promise<Destination> {
  const { issuedBy, note } = tools;
  return profileDestination({ name, yields }, { rooms: await tools.profiles(), issuedBy, note });
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
  if (options.secretProfile !== undefined) return toProfile(options.secretProfile, options.yields, tools);
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
 * @param profiles the stored profiles; asked for only if a profile was the destination
 */
export function rememberedDestination(
  record: DestinationRecord,
  profiles: () => Promise<ProfileStore>,
): RememberedDestination {
  if (record.kind === "file") return rememberedFile(record);
  if (record.kind === "profile") return rememberedProfile(record, profiles);
  return untraced;
}
