// Flags for a new access key (§2.4).
import { type FlagsOf, sharedOptions } from "../verb.ts";
import type { Context } from "../../context.ts";
import { parseLifetime } from "../options/global.ts";
import { fullTime } from "../../api/json/iso-time.ts";
import { Failure } from "../../errors.ts";

export const addKeyOptions = sharedOptions((command) =>
  command
    .option("--expires-at <time>", "Expiry time: ISO 8601 with a time zone, or never")
    .option("--expires-in <duration>", "Lifetime instead of --expires-at, such as 90d")
    .addOption(
      command
        .createOption("--type <type>", "Type of the key; user_bound keys stop working when your user account does")
        .choices(["user_bound", "service_account"] as const),
    )
    .option(
      "--scope <scope...>",
      `Scope of the key, * (full access) or push-ingest:*; repeatable (default: ${command.name() === "rotate" ? "the old key's scopes" : "*"})`,
    )
    .option(
      "--marker",
      "Add a short random mark to the name, which identifies a lost key with certainty (default: without a terminal, and with a team's journal)",
    )
    .option("--no-marker", "Send the name as given"),
);
export type KeyFlags = FlagsOf<typeof addKeyOptions> & { readonly name?: string | undefined };

/**
 * A mark identifies the key after a lost response. It is the default without a terminal, where no one can choose
 * between keys of the same name, and in a team's journal, where another person may finish the creation.
 */
export async function isMarked(
  { journal, output }: Pick<Context, "journal" | "output">,
  { marker, name }: { readonly marker?: boolean | undefined; readonly name: string },
): Promise<boolean> {
  if (marker !== undefined) return marker;
  if (output.interactive && !(await journal()).isShared) return false;
  const { leavesSpaceForMark } = await import("../../api/access-keys.ts");
  if (leavesSpaceForMark(name)) return true;
  output.note("The name is too long for a random mark, and is sent as given.");
  return false;
}

export interface Expiry {
  /** ISO 8601; null if the key never expires. */
  readonly at: string | null;
  /** Identifies the requested expiry independently of the current time, such as `in 7776000000 ms`. */
  readonly fingerprint: string;
}

/** @throws Failure `usage` for contradicting flags or an invalid value */
export function expiryOf({ expiresAt, expiresIn }: KeyFlags, nowMs: number): Expiry | undefined {
  if (expiresAt !== undefined && expiresIn !== undefined)
    throw new Failure("usage", "--expires-at and --expires-in contradict each other.", { hint: "Keep one of them." });
  if (expiresAt === "never" || expiresIn === "never") return { at: null, fingerprint: "never" };
  if (expiresAt !== undefined) return { at: fullTime(expiresAt), fingerprint: expiresAt };
  if (expiresIn === undefined) return undefined;
  const ms = parseLifetime(expiresIn, "--expires-in");
  if (ms <= 0)
    throw new Failure("usage", "--expires-in: the key would expire immediately.", {
      hint: "Use a longer lifetime, like --expires-in 90d.",
    });
  return { at: new Date(nowMs + ms).toISOString(), fingerprint: `in ${ms} ms` };
}
