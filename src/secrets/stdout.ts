// Owns: standard output as the place for a secret: found alive before the request, masked on a CI that shows its logs.
// Must not know: how a result is printed (the caller does), the API, the journal. Design: cli.md §4 «Secret options».
import { Failure } from "../errors.ts";
import type { Environment } from "../profiles/environment.ts";
import type { Destination, DestinationRecord, OneTimeSecret } from "./destination.ts";
import { outputTrouble } from "./output-liveness.ts";

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
export function maskLine(secret: string): string {
  return `::add-mask::${secret.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}\n`;
}

/** A mask that nobody reads masks nothing: the secret would stand in the log. @throws Failure `usage` */
export async function checkMask(stderrFd: number): Promise<void> {
  const trouble = await outputTrouble(stderrFd);
  if (trouble === undefined) return;
  throw new Failure("usage", `GitHub Actions could not be told to mask the secret: standard error ${trouble}.`, {
    meaning: "Nothing was sent. Unmasked, the secret could stand in the log.",
    hint: "leave standard error open, or --secret-file <path> keeps the secret out of the output",
  });
}

class OutputDestination implements Destination {
  readonly isStdout = true;
  readonly #tools: OutputTools;

  constructor(tools: OutputTools) {
    this.#tools = tools;
  }

  async check(): Promise<DestinationRecord> {
    const { fd, stderrFd = 2, env } = this.#tools;
    const trouble = await outputTrouble(fd);
    if (trouble === undefined) {
      if (env.GITHUB_ACTIONS === "true") await checkMask(stderrFd);
      return { kind: "stdout" };
    }
    throw new Failure("usage", `The secret would be lost: standard output ${trouble}.`, {
      meaning: "Nothing was sent. A secret is shown once.",
      hint: "--secret-file <path> keeps it in a file",
    });
  }

  prepare(): Promise<DestinationRecord> {
    return this.check();
  }

  async deliver(secret: OneTimeSecret): Promise<void> {
    const { env, onStderr, print } = this.#tools;
    if (env.GITHUB_ACTIONS === "true") onStderr(Buffer.from(maskLine(secret.secret)));
    try {
      await print(secret.receipt);
    } catch (error) {
      throw new Failure("undelivered", "Standard output did not take the secret.", { cause: error });
    }
  }

  async release(): Promise<void> {}
}

/** Standard output as the place for a secret, with the rest of the result. */
export function outputDestination(tools: OutputTools): Destination {
  return new OutputDestination(tools);
}
