// The definition of a command: its arguments, options and examples, and the function that runs it.
import type { Command } from "@commander-js/extra-typings";
import type { DeclaredCommand, Notes } from "../completion/tree.ts";
import type { Context } from "../context.ts";
import type { Column, Format } from "../output/formats/format.ts";

/** A command: `run` receives the arguments and options that `configure` declares. */
interface Definition<Args extends unknown[], Options extends Record<string, unknown>> extends Notes {
  /** Declares arguments and options on the command, and returns it. */
  readonly configure: (command: Command) => Command<Args, Options>;
  /** Asks at a terminal for a missing first argument. @returns undefined without choices: the argument stays missing */
  readonly asks?: (context: Context, options: Options) => Promise<string | undefined>;
  /** All columns of integ's own result. integ refuses other fields in `--fields` before it sends a request. */
  readonly result?: readonly Column[];
  /** Additional formats of this command. */
  readonly formats?: readonly Format[];
  /** The command reports missing arguments and asks no question. */
  readonly neverAsks?: true;
  /** The output may be long: at a terminal it goes through the pager in `PAGER`. */
  readonly isPaged?: true;
  readonly run: (context: Context, input: { args: Args; options: Options }) => Promise<void>;
}

/** A command without its types, loaded when it runs or its help is shown. */
export type Verb = Definition<unknown[], Record<string, unknown>>;

/** Checks the types of a definition, and erases them: the program treats all commands alike. */
export function defineVerb<Args extends unknown[], Options extends Record<string, unknown>>(
  definition: Definition<Args, Options>,
): Verb {
  return definition as unknown as Verb;
}

/** Options that several commands share, with their types. */
export interface SharedOptions<Flags extends Record<string, unknown>> {
  <Args extends unknown[], Options extends Record<string, unknown>>(
    command: Command<Args, Options>,
  ): Command<Args, Options & Flags>;
}

/** The values of `SharedOptions`, as `run` receives them. */
export type FlagsOf<Shared> = Shared extends SharedOptions<infer Flags> ? Flags : never;

/** @param declare declares the options on a command, and returns it */
export function sharedOptions<Flags extends Record<string, unknown>>(
  declare: (command: Command) => Command<[], Flags>,
): SharedOptions<Flags> {
  return declare as unknown as SharedOptions<Flags>;
}

/** All commands with their arguments and options, for a command that describes them. */
export interface WholeTree {
  readonly root: DeclaredCommand;
  /** @returns undefined for a noun */
  readonly verbOf: (command: DeclaredCommand) => Verb | undefined;
}

/** `--dry-run`, for all commands that change something: they print their requests and local changes instead of making them. */
export const addDryRun = sharedOptions((command) =>
  command.option("--dry-run", "Show what would be sent and changed, and change nothing"),
);
