// Owns: what a sandbox is started with, and the refusal of other settings over kept state.
// Must not know: servers.
import type { State } from "./state.ts";

export interface SandboxSettings {
  /** Folder of the state file; made 0700 where it is missing. */
  stateDir: string;
  /** Entities of each organization, 0 to 100,000,000; absent: what is kept, else 120. */
  entities?: number;
  /** Seed of the population and of the chance in faults; absent: what is kept, else 1. */
  seed?: number;
  /** Faults of both hosts, see `checkFault`. */
  faults?: string[];
  /** Loopback ports; absent or 0: any free one. */
  portUs?: number;
  portEu?: number;
  /** A line a request. */
  log?: (line: string) => void;
  /** Epoch milliseconds. */
  now?: () => number;
  /** False: the state lives in memory and ends with the server. */
  persist?: boolean;
}

const mostEntities = 100_000_000;
const mostSeed = 4_294_967_295;

/** @throws Error with a sentence, where a number is out of its range */
export function checkSettings(settings: SandboxSettings): void {
  const inRange = (name: string, given: { value: number | undefined; most: number }) => {
    const { value, most } = given;
    if (value === undefined || (Number.isInteger(value) && value >= 0 && value <= most)) return;
    const message = `${name} must be a whole number from 0 to ${most} (not ${value}).`;
    throw Object.assign(new Error(message), { code: "bad_setting" });
  };
  inRange("entities", { value: settings.entities, most: mostEntities });
  inRange("seed", { value: settings.seed, most: mostSeed });
  inRange("portUs", { value: settings.portUs, most: 65_535 });
  inRange("portEu", { value: settings.portEu, most: 65_535 });
}

/** @throws Error with code `settings_differ` where a setting is given that the kept state was not made with */
export function checkKept(settings: SandboxSettings, state: State): void {
  for (const name of ["entities", "seed"] as const) {
    const wanted = settings[name];
    const kept = state.settings[name];
    if (wanted === undefined || wanted === kept) continue;
    const message =
      `The sandbox's state was made with ${name} ${kept}, not ${wanted}. ` +
      `Leave the setting out, or start afresh with: integ sandbox reset`;
    throw Object.assign(new Error(message), { code: "settings_differ" });
  }
}
