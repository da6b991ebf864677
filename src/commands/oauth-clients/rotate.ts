import { rotateOAuthClient } from "../../changes/oauth-client/rotate.ts";
import type { Rotated } from "../../changes/overlap.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import { parseDuration, parseLifetime } from "../options/values.ts";
import { addSecretOptions, secretOptionsOf } from "../options/secrets.ts";
import {
  mayReplace,
  mayRevokeUnproven,
  ShownMeanwhile,
  actingAs,
  mentionUnsettled,
  overlapNote,
  withDueTime,
  workbenchOf,
} from "../running/change.ts";
import { defineVerb } from "../verb.ts";
import { askClient, oauthClientView, readClient } from "./clients.ts";

export const command = defineVerb({
  fields: oauthClientView.columns.map(({ path }) => path),
  configure: (command) =>
    addSecretOptions(
      command
        .argument("<id>", "Resource id of the client to replace")
        .option("--overlap <duration>", "How long both work after the new one is proven", "0s")
        .option("--keep-old", "Do not revoke the old client")
        .option("--replace-lost-secret", "If the new secret is lost: revoke that new client and create another")
        .option("--wait <duration>", "How long to wait for a pending client; 0s: not at all", "1m"),
    ),
  examples: [
    {
      line: "integ oauth-clients rotate oc_123 --secret-file ./client.secret",
      does: "create, deliver, prove, then revoke the old one",
    },
    {
      line: "integ oauth-clients rotate oc_123 --overlap 36h --secret-command 'deploy-secret'",
      does: "journal recover revokes the old one in 36 hours",
    },
    { line: "integ oauth-clients rotate oc_123 --keep-old --json", does: "both stay" },
  ],
  more: "One of the two clients works at every moment. If the rotation is interrupted, integ journal recover finishes it.",
  asks: askClient("Which client should be replaced?"),
  async run(context, { args: [typed], options }) {
    const overlapMs = parseLifetime(options.overlap, "--overlap");
    const waitMs = parseDuration(options.wait, "--wait");
    const keepOld = options.keepOld === true;
    if (keepOld && overlapMs > 0)
      throw new Failure("usage", "--overlap and --keep-old contradict each other.", { hint: "Leave one of them out." });
    const destination = await context.secrets.destination(
      { ...secretOptionsOf(options), yields: "oauth_client" },
      (receipt) => context.output.resource(receipt, oauthClientView),
    );
    const bench = await workbenchOf(context);
    const old = (await readClient(context, bench.account.service, typed)).value;
    const { id } = old;
    const agreed = await confirmed(context, { id, scopes: old.scopes, keepOld, as: actingAs(bench) });
    if (!agreed) throw new Failure("usage", "Nothing was rotated: the answer was no.");
    await mentionUnsettled(context);
    const shown = new ShownMeanwhile();
    const rotated = await rotateOAuthClient(
      bench,
      { old, request: { overlapMs, keepOld } },
      {
        destination,
        waitMs,
        mayReplace: (entry) => mayReplace(context, { question: questionOf(entry), entry }, options.replaceLostSecret),
        mayRevokeUnproven: (entry) => mayRevokeUnproven(context, entry),
        // Not at the end: whatever the rest comes to, a script wants to know the new client.
        delivered: async (receipt, dueAt) => {
          const text = withDueTime(receipt, dueAt);
          if (!destination.isStdout) await shown.show(() => context.output.resource(text, deliveredClientView));
        },
      },
    );
    shown.settle();
    conclude(context, rotated);
  },
});

function confirmed(
  context: Context,
  plan: { id: string; scopes: readonly string[]; keepOld: boolean; as: string },
): Promise<boolean> {
  // Nothing is lost by a rotation that keeps the old client, and a script has said what it wants.
  if (plan.keepOld || !context.output.interactive) return Promise.resolve(true);
  return context.output.confirm(
    `${plan.as}: create a client with the scopes ${plan.scopes.join(", ")}, and revoke ${plan.id} once the new one works?`,
    { destructive: true },
  );
}

function questionOf({ profile, region, resource_id }: Entry): string {
  return `Profile ${profile} (${region}): the secret of the new client ${resource_id} is lost. Revoke it and create another?`;
}

/** What `rotate` shows where the secret went elsewhere. */
const deliveredClientView = { ...oauthClientView, nulls: ["client_secret"] };

function conclude(context: Context, { oldId, oldRevoked, dueAt, entry }: Rotated): void {
  if (dueAt !== undefined) return context.output.note(overlapNote({ entry, old: oldId, dueAt }, context.clock.now()));
  context.output.note(
    oldRevoked
      ? `The old client ${oldId} is revoked.`
      : `The old client ${oldId} still works: integ oauth-clients revoke ${oldId}`,
  );
}
