// The sandbox's own errors are mistakes of a setting, never of the service.
import { isUnwritable } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";

/** @param error what the sandbox threw; its message is a sentence for a person */
export function sandboxFailure(error: unknown): unknown {
  if (error instanceof Failure || !(error instanceof Error)) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "settings_differ")
    return new Failure("usage", error.message, { hint: "integ sandbox reset", cause: error });
  if (
    code === "bad_fault" ||
    code === "bad_setting" ||
    code === "state_damaged" ||
    code === "EADDRINUSE" ||
    isUnwritable(error)
  )
    return new Failure("usage", error.message, {
      hint: code === "state_damaged" ? "integ sandbox reset" : "integ help sandbox start",
      cause: error,
    });
  return error;
}
