// The folders for configuration and state: integ's own variables, else the platform's folders.
import { isAbsolute, join, resolve } from "node:path";
import type { JournalPlace } from "../journal/open-journal.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly cwd: string;
}

/** The configuration folder: `INTEG_CONFIG_DIR`, else XDG (Linux), Application Support (macOS), %APPDATA% (Windows). */
export function configFolder(env: Environment, machine: Machine): string {
  if (env.INTEG_CONFIG_DIR) return resolve(machine.cwd, env.INTEG_CONFIG_DIR);
  if (machine.platform === "darwin") return join(machine.home, "Library", "Application Support", "integ");
  if (machine.platform === "win32") return join(env.APPDATA || join(machine.home, "AppData", "Roaming"), "integ");
  return join(xdg(env.XDG_CONFIG_HOME, join(machine.home, ".config")), "integ");
}

/** The state folder: `INTEG_STATE_DIR`, else XDG (Linux), Application Support (macOS), %LOCALAPPDATA% (Windows). */
export function stateFolder(env: Environment, machine: Machine): string {
  if (env.INTEG_STATE_DIR) return resolve(machine.cwd, env.INTEG_STATE_DIR);
  if (machine.platform === "darwin") return join(machine.home, "Library", "Application Support", "integ", "state");
  if (machine.platform === "win32") return join(env.LOCALAPPDATA || join(machine.home, "AppData", "Local"), "integ");
  return join(xdg(env.XDG_STATE_HOME, join(machine.home, ".local", "state")), "integ");
}

/**
 * True if a journal's text looks like a server's address. Unsupported forms (`host=… password=…`) and typing mistakes
 * (`postgres:/…`, `postgresql//…`, quoted addresses) count too: as a file name they would create a separate journal
 * with a password in its name. Write such a file name as `./<name>`.
 */
export function isAddress(text: string): boolean {
  if (/^["'`\s]*\w+\s*=/.test(text)) return true;
  if (!text.includes(":") && !text.includes("//")) return false;
  return /^["'`\s]*(?:[a-z][a-z0-9+.-]+:|postgres\w*\/\/)|:\/\//i.test(text);
}

/** @param text an address or an absolute path */
export function journalPlace(text: string): JournalPlace {
  return isAddress(text) ? { address: text } : { path: text };
}

/** The absolute path or the address (`postgresql://…`) of the journal: `INTEG_JOURNAL`, else a file in the state folder. */
export function journalPath(env: Environment, { stateDir, cwd }: { stateDir: string; cwd: string }): string {
  const given = env.INTEG_JOURNAL;
  if (!given) return join(stateDir, "journal.ndjson");
  return isAddress(given) ? given : resolve(cwd, given);
}

/** Ignores a relative path, as the XDG specification requires. */
function xdg(value: string | undefined, standard: string): string {
  return value && isAbsolute(value) ? value : standard;
}
