// Prints the settings of `profiles add` and `profiles edit` with `--dry-run`, without secrets.
import type { Context } from "../../context.ts";
import { showSteps } from "../running/dry-run.ts";

export async function showSettings(context: Context, what: string, settings: object): Promise<void> {
  await showSteps(context, [{ what, body: JSON.stringify(settings, masked) }]);
}

const secretKeys: ReadonlySet<string> = new Set(["secret", "client_secret", "token"]);

function masked(key: string, value: unknown): unknown {
  return secretKeys.has(key) && typeof value === "string" ? "(not shown)" : value;
}
