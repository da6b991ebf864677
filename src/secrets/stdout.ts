// Delivers a secret to stdout, which is checked before the request. In GitHub Actions, the log masks the secret.
import { type Advice, flags } from "../next-step.ts";
import { fstatSync, readFileSync, statSync, writeSync } from "node:fs";
import { causeOf, type ErrorCause, errorCode } from "../disk/error-words.ts";
import { Failure } from "../errors.ts";
import { agentMode } from "../profiles/agent-mode.ts";
import type { Environment } from "../profiles/resolution.ts";
import type { RecordOf, SingleDestinationPlace } from "./destination.ts";
import { tryParseJson } from "../json.ts";

export interface OutputTools {
  readonly fd: number;
  /** GitHub Actions reads masks from stderr. */
  readonly stderrFd?: number;
  readonly env: Environment;
  /** Resolves when all bytes of the receipt with the secret are accepted. */
  readonly print: (receipt: string) => Promise<void>;
  readonly onStderr: (chunk: Uint8Array) => void;
}

/** Commands that make GitHub Actions mask a secret, escaped like `escapeData` of actions/toolkit. */
export function maskLines(secret: string, receipt: string): string {
  return formsOf(secret, receipt)
    .map((form) => `::add-mask::${form.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}\n`)
    .join("");
}

/** @returns the forms that output formats print: unchanged, with JSON escapes, and with doubled quotation marks */
function formsOf(secret: string, receipt: string): string[] {
  const strings = receipt.match(/"(?:[^"\\\u0000-\u001f]|\\.)*"/g) ?? [];
  const unchanged = strings.filter((text) => tryParseJson(text) === secret).map((text) => text.slice(1, -1));
  const quoted = [JSON.stringify(secret).slice(1, -1), secret.replaceAll('"', '""'), secret.replaceAll("'", "''")];
  return [...new Set([secret, ...unchanged, ...quoted])];
}

const destinations = `${flags.secretFile}, ${flags.secretCommand}, ${flags.secretProfile} or ${flags.secretTo}`;

/** @param use a command that delivers the secret to a destination */
export function adviceForAgent(use: string | undefined): Advice {
  return use === undefined
    ? "Ask a person to run this command: it has no destination for what it prints."
    : `Use ${use}, with a destination: ${destinations}.`;
}

/** The secret would stay in the agent's transcript, which is stored elsewhere. @throws Failure `usage` in agent mode */
export function refuseForAgent(env: Environment, advice: Advice, meaning = "Nothing was sent."): void {
  const variable = agentMode(env);
  if (variable === undefined) return;
  const message = `In agent mode (${variable} is set) no secret goes to standard output.`;
  throw new Failure("usage", message, { meaning, hint: advice });
}

/** @throws Failure `usage` if GitHub Actions cannot read the mask: the secret would stay in its log */
export async function checkMask(stderrFd: number): Promise<void> {
  const trouble = await outputFault(stderrFd);
  if (trouble === undefined) return;
  throw new Failure("usage", `GitHub Actions could not be asked to mask the secret: standard error ${trouble}.`, {
    meaning: "Nothing was sent. Unmasked, the secret could appear in the log.",
    hint: `Leave standard error open, or keep the secret out of the output with ${flags.secretFile} <path>.`,
  });
}

export function outputDestination({ fd, stderrFd = 2, env, onStderr, print }: OutputTools): SingleDestinationPlace {
  const check = async (): Promise<RecordOf<"stdout">> => {
    refuseForAgent(env, `Name a destination with ${destinations}.`);
    const trouble = await outputFault(fd);
    if (trouble === undefined) {
      if (env.GITHUB_ACTIONS === "true") await checkMask(stderrFd);
      return { kind: "stdout" };
    }
    throw new Failure("usage", `The secret cannot go to standard output, which ${trouble}.`, {
      meaning: "Nothing was sent. A secret is shown once.",
      hint: `Keep it in a file: add ${flags.secretFile} <path>.`,
    });
  };
  return {
    isStdout: true,
    record: { kind: "stdout" },
    check,
    prepare: check,
    async deliver(secret) {
      if (env.GITHUB_ACTIONS === "true") onStderr(Buffer.from(maskLines(secret.secret, secret.receipt)));
      try {
        await print(secret.receipt);
      } catch (error) {
        throw new Failure("undelivered", "Standard output did not take the secret.", { cause: error });
      }
    },
    async release() {},
  };
}

const outputProblems: Readonly<Partial<Record<ErrorCause, string>>> = {
  no_reader: "is a pipe whose reader has exited",
  not_open: "is not open for writing",
  full: "goes to a device with no space left",
  broken: "goes to a terminal that no longer exists",
};

function outputProblem(error: unknown): string | undefined {
  const cause = causeOf(error);
  return cause && outputProblems[cause];
}

/** Node replaces a closed standard stream with the null device, so that writes "succeed". `>/dev/null` loses secrets too. */
function isNullDevice(fd: number): boolean {
  const stats = fstatSync(fd);
  if (process.platform === "win32" || !stats.isCharacterDevice()) return false;
  return stats.rdev === statSync("/dev/null").rdev;
}

/** An empty write detects a closed socket, terminal or device without side effects. */
function emptyWriteError(fd: number): unknown {
  try {
    writeSync(fd, Buffer.alloc(0), 0, 0);
    return undefined;
  } catch (error) {
    return errorCode(error) === "EAGAIN" ? undefined : error;
  }
}

function isWriteOnly(fd: number): boolean {
  try {
    const flags = /^flags:\s+0?(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & 3) === 1;
  } catch {
    return false;
  }
}

/**
 * A write-only pipe is ready for reading once its reader has exited. bash's `read -t 0` shows this: Node has no `poll`, and
 * Linux accepts empty writes to such a pipe. Without bash, the loss is detected at the print, and the secret is kept.
 */
async function hasNoReader(fd: number): Promise<boolean> {
  const pipe = fstatSync(fd);
  if (process.platform !== "linux" || !pipe.isFIFO() || !isWriteOnly(fd)) return false;
  // The creation time is compared too, because a later pipe may have the same descriptor and inode.
  const identity = [fd, pipe.dev, pipe.ino, pipe.birthtimeMs].join(" ");
  if (lastCheck?.pipe !== identity || performance.now() - lastCheck.at > reusedForMs)
    lastCheck = { pipe: identity, at: performance.now(), answer: checkInShell(fd) };
  return lastCheck.answer;
}

/** A result is reused for this many ms, because a shell starts slowly. */
const reusedForMs = 100;
let lastCheck: { readonly pipe: string; readonly at: number; readonly answer: Promise<boolean> } | undefined;

async function checkInShell(fd: number): Promise<boolean> {
  const { spawn } = await import("node:child_process");
  return new Promise((resolve) => {
    const child = spawn("/bin/bash", ["--norc", "-c", "read -t 0 -u 1"], {
      env: {},
      stdio: ["ignore", fd, "ignore"],
      timeout: 2_000,
    });
    child.on("error", () => resolve(false));
    child.on("exit", (status) => resolve(status === 0));
  });
}

/** @returns the end of a sentence about the stream, such as `is closed`; undefined if the stream is usable */
async function outputFault(fd: number): Promise<string | undefined> {
  try {
    if (isNullDevice(fd)) return "is closed, or goes to the null device";
  } catch (error) {
    return outputProblem(error) ?? "cannot be checked";
  }
  const error = emptyWriteError(fd);
  if (error !== undefined) return outputProblem(error) ?? `cannot be written to (${errorCode(error)})`;
  return (await hasNoReader(fd)) ? outputProblems.no_reader : undefined;
}
