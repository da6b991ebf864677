// Chooses between the recorded and the typed destination of an unfinished entry's secret.
import { resolve } from "node:path";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import {
  commandMark,
  describeDestination,
  type Destination,
  type DestinationOption,
  namesOf,
  placesOf,
  type RecordOf,
  type SecretOptions,
  type SingleRecord,
} from "../../secrets/destination.ts";
import { type Advice } from "../../next-step.ts";

export interface RecoveryOptions {
  readonly options: SecretOptions;
  /** True if the user named the entry by its id. */
  readonly isNamed: boolean;
  readonly replaces: boolean;
}

/**
 * If the user did not name the entry, its recorded file, profile or store takes precedence over typed destinations.
 * @returns undefined if the recorded command was not typed: use `refusingDestination`
 */
export function optionsFor(entry: Entry, { options, isNamed }: RecoveryOptions): SecretOptions | undefined {
  const record = entry.destination;
  const isTyped = options.to.length > 0;
  if (record?.kind === "several") {
    const isRecorded = (option: DestinationOption): boolean =>
      option.kind === "command" && placesOf(record).some((place) => isOptionFor(option, place, ""));
    // Without an id, only typed commands that are recorded apply, and `--force` covers no recorded place.
    const shown = isNamed ? options : { ...options, force: undefined, to: options.to.filter(isRecorded) };
    return { ...shown, remembered: record };
  }
  if (isTyped && isNamed) return options;
  const place = record && describeDestination(record).option;
  if (place) return rememberedOptions(place, options, isTyped);
  if (record?.kind !== "command") return options;
  if (!isTyped) return undefined;
  return isAnotherCommand(record, options) ? undefined : options;
}

export function claimOptions({ destination }: Entry, typed: SecretOptions): SecretOptions {
  if (destination?.kind === "several") return { ...typed, remembered: destination };
  // Without a typed destination, a recorded profile or store takes precedence over the screen.
  const isRemembered = destination?.kind === "store" || destination?.kind === "profile";
  const option = isRemembered && typed.to.length === 0 ? describeDestination(destination).option : undefined;
  return option ? { ...typed, to: [option] } : typed;
}

export function isOptionFor(option: DestinationOption, place: SingleRecord, cwd: string): boolean {
  switch (option.kind) {
    case "file":
      return place.kind === "file" && resolve(cwd, option.path) === place.path;
    case "command":
      return place.kind === "command" && (place.mark === undefined || commandMark(option) === place.mark);
    case "profile":
      return place.kind === "profile" && place.name === option.name;
    case "store":
      return place.kind === "store" && place.to === option.to;
  }
}

function isAnotherCommand(record: RecordOf<"command">, { to }: SecretOptions): boolean {
  const commands = to.filter(({ kind }) => kind === "command");
  return commands.length > 0 && !commands.some((option) => isOptionFor(option, record, ""));
}

export function ignoredNote(
  entry: Entry,
  { options: { to }, isNamed }: RecoveryOptions,
  cwd: string,
): string | undefined {
  const own = entry.destination;
  const places = placesOf(own);
  const isRemembered = places.some((place) => describeDestination(place).option !== undefined);
  if (own === null || isNamed || !isRemembered) return undefined;
  if (to.every((option) => places.some((place) => isOptionFor(option, place, cwd)))) return undefined;
  const id = entry.parent ?? entry.id;
  return `${id}: its secret goes to ${namesOf(own)}, the original destination. To send it elsewhere, name the entry (integ journal recover ${id} …).`;
}

/** The command for the secret is unknown, so integ must send nothing for the entry. */
export function refusingDestination(entry: Entry, { options, replaces }: RecoveryOptions): Destination {
  const what = options.to.some(({ kind }) => kind === "command")
    ? "Its secret goes to another command, or in another format."
    : "Its secret goes to a command, which is not stored because it may contain a credential.";
  const refuse = async (): Promise<never> => {
    const recovers = entry.parent ?? entry.id;
    const more = replaces ? " and --replace-lost-secret" : "";
    const hint: Advice = `Recover the entry ${recovers} and pass --secret-command again${more}: commands are not stored.`;
    throw new Failure("usage", what, { hint, recovers });
  };
  const record = entry.destination ?? { kind: "command" };
  return { isStdout: false, record, check: refuse, prepare: refuse, deliver: refuse, release: async () => {} };
}

/** `--force` covers the recorded destination only if none was typed. */
function rememberedOptions(place: DestinationOption, options: SecretOptions, isTyped: boolean): SecretOptions {
  const { as, force = false, ...rest } = options;
  if (isTyped || place.kind === "command") return { ...rest, to: [place] };
  if (place.kind !== "file") return { ...rest, as, to: [{ ...place, force }] };
  return { ...rest, to: [{ ...place, as: as ?? place.as ?? "raw", force }] };
}
