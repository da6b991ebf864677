// Tests descriptors of this process. stdout.test.ts uses a shell.
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { checkMask, outputDestination, type OutputTools } from "../../../src/secrets/stdout.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

/** Closes the descriptor only once, at the end of the test, because other code may reuse its number after that. */
function opened(path: string, flags: string | number): number {
  const fd = openSync(path, flags);
  onTestFinished(() => closeSync(fd));
  return fd;
}

function fileFor(flags: string): number {
  const path = join(temporaryFolder(), "out");
  writeFileSync(path, "");
  return opened(path, flags);
}

const notOpen = 1_000_000;

function pipe(reader: "reads" | "has exited"): number {
  const path = join(temporaryFolder(), "pipe");
  execFileSync("mkfifo", [path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const fd = opened(path, "w");
  if (reader === "has exited") closeSync(reading);
  else onTestFinished(() => closeSync(reading));
  return fd;
}

function destination(fd: number, more: Partial<OutputTools> = {}) {
  return outputDestination({ fd, env: {}, onStderr: () => {}, print: async () => {}, ...more });
}

function runStep(place: ReturnType<typeof destination>, work: "check" | "prepare"): Promise<unknown> {
  return work === "check" ? place.check() : place.prepare("1000000001");
}

async function refusalOf(work: Promise<unknown>): Promise<Failure> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (error instanceof Failure) return error;
  throw new Error(`no Failure: ${JSON.stringify(error)}`);
}

const kinds: readonly (readonly [what: string, open: () => number, trouble: string | undefined])[] = [
  ["a file", () => fileFor("w"), undefined],
  ["a file for both", () => fileFor("r+"), undefined],
  ["a pipe with a reader", () => pipe("reads"), undefined],
  ["a pipe whose reader has exited", () => pipe("has exited"), "is a pipe whose reader has exited"],
  ["the null device", () => opened("/dev/null", "w"), "is closed, or goes to the null device"],
  ["a full device", () => opened("/dev/full", "w"), undefined],
  ["a device that can be written", () => opened("/dev/zero", "w"), undefined],
  ["a file for reading", () => fileFor("r"), "is not open for writing"],
  ["a descriptor that is not open", () => notOpen, "is not open for writing"],
];

describe.runIf(process.platform === "linux")("standard output", () => {
  it.each(kinds.filter(([, , trouble]) => trouble === undefined))("accepts a secret: %s", async (_what, open) => {
    const fd = open();
    // The check writes 0 bytes. Some systems report a full device only when data is written, so both results are correct.
    for (const work of ["check", "prepare"] as const)
      await runStep(destination(fd), work).then(
        (record) => expect(record).toEqual({ kind: "stdout" }),
        (error: Failure) => expect(error.message).toContain("no space left"),
      );
  });

  it.each(kinds.filter(([, , trouble]) => trouble !== undefined))("is refused: %s", async (_what, open, trouble) => {
    const fd = open();
    for (const work of ["check", "prepare"] as const) {
      const failure = await refusalOf(runStep(destination(fd), work));
      expect(failure.kind).toBe("usage");
      expect(failure.message).toBe(`The secret cannot go to standard output, which ${trouble}.`);
      expect(failure.details).toEqual({
        meaning: "Nothing was sent. A secret is shown once.",
        hint: "Keep it in a file: add --secret-file <path>.",
      });
    }
  });

  it("gets a mask only on GitHub Actions", async () => {
    const fd = fileFor("w");
    const stderrFd = notOpen;
    expect(await destination(fd, { stderrFd }).check()).toEqual({ kind: "stdout" });
    expect(await destination(fd, { stderrFd, env: { GITHUB_ACTIONS: "false" } }).check()).toEqual({ kind: "stdout" });
    const failure = await refusalOf(destination(fd, { stderrFd, env: { GITHUB_ACTIONS: "true" } }).check());
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(
      "GitHub Actions could not be asked to mask the secret: standard error is not open for writing.",
    );
    expect(failure.details).toEqual({
      meaning: "Nothing was sent. Unmasked, the secret could appear in the log.",
      hint: "Leave standard error open, or keep the secret out of the output with --secret-file <path>.",
    });
    await expect(checkMask(fd)).resolves.toBeUndefined();
  });
});
