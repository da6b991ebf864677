// What a command file gives: how it is typed (arguments, options, examples) and what it runs.
import type { Command } from "@commander-js/extra-typings";
import type { DeclaredCommand, Notes } from "../completion/tree.ts";
import type { Context } from "../context.ts";
import type { Format } from "../output/formats/format.ts";

/** What a command is: `run` receives the arguments and options that `configure` declares. */
interface Definition<Args extends unknown[], Options extends Record<string, unknown>> extends Notes {
  /** Returns the command it was given, with arguments and options declared on it. */
  readonly configure: (command: Command) => Command<Args, Options>;
  /**
   * Asks a person at a terminal for the first argument if it was left out. @returns undefined if there is nothing to pick
   * from: the argument is missing then
   */
  readonly asks?: (context: Context, options: Options) => Promise<string | undefined>;
  /** Formats that few commands have, and this one has. */
  readonly formats?: readonly Format[];
  /** It says what is missing, and asks for nothing. */
  readonly neverAsks?: true;
  /** What it prints may be long: at a terminal it goes through the pager that `PAGER` names. */
  readonly isPaged?: true;
  readonly run: (context: Context, input: { args: Args; options: Options }) => Promise<void>;
}

/** A command as the program knows it, loaded when it is run or its help is asked for. */
export type Verb = Definition<unknown[], Record<string, unknown>>;

/** Keeps the types of a command together, and forgets them for the program. */
export function defineVerb<Args extends unknown[], Options extends Record<string, unknown>>(
  definition: Definition<Args, Options>,
): Verb {
  return definition as unknown as Verb;
}

/** Adds to a command options that others have too; commander's types know them. */
export interface SharedOptions<Flags extends Record<string, unknown>> {
  <Args extends unknown[], Options extends Record<string, unknown>>(
    command: Command<Args, Options>,
  ): Command<Args, Options & Flags>;
}

/** What `SharedOptions` add, as `run` receives it. */
export type FlagsOf<Shared> = Shared extends SharedOptions<infer Flags> ? Flags : never;

/** @param declare declares the options on the command that it is given, and returns it */
export function sharedOptions<Flags extends Record<string, unknown>>(
  declare: (command: Command) => Command<[], Flags>,
): SharedOptions<Flags> {
  return declare as unknown as SharedOptions<Flags>;
}

/** Every command with every verb's arguments and options declared on it, as a verb that describes them all receives it. */
export interface WholeTree {
  readonly root: DeclaredCommand;
  /** @returns nothing for a noun */
  readonly verbOf: (command: DeclaredCommand) => Verb | undefined;
}

// `--dry-run` of every command that changes something: it does everything up to the change and prints what the real run then
// sends and changes on this machine.

export const addDryRun = sharedOptions((command) =>
  command.option("--dry-run", "Show what would be sent and changed, and change nothing"),
);
