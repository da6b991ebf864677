// Starts a sandbox in its own folder, with a clock that the test controls.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningSandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import type { Description } from "./player.ts";

export interface World {
  readonly description: Description;
  readonly wait: (seconds: number) => void;
  readonly close: () => Promise<void>;
}

export async function startWorld(): Promise<World> {
  let now = Date.UTC(2026, 10, 21);
  const stateDir = mkdtempSync(join(tmpdir(), "integ-world-"));
  const sandbox: RunningSandbox = await startSandbox({ stateDir, entities: 120, now: () => now });
  const { us, eu } = sandbox.describe();
  return {
    description: { us: { ...us }, eu: { ...eu } },
    wait: (seconds) => {
      now += seconds * 1000;
    },
    async close() {
      await sandbox.close();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
