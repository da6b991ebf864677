// The entries of one profile: a name that was mistyped has none, and is not a reason to say that nothing is unfinished.
import type { Context } from "../../context.ts";
import type { Journal } from "../../journal/journal.ts";

/** @throws Failure `usage` if the profile that is chosen is neither configured nor the one of any entry */
export async function assertProfileKnown({ settings, profiles }: Context, journal: Journal): Promise<void> {
  const { profile } = settings;
  if (profile === undefined || profile === "env") return;
  const [any] = await journal.select({ all: true, profile, limit: 1 });
  if (any === undefined) await profiles.named(profile);
}
