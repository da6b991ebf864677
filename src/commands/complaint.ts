// Owns: a rule, wherever it stands, as what a question says of an answer: it is asked again at once, and does not fail at
// the end. Must not know: any one rule.
import { Failure } from "../errors.ts";

/** What a check finds wrong, or nothing. Anything but a Failure is thrown on. */
export function complaintOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}
