import type { Command } from "@commander-js/extra-typings";
import type { DeclaredCommand, Notes } from "../completion/tree.ts";
import type { Context } from "../context.ts";
import type { Column, Format } from "../output/formats/format.ts";
import type { Contract } from "../profiles/profile.ts";

interface Definition<Args extends unknown[], Options extends Record<string, unknown>> extends Notes {
  readonly configure: (command: Command) => Command<Args, Options>;
  /** Asks at a terminal for a missing first argument. @returns undefined without choices */
  readonly asks?: (context: Context, options: Options) => Promise<string | undefined>;
  /** Before the first question at a terminal, integ reads the credential for this contract, except in a dry run. */
  readonly contract?: Contract;
  /** The columns of a change or of integ's own rows: unknown `--fields` are refused before a request. */
  readonly result?: readonly Column[];
  /** Output formats in addition to those of every command. */
  readonly formats?: readonly Format[];
  /** True for a command that never asks, as if `--no-input` were typed. */
  readonly neverAsks?: true;
  /** Long output goes through the pager at a terminal. */
  readonly isPaged?: true;
  readonly run: (context: Context, input: { args: Args; options: Options }) => Promise<void>;
}

export type Verb = Definition<unknown[], Record<string, unknown>>;

/** Checks a definition's types, then erases them. */
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
  /** @returns undefined for a noun, such as `keys` */
  readonly verbOf: (command: DeclaredCommand) => Verb | undefined;
}

export const addDryRun = sharedOptions((command) =>
  command.option("--dry-run", "Show what would be sent and changed, and change nothing"),
);
