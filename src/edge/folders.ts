// Finds integ's folders and journal by its own variables, else by the platform's conventions.
import { isAbsolute, join, resolve } from "node:path";
import type { JournalPlace } from "../journal/open-journal.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly cwd: string;
}

export function configFolder(env: Environment, machine: Machine): string {
  if (env.INTEG_CONFIG_DIR) return resolve(machine.cwd, env.INTEG_CONFIG_DIR);
  if (machine.platform === "darwin") return join(machine.home, "Library", "Application Support", "integ");
  if (machine.platform === "win32") return join(env.APPDATA || join(machine.home, "AppData", "Roaming"), "integ");
  return join(xdg(env.XDG_CONFIG_HOME, join(machine.home, ".config")), "integ");
}

export function stateFolder(env: Environment, machine: Machine): string {
  if (env.INTEG_STATE_DIR) return resolve(machine.cwd, env.INTEG_STATE_DIR);
  if (machine.platform === "darwin") return join(machine.home, "Library", "Application Support", "integ", "state");
  if (machine.platform === "win32") return join(env.LOCALAPPDATA || join(machine.home, "AppData", "Local"), "integ");
  return join(xdg(env.XDG_STATE_HOME, join(machine.home, ".local", "state")), "integ");
}

/**
 * True if a journal setting looks like a server's address. Unsupported forms (`host=… password=…`) and typing mistakes
 * (`postgres:/…`, `postgresql//…`, quoted addresses) count too: as a file name they would create a separate journal
 * with a password in its name. Users write such a file name as `./<name>`.
 */
export function isAddress(text: string): boolean {
  if (/^["'`\s]*\w+\s*=/.test(text)) return true;
  if (!text.includes(":") && !text.includes("//")) return false;
  return /^["'`\s]*(?:[a-z][a-z0-9+.-]+:|postgres\w*\/\/)|:\/\//i.test(text);
}

/** `text` is an address or an absolute path. */
export function journalPlace(text: string): JournalPlace {
  return isAddress(text) ? { address: text } : { path: text };
}

export function journalPath(env: Environment, { stateDir, cwd }: { stateDir: string; cwd: string }): string {
  const given = env.INTEG_JOURNAL;
  if (!given) return join(stateDir, "journal.ndjson");
  return isAddress(given) ? given : resolve(cwd, given);
}

/** The XDG specification requires that relative paths are ignored. */
function xdg(value: string | undefined, standard: string): string {
  return value && isAbsolute(value) ? value : standard;
}
