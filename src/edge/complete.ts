// `integ __complete`: the answer to a Tab, from this machine alone. A person waits for it after every Tab: the tree of
// commands is read as the build left it, and nothing here reports an error, waits or writes.
import { homedir } from "node:os";
import { type Candidate, type Candidates, candidatesAt } from "../completion/candidates.ts";
import type { Tree } from "../completion/tree.ts";
import type { LiveNames } from "../completion/values.ts";
import type { Choice } from "../output/asking/pick-list.ts";

/**
 * @param words those before the cursor, and the one at it with a colon before; without that one the tree is asked for, as
 * the build keeps it
 * @param ready the tree as the build keeps it
 */
export async function completionAnswer(
  process: NodeJS.Process,
  words: readonly string[],
  ready: string | undefined,
): Promise<string> {
  const current = words.at(-1);
  if (!current?.startsWith(":")) {
    process.stdout.write(JSON.stringify(await treeItself()));
    return "";
  }
  try {
    const tree = ready === undefined ? await treeItself() : (JSON.parse(ready) as Tree);
    const found = candidatesAt(tree, words.slice(0, -1), current.slice(1));
    const list = await listOf(found, process);
    const kind = found.kind === "live" ? "values" : found.kind;
    return [`${kind} ${found.prefix}`, ...list.map(asLine)].map((line) => `${line}\n`).join("");
  } catch {
    return "";
  }
}

async function treeItself(): Promise<Tree> {
  const [{ treeOf }, { wholeTree }] = await Promise.all([import("../completion/tree.ts"), import("../program.ts")]);
  const { root, verbOf } = await wholeTree();
  // Examples and paragraphs complete nothing.
  return treeOf(root, (command) => ({ examples: [], fields: verbOf(command)?.fields }));
}

async function listOf(found: Candidates, process: NodeJS.Process): Promise<readonly Candidate[]> {
  if (found.kind === "files") return [];
  if (found.kind !== "live") return found.list;
  const names = await namesHere(found.names, process).catch(() => []);
  return names.map(({ value, hint }) => ({ text: value, summary: hint ?? "" }));
}

/** What reads names is loaded only when they are asked for: most of the time what a person waits for is the loading. */
async function namesHere(what: LiveNames, { env, platform, cwd }: NodeJS.Process): Promise<Choice[]> {
  const [{ namesFor }, { readProfileNames }, { configFolder, journalPath, journalPlace, stateFolder }] =
    await Promise.all([
      import("../commands/options/known-names.ts"),
      import("../profiles/names.ts"),
      import("./folders.ts"),
    ]);
  const machine = { platform, home: env.HOME || homedir(), cwd: cwd() };
  const path = journalPath(env, { stateDir: stateFolder(env, machine), cwd: machine.cwd });
  return namesFor(what, {
    profileNames: () => readProfileNames(configFolder(env, machine)),
    journalPath: path,
    async entries(filter) {
      const { glanceAt } = await import("../journal/file/glance.ts");
      const seen = glanceAt(path, filter);
      if (seen !== undefined) return seen;
      const { openJournal } = await import("../journal/open-journal.ts");
      const { actorOf } = await import("../journal/actor.ts");
      // Of a file alone: names are not asked for over the network.
      const place = journalPlace(path);
      const team = { env, home: machine.home, requestMs: 0, leaseMs: 0 };
      const journal = await openJournal({ place, now: () => Date.now(), actor: actorOf(env), team });
      const entries = await journal.select(filter);
      journal.close();
      return entries;
    },
  });
}

/** Control characters would break the line, or act in the shell's menu. */
function asLine({ text, summary }: Candidate): string {
  const parts = summary === undefined ? [text] : [text, summary];
  return parts.map((part) => part.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")).join("\t");
}
