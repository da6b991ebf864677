// `integ __complete`: the answer to a Tab, from this machine alone. A person waits for it after every Tab: only the verb that was
// typed is loaded, and nothing here reports an error, waits or writes.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Candidate, type Candidates, candidatesAt } from "../completion/candidates.ts";
import { treeOf } from "../completion/tree.ts";
import type { LiveNames } from "../completion/values.ts";
import type { Choice } from "../output/asking/pick-list.ts";
import { treeAt } from "../program.ts";

/**
 * Prints what may be at the cursor.
 * @param words those before the cursor, and the one at it with a colon before
 * @returns the exit code
 */
export async function complete(process: NodeJS.Process, words: readonly string[]): Promise<number> {
  // A shell that no longer listens wanted no answer.
  process.stdout.on("error", () => {});
  process.stdout.write(await answerTo(words, process).catch(() => ""));
  return 0;
}

async function answerTo(words: readonly string[], process: NodeJS.Process): Promise<string> {
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const { root, verbOf } = await treeAt(before);
  // Examples and paragraphs complete nothing.
  const tree = treeOf(root, (command) => ({ examples: [], fields: verbOf(command)?.fields }));
  const found = candidatesAt(tree, before, current.slice(1));
  const list = await listOf(found, process);
  const kind = found.kind === "live" ? "values" : found.kind;
  return [`${kind} ${found.prefix}`, ...list.map(asLine)].map((line) => `${line}\n`).join("");
}

async function listOf(found: Candidates, process: NodeJS.Process): Promise<readonly Candidate[]> {
  if (found.kind === "files") return [];
  if (found.kind !== "live") return found.list;
  const names = await namesHere(found.names, process).catch(() => []);
  return names.map(({ value, hint }) => ({ text: value, summary: hint ?? "" }));
}

/** What reads names is loaded only when they are asked for: most of the time what a person waits for is the loading. */
async function namesHere(what: LiveNames, { env, platform, cwd }: NodeJS.Process): Promise<Choice[]> {
  const [{ namesFor }, { readProfileNames }, { configFolder, journalPath, stateFolder }] = await Promise.all([
    import("../commands/options/known-names.ts"),
    import("../profiles/names.ts"),
    import("./folders.ts"),
  ]);
  const machine = { platform, home: env.HOME || homedir(), cwd: cwd() };
  const path = journalPath(env, { stateDir: stateFolder(env, machine), cwd: machine.cwd });
  return namesFor(what, {
    profileNames: () => readProfileNames(configFolder(env, machine)),
    policyText: () => readIfThere(join(machine.cwd, "integ.yaml")),
    journalPath: path,
    // Of a file alone: names are not asked for over the network.
    entries: async (filter) => (await import("../journal/file/newest.ts")).newestIn(path, filter),
  });
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Control characters would break the line, or act in the shell's menu. */
function asLine({ text, summary }: Candidate): string {
  const parts = summary === undefined ? [text] : [text, summary];
  return parts.map((part) => part.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")).join("\t");
}
