// Owns: `integ keys rotate --by-replacement`: what is asked, and how its end is told.
// Must not know: how a replacement is done; what the new key is like: replacement-request.ts.
import type { KeyReplacementRequest } from "../../changes/access-key-replacement.ts";
import type { Workbench } from "../../changes/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Destination } from "../../secrets/destination.ts";
import { parseDuration } from "../options/duration.ts";
import type { SecretFlags } from "../options/secrets.ts";
import { read } from "../read.ts";
import { ShownMeanwhile } from "../receipt.ts";
import { actingAs, mentionUnsettled, workbenchOf } from "../workbench-of.ts";
import type { KeyFlags } from "./request.ts";
import { deliveredKeyView } from "./view.ts";

export type RotateFlags = KeyFlags &
  SecretFlags & { updateProfile?: true; byReplacement?: true; overlap?: string; new?: true };

export interface Rotation {
  readonly id: string;
  readonly options: RotateFlags;
  readonly destination: Destination;
  /** The new secret takes the place of the profile's own. */
  readonly takesOwn: boolean;
}

/** Makes a key like the old one, and revokes the old one once the new one is proven. */
export async function byReplacement(context: Context, { id, options, destination, takesOwn }: Rotation): Promise<void> {
  const { output } = context;
  const bench = await workbenchOf(context);
  const request = { ...(await requestOf(context, bench, { id, options })), updateProfile: takesOwn };
  const { name, scopes, expiresAt } = request.creation.request;
  const agreed =
    !output.interactive ||
    (await output.confirm(
      `${actingAs(bench)}: make a key "${name}" (${scopes?.join(", ")}; expires ${expiresAt ?? "never"}), and revoke ${id} once it works?`,
      { destructive: true },
    ));
  if (!agreed) throw new Failure("usage", "Nothing was made: the answer was no.");
  await mentionUnsettled(context);
  const { replaceAccessKey } = await import("../../changes/access-key-replacement.ts");
  const shown = new ShownMeanwhile();
  const replaced = await replaceAccessKey(bench, request, {
    destination,
    fresh: options.new === true,
    // Not at the end: a long overlap ends with exit 8, and a script wants to know the new key.
    delivered: async (receipt) => {
      if (!destination.isStdout) await shown.show(() => output.resource(receipt, deliveredKeyView));
    },
    waitMs: 60_000,
    mayReplace: (entry) => mayReplace(context, { ...entry, id: entry.resource_id }),
    // An unproven key is never enough here: `journal recover --yes` is the place to say that it works.
    mayRevokeUnproven: () => Promise.resolve(false),
    reconnect: async () => context.connect(await context.profiles.named(bench.account.profile)),
  });
  shown.settle();
  output.note(`The new key ${replaced.newId} works, and the old one, ${replaced.oldId}, is revoked.`);
  if (replaced.receipt === undefined) output.note("Its secret was delivered by an earlier run of this command.");
}

async function requestOf(
  context: Context,
  bench: Workbench,
  { id, options }: { readonly id: string; readonly options: RotateFlags },
): Promise<Omit<KeyReplacementRequest, "updateProfile">> {
  const overlapMs = options.overlap === undefined ? 0 : parseDuration(options.overlap, "--overlap");
  const { oldKeyOf, replacementOf } = await import("./replacement-request.ts");
  const { value } = await read(context, "list access keys", () => bench.account.service.accessKeys.list());
  const old = oldKeyOf(value, id);
  const creation = replacementOf(old, options, context.clock.now());
  const isBound = creation.request.keyType === "user_bound" && old.keyType === "user_bound";
  return {
    oldId: id,
    ...(isBound && old.createdByUserId !== undefined && { boundTo: old.createdByUserId }),
    creation,
    overlapMs,
  };
}

async function mayReplace(
  context: Context,
  { id, profile, region }: { id: string | null; profile: string; region: string },
): Promise<boolean> {
  if (context.settings.yes) return true;
  if (!context.output.interactive) return false;
  return context.output.confirm(
    `Profile ${profile} (${region}): the secret of the new key ${id} is lost. Revoke that key and make another?`,
    { destructive: true },
  );
}
