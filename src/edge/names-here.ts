// The names that completion offers, from the files of this machine, read without a context.
import { homedir } from "node:os";
import { type KnownNames, namesFor } from "../commands/options/known-names.ts";
import type { LiveNames } from "../completion/values.ts";
import type { Choice } from "../output/output.ts";
import { readProfileNames } from "../profiles/names.ts";
import { configFolder, journalPath, stateFolder } from "./folders.ts";

export async function namesHere(what: LiveNames, { env, platform, cwd }: NodeJS.Process): Promise<Choice[]> {
  const machine = { platform, home: env.HOME || homedir(), cwd: cwd() };
  const path = journalPath(env, { stateDir: stateFolder(env, machine), cwd: machine.cwd });
  const known: KnownNames = {
    profileNames: () => readProfileNames(configFolder(env, machine)),
    journalPath: path,
    async entries() {
      const { openJournal } = await import("../journal/journal.ts");
      return openJournal({ path, now: () => Date.now() }).entries();
    },
  };
  return namesFor(what, known);
}
