import { Failure } from "../../errors.ts";
import type { LiveLine } from "../live-view.ts";
import type { Terminal } from "../terminal.ts";
import type { Choice, Picked } from "./pick-list.ts";
import type { PromptContext, Question } from "./prompts.ts";
import { type NextStep, flags } from "../../next-step.ts";

export interface AskOptions extends Question {
  /** The equivalent option, such as `--scope <scope>`. */
  readonly flag?: string;
}

export interface PickOptions {
  /** The likeliest first; if empty, integ asks for `other` immediately. */
  readonly choices: readonly Choice[];
  /** Option or argument that gives the same answer. */
  readonly flag: string;
  /** True if another question with the same flag follows, whose answer becomes the flag's value. */
  readonly isFirst?: true;
  /** Allows other values: label of the last row, and the question for the text. */
  readonly other?: { readonly label: string; readonly question: string; readonly validate?: Question["validate"] };
}

export interface Questions {
  /** True if stdin and stderr are terminals, without `--no-input` and outside CI. */
  readonly interactive: boolean;
  /** True if stdout is a terminal, where the user reads the result. */
  readonly isScreen: boolean;
  /** Command-line words that repeat the answers so far; a hidden answer contributes only its flag. */
  readonly answered: readonly string[];
  /** `--yes`, if the user said yes to a question that is not `isPersonal`. */
  readonly agreed: readonly string[];
  /**
   * `--yes` answers yes.
   * @throws Failure `usage` if integ may not ask, `interrupted` for Ctrl-C, Escape, Ctrl-D and the end of input
   */
  confirm(
    question: string,
    options?: { readonly destructive?: boolean; readonly isPersonal?: boolean },
  ): Promise<boolean>;
  /**
   * The answer is not empty.
   * @throws Failure `usage` with the flag if integ may not ask or cannot hide the answer; `interrupted` as `confirm`
   */
  ask(question: string, options?: AskOptions): Promise<string>;
  pick(question: string, options: PickOptions): Promise<string>;
  /**
   * Asks for values without duplicates. `chosen` preselects values; `split` splits typed text.
   * @throws Failure as `ask`
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
  readonly interruption?: AbortSignal;
}

export type Asking = Omit<Questions, "interactive" | "isScreen" | "answered" | "agreed">;

const cannotAsk = `integ cannot ask: input is not a terminal, or ${flags.noInput} or CI is set.`;
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
    if (!interactive) throw new Failure("usage", refused, { meaning: cannotAsk, ...step });
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

const nothingKnown: Picked = { values: [], isOther: true };

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
      if (picked.isOther && other) return ask(other.question, { validate: other.validate, flag });
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
      const { values, isOther } = picked;
      const more = isOther ? split(await ask(other.question, { validate: other.validate, flag })) : [];
      return [...new Set([...values, ...more])];
    },
  };
}
