// Owns: `integ keys rotate`: the API's own rotation in place, or one by replacement.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Destination } from "../../secrets/destination.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";
import { addSecretOptions, secretOptionsOf } from "../options/secrets.ts";
import { showMade } from "../receipt.ts";
import { defineVerb } from "../verb.ts";
import { mentionUnsettled, workbenchOf } from "../workbench-of.ts";
import { askKey } from "./known-keys.ts";
import { checkUpdatable, lockOutWarning, refuseToLockOut } from "./own-key.ts";
import { addKeyOptions } from "./request.ts";
import { byReplacement, type RotateFlags, type Rotation } from "./replacement.ts";
import { accessKeyView, deliveredKeyView } from "./view.ts";

export const command = defineVerb({
  configure: (command) =>
    addSecretOptions(
      addKeyOptions(
        command
          .argument("<id>", "the key's id")
          .option("--update-profile", "the new secret becomes the credential of the profile that rotates")
          .option("--by-replacement", "make another key like it, prove it, then revoke this one: never locked out")
          .option("--overlap <duration>", "with --by-replacement: how long both work")
          .option("--new", "begin another rotation, even if one of this key is unfinished"),
      ),
    ),
  examples: [
    {
      line: "integ keys rotate ak_123 --by-replacement --overlap 36h --secret-command 'gh secret set API_KEY'",
      does: "create, deliver, prove; journal recover revokes the old key in 36 hours",
    },
    { line: "integ keys rotate ak_123 --update-profile", does: "the key that this profile itself lives on" },
    {
      line: "integ keys rotate ak_123 --secret-file ./key.secret",
      does: "in place: the old secret is dead at once, and a lost answer can leave none that works",
    },
  ],
  more: "Flags of the new key (--name, --type, --scope, --expires-in) are for --by-replacement: what the API does not tell of the old key must be given, and nothing is widened silently.",
  asks: askKey("Which key is to get a new secret?"),
  async run(context, { args: [id], options }) {
    checkFlags(id, options);
    const profile = await context.profiles.active();
    const { updateProfile = false, secretProfile, byReplacement: byReplacing } = options;
    const choice = { id, updateProfile, secretProfile, yes: context.settings.yes, byReplacement: byReplacing };
    const own = refuseToLockOut(profile, choice);
    if (updateProfile) await checkUpdatable(context, profile, id);
    // Named by hand, the profile's own place is the same work in the same order.
    const takesOwn = updateProfile || (own && secretProfile === profile.name);
    const destination = await destinationOf(context, profile, options);
    await profile.legacy();
    const warning = lockOutWarning(profile, choice);
    if (warning !== undefined) context.output.note(warning);
    if (options.byReplacement) await byReplacement(context, { id, options, destination, takesOwn });
    else await inPlace(context, { id, options, destination, takesOwn, own });
  },
});

const replacementFlags = ["name", "type", "scope", "expiresAt", "expiresIn", "nameMarker", "overlap"] as const;

function checkFlags(id: string, options: RotateFlags): void {
  if (id.trim() === "") throw new Failure("usage", "The key's id is empty.", { hint: "integ keys rotate <id>" });
  const stray = replacementFlags.find((name) => options[name] !== undefined);
  if (stray !== undefined && !options.byReplacement) {
    const flag = stray.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new Failure("usage", `--${flag} is for a new key, and the rotation in place makes none.`, {
      hint: "Add --by-replacement, or leave the flag out.",
    });
  }
  const places = ["secretFile", "secretCommand", "secretProfile"] as const;
  if (options.updateProfile && places.some((name) => options[name] !== undefined))
    throw new Failure("usage", "--update-profile is a place for the secret, and it goes to one place.", {
      hint: "Leave --update-profile or the --secret-… option out.",
    });
}

function destinationOf(context: Context, profile: ActiveProfile, options: RotateFlags): Promise<Destination> {
  const asked = secretOptionsOf(options);
  const place = options.updateProfile ? { ...asked, secretProfile: profile.name } : asked;
  return context.secrets.destination({ ...place, yields: "access_key" }, (receipt) =>
    context.output.resource(receipt, accessKeyView),
  );
}

async function inPlace(
  context: Context,
  { id, options, destination, takesOwn, own }: Rotation & { readonly own: boolean },
): Promise<void> {
  const { output } = context;
  const bench = await workbenchOf(context);
  const agreed =
    !output.interactive ||
    (await output.confirm(
      `Rotate key ${id} as profile ${bench.account.profile} (${bench.account.region})? Its old secret is dead at once${own ? ", and it is the one that this profile lives on" : ""}.`,
      { destructive: true },
    ));
  if (!agreed) throw new Failure("usage", "Not rotated: the answer was no.");
  await mentionUnsettled(context);
  output.note(
    "In place the old secret may be dead before the new one is here: if the answer is lost, no secret of this key works. --by-replacement cannot end so.",
  );
  const { rotateAccessKey } = await import("../../changes/access-key-rotation.ts");
  const request = { id, updateProfile: takesOwn };
  const { receipt } = await rotateAccessKey(bench, request, { destination, fresh: options.new === true });
  if (receipt !== undefined && !destination.isStdout) await showMade(() => output.resource(receipt, deliveredKeyView));
}
