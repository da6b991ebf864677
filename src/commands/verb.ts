import type { Command } from "@commander-js/extra-typings";
import type { DeclaredCommand, Notes } from "../completion/tree.ts";
import type { Context } from "../context.ts";
import type { Column, Format } from "../output/formats/format.ts";
import type { Contract } from "../profiles/profile.ts";

interface Definition<Args extends unknown[], Options extends Record<string, unknown>> extends Notes {
  readonly configure: (command: Command) => Command<Args, Options>;
  /**
   * Asks at a terminal for a missing first argument. Returns undefined if there are no choices: the argument then stays
   * missing.
   */
  readonly asks?: (context: Context, options: Options) => Promise<string | undefined>;
  /** At a terminal, integ reads the profile's credential for this contract before the first question. */
  readonly contract?: Contract;
  /** All columns of integ's own result. integ refuses other `--fields` before it sends a request. */
  readonly result?: readonly Column[];
  /** These formats are available in addition to those of every command. */
  readonly formats?: readonly Format[];
  /** True if the command reports missing arguments instead of asking. */
  readonly neverAsks?: true;
  /** At a terminal, the output goes through the pager, because it may be long. */
  readonly isPaged?: true;
  readonly run: (context: Context, input: { args: Args; options: Options }) => Promise<void>;
}

export type Verb = Definition<unknown[], Record<string, unknown>>;

/** Checks the types of a definition, and erases them: the program treats all commands alike. */
export function defineVerb<Args extends unknown[], Options extends Record<string, unknown>>(
  definition: Definition<Args, Options>,
): Verb {
  return definition as unknown as Verb;
}

export interface SharedOptions<Flags extends Record<string, unknown>> {
  <Args extends unknown[], Options extends Record<string, unknown>>(
    command: Command<Args, Options>,
  ): Command<Args, Options & Flags>;
}

export type FlagsOf<Shared> = Shared extends SharedOptions<infer Flags> ? Flags : never;

export function sharedOptions<Flags extends Record<string, unknown>>(
  declare: (command: Command) => Command<[], Flags>,
): SharedOptions<Flags> {
  return declare as unknown as SharedOptions<Flags>;
}

export interface WholeTree {
  readonly root: DeclaredCommand;
  /** Returns undefined for a noun, such as `keys`. */
  readonly verbOf: (command: DeclaredCommand) => Verb | undefined;
}

export const addDryRun = sharedOptions((command) =>
  command.option("--dry-run", "Show what would be sent and changed, and change nothing"),
);
