import { failedCall, fileFailure } from "../../disk/error-words.ts";
import { Failure } from "../../errors.ts";
import { shell } from "../../next-step.ts";

const settingsErrors: ReadonlySet<unknown> = new Set([
  "settings_differ",
  "state_damaged",
  "bad_fault",
  "bad_setting",
  "EADDRINUSE",
]);

export function throwSandboxFailure(error: unknown): never {
  if (error instanceof Failure || !(error instanceof Error)) throw error;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === "state_folder") {
    const hint = "Remove the folder, or set INTEG_STATE_DIR to another one.";
    throw new Failure("usage", error.message, { hint, nextCommand: shell`rmdir ${path ?? ""}`, cause: error });
  }
  if (!settingsErrors.has(code) && path !== undefined && failedCall(error))
    throw fileFailure(error, "write the sandbox's state to", { path });
  if (!settingsErrors.has(code)) throw error;
  const isStale = code === "settings_differ" || code === "state_damaged";
  const nextCommand = isStale ? shell`integ sandbox reset` : shell`integ help sandbox start`;
  throw new Failure("usage", error.message, { nextCommand, cause: error });
}
