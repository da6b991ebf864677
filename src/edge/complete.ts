// `integ __complete` prints completions from local data. The shell waits for it on every Tab, so it loads only the
// typed verb. After an error it prints nothing.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Candidate, candidatesAt } from "../completion/candidates.ts";
import { treeOf } from "../completion/tree.ts";
import type { LiveNames } from "../completion/values.ts";
import { flags, shortFlags, typedValue } from "../next-step.ts";
import { treeAt } from "../program.ts";

/** `words` are the words before the cursor, then the current word with a leading colon. Returns the exit code. */
export async function complete(process: NodeJS.Process, words: readonly string[]): Promise<number> {
  // The shell may have closed the pipe, so errors are ignored.
  process.stdout.on("error", () => {});
  process.stdout.write(await answerTo(words, process).catch(() => ""));
  return 0;
}

async function answerTo(words: readonly string[], process: NodeJS.Process): Promise<string> {
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const { root, verbOf } = await treeAt(before);
  const tree = treeOf(root, (command) => ({ examples: [], fields: verbOf(command)?.fields }));
  const candidates = candidatesAt(tree, before, current.slice(1));
  const live = candidates.kind === "live" ? localNames(candidates.names, process, before).catch(() => []) : [];
  const list = "list" in candidates ? candidates.list : await live;
  const kind = candidates.kind === "live" ? "values" : candidates.kind;
  return [`${kind} ${candidates.prefix}`, ...list.map(completionLine)].map((line) => `${line}\n`).join("");
}

/** Loading takes most of the time, so the readers of names are loaded on demand. */
async function localNames(
  what: LiveNames,
  { env, platform, cwd }: NodeJS.Process,
  before: readonly string[],
): Promise<Candidate[]> {
  const [{ namesFor }, { readProfileNames }, { configFolder, journalPath, stateFolder }] = await Promise.all([
    import("../commands/options/known-names.ts"),
    import("../profiles/names.ts"),
    import("./folders.ts"),
  ]);
  const machine = { platform, home: env.HOME || homedir(), cwd: cwd() };
  const path = journalPath(env, { stateDir: stateFolder(env, machine), cwd: machine.cwd });
  const profiles = readProfileNames(configFolder(env, machine));
  const name =
    typedValue(before, { short: shortFlags.profile, long: flags.profile }) ??
    (env.INTEG_BASE_URL ? "env" : env.INTEG_PROFILE);
  const choices = await namesFor(what, {
    profileNames: () => profiles,
    profile: profiles.find((one) => (name ? one.name === name : one.isDefault)) ?? (name ? { name } : undefined),
    policyText: () => readIfExists(join(machine.cwd, "integ.yaml")),
    journalPath: path,
    // Completion does not use the network, so entries come only from a file.
    entries: async (filter) => (await import("../journal/file/newest.ts")).newestIn(path, filter),
  });
  return choices.map(({ value, hint = "" }) => ({ text: value, summary: hint }));
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Control characters would break the line or act in the shell's menu. */
function completionLine({ text, summary }: Candidate): string {
  const parts = summary === undefined ? [text] : [text, summary];
  return parts.map((part) => part.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")).join("\t");
}
