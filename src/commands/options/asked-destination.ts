// Where a secret goes, asked of a person whose command does not say it: a terminal keeps what it shows, and so do its logs.
import type { Context } from "../../context.ts";
import type { DestinationOption, SecretOptions } from "../../secrets/destination.ts";
import { storeKinds } from "../../secrets/store-kinds.ts";

/** The overlap of a rotation whose secret a person has to bring somewhere first. */
export const screenOverlapMs = 24 * 3_600_000;

export interface AskedDestination {
  readonly options: SecretOptions;
  /** The person chose to read it from the screen. */
  readonly isScreen: boolean;
}

/** @returns the options as they were typed, if they name a destination, nothing is sent, or no one can be asked at a screen */
export async function askDestination(
  { output }: Context,
  typed: SecretOptions,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<AskedDestination> {
  const isNamed = typed.to.length > 0 || typed.as !== undefined || typed.force === true;
  if (dryRun || isNamed || !output.interactive || !output.isScreen) return { options: typed, isScreen: false };
  const answer = await output.pick("Where does the secret go?", { choices, flag: "--secret-file <path>" });
  if (answer !== "screen") return { options: { ...typed, to: [await described(output, answer)] }, isScreen: false };
  output.note("The secret is shown once, in the result: copy it before you close the terminal.");
  return { options: typed, isScreen: true };
}

const choices = [
  { value: "file", hint: "A new file that only you can read" },
  { value: "command", hint: "A command reads it from standard input" },
  ...Object.entries(storeKinds).map(([value, { what }]) => ({ value, hint: what })),
  { value: "screen", hint: "Shown here, once" },
];

async function described(output: Context["output"], answer: string): Promise<DestinationOption> {
  if (answer === "file")
    return { kind: "file", path: await output.ask("Path of the new file", { flag: "--secret-file <path>" }) };
  if (answer === "command")
    return { kind: "command", command: await output.ask("Command", { flag: "--secret-command <command>" }) };
  const form = Object.entries(storeKinds).find(([scheme]) => scheme === answer)?.[1].form ?? "";
  const address = await output.ask(`Address (${form})`, { flag: "--secret-to <store>" });
  return { kind: "store", to: address.startsWith(`${answer}:`) ? address : `${answer}:${address}` };
}
