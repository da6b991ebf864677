// Messages that `keys audit --fix` and `oauth-clients audit --fix` share.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { type Advice, type NextCommand, stepAs } from "../../next-step.ts";
import { type Destination, namesOf } from "../../secrets/destination.ts";
import { noteUnfinished } from "./change.ts";

/** @param planned what `--fix` will do; undefined if a person must fix the finding */
export function reportFinding(
  { output, settings }: Context,
  name: string,
  { message, remedy }: { readonly message: string; readonly remedy: NextCommand | Advice },
  planned: string | undefined,
): void {
  const next = stepAs(settings.profile, remedy);
  output.note(`${name}: ${message}. ${planned ?? (next.startsWith("integ ") ? `Next: ${next}` : next)}`);
}

/**
 * @param fixes ids with the destination of the new secret, which is undefined for a revocation
 * @throws Failure `usage` if the person declines
 */
export async function confirmFixes(
  context: Context,
  fixes: readonly (readonly [id: string, destination: Destination | undefined])[],
  words: { readonly as: string; readonly revoked?: string; readonly verb: string; readonly left: string },
): Promise<void> {
  const revoked = fixes.flatMap(([id, destination]) => (destination === undefined ? [id] : []));
  const renewed = fixes.flatMap(([id, destination]) => (destination ? [`${id} → ${namesOf(destination.record)}`] : []));
  const parts = [
    ...(revoked.length > 0 ? [`revoke ${revoked.join(", ")}${words.revoked ?? ""}`] : []),
    ...(renewed.length > 0 ? [`${words.verb} ${renewed.join(", ")}, and leave ${words.left}`] : []),
  ];
  if (!(await context.output.confirm(`${words.as}: ${parts.join("; ")}?`, { destructive: true })))
    throw new Failure("usage", "Nothing was changed: the answer was no.");
  await noteUnfinished(context);
}
