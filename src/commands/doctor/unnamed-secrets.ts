// Owns: the check for kept secrets that no profile names: what a crash between the two steps of saving a credential leaves
// (the secret is kept first, then profiles.json names it). Must not know: how it is shown. No secret is read here.
import type { Context } from "../../context.ts";
import { isSettled } from "../../journal/entry.ts";
import { secretSourceOf } from "../../profiles/profile.ts";
import type { Diagnosis } from "./checks.ts";

const check = "kept secrets";
/** Another process may be between the two steps at this moment. */
const underWayMs = 60_000;

/** Only files: what a keychain holds cannot be listed. */
export async function checkUnnamedSecrets(context: Context): Promise<Diagnosis[]> {
  const credentials = await context.profiles.credentials();
  const profiles = (await context.profiles.store()).list();
  const named = new Set(
    profiles.flatMap(({ credential }) => {
      const source = credential ? secretSourceOf(credential) : undefined;
      return source?.from === "stored" ? [source.ref] : [];
    }),
  );
  const before = context.clock.now() - underWayMs;
  const stray = credentials.kept().filter(({ ref, writtenAt }) => !named.has(ref) && writtenAt < before);
  if (stray.length === 0) return [{ check, status: "ok", message: "every one belongs to a profile", next: null }];
  const what = stray.length === 1 ? "1 file holds a secret" : `${stray.length} files hold secrets`;
  return [
    {
      check,
      status: "warning",
      message: `${what} that no profile names, left by a crash: nothing uses it`,
      next: (await isWantedBack(context))
        ? "integ journal recover"
        : `rm ${stray.map(({ path }) => `'${path.replaceAll("'", "'\\''")}'`).join(" ")}`,
    },
  ];
}

/** Unfinished work whose secret was to become a profile's: recovery first says how it ends. */
async function isWantedBack(context: Context): Promise<boolean> {
  const journal = await context.journal();
  return (await journal.entries()).some(
    ({ state, destination }) => !isSettled(state) && destination?.kind === "profile",
  );
}
