// Standard output as the destination of a secret: checked before the request, masked on a CI that shows its logs.
import { type Advice, flags } from "../next-step.ts";
import { fstatSync, readFileSync, statSync, writeSync } from "node:fs";
import { causeOf, type ErrorCause, errorCode } from "../disk/error-words.ts";
import { Failure } from "../errors.ts";
import { agentMode } from "../profiles/agent-mode.ts";
import type { Environment } from "../profiles/resolution.ts";
import type { RecordOf, SingleDestinationPlace } from "./destination.ts";

export interface OutputTools {
  /** Descriptor of standard output. */
  readonly fd: number;
  /** Descriptor of standard error, where GitHub Actions reads the mask. */
  readonly stderrFd?: number;
  readonly env: Environment;
  /** Prints the receipt with the secret in it; returns when every byte was taken. */
  readonly print: (receipt: string) => Promise<void>;
  readonly onStderr: (chunk: Uint8Array) => void;
}

/**
 * The line that makes GitHub Actions hide a value in its log, escaped as workflow commands want their data.
 * Source: actions/toolkit `escapeData`.
 */
export function maskLines(secret: string, receipt: string): string {
  return formsOf(secret, receipt)
    .map((form) => `::add-mask::${form.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}\n`)
    .join("");
}

/** The secret as it is, and as a format may print it: with the receipt's own escapes, with JSON's, with doubled quotes. */
function formsOf(secret: string, receipt: string): string[] {
  const strings = receipt.match(/"(?:[^"\\\u0000-\u001f]|\\.)*"/g) ?? [];
  const asItCame = strings.filter((text) => unescaped(text) === secret).map((text) => text.slice(1, -1));
  const quoted = [JSON.stringify(secret).slice(1, -1), secret.replaceAll('"', '""'), secret.replaceAll("'", "''")];
  return [...new Set([secret, ...asItCame, ...quoted])];
}

function unescaped(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * What an agent reads is stored elsewhere.
 * @param advice what to do instead
 * @throws Failure `usage` in agent mode
 */
export function refuseForAgent(env: Environment, advice: Advice, meaning = "Nothing was sent."): void {
  const variable = agentMode(env);
  if (variable === undefined) return;
  const message = `In agent mode (${variable} is set) no secret goes to standard output.`;
  throw new Failure("usage", message, { meaning, hint: advice });
}

/** A mask that no one reads masks nothing: the secret would be in the log. @throws Failure `usage` */
export async function checkMask(stderrFd: number): Promise<void> {
  const trouble = await outputTrouble(stderrFd);
  if (trouble === undefined) return;
  throw new Failure("usage", `GitHub Actions could not be asked to mask the secret: standard error ${trouble}.`, {
    meaning: "Nothing was sent. Unmasked, the secret could appear in the log.",
    hint: `Leave standard error open, or keep the secret out of the output with ${flags.secretFile} <path>.`,
  });
}

/** Standard output as the place for a secret, with the rest of the result. */
export function outputDestination({ fd, stderrFd = 2, env, onStderr, print }: OutputTools): SingleDestinationPlace {
  const check = async (): Promise<RecordOf<"stdout">> => {
    refuseForAgent(
      env,
      `Name a destination with ${flags.secretFile}, ${flags.secretCommand}, ${flags.secretProfile} or ${flags.secretTo}.`,
    );
    const trouble = await outputTrouble(fd);
    if (trouble === undefined) {
      if (env.GITHUB_ACTIONS === "true") await checkMask(stderrFd);
      return { kind: "stdout" };
    }
    throw new Failure("usage", `The secret would be lost: standard output ${trouble}.`, {
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

const troubles: Readonly<Partial<Record<ErrorCause, string>>> = {
  no_reader: "is a pipe whose reader has exited",
  not_open: "is not open for writing",
  full: "goes to a device with no space left",
  broken: "goes to a terminal that no longer exists",
};

function troubleOf(error: unknown): string | undefined {
  const cause = causeOf(error);
  return cause && troubles[cause];
}

/**
 * Node opens a closed standard stream on the null device at start, so that writing "succeeds". A person's own
 * `>/dev/null` cannot be distinguished from it, and loses a secret just the same.
 */
function isNullDevice(fd: number): boolean {
  const stats = fstatSync(fd);
  if (process.platform === "win32" || !stats.isCharacterDevice()) return false;
  return stats.rdev === statSync("/dev/null").rdev;
}

/** A write of nothing fails on a socket, a terminal or a device that no longer exists, and harms none that is there. */
function emptyWriteError(fd: number): unknown {
  try {
    writeSync(fd, Buffer.alloc(0), 0, 0);
    return undefined;
  } catch (error) {
    return errorCode(error) === "EAGAIN" ? undefined : error;
  }
}

/** True if the descriptor was opened for writing alone: then being ready to read can only mean an error. */
function isWriteOnly(fd: number): boolean {
  try {
    const flags = /^flags:\s+0?(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & 3) === 1;
  } catch {
    return false;
  }
}

/**
 * Linux lets an empty write to a pipe without readers pass, and Node has no `poll`. The shell has one: `read -t 0`
 * says immediately whether a descriptor has news, and a pipe open for writing alone has none but the loss of its reader.
 * If there is no such shell the loss is met when the secret is printed, and the secret is kept then.
 */
async function hasLostItsReader(fd: number): Promise<boolean> {
  const pipe = fstatSync(fd);
  if (process.platform !== "linux" || !pipe.isFIFO() || !isWriteOnly(fd)) return false;
  // Another pipe may have the same number later, and the same inode.
  const named = [fd, pipe.dev, pipe.ino, pipe.birthtimeMs].join(" ");
  if (lastAsked?.pipe !== named || performance.now() - lastAsked.at > askedEveryMs)
    lastAsked = { pipe: named, at: performance.now(), answer: askShell(fd) };
  return lastAsked.answer;
}

/** A shell costs more than the rest of a creation: what follows another immediately is as good as the same moment. */
const askedEveryMs = 100;
let lastAsked: { readonly pipe: string; readonly at: number; readonly answer: Promise<boolean> } | undefined;

async function askShell(fd: number): Promise<boolean> {
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

/** What is wrong with a descriptor, in words that follow "standard output"; undefined if it leads somewhere. */
async function outputTrouble(fd: number): Promise<string | undefined> {
  try {
    if (isNullDevice(fd)) return "is closed, or goes to the null device";
  } catch (error) {
    return troubleOf(error) ?? "cannot be checked";
  }
  const error = emptyWriteError(fd);
  if (error !== undefined) return troubleOf(error) ?? `cannot be written to (${errorCode(error)})`;
  return (await hasLostItsReader(fd)) ? troubles.no_reader : undefined;
}
