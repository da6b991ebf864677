import { warnOfUsers } from "../running/users.ts";
import { addDryRun, defineVerb } from "../verb.ts";
import { endpointSetting, rotateOAuthClient } from "../../operations/client-rotation.ts";
import type { RotationResult } from "../../operations/rotation.ts";
import { serviceTime, type Workbench } from "../../operations/workbench.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { parseDuration, parseLifetime } from "../options/global.ts";
import { askDestination, screenOverlapMs, addSecretOptions, secretOptionsOf } from "../options/secrets.ts";
import { mayReplace, mayRevokeUnproven, actingAs, noteUnfinished, workbenchOf } from "../running/change.ts";
import { overlapNote, oldCredentialWords, receiptPrinter } from "../running/overlap-words.ts";
import { flags, shell } from "../../next-step.ts";
import { type Destination, isForProfile } from "../../secrets/destination.ts";
import { callerOf, isSecretStored } from "../keys/own-key.ts";
import { askClient, oauthClientView, readClient } from "./clients.ts";

export const command = defineVerb({
  contract: "v1",
  fields: oauthClientView.columns.map(({ path }) => path),
  result: oauthClientView.columns,
  configure: (command) =>
    addSecretOptions(
      addDryRun(command)
        .argument("[id]", "Resource id of the client. If that client was rotated, integ rotates its successor")
        .option("--name <name>", "Rotate the client of this policy item, instead of <id>")
        .option(
          "--overlap <duration>",
          "How long the old client is kept after the new one is proven (default: 0s; 24h if the secret is shown on the terminal)",
        )
        .option("--accept-unproven", "Revoke the old client even if integ cannot prove that the new one works")
        .option("--keep-old", "Do not revoke the old client")
        .option("--replace-lost-secret", "If the new secret is lost, revoke the new client and create another")
        .option("--wait <duration>", "Time to wait for a pending client; 0s: do not wait", "1m"),
    ),
  examples: [
    {
      line: "integ oauth-clients rotate oc_123 --secret-file ./client.secret",
      does: "create, deliver, prove, then revoke the old one",
    },
    {
      line: "integ oauth-clients rotate oc_123 --overlap 36h --secret-command 'deploy-secret'",
      does: "after 36 hours, run journal recover to revoke the old one",
    },
    {
      line: "integ oauth-clients rotate --name reporting --secret-file ./client.secret --force",
      does: "the client of a policy item",
    },
    { line: "integ oauth-clients rotate oc_123 --keep-old --json", does: "keep both clients" },
  ],
  more: "One of the two clients works at every moment. If the rotation is interrupted, integ journal recover finishes it. At a terminal integ asks before it starts; in a pipe or a job it asks nothing, and revokes the old client after the proof.",
  async run(context, { args: [typed], options }) {
    const typedOverlapMs = options.overlap === undefined ? undefined : parseLifetime(options.overlap, "--overlap");
    const waitMs = parseDuration(options.wait, "--wait");
    const keepOld = options.keepOld === true;
    if (keepOld && (typedOverlapMs ?? 0) > 0)
      throw new Failure("usage", "--overlap and --keep-old contradict each other.", { hint: "Leave one of them out." });
    const typedSecrets = secretOptionsOf(options);
    // integ may be updated while a person answers a question, so it loads the change's modules before any question.
    await context.loadForChange();
    const clientId = await clientOf(context, { typed, name: options.name });
    const { options: secretOptions, isScreen } = await askDestination(context, typedSecrets, {
      dryRun: options.dryRun,
      overlaps: typedOverlapMs === undefined && !keepOld,
    });
    const overlapMs = typedOverlapMs ?? (isScreen && !keepOld ? screenOverlapMs : 0);
    const destination = await context.secrets.destination(
      { ...secretOptions, yields: "oauth_client", mayBeOwn: true },
      (receipt) => context.output.resource(receipt, oauthClientView),
    );
    const bench = await workbenchOf(context);
    const old = (await readClient(context, bench.account.service, clientId)).value;
    const { id } = old;
    if (options.dryRun) {
      const [{ showSteps }, { clientRotationSteps }] = await Promise.all([
        import("../running/dry-run.ts"),
        import("../running/dry-changes.ts"),
      ]);
      return showSteps(context, clientRotationSteps(bench, { old, overlapMs, keepOld, destination }));
    }
    if (!keepOld && old.client_id === bench.account.principal) refuseOwnClient(context, bench, { id, destination });
    if (!keepOld) await warnOfUsers(context, [id], destination);
    if (!keepOld && bench.account.proof === null && options.acceptUnproven !== true)
      context.output.warn(
        `The new client cannot be proven, since the profile has no token endpoint: the old one is revoked only with --accept-unproven, or if you agree then. To prove it: ${endpointSetting(bench.account.profile)}.`,
      );
    const agreed = await confirmRotation(context, { id, scopes: old.scopes, keepOld, overlapMs, as: actingAs(bench) });
    if (!agreed) throw new Failure("usage", "Nothing was rotated: the answer was no.");
    await noteUnfinished(context);
    const { showReceipt, throwPrintError } = receiptPrinter(context, destination, deliveredClientView);
    const rotated = await rotateOAuthClient(
      { ...bench, tell: { ...bench.tell, showReceipt } },
      { old, overlapMs, keepOld },
      {
        destination,
        waitMs,
        mayReplace: (entry) => mayReplace(context, entry, options.replaceLostSecret),
        mayRevokeUnproven: (entry, words) => mayRevokeUnproven(context, entry, words, options.acceptUnproven),
      },
    );
    throwPrintError();
    reportOldClient(context, rotated, serviceTime(bench));
  },
});

/** @throws Failure `usage` without `--yes` if the caller would lose its credential */
function refuseOwnClient(
  { settings }: Context,
  { account: { profile: name } }: Workbench,
  { id, destination }: { readonly id: string; readonly destination: Destination },
): void {
  if (settings.yes || isForProfile(destination.record, name)) return;
  const caller = callerOf({ name });
  throw new Failure("usage", `${id} is the client that ${caller} uses: rotating it would lock ${caller} out.`, {
    meaning: `Nothing was changed. With ${flags.yes} it is rotated anyway: its new secret must replace the old one there.`,
    ...(isSecretStored({ name })
      ? { nextCommand: { add: [flags.secretProfile, name] } }
      : { hint: "Put the new secret where the old one is kept: add --yes and --secret-command." }),
  });
}

const pick = askClient("Which client should be replaced?");

/** Accepts an id, a predecessor's id, or a name in a policy. */
async function clientOf(
  context: Context,
  { typed, name }: { readonly typed: string | undefined; readonly name: string | undefined },
): Promise<string> {
  if (typed !== undefined && name !== undefined)
    throw new Failure("usage", "The client is named twice, by its id and by --name.", {
      meaning: "Nothing was sent.",
      hint: "Leave one of them out.",
    });
  const { newestSuccessorOf, resourceOfItem } = await import("../policy/item-resource.ts");
  if (name !== undefined) return resourceOfItem(context, "oauth_client", name);
  const id = typed ?? (context.output.interactive ? await pick(context) : undefined);
  if (id === undefined)
    throw new Failure("usage", "<id> is missing.", { nextCommand: shell`integ oauth-clients list` });
  return newestSuccessorOf(context, id);
}

function confirmRotation(
  context: Context,
  plan: { id: string; scopes: readonly string[]; keepOld: boolean; overlapMs: number; as: string },
): Promise<boolean> {
  // integ does not ask with `--keep-old`, which is safe, or without a terminal.
  if (plan.keepOld || !context.output.interactive) return Promise.resolve(true);
  return context.output.confirm(
    `${plan.as}: create a client with the scopes ${plan.scopes.join(", ")}, and ${oldCredentialWords(plan.id, plan)}?`,
    { destructive: true },
  );
}

const deliveredClientView = { ...oauthClientView, nulls: ["client_secret"] };

function reportOldClient(context: Context, { oldId, oldRevoked, dueAt, entry }: RotationResult, nowMs: number): void {
  if (dueAt !== undefined) return context.output.note(overlapNote({ entry, old: oldId, dueAt }, nowMs));
  context.output.note(
    oldRevoked
      ? `The old client ${oldId} is revoked.`
      : `The old client ${oldId} was not revoked: integ oauth-clients revoke ${oldId}`,
  );
}
