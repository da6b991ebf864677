// Owns: the Context of one command line, each part made when it is first asked for, and what has to be closed after it.
// Must not know: any one command, a rule of the service.
import { homedir } from "node:os";
import type { GlobalChoice } from "../commands/options/global.ts";
import type { Context, Settings } from "../context.ts";
import { createOutput } from "../output/output.ts";
import type { Terminal } from "../output/terminal.ts";
import { buildProfiles } from "./build-profiles.ts";
import { buildSecrets } from "./build-secrets.ts";
import { Connections } from "./connections.ts";
import { configFolder, journalPath, stateFolder } from "./folders.ts";
import type { Interruption } from "./interruption.ts";
import { once } from "./once.ts";
import { EmbeddedSandbox } from "./embedded-sandbox.ts";

export interface Request {
  readonly globals: GlobalChoice;
  readonly interruption: Interruption;
  readonly version: string;
}

/** @returns the context, and what ends everything that was begun for it */
export async function buildContext(
  process: NodeJS.Process,
  terminal: Terminal,
  { globals, interruption, version }: Request,
): Promise<{ context: Context; close: () => Promise<void> }> {
  const env = process.env;
  const settings = settingsOf(process, { globals, version });
  const { clock, cut } = interruption;
  const output = createOutput({ ...globals, terminal, now: () => clock.now(), interruption: clock.interruption });
  const sandbox = new EmbeddedSandbox(settings.stateDir);
  const profiles = buildProfiles({
    env,
    terminal,
    settings,
    sandbox,
    cut,
    tellNote: (text) => output.note(text),
    pick: async (choices) =>
      output.interactive
        ? output.pick("No profile is the default. As which one?", { choices, flag: "--profile <name>" })
        : undefined,
  });
  const connections = new Connections({
    env,
    settings,
    cut,
    clock,
    sandbox,
    debug: globals.debug ? terminal : undefined,
  });
  const context: Context = {
    settings,
    profiles,
    connect: async (profile) => connections.connect(profile ?? (await profiles.active())),
    journal: once(async () => {
      const { openJournal } = await import("../journal/journal.ts");
      return openJournal({ path: settings.journalPath, now: () => clock.now() });
    }),
    secrets: buildSecrets({ env, terminal, settings, profiles, cut, tellNote: (text) => output.note(text) }),
    output,
    clock,
  };
  const close = async (): Promise<void> => {
    output.close();
    connections.close();
    await sandbox.close();
  };
  return { context, close };
}

function settingsOf(process: NodeJS.Process, { globals, version }: Pick<Request, "globals" | "version">): Settings {
  const { env } = process;
  const machine = { platform: process.platform, home: env.HOME || homedir(), cwd: process.cwd() };
  const stateDir = stateFolder(env, machine);
  return {
    profile: globals.profile,
    serviceVersion: globals.serviceVersion,
    timeoutMs: globals.timeoutMs,
    retryForMs: globals.retryForMs,
    yes: globals.yes,
    configDir: configFolder(env, machine),
    stateDir,
    home: machine.home,
    cwd: machine.cwd,
    journalPath: journalPath(env, { stateDir, cwd: machine.cwd }),
    version,
    get self() {
      // A single executable is program and script in one.
      const { isSea } = process.getBuiltinModule("node:sea");
      return isSea() ? [process.execPath] : [process.execPath, process.argv[1] ?? ""];
    },
    childEnvironment: withoutOurs(env),
  };
}

/** Children never see our variables, secret or not. */
function withoutOurs(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept = Object.entries(env).filter(([name, value]) => !name.startsWith("INTEG_") && value !== undefined);
  return Object.fromEntries(kept) as Record<string, string>;
}
