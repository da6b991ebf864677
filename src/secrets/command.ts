// `--secret-command`: the secret on a command's standard input, never in its arguments or its environment.
import { accessSync, constants } from "node:fs";
import { Failure } from "../errors.ts";
import type { Environment } from "../profiles/environment.ts";
import { endWords, runShell, type ShellRun } from "../profiles/shell-command.ts";
import {
  commandMark,
  type Destination,
  type DestinationRecord,
  type OneTimeSecret,
  type SecretFormat,
} from "./destination.ts";
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

class CommandDestination implements Destination {
  readonly isStdout = false;
  readonly #target: CommandTarget;
  readonly #tools: CommandTools;

  constructor(target: CommandTarget, tools: CommandTools) {
    this.#target = target;
    this.#tools = tools;
  }

  async check(): Promise<DestinationRecord> {
    if (this.#target.command.trim() === "") throw new Failure("usage", "--secret-command is empty.");
    const place: DestinationRecord = { kind: "command", mark: commandMark(this.#target) };
    if (process.platform === "win32") return place;
    try {
      accessSync("/bin/sh", constants.X_OK);
    } catch (error) {
      throw new Failure("usage", "--secret-command needs /bin/sh, and it cannot be run here.", { cause: error });
    }
    return place;
  }

  prepare(): Promise<DestinationRecord> {
    return this.check();
  }

  async deliver(secret: OneTimeSecret): Promise<void> {
    const { command, format } = this.#target;
    let run: ShellRun;
    try {
      run = await runShell(command, {
        env: this.#tools.env,
        input: renderSecret(secret, format),
        timeLimitMs: this.#tools.commandLimitMs ?? 60_000,
        onStderr: this.#tools.onStderr,
        echo: true,
        signal: this.#tools.signal,
      });
    } catch (error) {
      throw notTaken("did not take the secret", error instanceof Failure ? error.message : "");
    }
    if (run.status !== 0) throw notTaken(`failed with ${endWords(run)}`);
    if (run.unread > 0) throw notTaken("ended without reading the secret from its standard input");
  }

  async release(): Promise<void> {}
}

/** A command as the place for a secret. */
export function commandDestination(target: CommandTarget, tools: CommandTools): Destination {
  return new CommandDestination(target, tools);
}
