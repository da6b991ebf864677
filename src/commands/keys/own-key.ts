// Owns: what `keys rotate` must know of the profile it acts as: whether the key is the one that the profile lives on, and
// whether the profile can take the new secret.
// Must not know: how a key is rotated.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";

export interface OwnKeyChoice {
  readonly id: string;
  readonly updateProfile: boolean;
  /** `--secret-profile` */
  readonly secretProfile?: string;
  readonly yes: boolean;
  readonly byReplacement?: boolean;
}

/**
 * Refuses to take the profile's own secret away without being asked to, where the profile knows its key.
 * @returns true where the key is the profile's own for certain
 * @throws Failure `usage`
 */
export function refuseToLockOut(
  profile: ActiveProfile,
  { id, updateProfile, secretProfile, yes, byReplacement = false }: OwnKeyChoice,
): boolean {
  const own = profile.keyId === id;
  if (!own || updateProfile || yes || secretProfile === profile.name) return own;
  throw new Failure(
    "usage",
    `${id} is the key that profile ${profile.name} itself lives on: rotated, the profile could do nothing more.`,
    {
      meaning: "Nothing was sent. The new secret can take the old one's place in the profile.",
      hint: `integ keys rotate ${id}${byReplacement ? " --by-replacement" : ""} --update-profile`,
    },
  );
}

/** What a person must know where the profile does not know which key it lives on; undefined where there is nothing to say. */
export function lockOutWarning(
  profile: Pick<ActiveProfile, "name" | "keyId">,
  { id, updateProfile, secretProfile, yes }: OwnKeyChoice,
): string | undefined {
  if (profile.keyId !== undefined || updateProfile || yes || secretProfile === profile.name) return undefined;
  const [home, way] =
    profile.name === "env"
      ? ["the environment holds", "its new secret must take the old one's place there"]
      : [`profile ${profile.name} itself lives on`, "add --update-profile"];
  return `If ${id} is the key that ${home}, ${way}: without it nothing more can be done.`;
}

/**
 * Checks that the profile can take the new secret in place of its own.
 * @throws Failure `usage` where it cannot
 */
export async function checkUpdatable(context: Context, profile: ActiveProfile, id: string): Promise<void> {
  const refuse = (why: string, hint?: string): Failure =>
    new Failure("usage", `--update-profile: ${why}.`, {
      meaning: "Nothing was sent.",
      ...(hint !== undefined && { hint }),
    });
  const stored = (await context.profiles.store()).get(profile.name);
  if (stored === undefined)
    throw refuse(
      `the profile ${profile.name} is not kept by integ`,
      "--secret-command puts the new secret to where the old one is kept",
    );
  const { credential } = stored;
  if (credential?.kind !== "api_key") throw refuse(`the profile ${profile.name} does not live on an access key`);
  if (credential.source === "command")
    throw refuse(
      `the profile ${profile.name} gets its key from a command`,
      "--secret-command puts the new secret to where that command reads it",
    );
  if (profile.keyId !== undefined && profile.keyId !== id)
    throw refuse(`the profile ${profile.name} lives on another key, ${profile.keyId}`);
}
