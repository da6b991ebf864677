// Runs a user's command through the shell. integ gives it secrets only on standard input.
import type { ChildProcess } from "node:child_process";
import type { Duplex } from "node:stream";
import { Failure } from "../errors.ts";
import { hasTerminal, killCommand } from "./command-end.ts";
import { childEnvironment } from "./child-environment.ts";
import { agentMode } from "./agent-mode.ts";
import { shownOutput } from "./command-output.ts";
import type { Environment } from "./resolution.ts";
import { type Advice, shell } from "../next-step.ts";

/** Longer output cannot be a secret. */
const outputLimitBytes = 64 * 1024;

/** If a process of the ended command keeps the pipe open, integ waits this long for more output. */
const lingerMs = 500;

export interface ShellRun {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  /** Bytes of the input that the command did not read. */
  readonly unread: number;
}

export interface ShellOptions {
  /** The command gets only those variables that `childEnvironment` allows. */
  readonly env: Environment;
  /** The command gets these variables unchanged. */
  readonly facts?: Environment;
  readonly input?: string;
  readonly timeLimitMs: number;
  /** Secrets to mask in the output. The default is the input. */
  readonly secrets?: readonly string[];
  /** Receives the command's standard error, and with `echo` its output, with the secrets masked. */
  readonly onStderr?: (chunk: Buffer) => void;
  /** False if the caller never shows what `onStderr` receives. Default: true. */
  readonly isStderrQuoted?: boolean;
  /** Passes the output to `onStderr` instead of collecting it. */
  readonly echo?: boolean;
  readonly signal?: AbortSignal;
}

/** `cat` passes the input to the command, and `wc` counts the bytes that stay unread. */
export const inputTools = ["cat", "wc"] as const;

// Node gives a child a socket as standard input, but users of kubectl, vault and gh open `/dev/stdin`, which fails for
// a socket. So `cat` provides a pipe, and descriptor 3 reports how many bytes stayed unread. With input up to
// `pipeBytes`, the command starts only after integ has written the whole input: if integ is killed earlier, the command
// cannot take empty input for the secret.
const withInput = `for tool in ${inputTools.join(" ")}; do
  command -v "$tool" > /dev/null || { echo "$tool: not found" >&2; exit 127; }
done
cat | { read -r start <&3 || exit; /bin/sh -c "$1" 3>&-; status=$?; wc -c >&3; exit $status; }`;

/** Input of this length fits into the pipe. With longer input, the command starts before the whole input is written. */
const pipeBytes = 32 * 1024;

function startOf(command: string, hasInput: boolean): { file: string; args: string[]; shell: boolean } {
  if (process.platform === "win32") return { file: command, args: [], shell: true };
  const args = hasInput ? ["-c", withInput, "sh", command] : ["-c", command];
  return { file: "/bin/sh", args, shell: false };
}

function collect(stream: NodeJS.EventEmitter | null | undefined, onChunk: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve) => {
    if (!stream) return resolve();
    stream.on("data", onChunk);
    stream.on("error", () => resolve());
    stream.on("close", () => resolve());
  });
}

/** Node fires a timer with a longer delay immediately. */
const longestTimerMs = 2 ** 31 - 1;

interface EndOptions {
  readonly timeLimitMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly leadsGroup: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** At the time limit or on abort, kills the command and its descendants, which could still read the secret. */
function endOf(
  child: ChildProcess,
  streams: Promise<unknown>,
  { timeLimitMs, signal, leadsGroup, env }: EndOptions,
): Promise<ChildProcess | "late" | "canceled"> {
  return new Promise((resolve, reject) => {
    const stopWaiting = (): void => {
      for (const stream of child.stdio) stream?.destroy();
    };
    let givenUp: "late" | "canceled" | undefined;
    const giveUp = (why: "late" | "canceled") => (): void => {
      clearTimeout(timer);
      givenUp = why;
      void killCommand(child, { leadsGroup, env });
    };
    const cancel = giveUp("canceled");
    const timer = setTimeout(giveUp("late"), Math.min(timeLimitMs, longestTimerMs));
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    const stopTimer = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    };
    child.on("error", (error) => {
      stopTimer();
      reject(error);
    });
    child.on("exit", () => {
      stopTimer();
      const linger = setTimeout(stopWaiting, lingerMs);
      void streams.then(() => {
        clearTimeout(linger);
        resolve(givenUp ?? child);
      });
    });
  });
}

function giveInput({ stdin, stdio: [, , , start] }: ChildProcess, input: string): void {
  const begin = (): void => void (start as Duplex).write("\n");
  const isWaiting = process.platform !== "win32" && Buffer.byteLength(input) <= pipeBytes;
  if (!isWaiting) begin();
  const onWritten = (error?: Error | null): void => void (error ? start?.destroy() : begin());
  stdin?.end(input, isWaiting ? onWritten : undefined);
}

/**
 * @throws Failure `failed` if the command cannot start, takes too long or prints too much; `usage` for an invalid
 * `INTEG_COMMAND_ENV`; the signal's reason on abort
 */
export async function runShell(command: string, options: ShellOptions): Promise<ShellRun> {
  const env = childEnvironment(options.env, options.facts);
  const { spawn } = await import("node:child_process");
  const { file, args, shell } = startOf(command, options.input !== undefined);
  const leadsGroup = !hasTerminal();
  const child = spawn(file, args, {
    shell,
    detached: leadsGroup,
    env,
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  const output: Buffer[] = [];
  const unread: Buffer[] = [];
  let size = 0;
  const given = options.secrets ?? (options.input === undefined ? [] : [options.input]);
  const isAgent = options.isStderrQuoted !== false && agentMode(options.env) !== undefined;
  const shown = shownOutput((chunk) => options.onStderr?.(chunk), { isAgent, given });
  const keep = (chunk: Buffer): void => {
    size += chunk.length;
    if (options.echo === true) shown.add(chunk);
    else if (size <= outputLimitBytes) output.push(chunk);
    // Closing the pipe stops a program that keeps writing.
    else child.stdout?.destroy();
  };
  const [, stdout, stderr, report] = child.stdio;
  const streams = Promise.all([
    collect(stdout, keep),
    collect(stderr, shown.add),
    collect(report, (chunk) => unread.push(chunk)),
  ]);
  // A command that does not read its input breaks the pipe; `unread` and the exit status report that.
  child.stdin?.on("error", () => {});
  if (options.input !== undefined) giveInput(child, options.input);
  const ended = await endOf(child, streams, { ...options, leadsGroup, env }).catch((error: unknown) => {
    throw new Failure("failed", "The shell could not be started.", { cause: error });
  });
  shown.end(Buffer.concat(output), typeof ended === "string" || ended.exitCode !== 0);
  if (ended === "canceled") throw options.signal?.reason;
  if (ended === "late") {
    throw new Failure(
      "failed",
      `The command did not finish within ${Math.ceil(options.timeLimitMs / 1000)} s, and was stopped.`,
    );
  }
  if (options.echo !== true && size > outputLimitBytes) throw new Failure("failed", "The command printed over 64 KiB.");
  return {
    status: ended.exitCode,
    signal: ended.signalCode,
    stdout: Buffer.concat(output),
    unread: Number(Buffer.concat(unread).toString("latin1").trim() || 0),
  };
}

export function endWords(run: ShellRun): string {
  return run.signal === null ? `exit status ${run.status}` : `signal ${run.signal}`;
}

/**
 * Returns the first line that the command prints. The output is never logged or quoted.
 * @param options.alone require a single line, because a wrong line would be sent to the service
 * @param options.flag the flag that set the command of `options.profile`; messages name both
 * @throws Failure `auth` if the command fails, hangs or prints no valid line; the signal's reason on abort
 */
export async function secretFromCommand(
  command: string,
  options: ShellOptions & { flag: string; profile: string; alone?: boolean },
): Promise<string> {
  const { flag, profile } = options;
  const what = `${flag} of profile ${profile}`;
  const isVariable = !flag.startsWith("--");
  const hint: Advice = isVariable
    ? `Correct the command in ${flag}.`
    : `Correct the command, or store another in the profile with ${flag}.`;
  const nextCommand = isVariable ? shell`integ help environment` : shell`integ help profiles edit`;
  const details = { hint, nextCommand };
  let run: ShellRun;
  try {
    run = await runShell(command, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Failure("auth", `The ${what} printed nothing. ${error instanceof Failure ? error.message : ""}`.trim(), {
      ...details,
      cause: error,
    });
  }
  if (run.status !== 0) throw new Failure("auth", `The ${what} failed with ${endWords(run)}.`, details);
  const [line = "", ...further] = run.stdout
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .split("\n");
  if (options.alone === true && further.some((more) => more.trim() !== "")) {
    throw new Failure("auth", `The ${what} printed more than one line.`, details);
  }
  const secret = line.replace(/\r$/, "");
  if (secret === "") throw new Failure("auth", `The ${what} printed nothing on its first line.`, details);
  if (/[\p{Cc}\uFFFD]/u.test(secret)) {
    throw new Failure("auth", `The first line of the ${what} contains control characters or is not UTF-8.`, details);
  }
  return secret;
}
