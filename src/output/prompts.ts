// Owns: questions to a person on a real terminal, on standard error: yes or no, a text, a hidden text.
// Must not know: what is asked, whether asking is allowed. Source: cli.md §1 (`--yes`, `--no-input`).
import { type Asking, asked, askedInOneLine } from "./asking.ts";
import { visibleText } from "./visible-text.ts";

export interface Question {
  /** What is typed is not shown. */
  readonly hidden?: boolean;
  /** Says what is wrong with an answer, or undefined. */
  readonly validate?: (answer: string) => string | undefined;
}

/**
 * Yes or no. Escape, Ctrl-D and a closed input are no.
 * @param destructive no is what Enter means
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
 */
export async function askYesOrNo(
  asking: Asking,
  { question, destructive }: { question: string; destructive: boolean },
): Promise<boolean> {
  const message = visibleText(question);
  if (asking.terminal.isDumb) {
    const answer = await askedInOneLine(asking, `${message} (${destructive ? "y/N" : "Y/n"})`);
    return answer === undefined ? false : answer === "" ? !destructive : /^y(es)?$/i.test(answer);
  }
  const { confirm } = await import("@clack/prompts");
  const answer = await asked(asking, (streams) => confirm({ ...streams, message, initialValue: !destructive }));
  return answer === true;
}

/**
 * A text. @returns undefined where the person gave none: Escape, Ctrl-D or a closed input; and for a hidden text on a
 * terminal that cannot hide it
 * @throws Failure `interrupted` for Ctrl-C, and the reason of the interruption
 */
export async function askText(
  asking: Asking,
  { question, ...options }: Question & { question: string },
): Promise<string | undefined> {
  const { hidden = false, validate } = options;
  const message = visibleText(question);
  const problem = (given: string | undefined): string | undefined => {
    const found = validate?.(given ?? "");
    return found === undefined ? undefined : visibleText(found);
  };
  if (asking.terminal.isDumb) return hidden ? undefined : plainText(asking, { message, problem });
  const { password, text } = await import("@clack/prompts");
  const answer = await asked(asking, (streams) =>
    (hidden ? password : text)({ ...streams, message, validate: problem }),
  );
  return typeof answer === "string" ? answer : undefined;
}

/** The same question where no cursor can be moved: asked in a line, and again where the answer is not right. */
async function plainText(
  asking: Asking,
  { message, problem }: { message: string; problem: (given: string) => string | undefined },
): Promise<string | undefined> {
  for (;;) {
    const answer = await askedInOneLine(asking, message);
    if (answer === undefined) return undefined;
    const found = problem(answer);
    if (found === undefined) return answer;
    asking.terminal.writeErr(`${found}\n`);
  }
}
