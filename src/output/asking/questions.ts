import { Failure } from "../../errors.ts";
import type { LiveLine } from "../live-view.ts";
import type { Terminal } from "../terminal.ts";
import type { Choice, Picked } from "./pick-list.ts";
import type { PromptContext, Question } from "./prompts.ts";
import { type NextStep, flags } from "../../next-step.ts";

export interface AskOptions extends Question {
  /** What to type on the command line instead, such as `--scope <scope>`. */
  readonly flag?: string;
}

export interface PickOptions {
  /** What is known, the likeliest first; if there is nothing the other way is taken immediately. */
  readonly choices: readonly Choice[];
  /** What to type on the command line instead. */
  readonly flag: string;
  /** Another question follows, whose answer is what is typed. */
  readonly isFirst?: true;
  /** If it may be none of the choices: the last line of the list, and the question for the text then. */
  readonly other?: { readonly label: string; readonly question: string; readonly validate?: Question["validate"] };
}

/** All that a command may ask a person. */
export interface Questions {
  /** True if a person can be asked: stdin and stderr are terminals, no `--no-input`, no CI. */
  readonly interactive: boolean;
  /** True if standard output is a terminal: a person reads the result there, and it may be kept. */
  readonly isScreen: boolean;
  /** What was answered so far, as words of a command line; nothing that was hidden. */
  readonly answered: readonly string[];
  /**
   * Asks for a yes. `--yes` is one.
   * @returns false for a no
   * @throws Failure `usage` if no one can be asked, `interrupted` for Ctrl-C, Escape, Ctrl-D and the end of the input
   */
  confirm(question: string, options?: { readonly destructive?: boolean }): Promise<boolean>;
  /**
   * Asks for a text; an empty one is asked for again.
   * @throws Failure `usage` if no one can be asked, naming the flag; `interrupted` as `confirm`
   */
  ask(question: string, options?: AskOptions): Promise<string>;
  /** Asks for one of what is known. @throws Failure as `ask` does */
  pick(question: string, options: PickOptions): Promise<string>;
  /**
   * Asks for several of what is known, at least one, without repetition.
   * @param options `chosen` are taken to begin with; `split` makes several of the text that is typed
   * @throws Failure as `ask` does
   */
  pickSome(
    question: string,
    options: PickOptions & {
      readonly other: NonNullable<PickOptions["other"]>;
      readonly chosen: readonly string[];
      readonly split: (text: string) => readonly string[];
    },
  ): Promise<string[]>;
}

export interface QuestionOptions {
  readonly terminal: Terminal;
  readonly noInput: boolean;
  readonly yes: boolean;
  /** Ends a question that is being asked; its reason is thrown. */
  readonly interruption?: AbortSignal;
}

/** What waits for a person's answer. */
export type Asking = Omit<Questions, "interactive" | "isScreen" | "answered">;

const nobody = `Input is not a terminal, or ${flags.noInput} or CI is set.`;
const withYes: NextStep = { hint: `Add ${flags.yes} to confirm.`, nextCommand: { add: [flags.yes] } };

export function createQuestions(
  {
    terminal,
    interactive,
    interruption = new AbortController().signal,
  }: QuestionOptions & Pick<Questions, "interactive">,
  live: LiveLine,
): Asking {
  const context = { terminal, interruption };
  const begin = (refused: string, step?: NextStep): void => {
    if (!interactive) throw new Failure("usage", refused, { meaning: nobody, ...step });
    live.close();
  };
  const ask: Questions["ask"] = async (question, { flag, validate, ...rest } = {}) => {
    const missing = flag === undefined ? `An answer is required: ${question}` : `${flag} is missing.`;
    const step: NextStep = flag === undefined ? {} : { hint: `Add ${flag}.` };
    begin(missing, step);
    const askText = terminal.isPlain ? (await import("./plain.ts")).plainText : (await import("./prompts.ts")).askText;
    const problem = (given: string): string | undefined =>
      given.trim() === "" ? "An answer is required. Press Ctrl-C to cancel." : validate?.(given);
    const answer = await askText(context, { question, ...rest, validate: problem });
    if (answer === undefined)
      throw new Failure("usage", missing, { meaning: "This terminal cannot hide what you type.", ...step });
    return answer;
  };
  return {
    ask,
    async confirm(question, { destructive = false } = {}) {
      begin(`Confirmation required: ${question}`, withYes);
      const askYesOrNo = terminal.isPlain
        ? (await import("./plain.ts")).plainYesOrNo
        : (await import("./prompts.ts")).askYesOrNo;
      return askYesOrNo(context, { question, destructive });
    },
    ...picks(context, { begin, ask }),
  };
}

/** If nothing is known there is nothing to pick: the text is asked for immediately. */
const nothingKnown: Picked = { values: [], somethingElse: true };

function picks(
  context: PromptContext,
  { begin, ask }: Pick<Questions, "ask"> & { begin: (refused: string, step?: NextStep) => void },
): Pick<Questions, "pick" | "pickSome"> {
  return {
    async pick(question, { choices, flag, other }) {
      const missing = `${flag} is missing.`;
      begin(missing, { hint: `Add ${flag}.` });
      const { pickOne } = await import("./pick-list.ts");
      const list = { question, choices, other: other?.label };
      const picked = choices.length === 0 ? nothingKnown : await pickOne(context, list);
      if (picked.somethingElse && other) return ask(other.question, { validate: other.validate, flag });
      const [value] = picked.values;
      if (value === undefined) throw new Failure("usage", missing);
      return value;
    },
    async pickSome(question, { choices, flag, other, chosen, split }) {
      const missing = `${flag} is missing.`;
      begin(missing, { hint: `Add ${flag}.` });
      const { pickSome } = await import("./pick-list.ts");
      const list = { question, choices, other: other.label, chosen };
      const picked = choices.length === 0 ? nothingKnown : await pickSome(context, list);
      const { values, somethingElse } = picked;
      const more = somethingElse ? split(await ask(other.question, { validate: other.validate, flag })) : [];
      return [...new Set([...values, ...more])];
    },
  };
}
