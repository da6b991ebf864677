import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Policy } from "../../policy/policy.ts";
import { readTextFile } from "./text-file.ts";
import { sharedOptions } from "../verb.ts";
import { shell } from "../../next-step.ts";

export const standardFile = "integ.yaml";

export const addPolicyFile = sharedOptions((command) =>
  command.option("-f, --file <path>", "Policy file", standardFile),
);

export function fileWords(file: string): readonly string[] {
  return file === standardFile ? [] : ["-f", file];
}

export interface LoadedPolicy {
  readonly policy: Policy;
  /** The path as given, not resolved. */
  readonly file: string;
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

export function assertNamed(file: string): void {
  if (file !== "") return;
  throw new Failure("usage", "--file names no policy file.", {
    meaning: "Nothing was read from the network, nothing was sent.",
    hint: "Name one with --file <path>, or leave the option out for integ.yaml.",
  });
}

/** @throws Failure `usage` for a missing or invalid file, or another profile's file, before any request */
export async function loadPolicy({ settings, clock }: Context, file: string): Promise<LoadedPolicy> {
  const { longestPolicy, readPolicy } = await import("../../policy/read.ts");
  assertNamed(file);
  const path = resolve(settings.cwd, file);
  const read = readTextFile(path, longestPolicy);
  if ("why" in read) {
    throw new Failure("usage", `The policy file ${file} cannot be read: ${read.why}.`, {
      meaning: "Nothing was read from the network, nothing was sent.",
      ...(read.isMissing && file === standardFile
        ? { nextCommand: shell`integ policy init` }
        : { hint: read.isText === false ? "Write the file in UTF-8." : "Name another one with --file <path>." }),
    });
  }
  const { text } = read;
  const policy = readPolicy({ text, file, folder: dirname(path), nowMs: clock.now(), realFolder });
  if (policy.profile !== undefined && settings.profile !== undefined && policy.profile !== settings.profile)
    throw new Failure(
      "usage",
      `${file} belongs to profile ${policy.profile}, and profile ${settings.profile} was chosen.`,
      {
        meaning: "Nothing was read from the network, nothing was sent.",
        hint: `Leave --profile out, or change profile: in ${file}.`,
      },
    );
  return { policy, file };
}
