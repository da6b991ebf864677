// `--secret-command`: the secret on a command's standard input, never in its arguments or its environment.
import { accessSync, constants } from "node:fs";
import { Failure } from "../errors.ts";
import type { Environment } from "../profiles/environment.ts";
import { endWords, runShell, type ShellRun } from "../profiles/shell-command.ts";
import { commandMark, type Destination, type DestinationRecord, type SecretFormat } from "./destination.ts";
import { renderSecret } from "./secret-format.ts";

export interface CommandTarget {
  readonly command: string;
  readonly format: SecretFormat;
}

export interface CommandTools {
  readonly env: Environment;
  /** Gets all that the command prints: its output is not our result. */
  readonly onStderr: (chunk: Uint8Array) => void;
  /** Default 60 s. */
  readonly commandLimitMs?: number;
  /** Ends the command when it is aborted: the secret was then not taken. */
  readonly signal?: AbortSignal;
}

function notTaken(why: string, more = ""): Failure {
  return new Failure("undelivered", `The --secret-command ${why}. ${more}`.trim());
}

/** A command as the place for a secret. */
export function commandDestination(target: CommandTarget, tools: CommandTools): Destination {
  const { command, format } = target;
  const check = async (): Promise<DestinationRecord> => {
    if (command.trim() === "") throw new Failure("usage", "--secret-command is empty.");
    const record: DestinationRecord = { kind: "command", mark: commandMark(target) };
    if (process.platform === "win32") return record;
    try {
      accessSync("/bin/sh", constants.X_OK);
    } catch (error) {
      throw new Failure("usage", "--secret-command needs /bin/sh, and it cannot be run here.", { cause: error });
    }
    return record;
  };
  return {
    isStdout: false,
    check,
    prepare: check,
    async deliver(secret) {
      let run: ShellRun;
      try {
        run = await runShell(command, {
          env: tools.env,
          input: renderSecret(secret, format),
          timeLimitMs: tools.commandLimitMs ?? 60_000,
          onStderr: tools.onStderr,
          echo: true,
          signal: tools.signal,
        });
      } catch (error) {
        throw notTaken(
          "did not finish: whether it took the secret is not known",
          error instanceof Failure ? error.message : "",
        );
      }
      if (run.status !== 0) throw notTaken(`failed with ${endWords(run)}`);
      if (run.unread > 0) throw notTaken("ended without reading the secret from its standard input");
    },
    async release() {},
  };
}
