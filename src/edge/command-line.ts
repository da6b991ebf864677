// How words typed become a verb to run, a help screen, or a complaint with a suggestion.
import { type Command, CommanderError } from "commander";
import { Failure } from "../errors.ts";
import { isHelpTopic } from "../completion/help-topics.ts";
import { helpNotes, helpScreen, optionDescription, rootNotes, type Screen } from "./help-screen.ts";
import { buildProgram, knownWords, type Typed, typedFor } from "../program.ts";
import { insteadOfUnknown } from "./unknown-words.ts";
import { type Advice, shell } from "../next-step.ts";

/**
 * Reads what was typed.
 * @param words the arguments after the program's name
 * @returns the verb to run, with the failure it is where its first argument is `missing` and can be asked for; or the text of
 * a help screen
 * @throws Failure `usage` with a suggestion where one is near
 */
export async function readCommandLine(
  words: readonly string[],
  screen: Screen,
): Promise<Typed | { help: string; toStderr: boolean }> {
  let printed = "";
  let complaint = "";
  let typed: Typed | undefined;
  const program = buildProgram(screen.version, (found) => void (typed = found), words);
  const output = {
    writeOut: (text: string) => void (printed += text),
    writeErr: (text: string) => void (complaint += text),
    getOutHelpWidth: () => screen.width,
    getErrHelpWidth: () => screen.width,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  };
  let stopped: Command | undefined;
  for (const command of allCommands(program)) {
    command
      .configureOutput(output)
      .configureHelp({ formatHelp: helpScreen, optionDescription, minWidthToWrap: 20 })
      .addHelpText("after", () => notesBelow(command, screen.width))
      .exitOverride((error) => {
        stopped = command;
        throw error;
      });
  }
  const [first, topic, ...more] = words;
  if (first === "help" && isHelpTopic(topic) && more.length === 0) {
    const { topicText } = await import("./help-topics.ts");
    return { help: topicText(topic, program, screen.width), toStderr: false };
  }
  try {
    await program.parseAsync(helpAsFlag(words, program), { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return { help: printed, toStderr: false };
    if (error.code === "commander.help") return { help: complaint || printed, toStderr: true };
    const unknownBelow = error.code === "commander.unknownCommand" ? stopped : undefined;
    const failure = usageFailure(complaint || error.message, { words, program, unknownBelow });
    const lacking = error.code === "commander.missingArgument" && stopped ? typedFor(stopped) : undefined;
    if (lacking?.verb.asks) return { ...lacking, missing: failure };
    throw failure;
  }
  if (!typed) return { help: program.helpInformation(), toStderr: false };
  return typed;
}

/** A noun has none. */
function notesBelow(command: Command, width: number): string {
  const notes = command.parent ? typedFor(command)?.verb : rootNotes;
  return notes ? helpNotes(notes, width) : "";
}

/**
 * `integ help a b` is `integ a b --help`; where there is no such command the help of another would hide it. `integ` alone is
 * `integ --help`.
 */
function helpAsFlag(words: readonly string[], program: Command): string[] {
  if (words.length === 0) return ["--help"];
  if (words[0] !== "help") return [...words];
  const meant = words.slice(1).filter((word) => word !== "--help");
  let command = program;
  for (const word of meant.filter((word) => !word.startsWith("-"))) {
    if (command.commands.length === 0) break;
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (!next) return meant;
    command = next;
  }
  return [...meant, "--help"];
}

/** A verb's own options are there once it was typed. */
function knows(program: Command, flag: string): boolean {
  return [...allCommands(program)].some(({ options }) => options.some(({ long }) => long === flag));
}

/** A flag that someone expects to take a secret: one that sounds alike would keep it in the open. */
function insteadOfSecret(flag: string): Advice | undefined {
  if (/^--(api-?)?(key|token)$/i.test(flag)) return "Use --api-key-stdin, or --api-key-command '<command>'.";
  if (/^--(client-?)?secret$/i.test(flag)) return "Use --client-secret-stdin, or --client-secret-command '<command>'.";
  if (/^--access-?token$/i.test(flag)) return "Use --access-token-command '<command>', or set INTEG_ACCESS_TOKEN.";
  return undefined;
}

interface Typing {
  readonly words: readonly string[];
  readonly program: Command;
  /** The command that has none of the name that was typed. */
  readonly unknownBelow: Command | undefined;
}

function usageFailure(complaint: string, { words, program, unknownBelow }: Typing): Failure {
  const [first = "", ...rest] = complaint.trim().split("\n");
  // What was typed after a flag that does not exist may be a secret: it is not said back.
  const message = first.replace(/^error: /, "").replace(/(unknown option '--?[^=']+)=.*'/, "$1'");
  const suggestion = rest
    .join(" ")
    .trim()
    .replace(/^\(|\)$/g, "");
  const [, flag] = /^unknown option '(--[^']+)'/.exec(message) ?? [];
  // To commander a value after a flag that takes none makes it another flag.
  if (flag !== undefined && knows(program, flag))
    return new Failure("usage", `${flag} takes no value.`, { hint: `Write ${flag} without a value.` });
  const instead = flag === undefined ? undefined : insteadOfSecret(flag);
  if (instead !== undefined)
    return new Failure("usage", sentence(message), {
      meaning:
        "No flag takes a secret as its value: it would appear in the shell's history and in the list of processes.",
      hint: instead,
    });
  const known = knownWords(words);
  const help = known.length === 0 ? shell`integ --help` : shell`integ help ${known}`;
  const choice = invalidChoice(message);
  if (choice !== undefined) return new Failure("usage", choice.message, { hint: choice.hint, nextCommand: help });
  return new Failure("usage", sentence(message), {
    nextCommand: help,
    ...(unknownBelow ? insteadOfUnknown(unknownBelow, suggestion || undefined) : { meaning: suggestion || undefined }),
  });
}

/** What commander reports, in the words and the quotation marks of every other message. */
function sentence(message: string): string {
  const text = message
    .replace(/^required option '(.+)' not specified$/, "$1 is missing")
    .replace(/^option '(?:-\w, )?(.+)' argument missing$/, "$1 needs a value")
    .replace(/^missing required argument '(.+)'$/, "<$1> is missing")
    .replace(
      /^(too many arguments for) '(.+)'\. Expected (\d+) arguments? but got (\d+)\.?$/,
      "$1 $2: expected $3, got $4",
    )
    .replaceAll(/'([^']*)'/g, '"$1"');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, ".");
}

/**
 * A value that is not one of an option's or argument's choices, in the words of the same value in a variable: the option is
 * named by its words and its placeholder (`--output <format>`: "output format") where these make a name, else as it is typed.
 */
function invalidChoice(message: string): { readonly message: string; readonly hint: Advice } | undefined {
  const option =
    /^option '(?:-\w, )?--([\w-]+) <(\w+)[^>]*>' argument '(.*)' is invalid\. Allowed choices are (.*)\.$/s;
  const argument = /^command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/s;
  const [, flag, placeholder = "", value, choices] = option.exec(message) ?? [];
  if (flag !== undefined) return choiceOf(optionName(flag, placeholder), value!, choices!);
  const [, typed, name, allowed] = argument.exec(message) ?? [];
  return name === undefined ? undefined : choiceOf(name, typed!, allowed!);
}

function choiceOf(what: string, value: string, choices: string): { readonly message: string; readonly hint: Advice } {
  return { message: `Invalid ${what} "${value}".`, hint: `Choose one of ${choices}.` };
}

function optionName(flag: string, placeholder: string): string {
  if (flag.split("-").at(-1) === placeholder) return flag.replaceAll("-", " ");
  return flag.includes("-") ? `--${flag}` : `${flag} ${placeholder}`;
}

function* allCommands(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* allCommands(child);
}
