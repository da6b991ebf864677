import { warnOfUsers } from "../running/users.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { askKey, accessKeyView, deliveredKeyView } from "./keys.ts";
import { addKeyOptions } from "./new-key.ts";
import { checkUpdatable, refuseToLockOut, warnIfLockedOut } from "./own-key.ts";
import type { RotateFlags, Rotation } from "./replacement.ts";
import { askDestination, screenOverlapMs, addSecretOptions, secretOptionsOf } from "../options/secrets.ts";
import { actingAs, printReceipt, noteUnfinished, reportDelivered, workbenchOf } from "../running/change.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { ActiveProfile } from "../../profiles/profile.ts";
import type { Destination } from "../../secrets/destination.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  contract: "legacy",
  fields: accessKeyView.columns.map(({ path }) => path),
  result: accessKeyView.columns,
  configure: (command) =>
    addSecretOptions(
      addKeyOptions(
        addDryRun(command)
          .argument(
            "[id]",
            "Id of the key. If that key was replaced, integ rotates its successor. Without an id, --name selects the key",
          )
          .option(
            "--name <name>",
            "Without <id>: name of the policy item or key to rotate. With <id> and --by-replacement: name of the new key",
          )
          .option("--update-profile", "Store the new secret as the credential of the profile in use")
          .option("--by-replacement", "Create a new key, prove that it works, then revoke the old one")
          .option(
            "--overlap <duration>",
            "With --by-replacement: how long the old key is kept (default: 0s; 24h if the secret is shown on the terminal)",
          )
          .option(
            "--overlap-unused <duration>",
            "With --by-replacement: revoke the old key once it has been unused for this long, at the latest after --overlap, which is then 14d by default",
          )
          .option(
            "--accept-unproven",
            "With --by-replacement: revoke the old key even if integ cannot prove that the new one works, or the new one is bound to another user",
          )
          .option("--new", "Start another rotation, even if one of this key is unfinished"),
      ),
    ),
  examples: [
    {
      line: "integ keys rotate ak_123 --by-replacement --overlap 36h --secret-command 'gh secret set API_KEY'",
      does: "create, deliver, prove; after 36 hours, run journal recover to revoke the old key",
    },
    { line: "integ keys rotate ak_123 --update-profile", does: "the key that this profile itself uses" },
    {
      line: "integ keys rotate ak_123 --secret-file ./key.secret",
      does: "in place: the old secret may stop working immediately, and a lost response can leave no working secret",
    },
  ],
  more: "--name, --type, --scope and --expires-in describe the new key of --by-replacement. The new key has the old key's properties, except those that you set. Set every property that the API does not show. At a terminal integ asks before it starts; in a pipe or a job, a rotation in place needs --yes. --by-replacement needs --yes only if the key may be the profile's own; it revokes the old key after the proof.",
  async run(context, { args: [typed], options: given }) {
    const { id, options } = await keyOf(context, typed, given);
    checkFlags(id, options);
    const profile = await context.profiles.active();
    const { updateProfile = false, byReplacement } = options;
    const secretProfile = options.secretProfile?.find(({ value }) => value === profile.name)?.value;
    if (updateProfile) await checkUpdatable(context, profile, id);
    // For the key's own profile, --secret-profile means --update-profile.
    const updatesOwn = updateProfile || (profile.keyId === id && secretProfile === profile.name);
    const { destination, overlap } = await destinationOf(context, profile, options);
    await profile.legacy();
    await refuseToLockOut(context, profile, { id, updateProfile, secretProfile });
    const rotation = { id, options: { ...options, overlap }, destination, updatesOwn };
    await warnOfUsers(context, [id], destination);
    if (options.dryRun && byReplacement !== true) {
      const [{ showSteps }, { keyRotationSteps }] = await Promise.all([
        import("../running/dry-run.ts"),
        import("../running/dry-changes.ts"),
      ]);
      return showSteps(context, keyRotationSteps(await workbenchOf(context), id, destination));
    }
    const rotate = byReplacement ? (await import("./replacement.ts")).rotateByReplacement : rotateInPlace;
    const newId = await rotate(context, rotation);
    if (updatesOwn || secretProfile === profile.name || newId === undefined) return;
    await warnIfLockedOut(context, profile, { id, newId, secretFile: options.secretFile?.[0]?.value });
  },
});

const pick = askKey("Which key should get a new secret?");

/** Accepts an id, a predecessor's id, or a name in a policy or in the list. */
async function keyOf<Flags extends RotateFlags>(
  context: Context,
  typed: string | undefined,
  options: Flags,
): Promise<{ readonly id: string; readonly options: Flags }> {
  const { newestSuccessorOf, resourceOfItem } = await import("../policy/item-resource.ts");
  const { name, ...others } = options;
  if (typed === undefined && name !== undefined) {
    const id = await resourceOfItem(context, "access_key", name).catch(async (error: unknown) => {
      if (!(error instanceof Failure) || error.kind !== "not_found") throw error;
      const { findKey } = await import("./find-key.ts");
      return (await findKey(context, await context.connect(), name)).key.id;
    });
    return { id, options: others as Flags };
  }
  const id = typed ?? (context.output.interactive ? await pick(context) : undefined);
  if (id === undefined) throw new Failure("usage", "<id> is missing.", { nextCommand: shell`integ keys list` });
  return { id: id.trim() === "" ? id : await newestSuccessorOf(context, id), options };
}

const defaultOverlapIfUnused = "14d";

const replacementFlags = [
  "acceptUnproven",
  "name",
  "type",
  "scope",
  "expiresAt",
  "expiresIn",
  "marker",
  "overlap",
  "overlapUnused",
] as const;

function checkFlags(id: string, options: RotateFlags): void {
  if (id.trim() === "") throw new Failure("usage", "The key's id is empty.", { nextCommand: shell`integ keys list` });
  const misplaced = replacementFlags.find((name) => options[name] !== undefined);
  if (misplaced !== undefined && !options.byReplacement) {
    const flag = misplaced.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new Failure("usage", `--${flag} is for a new key, and a rotation in place creates none.`, {
      hint: "Add --by-replacement, or leave the flag out.",
    });
  }
}

async function destinationOf(
  context: Context,
  profile: ActiveProfile,
  options: RotateFlags,
): Promise<{ readonly destination: Destination; readonly overlap?: string }> {
  const typed = secretOptionsOf(options);
  const own = { kind: "profile", name: profile.name, own: true, force: true } as const;
  const { options: secretOptions, isScreen } = options.updateProfile
    ? { options: { ...typed, to: [...typed.to, own] }, isScreen: false }
    : await askDestination(context, typed, {
        dryRun: options.dryRun,
        overlaps: options.byReplacement === true && (options.overlap ?? options.overlapUnused) === undefined,
      });
  const standard = options.overlapUnused === undefined ? isScreen && `${screenOverlapMs}ms` : defaultOverlapIfUnused;
  const overlap = (options.byReplacement && standard) || undefined;
  const destination = await context.secrets.destination(
    { ...secretOptions, yields: "access_key", mayBeOwn: true },
    (receipt) => context.output.resource(receipt, accessKeyView),
  );
  return { destination, overlap: options.overlap ?? overlap };
}

async function rotateInPlace(context: Context, { id, options, destination, updatesOwn }: Rotation): Promise<string> {
  const { output } = context;
  const bench = await workbenchOf(context);
  const { earlierRotations, rotateAccessKey } = await import("../../operations/in-place.ts");
  const settledBefore = await earlierRotations(bench, id);
  const ownKeyNote = bench.account.keyId === id ? ", and it is the one that this profile uses" : "";
  const question = `${actingAs(bench)}: rotate key ${id} in place? Its old secret may stop working immediately${ownKeyNote}.`;
  output.note(
    "The old secret may stop working before the new one arrives: if the response is lost, no secret of this key works. --by-replacement avoids this.",
  );
  if (!(await output.confirm(question, { destructive: true })))
    throw new Failure("usage", "Not rotated: the answer was no.");
  await noteUnfinished(context);
  const request = { id, updateProfile: updatesOwn };
  const fresh = options.new === true;
  const { entry, receipt } = await rotateAccessKey(bench, request, { destination, fresh, settledBefore });
  if (receipt !== undefined && !destination.isStdout) {
    await printReceipt(() => output.resource(receipt, deliveredKeyView));
    reportDelivered(context, destination);
  }
  return entry.resource_id ?? id;
}
