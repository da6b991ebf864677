// Owns: where a secret goes that recovery brings: an entry's own place, as its command was told it, or the one that is asked
// for now. A secret at the wrong place, or shown to a log that nobody keeps, is lost, and what it replaces is revoked.
import { resolve } from "node:path";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import { checkSecretFormat } from "../../secrets/secret-format.ts";
import type { SecretOptions } from "../../secrets/choice.ts";
import { commandMark } from "../../secrets/command-mark.ts";
import type { Destination, DestinationRecord } from "../../secrets/destination.ts";

export interface Asked {
  readonly options: SecretOptions;
  /** The entry was named by its id: then it is the one that the options are meant for. */
  readonly isNamed: boolean;
  /** `--replace-lost-secret` */
  readonly replaces: boolean;
}

/**
 * The secret options for one entry. Where none is named by its id, the options are for those that know no place of their
 * own: a file and a profile are remembered, and a command is at least known from another.
 * @returns nothing where the place was a command that is not the one asked for: `placeNotTold` stands for it
 */
export function optionsFor(entry: Entry, { options, isNamed }: Asked): SecretOptions | undefined {
  const record = entry.destination;
  const isAsked = (options.secretFile ?? options.secretCommand ?? options.secretProfile) !== undefined;
  if (isAsked && isNamed) return options;
  if (record?.kind === "file" || record?.kind === "profile") return again(remembered(record), options, isAsked);
  if (record?.kind !== "command") return options;
  if (!isAsked) return undefined;
  return isAnotherCommand(record, options) ? undefined : options;
}

function isAnotherCommand(
  { mark }: { readonly mark?: string },
  { secretCommand, secretFormat }: SecretOptions,
): boolean {
  if (secretCommand === undefined || mark === undefined) return false;
  return commandMark({ command: secretCommand, format: checkSecretFormat(secretFormat) }) !== mark;
}

/** Says that an option is not for this entry; nothing where there is nothing to say. */
export function passedOver(entry: Entry, { options, isNamed }: Asked, cwd: string): string | undefined {
  const own = entry.destination;
  if (isNamed || (own?.kind !== "file" && own?.kind !== "profile")) return undefined;
  const file = options.secretFile === undefined ? undefined : resolve(cwd, options.secretFile);
  const asked = file ?? options.secretCommand ?? options.secretProfile;
  const isSame = own.kind === "file" ? file === own.path : file === undefined;
  if (asked === undefined || isSame) return undefined;
  const place = own.kind === "file" ? own.path : `profile ${own.name}`;
  const id = entry.parent ?? entry.id;
  return `${id}: its secret goes to ${place}, as it was asked for. Named (integ journal recover ${id} …), it goes elsewhere.`;
}

/** A place that cannot be used before it is told: nothing is sent that may bring a secret. */
export function placeNotTold(entry: Entry, { options, replaces }: Asked): Destination {
  const what =
    options.secretCommand === undefined
      ? "Its secret was to go to a command, which is not remembered: it may hold a credential."
      : "Its secret was to go to another command, or in another format.";
  const refuse = (): never => {
    throw new Failure("usage", what, {
      hint: `integ journal recover ${entry.parent ?? entry.id}${replaces ? " --replace-lost-secret" : ""} --secret-command '<command>'`,
    });
  };
  return {
    isStdout: false,
    check: async () => refuse(),
    prepare: async () => refuse(),
    deliver: async () => refuse(),
    release: async () => {},
  };
}

/** The remembered place, with what the flags say of it now: of several entries `--force` is for those that go to a file. */
function again(place: SecretOptions, { secretFormat, force }: SecretOptions, isAsked: boolean): SecretOptions {
  if (isAsked) return place;
  return {
    ...place,
    ...(secretFormat !== undefined && { secretFormat }),
    ...(place.secretFile !== undefined && { force: force === true || place.force === true }),
  };
}

function remembered(record: Extract<DestinationRecord, { kind: "file" | "profile" }>): SecretOptions {
  if (record.kind === "profile") return { secretProfile: record.name };
  return { secretFile: record.path, secretFormat: record.format, force: record.force };
}
