import { revokeOAuthClient } from "../../changes/oauth-client/revoke.ts";
import { Failure } from "../../errors.ts";
import { showMade, mentionUnsettled, workbenchOf } from "../running/change.ts";
import { defineVerb } from "../verb.ts";
import { askClient, oauthClientView, resourceIdOf, unknownClient } from "./clients.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  fields: oauthClientView.columns.map(({ path }) => path),
  configure: (command) => command.argument("<id>", "The client's resource id (not its client_id)"),
  examples: [
    { line: "integ oauth-clients revoke oc_123", does: "ask first; the client's tokens stop working immediately" },
    { line: "integ oauth-clients revoke oc_123 --yes", does: "skip the question; safe to repeat" },
  ],
  asks: askClient("Which client should be revoked?"),
  async run(context, { args: [typed] }) {
    if (typed.trim() === "")
      throw new Failure("usage", "The client's id is empty.", { nextCommand: shell`integ oauth-clients list` });
    const id = (await resourceIdOf(context, typed)) ?? typed;
    const bench = await workbenchOf(context);
    const { profile, region } = bench.account;
    const agreed = await context.output.confirm(
      `Revoke client ${id} as profile ${profile} (${region})? Its requests are denied immediately, also with its existing tokens.`,
      { destructive: true },
    );
    if (!agreed) throw new Failure("usage", "Not revoked: the answer was no.");
    await mentionUnsettled(context);
    const receipt = await revokeOAuthClient(bench, id).catch(async (error: unknown) => {
      throw await unknownClient(context, id, error);
    });
    await showMade(() => context.output.resource(receipt, oauthClientView));
  },
});
