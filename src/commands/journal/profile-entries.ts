import type { Context } from "../../context.ts";
import type { Journal } from "../../journal/journal.ts";

/** @throws Failure `usage` if the profile is neither configured nor in the journal: an empty list would mislead */
export async function assertProfileKnown({ settings, profiles }: Context, journal: Journal): Promise<void> {
  const { profile } = settings;
  if (profile === undefined || profile === "env") return;
  const [any] = await journal.select({ all: true, profile, limit: 1 });
  if (any === undefined) await profiles.named(profile);
}
