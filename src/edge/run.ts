// Runs one command line: parses it, runs the verb, reports errors and returns the exit code.
import { chooseGlobals, formatAdvice, guessFormat } from "../commands/options/global.ts";
import type { Format } from "../output/formats/format.ts";
import type { Context } from "../context.ts";
import { isDiskFull } from "../disk/error-words.ts";
import { exitCodes, Failure, type FailureDetails, invalidValue, reasonOf } from "../errors.ts";
import type { FailureStyle } from "../output/failure.ts";
import { asColumns, assertKnown, fieldPaths } from "../output/fields.ts";
import { BrokenPipe, Terminal } from "../output/terminal.ts";
import { agentMode } from "../profiles/agent-mode.ts";
import { knownWords, type Typed, buildProgram, typedFor } from "../program.ts";
import { buildContext } from "./build-context.ts";
import { listenForInterruption } from "./interruption.ts";
import { shell, type Advice, similarName, stepBeside, withoutConsent } from "../next-step.ts";
import { type Command, CommanderError, type Help } from "commander";
import type { Screen } from "./help-screen.ts";

export interface CommandLine {
  readonly words: readonly string[];
  readonly version: string;
}

/** Wider lines of help are hard to read. */
const widestHelp = 100;

export async function runCommandLine(process: NodeJS.Process, line: CommandLine): Promise<number> {
  const { words, version } = line;
  const format = guessFormat(words, process.env);
  const terminal = terminalOf(process, words);
  const isForAgent = agentMode(process.env) !== undefined;
  try {
    const typed = await readCommandLine(words, { width: Math.min(terminal.width, widestHelp), version });
    if ("help" in typed) {
      if (typed.toStderr && (format === "json" || format === "ndjson")) throw noCommand(words);
      return await showHelp(terminal, typed);
    }
    const chosen = chooseGlobals(typed.globals, process.env);
    const globals = typed.verb.neverAsks ? { ...chosen, noInput: true } : chosen;
    assertFormat(typed, globals.format);
    assertFields(typed, globals.fields);
    if (typed.options.out === "-") throw dashFileFailure();
    if (typed.verb.isPaged) terminal.page();
    let announceWait = (): void => {};
    const interruption = listenForInterruption(process, () => announceWait());
    const built = await buildContext(process, terminal, { globals, interruption, version });
    const { close } = built;
    const { context, policyProfile } = watchPolicyProfile(built.context);
    announceWait = () =>
      context.output.note("Finishing the current step, a few seconds at most; press Ctrl-C again to exit immediately.");
    try {
      await typed.verb.run(context, { args: await promptForArguments(context, typed), options: typed.options });
      const { answered, agreed } = context.output;
      if (answered.length > 0)
        context.output.note(`Without questions: ${shell`integ ${[...words, ...answered, ...agreed]}`}`);
      return 0;
    } catch (error) {
      return await reportError(
        terminal,
        asSignalled(besidePolicy(error, policyProfile()), interruption.clock.interruption),
        {
          format: globals.format,
          typed: words,
          isForAgent,
        },
      );
    } finally {
      await close();
      terminal.end();
      await terminal.leavePager();
      interruption.release();
    }
  } catch (error) {
    return await reportError(terminal, error, { format, typed: words, isForAgent });
  }
}

const limitedFormatAdvice: Readonly<Partial<Record<Format, Advice>>> = {
  sarif: "Use sarif with integ keys audit or integ oauth-clients audit.",
  html: "Use html with integ report.",
  openmetrics: "Use openmetrics with integ status.",
};

function assertFormat({ verb, name }: Typed, format: Format): void {
  const hint = limitedFormatAdvice[format];
  if (hint === undefined || verb.formats?.includes(format)) return;
  throw new Failure("usage", `integ ${name} has no format ${format}.`, { hint });
}

/**
 * Rejects unknown `--fields` of a change or of integ's own rows. Fields of the service's rows are checked at the first
 * row.
 */
function assertFields({ verb: { result } }: Typed, fields: readonly string[] | undefined): void {
  if (result === undefined || fields === undefined) return;
  const others = ["object", "due_at"].map((path) => ({ path }));
  assertKnown(asColumns(fieldPaths(fields), result), { rows: [], documented: [...result, ...others] });
}

function dashFileFailure(): Failure {
  return new Failure("usage", "--out takes the name of a file, and - stands for standard output.", {
    hint: "Leave --out out to write to standard output; a file with that name is --out ./-.",
  });
}

function terminalOf(process: NodeJS.Process, words: readonly string[]): Terminal {
  return new Terminal({
    get stdin() {
      return process.stdin;
    },
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    noColor: words.includes("--no-color") || agentMode(process.env) !== undefined,
  });
}

async function showHelp(terminal: Terminal, help: { help: string; toStderr: boolean }): Promise<number> {
  const text = `${help.help.trimEnd()}\n`;
  if (help.toStderr) terminal.writeErr(text);
  else await terminal.writeOut(text);
  return help.toStderr ? exitCodes.usage : 0;
}

/** A program that requested JSON gets a failure, because it cannot use a help screen. */
function noCommand(words: readonly string[]): Failure {
  const command = knownWords(words);
  const message = command.length === 0 ? "No command was given." : `${command.join(" ")} needs one of its commands.`;
  const nextCommand = command.length === 0 ? shell`integ --help` : shell`integ help ${command}`;
  return new Failure("usage", message, { nextCommand });
}

async function promptForArguments(context: Context, { verb, args, options, missing }: Typed): Promise<unknown[]> {
  if (context.output.interactive && verb.contract !== undefined && options["dryRun"] !== true) {
    const profile = await context.profiles.active();
    await (verb.contract === "legacy" ? profile.legacy() : profile.credential());
  }
  if (missing === undefined) return args;
  const picked = context.output.interactive ? await verb.asks?.(context, options) : undefined;
  if (picked === undefined) throw missing;
  return [picked];
}

/** The exit code of an interrupted command must be that of its signal. */
function asSignalled(error: unknown, { aborted, reason }: AbortSignal): unknown {
  const isInterrupted = error instanceof Failure && error.kind === "interrupted";
  if (!isInterrupted || !aborted || !(reason instanceof Failure)) return error;
  return new Failure(reason.kind, error.message, error.details);
}

function watchPolicyProfile(context: Context): { context: Context; policyProfile: () => string | undefined } {
  let policyProfile: string | undefined;
  const named: Context["profiles"]["named"] = (name, source) => {
    if (source === "policy") policyProfile = name;
    return context.profiles.named(name, source);
  };
  return { context: { ...context, profiles: { ...context.profiles, named } }, policyProfile: () => policyProfile };
}

/** The profile of a policy is not typed, so the next step must name it. */
function besidePolicy(error: unknown, profile: string | undefined): unknown {
  if (!(error instanceof Failure) || profile === undefined) return error;
  const { nextCommand: next, hint } = error.details;
  const nextCommand = typeof next === "string" ? stepBeside(profile, next) : next;
  return new Failure(error.kind, error.message, {
    ...error.details,
    nextCommand,
    hint: hint && stepBeside(profile, hint),
  });
}

async function reportError(
  terminal: Terminal,
  error: unknown,
  {
    isForAgent,
    ...about
  }: { readonly format: Format; readonly typed: readonly string[]; readonly isForAgent: boolean },
): Promise<number> {
  // A closed pipe is not a failure: the reader wanted no more output.
  if (error instanceof BrokenPipe) return 0;
  const failure = error instanceof Failure ? error : failureOfSystem(error);
  const known =
    failure && isForAgent
      ? new Failure(failure.kind, failure.message, { ...failure.details, ...withoutConsent(failure.details) })
      : failure;
  const exitCode = known?.exitCode ?? exitCodes.failed;
  if (known?.details.isReported === true) return exitCode;
  terminal.close();
  terminal.startErrLine();
  terminal.writeErr(
    await render(error, { known, ...about, color: terminal.color.stderr, width: terminal.errWidth, exitCode }),
  );
  return exitCode;
}

async function render(
  error: unknown,
  { known, ...style }: FailureStyle & { readonly known: Failure | undefined },
): Promise<string> {
  try {
    const { renderBug, renderFailure } = await import("../output/failure.ts");
    return known ? renderFailure(known, style) : renderBug(error, style);
  } catch {
    // Too many open files or a disk error can prevent loading even the formatter of errors.
    return `Error: ${reasonOf(error)}\n`;
  }
}

function failureOfSystem(error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("syscall" in error)) return undefined;
  return new Failure("failed", `The operating system refused a call: ${error.message}.`, {
    meaning: "Every change that was started is in the journal.",
    ...(isDiskFull(error)
      ? { hint: "Free space on the disk.", nextCommand: shell`integ journal list` }
      : { nextCommand: "path" in error ? shell`integ doctor` : shell`integ journal list` }),
    cause: error,
  });
}

/**
 * `words` are the arguments after the program's name.
 * @returns the verb to run, with a failure in `missing` if its first argument is missing and the verb can ask for it;
 * or the text of a help screen or the version
 * @throws Failure `usage`, with a suggestion if a similar word exists
 */
export async function readCommandLine(
  words: readonly string[],
  screen: Screen,
): Promise<Typed | { help: string; toStderr: boolean }> {
  let printed = "";
  let complaint = "";
  let requestedHelp: RequestedHelp | undefined;
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
  const helpLater = (help: RequestedHelp): string => {
    requestedHelp = help;
    return "";
  };
  let stopped: Command | undefined;
  for (const command of allCommands(program)) {
    command
      .configureOutput(output)
      .configureHelp({ formatHelp: (of, helper) => helpLater({ command: of, helper }), minWidthToWrap: 20 })
      .exitOverride((error) => {
        stopped = command;
        throw error;
      });
  }
  const effectiveWords = wordsOfHelp(words, program) ?? wordsBeforeHelp(words) ?? words;
  const [first, topic, ...more] = effectiveWords;
  if (first === "help" && topic !== undefined && more.length === 0) {
    const [{ isHelpTopic }, { topicText }] = await Promise.all([
      import("../completion/help-topics.ts"),
      import("./help-topics.ts"),
    ]);
    if (isHelpTopic(topic)) return { help: topicText(topic, program, screen.width), toStderr: false };
  }
  try {
    await program.parseAsync(helpAsFlag(effectiveWords, program), { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (requestedHelp !== undefined)
      return { help: await helpText(requestedHelp, screen.width), toStderr: error.code === "commander.help" };
    // For `--version`, commander has printed the version.
    if (error.exitCode === 0) return { help: printed, toStderr: false };
    const unknownBelow = error.code === "commander.unknownCommand" ? stopped : undefined;
    const failure = await usageFailure(complaint || error.message, { words, program, stopped, unknownBelow });
    const incomplete = error.code === "commander.missingArgument" && stopped ? typedFor(stopped) : undefined;
    if (incomplete?.verb.asks) return { ...incomplete, missing: failure };
    throw failure;
  }
  if (typed) return typed;
  program.helpInformation();
  return { help: requestedHelp ? await helpText(requestedHelp, screen.width) : "", toStderr: false };
}

/** The texts of a help screen are loaded only when integ prints the screen. */
interface RequestedHelp {
  readonly command: Command;
  readonly helper: Help;
}

async function helpText({ command, helper }: RequestedHelp, width: number): Promise<string> {
  const { argumentDescription, helpNotes, helpScreen, optionDescription, rootNotes } = await import("./help-screen.ts");
  const screen = helpScreen(command, Object.assign(helper, { argumentDescription, optionDescription }));
  const notes = command.parent ? typedFor(command)?.verb : rootNotes;
  return notes ? screen + helpNotes(notes, width) : screen;
}

/** Leaves out global options, which have no effect on `help`. Returns undefined for other commands. */
function wordsOfHelp(words: readonly string[], program: Command): readonly string[] | undefined {
  const left: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!;
    const option = program.options.find(({ long, short }) => word === long || word === short);
    const isGlobal = option !== undefined || program.options.some(({ long }) => word.startsWith(`${long}=`));
    if (!isGlobal) left.push(word);
    else if (option?.required === true) at += 1;
    if (left.length > 0 && left[0] !== "help") return undefined;
  }
  return left.length > 0 ? left : undefined;
}

/** Reads `integ a b --help` as `integ help a b`, which reports an unknown command; undefined with other options. */
function wordsBeforeHelp(words: readonly string[]): readonly string[] | undefined {
  const [last, ...before] = words.toReversed();
  const isHelp = (last === "--help" || last === "-h") && before.length > 0;
  return isHelp && before.every((word) => !word.startsWith("-")) ? ["help", ...before.toReversed()] : undefined;
}

/**
 * Converts `integ help a b` to `integ a b --help`, and `integ` to `integ --help`. For an unknown command, `--help` is
 * left out, so that commander reports the command.
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

function secretFlagAdvice(flag: string): Advice | undefined {
  if (/^--(api-?)?(key|token)$/i.test(flag)) return "Use --api-key-stdin, or --api-key-command '<command>'.";
  if (/^--(client-?)?secret$/i.test(flag)) return "Use --client-secret-stdin, or --client-secret-command '<command>'.";
  if (/^--access-?token$/i.test(flag)) return "Use --access-token-command '<command>', or set INTEG_ACCESS_TOKEN.";
  return undefined;
}

interface Typing {
  readonly words: readonly string[];
  readonly program: Command;
  /** The command that reported the error. */
  readonly stopped: Command | undefined;
  /** The command that lacks the typed subcommand. */
  readonly unknownBelow: Command | undefined;
}

async function usageFailure(complaint: string, { words, program, stopped, unknownBelow }: Typing): Promise<Failure> {
  const [first = "", ...rest] = complaint.trim().split("\n");
  // The value of an unknown flag may be a secret, so it is not repeated.
  const message = first.replace(/^error: /, "").replace(/(unknown option '--?[^=']+)=.*'/, "$1'");
  const suggestion = rest
    .join(" ")
    .trim()
    .replace(/^\(|\)$/g, "")
    // An option that consents to a risk is suggested only if the typed word starts like the option.
    .replace(/^Did you mean (--(?:force|yes|new|accept-\S+|replace-\S+))\?$/, (all, meant: string) =>
      message.includes(`'${meant.slice(0, 4)}`) ? all : "",
    );
  const [, flag] = /^unknown option '(--[^']+)'/.exec(message) ?? [];
  // Commander treats a flag with an unexpected value as an unknown flag.
  if ([program, stopped].some((command) => command?.options.some(({ long }) => long === flag)))
    return new Failure("usage", `${flag} takes no value.`, { hint: `Write ${flag} without a value.` });
  const instead = flag === undefined ? undefined : secretFlagAdvice(flag);
  if (instead !== undefined)
    return new Failure("usage", sentence(message), {
      meaning:
        "No flag takes a secret as its value: it would appear in the shell's history and in the list of processes.",
      hint: instead,
    });
  const command = knownWords(words);
  const help = command.length === 0 ? shell`integ --help` : shell`integ help ${command}`;
  const terraform = words.find((word) => /^-out\b/.test(word));
  if (terraform !== undefined)
    return new Failure("usage", "Options have two hyphens: -out is --out.", { nextCommand: help });
  const choice = invalidChoice(message);
  if (choice !== undefined) return invalidValue(choice.what, choice.value, { ...choice.advice, nextCommand: help });
  const { unknownWordHelp, familiarOption } = await import("./unknown-words.ts");
  const details: { -readonly [key in keyof FailureDetails]: FailureDetails[key] } = {
    nextCommand: help,
    ...(familiarOption(message, command) ?? (suggestion && { meaning: suggestion })),
  };
  const isFile = message.startsWith("too many") && words.some((word) => /\.ya?ml$/.test(word));
  if (isFile && stopped?.options.some(({ long }) => long === "--file") === true)
    details.hint = "Name the policy file with -f <file>.";
  if (unknownBelow === undefined)
    return new Failure("usage", excessWords(message, command, words) ?? sentence(message), details);
  const familiar = unknownWordHelp(unknownBelow, { suggestion: suggestion || undefined, isHelp: words[0] === "help" });
  return new Failure("usage", sentence(message), { nextCommand: help, ...familiar });
}

function sentence(message: string): string {
  const text = message
    .replace(/^required option '(.+)' not specified$/, "$1 is missing")
    .replace(/^option '(?:-\w, )?(.+)' argument missing$/, "$1 needs a value")
    .replace(/^missing required argument '(.+)'$/, "<$1> is missing")
    .replaceAll(/'([^']*)'/g, '"$1"');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, ".");
}

/** Commander names only the last word of the command. Shows the first excess word only if it looks like a command. */
function excessWords(message: string, command: readonly string[], words: readonly string[]): string | undefined {
  const [, name, most] = /^too many arguments for '(.+)'\. Expected (\d+)/.exec(message) ?? [];
  if (most === undefined) return undefined;
  const taken = { "0": "only options", "1": "only one argument" }[most] ?? `only ${most} arguments`;
  const next = words[command.length];
  const isWord = most === "0" && next !== undefined && /^[a-z][a-z-]{0,15}$/.test(next);
  return `integ ${command.length === 0 ? name : command.join(" ")} takes ${taken}${isWord ? `, not "${next}"` : ""}.`;
}

/**
 * If an option's words and placeholder form a name, such as "output format" for `--output <format>`, the message uses
 * that name, otherwise the flag.
 */
function invalidChoice(message: string): InvalidChoice | undefined {
  const option =
    /^option '(?:-\w, )?--([\w-]+) <(\w+)[^>]*>' argument '(.*)' is invalid\. Allowed choices are (.*)\.$/s;
  const argument = /^command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/s;
  const [, flag, placeholder = "", value, choices] = option.exec(message) ?? [];
  if (flag !== undefined)
    return {
      what: optionName(flag, placeholder),
      value: value!,
      advice: adviceFor(value!, choices!, flag === "output" ? formatAdvice : undefined),
    };
  const [, typed, name, allowed] = argument.exec(message) ?? [];
  return name === undefined ? undefined : { what: name, value: typed!, advice: adviceFor(typed!, allowed!) };
}

function adviceFor(value: string, choices: string, hint: Advice = `Choose one of ${choices}.`): FailureDetails {
  const meant = value === "md" ? "markdown" : similarName(value, choices.split(", "));
  return { hint, meaning: meant === undefined ? undefined : `Did you mean ${meant}?` };
}

interface InvalidChoice {
  readonly what: string;
  readonly value: string;
  readonly advice: FailureDetails;
}

function optionName(flag: string, placeholder: string): string {
  if (flag.split("-").at(-1) === placeholder) return flag.replaceAll("-", " ");
  return flag.includes("-") ? `--${flag}` : `${flag} ${placeholder}`;
}

function* allCommands(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* allCommands(child);
}
